// SPDX-License-Identifier: Apache-2.0
// Rules of the bundle file: round trips, and what is refused with which reason.
#include "trees/bundle.h"

#include <cmath>

#include "base/bytes.h"
#include "base/hash.h"
#include "gmock/gmock.h"
#include "random_forest.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

Bundle Example() {
  Bundle bundle;
  bundle.schema_hash = 0x0123456789ABCDEFu;
  bundle.data_fingerprint = 42;
  bundle.library_version = "0.1.0";
  bundle.training_summary = "600 rows of 8 families\nrmsle 0.19";
  bundle.series = {{"centre", {1, 2.5, -0.0}}, {"empty", {}}};
  bundle.targets = {{"step_time_us", Link::kExp, {{"bound", {0.1, INFINITY}}}, testing::RandomForest(1, 20, 5, 4, 6)},
                    {"utilisation_pct", Link::kExpm1, {}, testing::RandomForest(2, 3, 2, 0, 6)},
                    {"memory_mib", Link::kIdentity, {}, {.num_features = 6, .base_score = 1}}};
  return bundle;
}

std::string Written(const Bundle& bundle) {
  absl::StatusOr<std::string> bytes = WriteBundle(bundle);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

absl::StatusOr<Bundle> Read(std::string_view bytes, const BundleLimits& limits = {},
                            std::optional<uint64_t> schema = std::nullopt) {
  return ReadBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, limits, schema);
}

void Put(std::string& bytes, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(static_cast<uint8_t>(value >> (8 * i)));
}

uint64_t Get(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

// Offsets of the sections of a sound bundle, and one past the last.
std::vector<size_t> Sections(const std::string& bytes) {
  const size_t count = Get(bytes, 8) >> 32;
  std::vector<size_t> at = {32 + 16 * count};
  for (size_t i = 0; i < count; ++i) at.push_back(at.back() + Get(bytes, 32 + 16 * i));
  return at;
}

// Makes every checksum fit its bytes again, as an attacker would.
void Reseal(std::string& bytes) {
  const std::vector<size_t> at = Sections(bytes);
  for (size_t i = 0; i + 1 < at.size(); ++i) {
    Put(bytes, 40 + 16 * i, Hash64(std::string_view(bytes).substr(at[i], at[i + 1] - at[i])), 8);
  }
  Put(bytes, 24, Hash64(bytes.substr(0, 24) + bytes.substr(32, at[0] - 32)), 8);
}

TEST(Bundle, ComesBackEqualAndWritesTheSameBytes) {
  const Bundle bundle = Example();
  const std::string bytes = Written(bundle);
  const auto read = Read(bytes, {}, bundle.schema_hash);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, bundle);
  EXPECT_EQ(Written(*read), bytes);
  EXPECT_TRUE(std::signbit(read->series[0].values[2]));
  ASSERT_NE(read->FindTarget("utilisation_pct"), nullptr);
  EXPECT_EQ(read->FindTarget("utilisation_pct")->link, Link::kExpm1);
  EXPECT_EQ(read->FindTarget("power_w"), nullptr);
}

TEST(Bundle, WithoutTargetsIsABundle) {
  const auto read = Read(Written(Bundle{}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Bundle{});
}

TEST(Bundle, LinksUndoTheirLogarithm) {
  EXPECT_DOUBLE_EQ(ApplyLink(Link::kIdentity, 2.5), 2.5);
  EXPECT_DOUBLE_EQ(ApplyLink(Link::kExp, std::log(7.0)), 7.0);
  EXPECT_DOUBLE_EQ(ApplyLink(Link::kExpm1, std::log1p(55.0)), 55.0);
}

TEST(Bundle, RefusesEveryTruncation) {
  const std::string bytes = Written(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read = Read(std::string_view(bytes).substr(0, size));
    ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << size << ": " << read.status();
  }
  EXPECT_EQ(Read(bytes + "x").status().code(), absl::StatusCode::kDataLoss);
}

TEST(Bundle, NoticesEveryChangedByte) {
  const std::string bytes = Written(Example());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    ASSERT_FALSE(Read(changed).ok()) << "byte " << at;
  }
}

