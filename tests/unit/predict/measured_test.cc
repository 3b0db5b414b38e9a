// SPDX-License-Identifier: Apache-2.0
// Measured demands: they override the prediction, tighten its bound, forget slowly, and survive being saved.
#include "predict/measured.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace horus {
namespace {

Demand Predicted() {
  Demand demand{.profile_id = 7,
                .gpu_util_pct = {60, 100},
                .mem_bw_util_pct = {20, 40},
                .mem_mib = {8000, 16'000},
                .step_time_us = {100'000, 250'000},
                .flags = kDemandUncalibrated | kDemandOutside,
                .distance = 2};
  return demand;
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Measured, OverridesWhatWasMeasuredAndNothingElse) {
  MeasuredDemands measured;
  ASSERT_TRUE(measured.Add(7, "v100", {.mem_mib = 9000}).ok());
  const Demand demand = measured.Apply("v100", Predicted());
  EXPECT_EQ(demand.mem_mib.estimate, 9000);
  EXPECT_EQ(demand.gpu_util_pct, Predicted().gpu_util_pct);
  EXPECT_EQ(demand.step_time_us, Predicted().step_time_us);
  EXPECT_NE(demand.flags & kDemandMeasured, 0u);
  EXPECT_NE(demand.flags & kDemandUncalibrated, 0u);  // other bounds still rest on the prior
  EXPECT_TRUE(ValidateDemand(demand).ok());
}

TEST(Measured, IsOfOneProfileOnOneGpuType) {
  MeasuredDemands measured;
  ASSERT_TRUE(measured.Add(7, "v100", {.mem_mib = 9000}).ok());
  EXPECT_EQ(measured.Apply("t4", Predicted()), Predicted());
  Demand other = Predicted();
  other.profile_id = 8;
  EXPECT_EQ(measured.Apply("v100", other), other);
}

TEST(Measured, BoundsTightenWithEachObservation) {
  MeasuredDemands measured;
  double last = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        measured.Add(7, "v100", {.gpu_util_pct = 50, .mem_bw_util_pct = 10, .mem_mib = 9000, .step_time_us = 80'000})
            .ok());
    const Demand demand = measured.Apply("v100", Predicted());
    const auto upper = static_cast<double>(demand.step_time_us.upper);
    EXPECT_LT(upper, last);
    EXPECT_EQ(demand.step_time_us.estimate, 80'000);
    EXPECT_LT(upper, 250'000);
    EXPECT_LT(demand.mem_mib.upper, 16'000);
    EXPECT_EQ(demand.flags & (kDemandOutside | kDemandUncalibrated), 0u);  // all of it is measured now
    EXPECT_EQ(demand.distance, 0);
    last = upper;
  }
}

TEST(Measured, MemoryIsAPeakAndItsLargestValueCounts) {
  MeasuredDemands measured;
  for (const double mib : {5000.0, 9000.0, 6000.0}) ASSERT_TRUE(measured.Add(7, "v100", {.mem_mib = mib}).ok());
  EXPECT_EQ(measured.Apply("v100", Predicted()).mem_mib.estimate, 9000);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(measured.Add(7, "v100", {.mem_mib = 5000}).ok());
  EXPECT_EQ(measured.Apply("v100", Predicted()).mem_mib.estimate, 9000);  // it may come again
}

TEST(Measured, ForgetsSlowlyAndFollowsADrift) {
  MeasuredDemands measured;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(measured.Add(7, "v100", {.step_time_us = 100'000}).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(measured.Add(7, "v100", {.step_time_us = 200'000}).ok());
  EXPECT_LT(measured.Apply("v100", Predicted()).step_time_us.estimate, 115'000);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(measured.Add(7, "v100", {.step_time_us = 200'000}).ok());
  EXPECT_GT(measured.Apply("v100", Predicted()).step_time_us.estimate, 195'000);
}

TEST(Measured, KeepsAsManyAsItMayAndForgetsTheLongestUnseen) {
  MeasuredDemands measured(3);
  for (const uint64_t profile : {1u, 2u, 3u, 1u, 4u}) {
    ASSERT_TRUE(measured.Add(profile, "v100", {.mem_mib = 1000}).ok());
  }
  EXPECT_EQ(measured.size(), 3u);
  Demand demand = Predicted();
  demand.profile_id = 2;
  EXPECT_EQ(measured.Apply("v100", demand), demand);  // seen longest ago
  demand.profile_id = 1;
  EXPECT_NE(measured.Apply("v100", demand), demand);
  EXPECT_EQ(measured.epoch(), 5u);
}

TEST(Measured, RefusesWhatCannotBeMeasured) {
  MeasuredDemands measured;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(measured.Add(0, "v100", {.mem_mib = 1}).ok());
  EXPECT_FALSE(measured.Add(7, "", {.mem_mib = 1}).ok());
  EXPECT_FALSE(measured.Add(7, "v100", {}).ok());
  for (const double value : {nan, -1.0, 100.5}) EXPECT_FALSE(measured.Add(7, "v100", {.gpu_util_pct = value}).ok());
  EXPECT_FALSE(measured.Add(7, "v100", {.step_time_us = HUGE_VAL}).ok());
  EXPECT_FALSE(measured.Add(7, "v100", {.step_time_us = 0}).ok());
  EXPECT_FALSE(measured.Add(7, "v100", {.mem_mib = 0}).ok());
  EXPECT_EQ(measured.size(), 0u);
  EXPECT_EQ(measured.epoch(), 0u);
}

TEST(Measured, SavedAndRestoredItIsTheSame) {
  MeasuredDemands measured(100);
  for (uint64_t i = 1; i < 50; ++i) {
    ASSERT_TRUE(measured
                    .Add(i, i % 2 == 0 ? "v100" : "a100-40gb",
                         {.mem_mib = 100.5 * static_cast<double>(i), .step_time_us = 3.25})
                    .ok());
  }
  const std::string saved = measured.Save();
  const auto restored = MeasuredDemands::Restore(Bytes(saved));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, measured);
  EXPECT_EQ(restored->Save(), saved);
}

TEST(Measured, RefusesEveryDamageToSavedBytes) {
  MeasuredDemands measured;
  ASSERT_TRUE(measured.Add(7, "v100", {.mem_mib = 9000, .step_time_us = 5}).ok());
  const std::string saved = measured.Save();
  for (size_t i = 0; i < saved.size(); ++i) {
    std::string damaged = saved;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_FALSE(MeasuredDemands::Restore(Bytes(damaged)).ok()) << "byte " << i;
    EXPECT_FALSE(MeasuredDemands::Restore(Bytes(saved.substr(0, i))).ok()) << "cut at " << i;
  }
  EXPECT_FALSE(MeasuredDemands::Restore(Bytes(saved + "x")).ok());
  const std::string endless = MeasuredDemands(MeasuredDemands::kMostCapacity + 1).Save();
  EXPECT_FALSE(MeasuredDemands::Restore(Bytes(endless)).ok()) << "bytes do not choose what is held later";
}

}  // namespace
}  // namespace horus
