// SPDX-License-Identifier: Apache-2.0
// Saved observations: they come back as they were, go on as if never saved, and no damage passes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "fake_model.h"
#include "interference/observed_slowdowns.h"

namespace horus {
namespace {

constexpr size_t kVersionAt = 8, kHashAt = 12, kBody = 20;

absl::Status AddDrawn(ObservedSlowdowns& observed, uint64_t i) {
  Demand victim = JobOf(1 + Mix64(i) % 5), a = JobOf(1 + Mix64(i + 50) % 5), b = JobOf(1 + Mix64(i + 99) % 5);
  if (i % 9 == 4) a.sm_cap = 0.3f;
  const std::vector<const Demand*> one = {&a}, two = {&a, &b};
  return observed.Add({.gpu = GpuName(i % 2),
                       .mode = i % 3 == 0 ? SharingMode::kMps : SharingMode::kTimeSlice,
                       .compute_share = i % 5 == 0 ? 0.5f : 1.0f,
                       .victim = &victim,
                       .others = i % 4 == 0 ? two : one,
                       .slowdown = 1 + 2 * Draw(i),
                       .device_id = i % 7,
                       .predicted = i % 3 == 1 ? 1.5 : 0,
                       .predicted_upper = i % 3 == 1 ? 2.5 : 0});
}

ObservedSlowdowns Drawn(uint64_t count, size_t capacity) {
  ObservedSlowdowns observed(capacity);
  for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(AddDrawn(observed, i).ok());
  return observed;
}

absl::StatusCode CodeOf(const std::string& bytes) { return ObservedSlowdowns::Restore(BytesOf(bytes)).status().code(); }

// With a checksum that fits.
std::string Resealed(std::string bytes) {
  const uint64_t hash = Hash64(bytes.data() + kBody, bytes.size() - kBody);
  std::memcpy(bytes.data() + kHashAt, &hash, sizeof hash);
  return bytes;
}

TEST(ObservedSave, RestoredItIsTheSameAndGoesOnTheSame) {
  for (const size_t capacity : {1u, 8u, 1'000u}) {
    for (const uint64_t count : {0u, 1u, 60u}) {
      ObservedSlowdowns observed = Drawn(count, capacity);
      auto restored = ObservedSlowdowns::Restore(BytesOf(observed.Save()));
      ASSERT_TRUE(restored.ok()) << restored.status();
      EXPECT_EQ(restored->Save(), observed.Save());
      EXPECT_EQ(restored->capacity(), capacity);
      EXPECT_EQ(restored->epoch(), count);
      EXPECT_EQ(restored->calibration(), observed.calibration());
      for (uint64_t i = 0; i < 30; ++i) {
        ASSERT_TRUE(AddDrawn(observed, 1'000 + i).ok());
        ASSERT_TRUE(AddDrawn(*restored, 1'000 + i).ok());
      }
      EXPECT_EQ(*restored, observed);
    }
  }
}

TEST(ObservedSave, RefusesEveryFlippedByteAndEveryCut) {
  const std::string saved = Drawn(12, 100).Save();  // with a cap: format 2
  std::string none = Drawn(0, 100).Save();          // format 1, and no byte of its body differs between the two
  ASSERT_EQ(std::exchange(none[kVersionAt], 2), 1);
  EXPECT_EQ(CodeOf(none), absl::StatusCode::kDataLoss);
  for (size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    EXPECT_NE(CodeOf(damaged), absl::StatusCode::kOk) << "byte " << i;
    EXPECT_EQ(CodeOf(saved.substr(0, i)), absl::StatusCode::kDataLoss) << "cut at " << i;
  }
  EXPECT_EQ(CodeOf(saved + "x"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf(Resealed(saved + "x")), absl::StatusCode::kDataLoss);
}

TEST(ObservedSave, RefusesANewerVersionByItsNumber) {
  std::string newer = Drawn(3, 100).Save();
  newer[kVersionAt] = 3;
  const absl::Status status = ObservedSlowdowns::Restore(BytesOf(newer)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(status.message().find("expected format 1 to 2, found 3"), std::string::npos) << status;
}

// Behind a checksum that fits: what is accepted is kept byte for byte, so it is what Save could have written.
TEST(ObservedSave, WhatIsAcceptedSavesTheSameBytes) {
  const std::string saved = Drawn(12, 100).Save();
  size_t refused = 0;
  for (size_t i = kBody; i < saved.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = saved;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      damaged = Resealed(damaged);
      const auto restored = ObservedSlowdowns::Restore(BytesOf(damaged));
      if (restored.ok()) {
        EXPECT_EQ(restored->Save(), damaged) << "byte " << i;
      } else {
        EXPECT_EQ(restored.status().code(), absl::StatusCode::kDataLoss);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(ObservedSave, RefusesCountsThatCannotBe) {
  const std::string saved = Drawn(6, 100).Save();
  const auto put = [&saved](size_t at, uint64_t value) {
    std::string changed = saved;
    std::memcpy(changed.data() + kBody + at, &value, sizeof value);
    return Resealed(changed);
  };
  constexpr size_t kCapacity = 0, kEpoch = 8, kSituations = 16 + 5 * 8;
  for (const uint64_t capacity : {uint64_t{0}, uint64_t{2}, ObservedSlowdowns::kMostCapacity + 1, ~uint64_t{0}}) {
    EXPECT_EQ(CodeOf(put(kCapacity, capacity)), absl::StatusCode::kDataLoss) << capacity;
  }
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{5}, ~uint64_t{0}}) {
    EXPECT_EQ(CodeOf(put(kEpoch, epoch)), absl::StatusCode::kDataLoss) << epoch;
  }
  for (const uint64_t situations : {uint64_t{0}, uint64_t{1} << 60, ~uint64_t{0}}) {
    EXPECT_EQ(CodeOf(put(kSituations, situations)), absl::StatusCode::kDataLoss) << situations;
  }
}

}  // namespace
}  // namespace horus
