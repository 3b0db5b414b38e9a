// SPDX-License-Identifier: Apache-2.0
// Rules of plans by a synergy policy: one round over a cluster, granted, refused, and residents cut back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/policies/rivals.h"
#include "lab/synergy/round.h"
#include "place/fixtures.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_place::AtPriority;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

// Fair shares of V100Node with 4 GPUs.
constexpr int64_t kFairCpu = 8000;
constexpr int64_t kFairMem = 65'536;

// Half as fast again with twice the fair cores.
const SharedSensitivity kHungry(*Sensitivity::Create({kFairCpu, 2 * kFairCpu}, {kFairMem},
                                                     std::vector<float>{1, 1.5f}));
// Content with a quarter of them, and half the memory.
const SharedSensitivity kModest(*Sensitivity::Create({kFairCpu / 4, kFairCpu}, {kFairMem / 2},
                                                     std::vector<float>{1, 1}));

JobSpec With(JobSpec job, const SharedSensitivity& sensitivity) {
  job.sensitivity = sensitivity;
  return job;
}
JobSpec Asking(JobSpec job, int64_t cpu_milli, int64_t mem_mib = 0) {
  job.cpu_milli = cpu_milli;
  job.mem_mib = mem_mib;
  return job;
}
Plan PlanOf(const Cluster& cluster, std::vector<JobSpec> jobs, std::string_view policy = "synergy-tune") {
  auto plan = MakePlacer(policy)->MakePlan(cluster, jobs);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

Plan PlanAndApply(Cluster& cluster, std::vector<JobSpec> jobs, std::string_view policy = "synergy-tune") {
  Plan plan = PlanOf(cluster, std::move(jobs), policy);
  const absl::Status applied = cluster.Apply(plan);
  EXPECT_TRUE(applied.ok()) << applied;
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  return plan;
}

const Decision& DecisionOf(const Plan& plan, JobId job) {
  for (const Decision& decision : plan.decisions) {
    if (decision.job == job) return decision;
  }
  ADD_FAILURE() << "no decision on job " << job;
  return plan.decisions.front();
}

TEST(SynergyPlan, FairGrantsTheFairShareAndRemembersWhatWasStated) {
  Cluster cluster = Nodes(1, 4);
  const Plan plan =
      PlanAndApply(cluster, {Asking(OneGpu(1), 500), Asking(OneGpu(2), 12'000), Gang(3, 1, 2)}, "synergy-fair");
  EXPECT_EQ(DecisionOf(plan, 1).cpu_milli, kFairCpu);
  EXPECT_EQ(DecisionOf(plan, 1).mem_mib, kFairMem);
  EXPECT_EQ(DecisionOf(plan, 1).own.estimate, 1);
  EXPECT_EQ(DecisionOf(plan, 2).verdict, Verdict::kPlace);
  EXPECT_EQ(cluster.Job(1)->spec->stated_cpu_milli, 500);
  EXPECT_EQ(cluster.Job(1)->spec->stated_mem_mib, 0);
  EXPECT_EQ(cluster.Job(2)->spec->cpu_milli, 12'000);  // what it needs is more
  EXPECT_EQ(cluster.Job(2)->spec->stated_cpu_milli, JobSpec::kAsHeld);
  // 20 of 32 cores are gone: two more fair shares of 8 do not fit.
  EXPECT_EQ(DecisionOf(plan, 3).verdict, Verdict::kDefer);
  EXPECT_EQ(DecisionOf(plan, 3).reason, Reason::kCpu);
  EXPECT_EQ(DecisionOf(plan, 3).miss.needed, 2 * kFairCpu);
  EXPECT_EQ(DecisionOf(plan, 3).miss.available, 12'000);
}

TEST(SynergyPlan, CutsResidentsBackForNewcomersButNeverBelowTheirFloors) {
  Cluster cluster = Nodes(1, 4);
  // The second needs 12 cores, whatever its matrix says.
  const Plan first = PlanAndApply(cluster, {With(OneGpu(1), kHungry), With(Asking(OneGpu(2), 12'000), kHungry)});
  EXPECT_THAT(first.moves, IsEmpty());
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, 2 * kFairCpu);
  EXPECT_EQ(cluster.Job(2)->spec->cpu_milli, 2 * kFairCpu);
  EXPECT_EQ(DecisionOf(first, 1).winner.cost, -1.5);
  const Plan second = PlanAndApply(cluster, {OneGpu(3)});
  ASSERT_THAT(second.moves, SizeIs(1));
  EXPECT_EQ(second.moves[0].kind, ActionKind::kResize);
  EXPECT_EQ(second.moves[0].job, 1u);
  EXPECT_EQ(second.moves[0].from, (Slots{{1, 0, 0}}));
  EXPECT_EQ(second.moves[0].to, second.moves[0].from);
  EXPECT_EQ(second.moves[0].gain, -0.5);
  EXPECT_EQ(second.moves[0].host_from, (HostHolding{2 * kFairCpu, kFairMem}));
  EXPECT_EQ(second.moves[0].host_to, (HostHolding{kFairCpu, kFairMem}));
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, kFairCpu);
  // Now 8 + 16 + 8: the last GPU's newcomer needs 2 of the 4 that the second can give.
  PlanAndApply(cluster, {With(OneGpu(4), kModest)});
  EXPECT_EQ(cluster.Job(4)->spec->cpu_milli, kFairCpu / 4);
  EXPECT_EQ(cluster.Job(2)->spec->cpu_milli, 12'000);
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, kFairCpu);
  EXPECT_EQ(cluster.Job(3)->spec->cpu_milli, kFairCpu);
}

TEST(SynergyPlan, GreedyWaitsForTheBestCellAndSaysWhatItLacks) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {With(OneGpu(1), kHungry)}, "synergy-greedy");
  const Plan plan = PlanAndApply(cluster, {With(OneGpu(2), kHungry), With(OneGpu(3), kHungry)}, "synergy-greedy");
  EXPECT_EQ(DecisionOf(plan, 2).verdict, Verdict::kPlace);
  const Decision& waits = DecisionOf(plan, 3);
  EXPECT_EQ(waits.verdict, Verdict::kDefer);
  EXPECT_EQ(waits.reason, Reason::kCpu);
  EXPECT_EQ(waits.miss.needed, 2 * kFairCpu);
  EXPECT_EQ(waits.miss.available, 0);
  EXPECT_THAT(plan.moves, IsEmpty());
}

TEST(SynergyPlan, FullGpusAreARefusalLikeAnyOther) {
  Cluster cluster = Nodes(2, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(8, 1, 10), std::vector<Slot>{{1, 0, 0}}).ok());
  const Plan plan = PlanOf(cluster, {OneGpu(1), AtPriority(OneGpu(2), 1), Gang(3, 3, 1)});
  EXPECT_EQ(DecisionOf(plan, 2).slots, (Slots{{2, 0, 0}}));  // priority first
  EXPECT_EQ(DecisionOf(plan, 1).verdict, Verdict::kDefer);
  EXPECT_EQ(DecisionOf(plan, 1).reason, Reason::kExclusive);
  EXPECT_EQ(DecisionOf(plan, 1).refused_devices[static_cast<size_t>(Reason::kExclusive)], 2u);
  EXPECT_EQ(DecisionOf(plan, 3).verdict, Verdict::kReject);
  EXPECT_EQ(DecisionOf(plan, 3).reason, Reason::kGang);
}

TEST(SynergyPlan, RejectsWhatTheRuleCouldNeverRun) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 2)).ok());
  NodeSpec other = V100Node(2, 2);
  other.cpu_milli = 64'000;
  ASSERT_TRUE(cluster.AddNode(other).ok());
  // The search would spread it over nodes of two sizes; a round does not.
  EXPECT_EQ(PlanOf(cluster, {Gang(1, 4, 1)}, "exclusive").decisions[0].verdict, Verdict::kPlace);
  const Decision gang = PlanOf(cluster, {Gang(1, 4, 1)}).decisions[0];
  EXPECT_EQ(gang.verdict, Verdict::kReject);
  EXPECT_EQ(gang.reason, Reason::kGang);
  EXPECT_EQ(gang.miss.needed, 4);
  const Decision large = PlanOf(cluster, {Asking(OneGpu(1), 64'001)}).decisions[0];
  EXPECT_EQ(large.verdict, Verdict::kReject);
  EXPECT_EQ(large.reason, Reason::kCpu);
  JobSpec elsewhere = OneGpu(1);
  elsewhere.demands[0].type = Type("k80");
  EXPECT_EQ(PlanOf(cluster, {elsewhere}).decisions[0].reason, Reason::kGpuType);
}

TEST(SynergyPlan, ConstraintsHoldAmongTheJobsOfARound) {
  Cluster cluster = Nodes(3, 4);
  std::vector<JobSpec> jobs;
  for (JobId id = 1; id <= 3; ++id) {
    JobSpec loner = OneGpu(id);
    loner.groups = loner.avoid_groups = {"a"};
    jobs.push_back(loner);
  }
  JobSpec spread = AtPriority(Gang(4, 3, 1), 1);
  spread.spread_tasks = true;
  jobs.push_back(spread);
  for (JobId id = 5; id <= 6; ++id) {
    JobSpec reader = OneGpu(id);
    reader.storage_mb_s = 600;  // of 1,000
    jobs.push_back(reader);
  }
  const Plan plan = PlanAndApply(cluster, jobs);
  EXPECT_NE(DecisionOf(plan, 1).slots[0].node, DecisionOf(plan, 2).slots[0].node);
  EXPECT_NE(DecisionOf(plan, 1).slots[0].node, DecisionOf(plan, 3).slots[0].node);
  EXPECT_NE(DecisionOf(plan, 2).slots[0].node, DecisionOf(plan, 3).slots[0].node);
  ASSERT_THAT(DecisionOf(plan, 4).slots, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(DecisionOf(plan, 4).slots[i].node, i + 1);
  EXPECT_TRUE(DecisionOf(plan, 4).spans_nodes);
  EXPECT_NE(DecisionOf(plan, 5).slots[0].node, DecisionOf(plan, 6).slots[0].node);
  JobSpec fourth = OneGpu(7);
  fourth.groups = fourth.avoid_groups = {"a"};
  const Decision refused = PlanOf(cluster, {fourth}).decisions[0];
  EXPECT_EQ(refused.verdict, Verdict::kDefer);
  EXPECT_EQ(refused.reason, Reason::kAntiAffinity);
}

TEST(SynergyPlan, LabelsAndSubsetsLimitTheServers) {
  Cluster cluster = Nodes(2, 4);
  NodeSpec labelled = V100Node(3, 4);
  labelled.labels = {{"zone", "a"}};
  ASSERT_TRUE(cluster.AddNode(labelled).ok());
  JobSpec job = OneGpu(1);
  job.node_selector = {{"zone", "a"}};
  EXPECT_EQ(PlanOf(cluster, {job}).decisions[0].slots[0].node, 3u);
  const std::vector<NodeId> subset = {2};
  const auto placer = MakePlacer("synergy-tune");
  EXPECT_EQ(placer->MakePlan(cluster, std::vector{OneGpu(2)}, subset)->decisions[0].slots[0].node, 2u);
  const Decision refused = placer->MakePlan(cluster, std::vector{job}, subset)->decisions[0];
  EXPECT_EQ(refused.verdict, Verdict::kReject);
  EXPECT_EQ(refused.reason, Reason::kLabel);
  EXPECT_EQ(refused.refused_devices[static_cast<size_t>(Reason::kNotInSubset)], 8u);
}

TEST(SynergyPlan, ResidentsOutsideTheSubsetOrOnDrainedNodesKeepWhatTheyHold) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {With(OneGpu(1), kHungry), With(OneGpu(2), kHungry)});
  ASSERT_TRUE(cluster.AddNode(V100Node(2, 4)).ok());
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDrained).ok());
  const Plan plan = PlanOf(cluster, {OneGpu(4), OneGpu(5), OneGpu(6), OneGpu(7), OneGpu(8)});
  EXPECT_THAT(plan.moves, IsEmpty());
  EXPECT_EQ(DecisionOf(plan, 8).verdict, Verdict::kDefer);
}

TEST(SynergyPlan, JobsThatNoRuleKnowsComeAfterTheRoundByTheUsualSearch) {
  Cluster cluster = Nodes(1, 4);
  JobSpec half = OneGpu(1), third = OneGpu(2);
  half.gpu_milli = 500;
  third.gpu_milli = 300;
  JobSpec either = OneGpu(3);
  JobAlternative way{.tasks = 1, .gpus_per_task = 2, .rate = 2, .demands = either.demands};
  either.demands.clear();
  either.alternatives = {way, way};
  either.alternatives[1].gpus_per_task = 1;
  either.alternatives[1].rate = 1;
  const Plan plan = PlanAndApply(cluster, {half, third, either, AtPriority(CpuOnly(4), 5), OneGpu(5)});
  EXPECT_EQ(DecisionOf(plan, 5).slots, (Slots{{1, 0, 0}}));
  EXPECT_EQ(DecisionOf(plan, 4).cpu_milli, 4000);                   // as it asked
  EXPECT_EQ(DecisionOf(plan, 1).slots, DecisionOf(plan, 2).slots);  // parts are packed
  EXPECT_EQ(DecisionOf(plan, 3).alternative, 0);
  EXPECT_THAT(DecisionOf(plan, 3).slots, SizeIs(2));
  EXPECT_EQ(plan.decisions.front().job, 4u);  // told in planning order all the same
}

TEST(SynergyPlan, EachKindOfGpuOfAMixedNodeHasItsPartOfTheHost) {
  Cluster cluster(Catalogue::Default());
  NodeSpec mixed = V100Node(1, 4);  // 32 cores: 8 a GPU
  mixed.devices[0].type = Type("k80");
  ASSERT_TRUE(cluster.AddNode(mixed).ok());
  const Plan plan = PlanAndApply(cluster, {With(OneGpu(1), kHungry), With(OneGpu(2), kHungry)});
  // On the K80 there are 8 cores in all; on the three V100 24.
  EXPECT_EQ(DecisionOf(plan, 1).slots[0].device, 0);
  EXPECT_EQ(DecisionOf(plan, 1).cpu_milli, kFairCpu);
  EXPECT_EQ(DecisionOf(plan, 2).slots[0].device, 1);
  EXPECT_EQ(DecisionOf(plan, 2).cpu_milli, 2 * kFairCpu);
  const Plan next = PlanAndApply(cluster, {Gang(3, 1, 2)});
  EXPECT_EQ(DecisionOf(next, 3).cpu_milli, 2 * kFairCpu);
  EXPECT_EQ(cluster.Job(2)->spec->cpu_milli, kFairCpu);
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, 0);
}

