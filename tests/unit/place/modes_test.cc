// SPDX-License-Identifier: Apache-2.0
// Rules of batches and of preemption.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fixtures.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::AtPriority;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::V100Node;

TEST(Batch, PairsWhomOneByOneWouldCrowd) {
  // One by one, the two light jobs come first and sit alone, and the heavy ones have to share.
  const Cluster cluster = Nodes(2, 1);
  std::vector<JobSpec> jobs = {OneGpu(1, 20), OneGpu(2, 30), OneGpu(3, 90), OneGpu(4, 95)};
  const auto placer = MakePlacer();
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->decisions.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(plan->decisions[i].job, i + 1);
  EXPECT_GE(plan->work_after, plan->work_before - 1e-9);
  EXPECT_NE(plan->decisions[2].slots, plan->decisions[3].slots);
  Cluster applied = cluster;
  ASSERT_TRUE(applied.Apply(*plan).ok());
  EXPECT_TRUE(CheckInvariants(applied).ok());
}

TEST(Batch, PlacesWhatOneByOneLeavesOut) {
  // First fit gives the first job the only device that the second one fits on.
  Cluster cluster = Nodes(1, 1);
  NodeSpec small = V100Node(2, 1);
  small.devices[0].mem_mib = 8000;
  ASSERT_TRUE(cluster.AddNode(small).ok());
  JobSpec first = OneGpu(1, 10, 7000);
  JobSpec second = OneGpu(2, 10, 15'000);
  first.exclusive = second.exclusive = true;
  const std::vector<JobSpec> jobs = {first, second};
  const auto placer = MakePlacer("first-fit");
  ASSERT_EQ(placer->MakePlan(cluster, jobs)->actions.size(), 1u);
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->decisions[0].slots, (Slots{{2, 0, 0}}));
  EXPECT_EQ(plan->decisions[1].slots, (Slots{{1, 0, 0}}));
}

TEST(Batch, NeverLeavesOutAJobForOneOfLowerPriority) {
  const Cluster cluster = Nodes(1, 1);
  JobSpec urgent = AtPriority(OneGpu(5, 10), 3);
  urgent.exclusive = true;
  std::vector<JobSpec> jobs = {urgent};
  for (JobId id = 1; id <= 3; ++id) jobs.push_back(AtPriority(OneGpu(id, 10), 2));
  const auto placer = MakePlacer();
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->decisions[0].job, 5u);
  EXPECT_EQ(plan->decisions[0].verdict, Verdict::kPlace);
}

