// SPDX-License-Identifier: Apache-2.0
// Observed slowdowns: what is refused, what is remembered, how a mean moves, and saved bytes.
#include "interference/observed_slowdowns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "fake_model.h"
#include "interference/pair_model.h"

namespace horus {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double MeanOf(const ObservedSlowdowns& observed) {
  EXPECT_EQ(observed.situations().size(), 1u);
  return std::exp(observed.situations().begin()->second.mean);
}

TEST(ObservedSlowdowns, RefusesEveryBadFieldAndChangesNothing) {
  ObservedSlowdowns observed;
  ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 1.5).ok());
  const std::string before = observed.Save();
  const Demand victim = JobOf(1), other = JobOf(2);
  const std::vector<const Demand*> others = {&other}, crowd(kMostCoTenants + 1, &other), missing = {&other, nullptr};
  Demand nameless = other, invalid = other;
  nameless.profile_id = 0;
  invalid.gpu_util_pct = {50, 20};
  const std::vector<const Demand*> of_nameless = {&nameless}, of_invalid = {&invalid};
  const auto refused = [&](const char* named, auto change) {
    SlowdownObservation o{.gpu = GpuName(), .victim = &victim, .others = others, .slowdown = 1.5};
    change(o);
    const absl::Status status = observed.Add(o);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), std::string::npos) << status;
    EXPECT_EQ(observed.Save(), before) << named;
  };
  for (const double slowdown : {0.0, -1.0, kNan, 1e9, HUGE_VAL, 0.49, 1000.1}) {
    refused("slowdown", [&](auto& o) { o.slowdown = slowdown; });
  }
  for (const double predicted : {-1.0, 0.5, kNan, 2e9}) {
    refused("predicted", [&](auto& o) { o.predicted = predicted; });
    refused("predicted_upper", [&](auto& o) { o.predicted_upper = predicted; });
  }
  refused("predicted_upper", [](auto& o) { o.predicted = 2, o.predicted_upper = 1.5; });
  refused("gpu", [](auto& o) { o.gpu = ""; });
  const std::string endless(257, 'x');
  refused("gpu", [&](auto& o) { o.gpu = endless; });
  refused("sharing_mode", [](auto& o) { o.mode = static_cast<SharingMode>(9); });
  for (const float share : {0.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    refused("compute_share", [&](auto& o) { o.compute_share = share; });
  }
  refused("NULL", [](auto& o) { o.victim = nullptr; });
  refused("co_tenants[1]", [&](auto& o) { o.others = missing; });
  refused("profile_id", [&](auto& o) { o.victim = &nameless; });
  refused("co_tenants[0].profile_id", [&](auto& o) { o.others = of_nameless; });
  refused("gpu_util_pct", [&](auto& o) { o.victim = &invalid; });
  refused("gpu_util_pct", [&](auto& o) { o.others = of_invalid; });
  refused("co-tenants", [](auto& o) { o.others = {}; });
  refused("co-tenants", [&](auto& o) { o.others = crowd; });
}

TEST(ObservedSlowdowns, TakesWhatLiesAtTheLimits) {
  ObservedSlowdowns observed;
  for (const double slowdown : {kLeastMeasuredSlowdown, kMostMeasuredSlowdown}) {
    EXPECT_TRUE(Observe(observed, std::vector<Demand>(1 + kMostCoTenants, JobOf(1)), slowdown).ok());
  }
  EXPECT_EQ(observed.epoch(), 2u);
}

TEST(ObservedSlowdowns, TheLongestUnseenGoesFirst) {
  ObservedSlowdowns observed(3);
  for (const uint64_t victim : {1u, 2u, 3u, 1u, 4u}) {
    ASSERT_TRUE(Observe(observed, {JobOf(victim), JobOf(9)}, 1.5).ok());
  }
  std::set<uint64_t> left;
  for (const auto& [age, situation] : observed.situations()) left.insert(situation.tenants[0].profile_id);
  EXPECT_EQ(left, (std::set<uint64_t>{1, 3, 4}));
  EXPECT_EQ(observed.epoch(), 5u);
}

