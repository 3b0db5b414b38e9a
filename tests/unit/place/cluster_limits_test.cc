// SPDX-License-Identifier: Apache-2.0
// How much a node takes of what runs there already, whatever that asks for.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fixtures.h"
#include "place/state/cluster.h"
#include "place/state/fit.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_place::CpuOnly;
using testing_place::MakePlacer;
using testing_place::OneGpu;
using testing_place::V100Node;

TEST(ClusterLimits, OwesNoMoreThanItsTotalsCanCount) {
  using Left = int64_t NodeInfo::*;
  const std::vector<std::pair<int64_t JobSpec::*, Left>> resources = {
      {&JobSpec::cpu_milli, &NodeInfo::cpu_free_milli},
      {&JobSpec::mem_mib, &NodeInfo::mem_free_mib},
      {&JobSpec::storage_mb_s, &NodeInfo::storage_free_mb_s},
  };
  for (const auto& [asked, left] : resources) {
    Cluster cluster(Catalogue::Default());
    ASSERT_TRUE(cluster.AddNode(V100Node(1, 1)).ok());
    const auto adopt = [&](JobId id, int64_t amount) {
      JobSpec job = CpuOnly(id, /*tasks=*/4);
      job.cpu_milli = job.mem_mib = 0;
      job.*asked = amount;
      return cluster.Adopt(
          job, std::vector<Slot>{{1, kNoDevice, 0}, {1, kNoDevice, 1}, {1, kNoDevice, 2}, {1, kNoDevice, 3}});
    };
    ASSERT_TRUE(adopt(1, kMaxHostQuantity).ok());
    const int64_t rest = kMostOwed + (*cluster.Node(1)).*left;
    const absl::Status refused = adopt(2, rest / 4 + 1).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_EQ(cluster.job_count(), 1u);
    EXPECT_TRUE(adopt(2, rest / 4).ok());
    EXPECT_LE((*cluster.Node(1)).*left, -kMostOwed + 4);
    EXPECT_TRUE(CheckInvariants(cluster).ok());
  }
}

TEST(ClusterLimits, HoldsAtMostSoManyGroupsOnANode) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 1)).ok());
  const auto job = [](JobId id, size_t groups) {
    JobSpec one = CpuOnly(id);
    one.cpu_milli = one.mem_mib = 0;
    for (size_t i = 0; i < groups; ++i) one.groups.push_back(std::to_string(id * kMaxGroupsPerJob + i));
    NormalizeJob(one);
    return one;
  };
  const std::vector<Slot> there = {{1, kNoDevice, 0}};
  constexpr size_t kFull = kMaxGroupsPerNode / kMaxGroupsPerJob;
  for (JobId id = 1; id <= kFull; ++id) ASSERT_TRUE(cluster.Adopt(job(id, kMaxGroupsPerJob), there).ok());
  EXPECT_EQ(*cluster.BrokenRule(job(999, 0), there, FitLimits{}), Reason::kNone);
  EXPECT_EQ(cluster.Adopt(job(999, 1), there).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*cluster.BrokenRule(job(999, 1), there, FitLimits{}), Reason::kAntiAffinity);
  EXPECT_TRUE(cluster.Adopt(job(999, 0), there).ok());
}

TEST(ClusterLimits, TakesNoMoreNodesDevicesAndJobsThanItMayAndStaysAsItWas) {
  Cluster cluster(Catalogue::Default(), {.nodes = 2, .devices = 5, .jobs = 2});
  const auto refused = [&](const absl::Status& status, const std::string& words) {
    return status.code() == absl::StatusCode::kResourceExhausted && status.message().find(words) != std::string::npos;
  };
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 2)).ok());
  EXPECT_TRUE(refused(cluster.AddNode(V100Node(2, 4)), "node 2: a cluster holds at most 2 nodes and 5 devices"));
  ASSERT_TRUE(cluster.AddNode(V100Node(2, 3)).ok());
  EXPECT_TRUE(refused(cluster.AddNode(V100Node(3, 0)), "node 3: a cluster holds at most 2 nodes and 5 devices"));
  EXPECT_TRUE(refused(cluster.ChangeNode(V100Node(1, 3)), "node 1: a cluster holds at most 5 devices"));
  ASSERT_TRUE(cluster.ChangeNode(V100Node(1, 1)).ok());
  ASSERT_TRUE(cluster.ChangeNode(V100Node(1, 2)).ok());

  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  const std::vector<JobSpec> two = {OneGpu(2), OneGpu(3)};
  const Plan plan = *MakePlacer()->MakePlan(cluster, two);
  ASSERT_EQ(plan.actions.size(), 2u);
  const uint64_t before = cluster.state_hash();
  EXPECT_TRUE(refused(cluster.Apply(plan), "job 3: a cluster holds at most 2 jobs"));
  EXPECT_EQ(cluster.state_hash(), before) << "all or nothing";
  ASSERT_TRUE(cluster.Adopt(OneGpu(2), std::vector<Slot>{{1, 1, 0}}).ok());
  EXPECT_TRUE(refused(cluster.Adopt(OneGpu(3), std::vector<Slot>{{1, 1, 0}}).status(),
                      "job 3: a cluster holds at most 2 jobs"));
  EXPECT_EQ(cluster.job_count(), 2u);
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

}  // namespace
}  // namespace horus