TEST(SynergyPlan, TasksOfAGangSitOnLinkedGpus) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 4);
  node.devices[1].island = node.devices[3].island = 1;
  node.devices[0].island = node.devices[2].island = 0;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  PlanAndApply(cluster, {OneGpu(1)});
  const Plan plan = PlanAndApply(cluster, {Gang(2, 2, 1)});
  EXPECT_EQ(DecisionOf(plan, 2).slots, (Slots{{1, 1, 0}, {1, 3, 1}}));
}

TEST(SynergyPlan, RepeatedRoundsAfterASnapshotDecideTheSame) {
  Cluster cluster = Nodes(2, 4);
  PlanAndApply(cluster, {With(OneGpu(3), kHungry), With(Gang(1, 2, 1), kHungry), With(OneGpu(2), kModest)});
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, cluster.shared_catalogue());
  ASSERT_TRUE(restored.ok());
  const std::vector<JobSpec> jobs = {OneGpu(4), OneGpu(5), With(OneGpu(6), kHungry), OneGpu(7)};
  const Plan here = PlanOf(cluster, jobs);
  const Plan there = PlanOf(*restored, jobs);
  EXPECT_EQ(here.decisions, there.decisions);
  EXPECT_EQ(here.moves, there.moves);
  EXPECT_EQ(here.seen, there.seen);
  EXPECT_FALSE(here.moves.empty());
}

