// SPDX-License-Identifier: Apache-2.0
// Predicted tables: speeds are estimates, bounds count upper slowdowns, and what may not share is apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lab/truth/speed_table.h"

namespace horus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr double kFloat = 1e-6;

// A tenant loses what the other keeps the GPU busy; at most half as much again.
class BusyModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "busy"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    for (size_t i = 0; i < tenants.size(); ++i) {
      const float loss = tenants[1 - i]->gpu_util_pct.estimate / 100;
      out[i] = {1 + loss, 1 + 1.5f * loss};
    }
    return absl::OkStatus();
  }
};

Demand Job(float util, int64_t mem_mib, int64_t step_us) {
  return {.gpu_util_pct = {util, util}, .mem_mib = {mem_mib, mem_mib}, .step_time_us = {step_us, step_us}};
}

const Demand kLight = Job(25, 1000, 1000);
const Demand kHeavy = Job(100, 4000, 2000);

SpeedTable Predict(const std::vector<PredictedProfile>& profiles, const std::vector<DeviceKind>& devices) {
  const auto table = PredictSpeeds(profiles, devices, BusyModel());
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : SpeedTable{};
}

const std::vector<DeviceKind> kOne = {{.name = "gpu", .context = {}, .mem_mib = 16'000}};

// The pair (a, b) of the only device.
PairSpeed PairOf(const SpeedTable& table, uint32_t a, uint32_t b) {
  for (const PairSpeed& pair : table.pairs) {
    if (pair.a == a && pair.b == b) return pair;
  }
  ADD_FAILURE() << "no pair " << a << ", " << b;
  return {};
}

TEST(PredictSpeeds, TakesEstimatesForSpeedsAndUppersForBounds) {
  const SpeedTable table =
      Predict({{.name = "light", .demands = {&kLight}}, {.name = "heavy", .demands = {&kHeavy}}}, kOne);
  EXPECT_THAT(table.profiles, ElementsAre("light", "heavy"));
  EXPECT_THAT(table.alone, ElementsAre(1000, 500));  // steps a second
  ASSERT_EQ(table.pairs.size(), 3);
  const PairSpeed pair = PairOf(table, 0, 1);
  EXPECT_THAT(pair.speed_a, DoubleNear(0.5, kFloat));
  EXPECT_THAT(pair.speed_b, DoubleNear(0.8, kFloat));
  EXPECT_THAT(pair.slowdown, DoubleNear(2.5, kFloat));
  EXPECT_FALSE(pair.IsAdmitted(2.4));
  EXPECT_TRUE(pair.IsAdmitted(2.6));
}

TEST(PredictSpeeds, MemoryKeepsApartWhatDoesNotFitBesideTheHeadroom) {
  // 4000 + 4000 + 500 MiB of headroom.
  for (const int64_t mem_mib : {8499, 8500}) {
    const SpeedTable table =
        Predict({{.name = "heavy", .demands = {&kHeavy}}}, {{.name = "gpu", .context = {}, .mem_mib = mem_mib}});
    EXPECT_EQ(PairOf(table, 0, 0).Runs(), mem_mib == 8500);
  }
  const SpeedTable small =
      Predict({{.name = "heavy", .demands = {&kHeavy}}}, {{.name = "gpu", .context = {}, .mem_mib = 4400}});
  EXPECT_THAT(small.alone, ElementsAre(0));
  EXPECT_TRUE(small.pairs.empty());
}

TEST(PredictSpeeds, KeepsApartWhoDoesNotShare) {
  const SpeedTable table = Predict({{.name = "alone", .demands = {&kLight}, .exclusive = true},
                                    {.name = "most", .demands = {&kLight}, .gpu_milli = 600},
                                    {.name = "some", .demands = {&kLight}, .gpu_milli = 400},
                                    {.name = "picky", .demands = {&kLight}, .slowdown_bound = 1.4}},
                                   kOne);
  EXPECT_FALSE(PairOf(table, 0, 2).Runs());
  EXPECT_FALSE(PairOf(table, 1, 1).Runs());
  EXPECT_TRUE(PairOf(table, 1, 2).Runs());
  EXPECT_TRUE(PairOf(table, 3, 3).Runs());  // upper slowdown 1.375
  const SpeedTable beside = Predict(
      {{.name = "picky", .demands = {&kLight}, .slowdown_bound = 1.3}, {.name = "light", .demands = {&kLight}}}, kOne);
  EXPECT_FALSE(PairOf(beside, 0, 1).Runs());
  EXPECT_TRUE(PairOf(beside, 1, 1).Runs());
  std::vector<DeviceKind> exclusive = kOne;
  exclusive[0].shares = false;
  EXPECT_FALSE(PairOf(Predict({{.name = "light", .demands = {&kLight}}}, exclusive), 0, 0).Runs());
}

TEST(PredictSpeeds, WithoutAStepTimeEverywhereSpeedsCountAlike) {
  const Demand untimed = Job(25, 1000, 0);
  const std::vector<DeviceKind> two = {kOne[0], {.name = "other", .context = {}, .mem_mib = 16'000}};
  EXPECT_THAT(Predict({{.name = "half", .demands = {&kLight, &untimed}}}, two).alone, ElementsAre(1, 1));
  EXPECT_THAT(Predict({{.name = "here", .demands = {&kLight, nullptr}}}, two).alone, ElementsAre(1000, 0));
}

}  // namespace
}  // namespace horus
