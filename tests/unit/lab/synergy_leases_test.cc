// SPDX-License-Identifier: Apache-2.0
// Rules of rounds that decide jobs which run again: leases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/synergy/round.h"
#include "place/fixtures.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::V100Node;

constexpr int64_t kFairCpu = 8000;  // of V100Node with 4 GPUs

// Half as fast again with twice the fair cores.
JobSpec Hungry(JobId id) {
  JobSpec job = OneGpu(id);
  const std::vector<float> speeds = {1, 1.5f};
  job.sensitivity = SharedSensitivity(*Sensitivity::Create({kFairCpu, 2 * kFairCpu}, {65'536}, speeds));
  return job;
}

Plan RoundOf(const Cluster& cluster, const std::vector<JobSpec>& jobs, std::string_view policy = "synergy-tune") {
  auto plan = MakeRound(*MakePlacer(policy), cluster, jobs);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan();
}

Plan RoundAndApply(Cluster& cluster, const std::vector<JobSpec>& jobs, std::string_view policy = "synergy-tune") {
  Plan plan = RoundOf(cluster, jobs, policy);
  const absl::Status applied = cluster.Apply(plan);
  EXPECT_TRUE(applied.ok()) << applied;
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  return plan;
}

TEST(SynergyLeases, DecidesInTheOrderGiven) {
  Cluster cluster = Nodes(1, 1);
  const Plan plan = RoundAndApply(cluster, {OneGpu(2), OneGpu(1)});
  EXPECT_EQ(plan.decisions[0].job, 2u);
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kPlace);
  EXPECT_EQ(plan.decisions[1].verdict, Verdict::kDefer);
}

TEST(SynergyLeases, WhoKeepsAllThatItHasIsNoAction) {
  Cluster cluster = Nodes(2, 4);
  RoundAndApply(cluster, {OneGpu(1), Hungry(2), OneGpu(3)});
  const Plan again = RoundOf(cluster, {OneGpu(1), Hungry(2), OneGpu(3)});
  EXPECT_THAT(again.actions, IsEmpty());
  EXPECT_THAT(again.moves, IsEmpty());
  EXPECT_EQ(again.decisions[1].verdict, Verdict::kPlace);
  EXPECT_EQ(again.decisions[1].slots, cluster.Job(2)->slots);
}

TEST(SynergyLeases, WhoLosesItsPlaceIsPreemptedAndToldWhy) {
  Cluster cluster = Nodes(1, 1);
  RoundAndApply(cluster, {OneGpu(1)});
  const Plan plan = RoundAndApply(cluster, {OneGpu(2), OneGpu(1)});
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_EQ(plan.moves[0].kind, ActionKind::kPreempt);
  EXPECT_EQ(plan.moves[0].job, 1u);
  EXPECT_EQ(plan.moves[0].gain, -1);
  EXPECT_EQ(plan.decisions[1].verdict, Verdict::kDefer);
  EXPECT_NE(plan.decisions[1].reason, Reason::kNone);
  EXPECT_FALSE(cluster.HasJob(1));
  EXPECT_TRUE(cluster.HasJob(2));
}

TEST(SynergyLeases, CoresComeAndGoWhereTheJobStays) {
  Cluster cluster = Nodes(1, 4);
  RoundAndApply(cluster, {Hungry(1)});
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, 2 * kFairCpu);
  const Plan cut = RoundAndApply(cluster, {OneGpu(2), OneGpu(3), OneGpu(4), Hungry(1)});
  ASSERT_THAT(cut.moves, SizeIs(1));
  EXPECT_EQ(cut.moves[0].kind, ActionKind::kResize);
  EXPECT_EQ(cut.moves[0].gain, -0.5);
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, kFairCpu);
  ASSERT_TRUE(cluster.Release(2).ok());
  const Plan grown = RoundAndApply(cluster, {OneGpu(3), OneGpu(4), Hungry(1)});
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, 2 * kFairCpu);
  ASSERT_THAT(grown.moves, SizeIs(1));
  EXPECT_EQ(grown.moves[0].gain, 0.5);
}

TEST(SynergyLeases, ResidentsThatAreNotGivenStay) {
  Cluster cluster = Nodes(1, 1);
  RoundAndApply(cluster, {OneGpu(1)});
  const Plan plan = RoundAndApply(cluster, {OneGpu(2)});
  EXPECT_TRUE(cluster.HasJob(1));
  EXPECT_EQ(plan.decisions[0].verdict, Verdict::kDefer);
}

