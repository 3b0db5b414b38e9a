// SPDX-License-Identifier: Apache-2.0
// Rules of the built-in policies.
#include "place/search/policy.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "fixtures.h"
#include "place/policies/policies.h"

namespace horus {
namespace {

using testing_place::Decide;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

Slot Choose(const Cluster& cluster, const JobSpec& job, std::string_view policy, uint64_t seed = 0) {
  const auto plan = MakePlacer(policy, {}, seed)->MakePlan(cluster, {&job, 1});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->decisions.at(0).slots.empty() ? Slot{0, -1, 0} : plan->decisions[0].slots[0];
}

// Node 1: devices with 90 % and 30 % busy; node 2: both idle.
Cluster Mixed() {
  Cluster cluster = Nodes(2);
  EXPECT_TRUE(cluster.Adopt(OneGpu(100, 90), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(OneGpu(101, 30, 6000), std::vector<Slot>{{1, 1, 0}}).ok());
  return cluster;
}

TEST(Policy, ListsTheNamesWhenOneIsUnknown) {
  const auto policy = MakePolicy("horos");
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(policy.status().message()), testing::HasSubstr("horus, first-fit, exclusive"));
  for (const std::string_view name : PolicyNames()) EXPECT_EQ((*MakePolicy(name))->name(), name);
}

TEST(HorusPolicy, SharesWhereSharingCostsNothing) {
  EXPECT_EQ(Choose(Mixed(), OneGpu(1, 60), "horus"), (Slot{1, 1, 0}));
}

TEST(HorusPolicy, TakesAnIdleDeviceWhereSharingLosesWork) {
  EXPECT_EQ(Choose(Mixed(), OneGpu(1, 80), "horus"), (Slot{2, 0, 0}));
}

TEST(HorusPolicy, DeclinesASharingThatGainsNothing) {
  Cluster cluster = Nodes(1, 1);
  JobSpec resident = OneGpu(100, 100);
  resident.slowdown_bound = 10;
  ASSERT_TRUE(cluster.Adopt(resident, std::vector<Slot>{{1, 0, 0}}).ok());
  JobSpec job = OneGpu(1, 100);
  job.slowdown_bound = 10;
  const auto plan = MakePlacer()->MakePlan(cluster, {&job, 1});
  EXPECT_EQ(plan->decisions[0].verdict, Verdict::kDefer);
  EXPECT_EQ(plan->decisions[0].reason, Reason::kPolicy);
}

// 60 % beside 90 %: both do 2/3, so that the newcomer brings 2/3 and the resident loses 1/3. One that counts twice as
// much loses all that the newcomer brings.
TEST(HorusPolicy, CountsTheWorkOfNeighboursByTheirWeight) {
  const auto verdict = [](float newcomer, float resident) {
    Cluster cluster = Nodes(1, 1);
    JobSpec there = OneGpu(100, 90);
    there.slowdown_bound = 10;
    there.weight = resident;
    EXPECT_TRUE(cluster.Adopt(there, std::vector<Slot>{{1, 0, 0}}).ok());
    JobSpec job = OneGpu(1, 60);
    job.slowdown_bound = 10;
    job.weight = newcomer;
    const auto plan = MakePlacer()->MakePlan(cluster, {&job, 1});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->decisions.at(0).verdict;
  };
  EXPECT_EQ(verdict(1, 1), Verdict::kPlace);
  EXPECT_EQ(verdict(1, 1.9f), Verdict::kPlace);
  EXPECT_EQ(verdict(1, 2.1f), Verdict::kDefer);
  EXPECT_EQ(verdict(1000, 2100), Verdict::kDefer) << "weights count as a ratio";
  EXPECT_EQ(verdict(2, 2.1f), Verdict::kPlace);
}

// The same two on a type where the newcomer runs at a quarter of its speed: it brings 1/6, and a resident that is as
// slow there loses 1/12, one that knows no faster type 1/3.
TEST(HorusPolicy, CountsTheWorkOfNeighboursByTheirSpeedThere) {
  const auto listing = [](JobSpec job, bool faster_elsewhere) {
    job.slowdown_bound = 10;
    job.demands[0].type = Type("v100-sxm2-16gb");
    job.demands[0].demand.step_time_us = {400'000, 400'000};
    if (faster_elsewhere) job.demands.push_back({Type("a100-40gb"), Needs(50, 4000, 100'000)});
    NormalizeJob(job);
    return job;
  };
  for (const bool as_slow : {true, false}) {
    Cluster cluster = Nodes(1, 1);
    ASSERT_TRUE(cluster.Adopt(listing(OneGpu(100, 90), as_slow), std::vector<Slot>{{1, 0, 0}}).ok());
    const JobSpec job = listing(OneGpu(1, 60), true);
    const auto plan = MakePlacer()->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->decisions.at(0).verdict, as_slow ? Verdict::kPlace : Verdict::kDefer);
  }
}

// Beside either neighbour the newcomer is as slow; the light one is worth less.
TEST(HorusPolicy, GoesBesideTheLighterOfTwoAlikeNeighbours) {
  Cluster cluster = Nodes(1, 2);
  for (const JobId id : {JobId{100}, JobId{101}}) {
    JobSpec there = OneGpu(id, 80);
    there.weight = id == 100 ? 2.0f : 0.5f;
    ASSERT_TRUE(cluster.Adopt(there, std::vector<Slot>{{1, static_cast<int32_t>(id - 100), 0}}).ok());
  }
  EXPECT_EQ(Choose(cluster, OneGpu(1, 40), "horus"), (Slot{1, 1, 0}));
  EXPECT_EQ(Choose(cluster, OneGpu(1, 40), "best-fit"), (Slot{1, 0, 0})) << "others do not read it";
}

TEST(HorusPolicy, PrefersTheTypeOnWhichTheJobIsFaster) {
  Cluster cluster(Catalogue::Default());
  NodeSpec slow = V100Node(1);
  for (DeviceSpec& device : slow.devices) device.type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(slow).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(2)).ok());
  JobSpec job = OneGpu(1);
  job.demands = {{Type("k80"), Needs(90, 4000, 400'000)}, {Type("v100-sxm2-16gb"), Needs(50, 4000, 100'000)}};
  NormalizeJob(job);
  EXPECT_EQ(Choose(cluster, job, "horus").node, 2u);
}

TEST(HorusPolicy, KeepsIdleNodesForGangs) {
  Cluster cluster = Nodes(3);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 100), std::vector<Slot>{{2, 0, 0}}).ok());
  EXPECT_EQ(Choose(cluster, OneGpu(1, 90), "horus"), (Slot{2, 1, 0}));
}