TEST(ObservedSlowdowns, CapacityBoundsTheMemory) {
  constexpr size_t kCapacity = 100;
  constexpr size_t kMostBytes = kCapacity * 2'000;  // three tenants a situation, and vectors grow by doubling
  ObservedSlowdowns observed(kCapacity);
  Demand victim = JobOf(1), second = JobOf(2);
  const Demand third = JobOf(3);
  const std::vector<const Demand*> others = {&second, &third};
  for (uint64_t i = 0; i < 100'000; ++i) {
    victim.profile_id = 1 + i;
    second.profile_id = 1 + Mix64(i);
    ASSERT_TRUE(
        observed.Add({.gpu = GpuName(), .victim = &victim, .others = others, .slowdown = 2, .device_id = 1 + i}).ok());
  }
  EXPECT_EQ(observed.situations().size(), kCapacity);
  EXPECT_EQ(observed.DevicesOldestFirst().size(), kCapacity);
  EXPECT_LT(observed.bytes_held(), kMostBytes);
  EXPECT_EQ(observed.epoch(), 100'000u);
}

TEST(ObservedSlowdowns, TheOrderOfCoTenantsDoesNotMatter) {
  std::vector<Demand> jobs = {JobOf(9), JobOf(4), JobOf(2), JobOf(7)};
  ObservedSlowdowns sorted, shuffled;
  for (int i = 0; i < 6; ++i) {
    std::vector<Demand> ordered = jobs;
    std::sort(ordered.begin() + 1, ordered.end(),
              [](const auto& a, const auto& b) { return a.profile_id < b.profile_id; });
    ASSERT_TRUE(Observe(sorted, ordered, 1.5 + i).ok());
    ASSERT_TRUE(Observe(shuffled, jobs, 1.5 + i).ok());
    std::next_permutation(jobs.begin() + 1, jobs.end(),
                          [](const auto& a, const auto& b) { return a.profile_id < b.profile_id; });
  }
  EXPECT_EQ(sorted, shuffled);
  EXPECT_EQ(sorted.situations().size(), 1u);
}

TEST(ObservedSlowdowns, VictimGpuModeAndShareTellSituationsApart) {
  ObservedSlowdowns observed;
  const Demand a = JobOf(1), b = JobOf(2);
  const std::vector<const Demand*> of_a = {&a}, of_b = {&b};
  const SlowdownObservation first{.gpu = GpuName(), .victim = &a, .others = of_b, .slowdown = 2};
  SlowdownObservation turned = first, elsewhere = first, mode = first, slice = first;
  turned.victim = &b;
  turned.others = of_a;
  elsewhere.gpu = GpuName(1);
  mode.mode = SharingMode::kMps;
  slice.compute_share = 0.5f;
  for (const auto& o : {first, turned, elsewhere, mode, slice}) ASSERT_TRUE(observed.Add(o).ok());
  EXPECT_EQ(observed.situations().size(), 5u);
}

TEST(ObservedSlowdowns, AnOutlierMovesAMeanOfSeveralByLittle) {
  for (const int before : {3, 10, 30}) {
    for (const double outlier : {0.5, 4.0, 1000.0}) {
      ObservedSlowdowns observed;
      for (int i = 0; i < before; ++i)
        ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, i % 2 == 0 ? 1.98 : 2.02).ok());
      const double mean = MeanOf(observed);
      ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, outlier).ok());
      EXPECT_NEAR(MeanOf(observed), mean, 0.16 / (before + 1) * mean);  // three spreads of 5 %, shared by all
      EXPECT_NE(MeanOf(observed), mean);
    }
  }
}

TEST(ObservedSlowdowns, ALastingChangeIsFollowed) {
  for (const double next : {1.2, 6.0}) {
    ObservedSlowdowns observed;
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, 3).ok());
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(Observe(observed, {JobOf(1), JobOf(2)}, next).ok());
    EXPECT_NEAR(MeanOf(observed), next, 0.05 * next);
  }
}

TEST(ObservedSlowdowns, FollowsPredictionsOfDevices) {
  ObservedSlowdowns observed;
  const Demand a = JobOf(1), b = JobOf(2);
  const std::vector<const Demand*> others = {&b};
  SlowdownObservation o{.gpu = GpuName(),
                        .victim = &a,
                        .others = others,
                        .slowdown = 3,
                        .device_id = 7,
                        .predicted = 2,
                        .predicted_upper = 2.5};
  ASSERT_TRUE(observed.Add(o).ok());
  o.slowdown = 1;
  ASSERT_TRUE(observed.Add(o).ok());
  o.device_id = 0;  // not followed, but it counts in the calibration
  o.slowdown = 2;
  ASSERT_TRUE(observed.Add(o).ok());
  o.predicted = o.predicted_upper = 0;  // unknown: it counts in nothing
  ASSERT_TRUE(observed.Add(o).ok());
  const RunningCalibration& c = observed.calibration();
  EXPECT_EQ(c.weight, 3);
  EXPECT_EQ(c.bound_weight, 3);
  EXPECT_NEAR(c.error, (0.5 + 0.5 + 0) / 3, 1e-12);
  EXPECT_NEAR(c.bias, 0, 1e-12);
  EXPECT_NEAR(c.covered, 2.0 / 3, 1e-12);
  const DeviceRecord expected{.device_id = 7,
                              .profile_id = 1,
                              .slowdown = 1,
                              .predicted = 2,
                              .predicted_upper = 2.5,
                              .observations = 2,
                              .seen = 2};
  EXPECT_EQ(observed.DevicesOldestFirst(), std::vector<DeviceRecord>{expected});
}

TEST(ObservedSlowdowns, DevicesAndProfilesOfEqualNumbersAreToldApart) {
  ObservedSlowdowns observed;
  for (uint64_t device = 1; device <= 4; ++device) {
    for (uint64_t profile = 1; profile <= 4; ++profile) {
      const Demand victim = JobOf(profile), other = JobOf(9);
      const std::vector<const Demand*> others = {&other};
      ASSERT_TRUE(observed.Add({.gpu = GpuName(), .victim = &victim, .others = others, .device_id = device}).ok());
    }
  }
  EXPECT_EQ(observed.DevicesOldestFirst().size(), 16u);
}

TEST(ObservedSlowdowns, TheLastThousandPredictionsCount) {
  ObservedSlowdowns observed;
  const Demand a = JobOf(1), b = JobOf(2);
  const std::vector<const Demand*> others = {&b};
  SlowdownObservation o{.gpu = GpuName(), .victim = &a, .others = others, .slowdown = 4, .predicted = 2};
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(observed.Add(o).ok());
  EXPECT_NEAR(observed.calibration().error, 1, 1e-9);
  o.slowdown = 2;
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(observed.Add(o).ok());
  EXPECT_EQ(observed.calibration().weight, 1'000);
  EXPECT_LT(observed.calibration().error, 0.01);
}

}  // namespace
}  // namespace horus
