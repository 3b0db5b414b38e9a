// SPDX-License-Identifier: Apache-2.0
// Predicted tables: speeds are estimates, bounds count upper slowdowns, and what may not share is apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "lab/truth/speed_table.h"
#include "place/placer.h"
#include "place/policies/policies.h"

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
      const float loss = tenants.size() < 2 ? 0 : tenants[1 - i]->gpu_util_pct.estimate / 100;
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

JobSpec Named(const char* name, const Demand& demand) {
  JobSpec job;
  job.name = name;
  job.demands = {{GpuTypeId(), demand}};
  return job;
}

DeviceKind Kind(const char* type, int64_t mem_mib, DeviceSpec device = {}) {
  device.type = *Catalogue::Default()->Find(type);
  device.mem_mib = mem_mib;
  DeviceKind kind{.name = type, .node = {}};
  kind.node.devices = DeviceList({device});
  return kind;
}

SpeedTable Predict(const std::vector<JobSpec>& jobs, const std::vector<DeviceKind>& kinds,
                   const FitLimits& limits = {}) {
  const auto table = PredictSpeeds(jobs, kinds, Catalogue::Default(), BusyModel(), limits);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : SpeedTable{};
}

const std::vector<DeviceKind> kOne = {Kind("v100", 16'000)};

// The pair (a, b) of the only device.
PairSpeed PairOf(const SpeedTable& table, uint32_t a, uint32_t b) {
  for (const PairSpeed& pair : table.pairs) {
    if (pair.a == a && pair.b == b) return pair;
  }
  ADD_FAILURE() << "no pair " << a << ", " << b;
  return {};
}

bool Share(const JobSpec& a, const JobSpec& b, const std::vector<DeviceKind>& kinds = kOne,
           const FitLimits& limits = {}) {
  return PairOf(Predict({a, b}, kinds, limits), 0, 1).Runs();
}

TEST(PredictSpeeds, TakesEstimatesForSpeedsAndUppersForBounds) {
  const SpeedTable table = Predict({Named("light", kLight), Named("heavy", kHeavy)}, kOne);
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
  const JobSpec heavy = Named("heavy", kHeavy);
  // 4000 + 4000 + 500 MiB of headroom.
  for (const int64_t mem_mib : {8499, 8500}) {
    EXPECT_EQ(Share(heavy, heavy, {Kind("v100", mem_mib)}), mem_mib == 8500);
  }
  EXPECT_TRUE(Share(heavy, heavy, {Kind("v100", 8000)}, {.mem_headroom_mib = 0}));
  const SpeedTable small = Predict({heavy}, {Kind("v100", 4400)});
  EXPECT_THAT(small.alone, ElementsAre(0));
  EXPECT_TRUE(small.pairs.empty());
}

TEST(PredictSpeeds, KeepsApartWhoDoesNotShare) {
  const JobSpec light = Named("light", kLight);
  JobSpec alone = light, most = light, some = light, picky = light;
  alone.exclusive = true;
  most.gpu_milli = 600;
  some.gpu_milli = 400;
  EXPECT_FALSE(Share(alone, some));
  EXPECT_FALSE(Share(most, most));
  EXPECT_TRUE(Share(most, some));
  picky.slowdown_bound = 1.4f;
  EXPECT_TRUE(Share(picky, picky));  // upper slowdown 1.375
  picky.slowdown_bound = 1.3f;
  EXPECT_FALSE(Share(picky, light));
  EXPECT_FALSE(Share(light, picky));
  EXPECT_FALSE(Share(light, light, {Kind("v100", 16'000, {.mode = SharingMode::kExclusive})}));
  EXPECT_FALSE(Share(light, light, {Kind("v100", 16'000, {.max_tenants = 1})}));
  EXPECT_FALSE(Share(light, light, kOne, {.max_tenants = 1}));
}

TEST(PredictSpeeds, OwnersGroupsAndLabelsAreThoseOfThePlacer) {
  JobSpec red = Named("red", kLight), blue = Named("blue", kLight);
  red.tenant = "red";
  blue.tenant = "blue";
  EXPECT_FALSE(Share(red, blue));
  EXPECT_TRUE(Share(red, red));
  red.share = blue.share = ShareWith::kAnyone;
  EXPECT_TRUE(Share(red, blue));
  red.groups = blue.avoid_groups = {"web"};
  EXPECT_FALSE(Share(red, blue));
  EXPECT_FALSE(Share(blue, red));
  EXPECT_TRUE(Share(red, red));
  std::vector<DeviceKind> east = kOne;
  east[0].node.labels = {{"zone", "east"}};
  red.node_selector = {{"zone", "east"}};
  EXPECT_THAT(Predict({red}, kOne).alone, ElementsAre(0));
  EXPECT_THAT(Predict({red}, east).alone, ElementsAre(1000));
}

// Whatever two jobs ask for: they share in the table where a placer puts the second beside the first.
TEST(PredictSpeeds, AgreesWithThePlacerOnRandomPairs) {
  uint64_t drawn = 0;
  const auto below = [&](size_t count) { return Mix64(++drawn) % count; };
  const auto placer = *Placer::Create(std::make_shared<BusyModel>(), *MakePolicy("first-fit"),
                                      {.slowdown_bound = std::numeric_limits<double>::infinity()});
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[below(all.size())];
  };
  size_t shared = 0;
  constexpr size_t kPairs = 500;
  for (size_t i = 0; i < kPairs; ++i) {
    const auto job = [&](JobId id) {
      JobSpec made = Named("job", pick(kLight, kHeavy));
      made.id = id;
      made.tenant = pick("", "red", "blue");
      made.share = pick(ShareWith::kSameTenant, ShareWith::kAnyone, ShareWith::kAnyone);
      made.exclusive = below(8) == 0;
      made.gpu_milli = pick(0, 0, 400, 600);
      made.gpu_mem_request_mib = pick(0, 0, 3000, 7000);
      made.slowdown_bound = pick(0.0f, 0.0f, 1.3f, 2.0f);
      made.cpu_milli = pick(0, 3000, 5000);
      made.groups = {pick("a", "b")};
      made.avoid_groups = {pick("b", "c", "d")};
      return made;
    };
    DeviceKind kind = Kind("v100", pick(9000, 16'000),
                           {.mode = pick(SharingMode::kExclusive, SharingMode::kTimeSlice, SharingMode::kMps),
                            .max_tenants = pick(0, 1, 2)});
    kind.node.cpu_milli = 8000;
    const std::vector<JobSpec> jobs = {job(1), job(2)};
    Cluster cluster(Catalogue::Default());
    ASSERT_TRUE(cluster.AddNode(kind.node).ok());
    const auto plan = placer->MakePlan(cluster, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const bool both = plan->actions.size() == 2;
    EXPECT_EQ(Share(jobs[0], jobs[1], {kind}), both) << "pair " << i;
    shared += both ? 1 : 0;
  }
  EXPECT_GT(shared, kPairs / 50);
}

TEST(PredictSpeeds, WithoutAStepTimeEverywhereSpeedsCountAlike) {
  const Demand untimed = Job(25, 1000, 0);
  const std::vector<DeviceKind> two = {Kind("v100", 16'000), Kind("t4", 16'000)};
  const auto on = [&](size_t kind, const Demand& demand) { return TypeDemand{two[kind].node.devices[0].type, demand}; };
  JobSpec half = Named("half", kLight), here = Named("here", kLight);
  half.demands = {on(0, kLight), on(1, untimed)};
  NormalizeJob(half);
  here.demands = {on(0, kLight)};
  EXPECT_THAT(Predict({half}, two).alone, ElementsAre(1, 1));
  EXPECT_THAT(Predict({here}, two).alone, ElementsAre(1000, 0));
}

}  // namespace
}  // namespace horus