TEST(HorusPolicy, LeavesLargeGpusAndNodesToThoseWhoNeedThem) {
  Cluster cluster(Catalogue::Default());
  NodeSpec large = V100Node(1, 2), small = V100Node(2, 2);
  large.devices.assign(2, DeviceSpec{.type = Type("a100-80gb")});
  ASSERT_TRUE(cluster.AddNode(large).ok());
  ASSERT_TRUE(cluster.AddNode(small).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(3, 1)).ok());
  JobSpec whole = OneGpu(1), exclusive = OneGpu(2), pair = Gang(3, 1, 2);
  whole.gpu_milli = pair.gpu_milli = kMilliPerGpu, exclusive.exclusive = true;
  for (JobSpec* job : {&whole, &exclusive, &pair}) job->demands[0].demand.mem_mib = {};  // nobody knows
  EXPECT_EQ(Decide(cluster, whole).slots.front(), (Slot{3, 0, 0})) << "of the smaller GPUs, the node with fewer";
  EXPECT_EQ(Decide(cluster, exclusive).slots.front(), (Slot{3, 0, 0}));
  EXPECT_EQ(Decide(cluster, pair).slots.front().node, 2u);
  ASSERT_TRUE(cluster.Adopt(whole, std::vector<Slot>{{2, 0, 0}}).ok());
  whole.id = 4;
  EXPECT_EQ(Decide(cluster, whole).slots.front(), (Slot{2, 1, 0})) << "before a node is opened";
}

TEST(HorusPaperPolicy, PaysMoreForAResidentThanForAnEmptyDevice) {
  EXPECT_EQ(Choose(Mixed(), OneGpu(1, 70), "horus-paper").node, 2u);
}

TEST(HorusPaperPolicy, PricesAsPublished) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 80), std::vector<Slot>{{1, 0, 0}}).ok());
  const JobSpec job = OneGpu(1, 50);
  const auto plan = MakePlacer("horus-paper")->MakePlan(cluster, {&job, 1});
  // memory (4000 + 4000) / 16384, over-commit 80 + 50 - 100 = 30, one resident
  EXPECT_NEAR(plan->decisions[0].winner.cost, 1.3 * 8000 / 16384 + 1.6 * 30 / 100 + 1, 1e-12);
}

TEST(FirstFitPolicy, TakesTheLowestNodeAndDevice) {
  EXPECT_EQ(Choose(Mixed(), OneGpu(1, 100), "first-fit"), (Slot{1, 0, 0}));
}

TEST(BestFitPolicy, TakesTheDeviceThatKeepsLeastMemoryFree) {
  EXPECT_EQ(Choose(Mixed(), OneGpu(1, 100), "best-fit"), (Slot{1, 1, 0}));
}

TEST(ExclusivePolicy, SharesWithNobody) { EXPECT_EQ(Choose(Mixed(), OneGpu(1, 1), "exclusive"), (Slot{2, 0, 0})); }

TEST(RandomPolicy, DependsOnSeedAndJobAlone) {
  const Cluster cluster = Nodes(16);
  std::set<Slot> by_seed;
  std::set<Slot> by_job;
  for (uint64_t i = 0; i < 32; ++i) {
    by_seed.insert(Choose(cluster, OneGpu(1), "random", i));
    by_job.insert(Choose(cluster, OneGpu(i), "random"));
    EXPECT_EQ(Choose(cluster, OneGpu(i), "random", 5), Choose(cluster, OneGpu(i), "random", 5));
  }
  EXPECT_GT(by_seed.size(), 10u);
  EXPECT_GT(by_job.size(), 10u);
}

TEST(Policy, BaselinesIgnoreTheDefaultBoundButKeepAStatedOne) {
  Cluster cluster = Nodes(1, 1);
  JobSpec resident = OneGpu(100, 100);
  ASSERT_TRUE(cluster.Adopt(resident, std::vector<Slot>{{1, 0, 0}}).ok());
  JobSpec job = OneGpu(1, 100);
  EXPECT_EQ(Choose(cluster, job, "first-fit"), (Slot{1, 0, 0}));
  EXPECT_EQ(Choose(cluster, job, "horus").device, -1);
  job.slowdown_bound = 1.5f;
  EXPECT_EQ(Choose(cluster, job, "first-fit").device, -1);
}

}  // namespace
}  // namespace horus