TEST(SynergyLeases, OfWhoRunsTheIdAloneCounts) {
  Cluster cluster = Nodes(1, 2);
  RoundAndApply(cluster, {OneGpu(1)});
  JobSpec other = Gang(1, 1, 2);
  const Plan plan = RoundAndApply(cluster, {other});
  EXPECT_THAT(plan.actions, IsEmpty());
}

// One and three are alone on their nodes, the gang needs one of these.
TEST(SynergyLeases, WhoIsInTheWayOfAGangThatRanksBeforeItMoves) {
  Cluster cluster = Nodes(2, 2);
  RoundAndApply(cluster, {OneGpu(1), OneGpu(2), OneGpu(3)});
  ASSERT_TRUE(cluster.Release(2).ok());
  const Plan plan = RoundAndApply(cluster, {Gang(4, 1, 2), OneGpu(3), OneGpu(1)});
  for (const Decision& decision : plan.decisions) EXPECT_EQ(decision.verdict, Verdict::kPlace) << decision.job;
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_EQ(plan.moves[0].kind, ActionKind::kMigrate);
  EXPECT_EQ(plan.moves[0].job, 1u);
  EXPECT_EQ(plan.moves[0].from, (Slots{{1, 0, 0}}));
  EXPECT_EQ(plan.moves[0].to, cluster.Job(1)->slots);
  EXPECT_EQ(cluster.Job(1)->slots[0].node, 2u);
}

TEST(SynergyLeases, ARoundIsOfPoliciesThatDecideRounds) {
  const auto plan = MakeRound(*MakePlacer("horus"), Nodes(1), std::vector{OneGpu(1)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(SynergyLeases, WhoRunsOnNoWholeGpuCannotTakePart) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer("synergy-fair");
  ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, std::vector{CpuOnly(1)})).ok());
  const auto plan = MakeRound(*placer, cluster, std::vector{CpuOnly(1)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("whole GPUs"));
}

TEST(SynergyLeases, AJobGivenTwiceIsRefused) {
  Cluster cluster = Nodes(1, 2);
  RoundAndApply(cluster, {OneGpu(1)});
  const auto plan = MakeRound(*MakePlacer("synergy-fair"), cluster, std::vector{OneGpu(1), OneGpu(1)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kAlreadyExists);
}

// Four GPUs, linked in two pairs by NVLink: the first and the last, and those between.
TEST(SynergyPlan, TheGpusOfATaskAreLinkedLowestAmongEquals) {
  NodeSpec node = V100Node(1, 4);
  node.devices[0].island = node.devices[3].island = 2;
  node.devices[1].island = node.devices[2].island = 0;
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(node).ok());
  RoundAndApply(cluster, {Gang(1, 1, 2)});
  EXPECT_EQ(cluster.Job(1)->slots, (Slots{{1, 1, 0}, {1, 2, 0}}));
  RoundAndApply(cluster, {Gang(2, 1, 2)});
  EXPECT_EQ(cluster.Job(2)->slots, (Slots{{1, 0, 0}, {1, 3, 0}}));
}

TEST(SynergyPlan, NodesWithoutHostResourcesHoldAsManyAsTheyHaveGpus) {
  NodeSpec bare = V100Node(1, 2);
  bare.cpu_milli = bare.mem_mib = bare.storage_mb_s = 0;
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(bare).ok());
  const Plan plan = RoundAndApply(cluster, {OneGpu(1), OneGpu(2), OneGpu(3), Gang(4, 1, 4)});
  for (const Decision& decision : plan.decisions) {
    const Verdict expected = decision.job <= 2   ? Verdict::kPlace
                             : decision.job == 3 ? Verdict::kDefer
                                                 : Verdict::kReject;
    EXPECT_EQ(decision.verdict, expected) << decision.job;
  }
}

TEST(SynergyPlan, ProbesWhatNobodyKnows) {
  const Cluster cluster = Nodes(1, 4);
  JobSpec unknown = OneGpu(1);
  unknown.demands[0].demand.flags = kDemandOutside;
  const std::vector<JobSpec> jobs = {unknown, OneGpu(2)};
  for (const bool probing : {false, true}) {
    const auto plan = MakePlacer("synergy-tune", {.probe_outside = probing})->MakePlan(cluster, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->decisions[0].probe, probing);
    EXPECT_EQ(plan->actions[0].job->exclusive, probing);
    EXPECT_FALSE(plan->decisions[1].probe);
  }
}

}  // namespace
}  // namespace horus
