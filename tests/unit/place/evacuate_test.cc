// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "fixtures.h"
#include "place/modes/rebalance.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;

void Put(Cluster& cluster, const JobSpec& job, const std::vector<Slot>& slots) {
  ASSERT_TRUE(cluster.Adopt(job, slots).ok());
}

TEST(Evacuate, LeavesNobodyOnTheNode) {
  Cluster cluster = Nodes(3, 2);
  const auto placer = MakePlacer();
  for (JobId id = 1; id <= 4; ++id) Put(cluster, OneGpu(id, 40, 1000), {{1, static_cast<int32_t>(id % 2), 0}});
  Put(cluster, CpuOnly(5), {{1, kNoDevice, 0}});
  Put(cluster, OneGpu(6, 40, 1000), {{2, 0, 0}});
  const std::vector<NodeId> left = {1};
  const Plan plan = *Evacuate(*placer, cluster, left);
  EXPECT_EQ(plan.decisions.size(), 5u);
  EXPECT_EQ(plan.moves.size(), 5u);
  EXPECT_NEAR(plan.work_after - plan.work_before,
              std::accumulate(plan.moves.begin(), plan.moves.end(), 0.0,
                              [](double sum, const Move& move) { return sum + move.gain; }),
              1e-9);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_TRUE(cluster.Node(1)->jobs.empty());
  EXPECT_EQ(cluster.JobIds().size(), 6u);
  EXPECT_EQ(cluster.Job(6)->slots.front().node, 2u) << "who was elsewhere stays";
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(Evacuate, MovesAGangAsAWhole) {
  Cluster cluster = Nodes(3, 1);
  Put(cluster, Gang(1, 2, 1), {{1, 0, 0}, {2, 0, 1}});
  const std::vector<NodeId> left = {1};
  const Plan plan = *Evacuate(*MakePlacer(), cluster, left);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].to.size(), 2u);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_TRUE(cluster.Node(1)->jobs.empty());
}

TEST(Evacuate, SaysWhyAJobStaysAndMovesTheOthers) {
  Cluster cluster = Nodes(2, 2);
  JobSpec large = OneGpu(1, 40, 1000);
  large.exclusive = true;
  Put(cluster, large, {{1, 0, 0}});
  Put(cluster, OneGpu(2, 40, 1000), {{1, 1, 0}});
  for (const int32_t device : {0, 1}) Put(cluster, OneGpu(3 + static_cast<JobId>(device), 10, 1000), {{2, device, 0}});
  const std::vector<NodeId> left = {1};
  const Plan plan = *Evacuate(*MakePlacer(), cluster, left);
  ASSERT_EQ(plan.decisions.size(), 2u);
  const auto stays = std::find_if(plan.decisions.begin(), plan.decisions.end(),
                                  [](const Decision& decision) { return decision.job == 1; });
  EXPECT_EQ(stays->verdict, Verdict::kDefer);
  EXPECT_EQ(stays->miss.reason, Reason::kExclusive);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].job, 2u);
  ASSERT_TRUE(cluster.Apply(plan).ok());
  EXPECT_EQ(cluster.Node(1)->jobs, std::vector<JobId>{1});
}

TEST(Evacuate, RefusesNodesThatItDoesNotKnowAndDoesNothingForNone) {
  const Cluster cluster = Nodes(1, 1);
  const std::vector<NodeId> unknown = {9};
  EXPECT_EQ(Evacuate(*MakePlacer(), cluster, unknown).status().code(), absl::StatusCode::kNotFound);
  const Plan plan = *Evacuate(*MakePlacer(), cluster, {});
  EXPECT_TRUE(plan.actions.empty() && plan.decisions.empty());
}

}  // namespace
}  // namespace horus