TEST(Bundle, RefusesANewerFormatNamingBothVersions) {
  std::string bytes = Written(Example());
  Put(bytes, 8, 7, 4);
  const absl::Status status = Read(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 7 is newer than version 1"));
}

TEST(Bundle, RefusesAnotherSchemaNamingBoth) {
  const absl::Status status = Read(Written(Example()), {}, 0xABCu).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0123456789abcdef"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0000000000000abc"));
}

TEST(Bundle, RefusesAnotherKindOfFile) {
  const absl::Status status = Read("PK\x03\x04 and so on").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a model bundle"));
  EXPECT_THAT(std::string(Read("graph,batch\nresnet.onnx,8\n").status().message()),
              HasSubstr("found a text file: 'graph,ba'"));
}

TEST(Bundle, RefusesHostileCountsBeforeAllocating) {
  const std::string sound = Written(Example());
  const std::vector<size_t> at = Sections(sound);
  // Counts of sections, series, trees and nodes that no bytes back, under correct checksums.
  const size_t series_count = at[0] + 16 + 4 + 5 + 4 + Example().training_summary.size();
  for (const size_t place : {series_count, at[1] + 8, at[1] + 12}) {
    for (const uint32_t count : {250u, 19'999u, 7'999'999u, 0xFFFFFFFFu}) {
      std::string bytes = sound;
      Put(bytes, place, count, 4);
      Reseal(bytes);
      const absl::Status status = Read(bytes).status();
      EXPECT_TRUE(status.code() == absl::StatusCode::kDataLoss || status.code() == absl::StatusCode::kResourceExhausted)
          << place << " " << count << ": " << status;
    }
  }
  std::string bytes = sound;
  Put(bytes, 12, 0xFFFFFFFFu, 4);
  EXPECT_FALSE(Read(bytes).ok());
  bytes = sound;
  Put(bytes, 32, ~uint64_t{0}, 8);  // a section longer than the file
  EXPECT_FALSE(Read(bytes).ok());
}

TEST(Bundle, RefusesAForgedForest) {
  const std::string sound = Written(Example());
  const size_t nodes = Sections(sound)[1] + 16 + 4 * 20;
  struct Forgery {
    size_t offset;
    uint32_t value;
    const char* message;
  };
  for (const Forgery& forgery : {Forgery{0, 12, "splits on feature 6 of 6"},
                                 Forgery{4, 0x7FC00000u, "finite threshold"}, Forgery{0, 0xFFFFFFFFu, "tree 0"}}) {
    std::string bytes = sound;
    Put(bytes, nodes + forgery.offset, forgery.value, 4);
    Reseal(bytes);
    const absl::Status status = Read(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(forgery.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("step_time_us"));
  }
}

TEST(Bundle, HoldsItsLimits) {
  const Bundle bundle = Example();
  const std::string bytes = Written(bundle);
  for (const BundleLimits& limits :
       {BundleLimits{.max_bytes = 100}, BundleLimits{.max_targets = 2}, BundleLimits{.max_series = 1},
        BundleLimits{.max_series_values = 2}, BundleLimits{.max_name_bytes = 11}, BundleLimits{.max_text_bytes = 5},
        BundleLimits{.forest = {.max_trees = 19}}, BundleLimits{.forest = {.max_depth = 4}}}) {
    EXPECT_EQ(Read(bytes, limits).status().code(), absl::StatusCode::kResourceExhausted)
        << Read(bytes, limits).status();
    EXPECT_EQ(WriteBundle(bundle, limits).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(Bundle, WritesNothingThatItWouldNotRead) {
  const auto refused = [](auto&& change) {
    Bundle bundle = Example();
    change(bundle);
    return !WriteBundle(bundle).ok();
  };
  EXPECT_TRUE(refused([](Bundle& b) { b.targets[0].name = ""; }));
  EXPECT_TRUE(refused([](Bundle& b) { b.targets[0].name = "a b"; }));
  EXPECT_TRUE(refused([](Bundle& b) { b.targets[1].name = b.targets[0].name; }));
  EXPECT_TRUE(refused([](Bundle& b) { b.series[1].name = b.series[0].name; }));
  EXPECT_TRUE(refused([](Bundle& b) { b.series[0].values[1] = NAN; }));
  EXPECT_TRUE(refused([](Bundle& b) { b.targets[0].link = static_cast<Link>(3); }));
  EXPECT_TRUE(refused([](Bundle& b) { b.targets[0].forest.nodes.pop_back(); }));
}

}  // namespace
}  // namespace horus