TEST(SynergyPlan, GrowHandsOutWhatIsLeft) {
  Cluster cluster = Nodes(1, 4);
  PlanAndApply(cluster, {With(OneGpu(1), kHungry), With(OneGpu(2), kHungry)});
  PlanAndApply(cluster, {OneGpu(3)});  // cuts the first back
  ASSERT_TRUE(cluster.Release(3).ok());
  const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(),
                                      *MakePolicy("synergy-tune", {.lab = Lab({.synergy_grow = true})}));
  const auto plan = placer->MakePlan(cluster, {});
  ASSERT_THAT(plan->moves, SizeIs(1));
  EXPECT_EQ(plan->moves[0].gain, 0.5);
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  EXPECT_EQ(cluster.Job(1)->spec->cpu_milli, 2 * kFairCpu);
}

TEST(SynergyPlan, OptWithoutItsLibraryIsUnavailable) {
  Cluster cluster = Nodes(1, 4);
  const auto placer =
      *Placer::Create(std::make_shared<UtilisationModel>(),
                      *MakePolicy("synergy-opt", {.lab = Lab({.lp_library = "/nowhere/libhorus_lp.so"})}));
  const uint64_t before = cluster.state_hash();
  const auto plan = placer->MakePlan(cluster, std::vector{OneGpu(1)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnavailable) << plan.status();
  EXPECT_THAT(plan.status().message(), HasSubstr("/nowhere/libhorus_lp.so"));
  EXPECT_EQ(cluster.state_hash(), before);
}

TEST(SynergyPlan, CanBeCancelled) {
  const auto placer = MakePlacer("synergy-fair");
  const auto plan =
      placer->MakePlan(Nodes(1), std::vector{OneGpu(1)}, std::nullopt, [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kCancelled);
}

TEST(SynergyPlan, ModesRefuseThePolicy) {
  const Cluster cluster = Nodes(1);
  const auto placer = MakePlacer("synergy-fair");
  const std::vector<JobSpec> jobs = {OneGpu(1)};
  const auto expect_refused = [](const absl::StatusOr<Plan>& plan) {
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnimplemented) << plan.status();
    EXPECT_THAT(plan.status().message(), HasSubstr("policy synergy-fair"));
  };
  expect_refused(PlanBatch(*placer, cluster, jobs));
  expect_refused(Rebalance(*placer, cluster, {}));
  expect_refused(PlanPreemption(*placer, cluster, jobs[0]));
  expect_refused(WhatIf(*placer, cluster, {}, jobs));
}

TEST(SynergyPlan, AToleranceIsAShare) {
  EXPECT_EQ(MakePolicy("synergy-tune", {.lab = Lab({.synergy_tolerance = 1})}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_NE(RoundPolicyOf(*MakePlacer("synergy-opt")), nullptr);
  EXPECT_EQ(RoundPolicyOf(*MakePlacer("horus")), nullptr);
}

}  // namespace
}  // namespace horus