TEST(Batch, GangsAndJobsWithoutGpusGoWhereTheyWouldOneByOne) {
  const Cluster cluster = Nodes(3, 2);
  const std::vector<JobSpec> jobs = {Gang(1, 2, 2), CpuOnly(2, 2), OneGpu(3, 50), OneGpu(4, 60), OneGpu(5, 95, 20'000)};
  const auto placer = MakePlacer();
  const auto one = placer->MakePlan(cluster, jobs);
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->decisions[0].slots, one->decisions[0].slots);
  EXPECT_EQ(plan->decisions[1].slots, one->decisions[1].slots);
  EXPECT_EQ(plan->decisions[4].verdict, Verdict::kReject);
  EXPECT_EQ(plan->decisions[4].miss, one->decisions[4].miss);
}

TEST(Batch, CanBeCancelledAndRefusesWhatAPlanRefuses) {
  const Cluster cluster = Nodes(2, 2);
  const std::vector<JobSpec> jobs = {OneGpu(1), OneGpu(2)};
  const auto placer = MakePlacer();
  for (uint64_t at = 0; at < 4; ++at) {
    const auto stop = [&](uint64_t done, uint64_t) { return done < at; };
    EXPECT_EQ(PlanBatch(*placer, cluster, jobs, {}, std::nullopt, stop).status().code(), absl::StatusCode::kCancelled);
  }
  const std::vector<JobSpec> twice = {OneGpu(1), OneGpu(1)};
  EXPECT_EQ(PlanBatch(*placer, cluster, twice).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(PlanBatch(*placer, cluster, {})->decisions.empty());
  const std::vector<NodeId> nodes = {2};
  const auto on_second = PlanBatch(*placer, cluster, jobs, {}, nodes);
  for (const Decision& decision : on_second->decisions) {
    EXPECT_EQ(decision.slots.at(0).node, 2u);
  }
}

// Jobs that fill a device each: 1 and 2 share the first, 3 has the second, 4 the third.
Cluster Full() {
  Cluster cluster = Nodes(3, 1);
  EXPECT_TRUE(cluster.Adopt(AtPriority(OneGpu(1, 10, 7000), 0), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(AtPriority(OneGpu(2, 10, 7000), 2), std::vector<Slot>{{1, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(AtPriority(OneGpu(3, 10, 15'000), 1), std::vector<Slot>{{2, 0, 0}}).ok());
  EXPECT_TRUE(cluster.Adopt(AtPriority(OneGpu(4, 10, 15'000), 9), std::vector<Slot>{{3, 0, 0}}).ok());
  return cluster;
}

TEST(Preemption, TakesTheSetThatLosesLeast) {
  Cluster cluster = Full();
  const auto placer = MakePlacer();
  // Beside job 2 there is room for 6 GB once job 1 is gone.
  const auto small = PlanPreemption(*placer, cluster, AtPriority(OneGpu(9, 10, 6000), 5));
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_GE(small->candidates.size(), 2u);
  EXPECT_EQ(small->candidates[0].victims, (std::vector<JobId>{1}));
  EXPECT_TRUE(small->candidates[0].exact);
  EXPECT_EQ(small->candidates[1].victims, (std::vector<JobId>{3}));
  EXPECT_EQ(small->decisions.at(0).slots, (Slots{{1, 0, 0}}));
  // 12 GB need both of the first device, of weight 1 + 3, or the one of the second, of weight 2.
  const auto large = PlanPreemption(*placer, cluster, AtPriority(OneGpu(9, 10, 12'000), 5));
  EXPECT_EQ(large->candidates.at(0).victims, (std::vector<JobId>{3}));
  EXPECT_EQ(large->candidates.at(1).victims, (std::vector<JobId>{1, 2}));
  EXPECT_NEAR(large->candidates[0].loss, 2, 1e-6);
  EXPECT_NEAR(large->work_after - large->work_before, 6 - 2, 1e-6);
  EXPECT_NEAR(large->moves.at(0).gain, -2, 1e-6);
  ASSERT_TRUE(cluster.Apply(*large).ok());
  EXPECT_FALSE(cluster.HasJob(3));
  EXPECT_TRUE(cluster.HasJob(9));
}

TEST(Preemption, SparesEqualsAndBetters) {
  const Cluster cluster = Full();
  const auto placer = MakePlacer();
  const auto plan = PlanPreemption(*placer, cluster, AtPriority(OneGpu(9, 10, 12'000), 0));
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->candidates.empty());
  EXPECT_TRUE(plan->actions.empty());
  EXPECT_EQ(plan->decisions.at(0).verdict, Verdict::kDefer);
  const auto above = PlanPreemption(*placer, cluster, AtPriority(OneGpu(9, 10, 12'000), 2));
  EXPECT_EQ(above->candidates.size(), 1u);  // of the first device job 2 stays
  EXPECT_EQ(above->candidates.at(0).victims, (std::vector<JobId>{3}));
}

TEST(Preemption, NobodyGoesWhereThereIsRoom) {
  const Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer();
  const auto plan = PlanPreemption(*placer, cluster, OneGpu(9));
  EXPECT_TRUE(plan->candidates.empty());
  EXPECT_EQ(plan->actions.size(), 1u);
  const auto never = PlanPreemption(*placer, cluster, OneGpu(9, 10, 40'000));
  EXPECT_EQ(never->decisions.at(0).verdict, Verdict::kReject);
  EXPECT_EQ(PlanPreemption(*placer, cluster, OneGpu(9), {.max_candidates = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Preemption, MakesRoomOnTheHostToo) {
  Cluster cluster = Nodes(1, 2);
  JobSpec hungry = CpuOnly(1);
  hungry.cpu_milli = 20'000;
  ASSERT_TRUE(cluster.Adopt(hungry, std::vector<Slot>{{1, kNoDevice, 0}}).ok());
  JobSpec other = CpuOnly(2);
  other.cpu_milli = 12'000;
  ASSERT_TRUE(cluster.Adopt(other, std::vector<Slot>{{1, kNoDevice, 0}}).ok());
  JobSpec job = AtPriority(OneGpu(9), 1);
  job.cpu_milli = 16'000;
  const auto placer = MakePlacer();
  const auto plan = PlanPreemption(*placer, cluster, job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->candidates.at(0).victims, (std::vector<JobId>{1}));
  EXPECT_TRUE(cluster.Apply(*plan).ok());
}

TEST(Preemption, AGangOverNodesTakesTheCheapestNodes) {
  Cluster cluster = Nodes(3, 1);
  for (JobId id = 1; id <= 3; ++id) {
    const JobSpec job = AtPriority(OneGpu(id, 10, 15'000), id == 1 ? 3 : 0);
    ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{id, 0, 0}}).ok());
  }
  const auto placer = MakePlacer();
  const auto plan = PlanPreemption(*placer, cluster, AtPriority(Gang(9, 2, 1, 10), 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->candidates.size(), 1u);
  EXPECT_EQ(plan->candidates[0].victims, (std::vector<JobId>{2, 3}));
  EXPECT_FALSE(plan->candidates[0].exact);
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

}  // namespace
}  // namespace horus
