// SPDX-License-Identifier: Apache-2.0
// A planner that ran out of memory, at each allocation in turn, decides afterwards as if it had not. One that has
// decided before allocates little.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <vector>

#include "failing_new.h"
#include "fixtures.h"

namespace horus {
namespace {

using testing_place::MakeAddingPlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

bool PlanFailsAt(size_t at, Placer& placer, const Cluster& cluster, const JobSpec& job) {
  bool failed = false;
  allocations_left = at;
  try {
    (void)placer.MakePlan(cluster, {&job, 1});
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  allocations_left = kNever;
  return failed;
}

void ExpectDecidesAsAScan(Placer& placer, const Cluster& cluster, const JobSpec& job, const PlacerOptions& options) {
  PlacerOptions scan = options;
  scan.exhaustive = true;
  const auto plan = placer.MakePlan(cluster, {&job, 1});
  const auto expected = MakeAddingPlacer(scan)->MakePlan(cluster, {&job, 1});
  ASSERT_TRUE(plan.ok() && expected.ok());
  EXPECT_EQ(plan->decisions, expected->decisions);
}

void Adopt(Cluster& cluster, const JobSpec& job, NodeId node, int32_t device = 0) {
  const std::vector<Slot> slots = {{node, device, 0}};
  ASSERT_TRUE(cluster.Adopt(job, slots).ok());
}

// A class comes three times; one of its calls fails. Then the device that suits it best is released.
TEST(FailingSearch, AClassThatComesAgain) {
  for (const int failing : {0, 1, 2}) {
    SCOPED_TRACE(failing);
    bool failed = true;
    for (size_t at = 0; failed; ++at) {
      SCOPED_TRACE(at);
      Cluster cluster = Nodes(2, 2);
      JobSpec alone = OneGpu(100, 50, 1000);
      alone.exclusive = true;
      Adopt(cluster, alone, 2, 0);
      alone.id = 101;
      Adopt(cluster, alone, 2, 1);
      Adopt(cluster, OneGpu(102, 60, 1000), 1, 0);
      Adopt(cluster, OneGpu(103, 70, 1000), 1, 1);
      const auto placer = MakeAddingPlacer();
      const JobSpec job = OneGpu(1, 30, 500);
      for (int call = 0; call < 3; ++call) {
        if (call == failing) {
          failed = PlanFailsAt(at, *placer, cluster, job);
        } else {
          ASSERT_TRUE(placer->MakePlan(cluster, {&job, 1}).ok());
        }
      }
      ASSERT_TRUE(cluster.Release(100).ok());
      ExpectDecidesAsAScan(*placer, cluster, job, {});
    }
  }
}

// The class's second call fails before it was ever asked on one kind of device; then such a device is released.
TEST(FailingSearch, AKindThatTheClassDidNotMeet) {
  bool failed = true;
  for (size_t at = 0; failed; ++at) {
    SCOPED_TRACE(at);
    Cluster cluster = Nodes(1, 2);
    NodeSpec other = V100Node(2, 1);
    other.devices[0].type = Type("a100-40gb");
    ASSERT_TRUE(cluster.AddNode(other).ok());
    Adopt(cluster, OneGpu(102, 90, 1000), 1, 0);
    Adopt(cluster, OneGpu(103, 90, 1000), 1, 1);
    for (JobId id = 110; id < 114; ++id) Adopt(cluster, OneGpu(id, 1, 9000), 2);
    const PlacerOptions options = {.max_tenants = 6};
    const auto placer = MakeAddingPlacer(options);
    const JobSpec first = OneGpu(1, 30, 500);
    const JobSpec second = OneGpu(2, 33, 12000);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(placer->MakePlan(cluster, {&first, 1}).ok());
    ASSERT_TRUE(placer->MakePlan(cluster, {&second, 1}).ok());
    failed = PlanFailsAt(at, *placer, cluster, second);
    for (JobId id = 110; id < 114; ++id) ASSERT_TRUE(cluster.Release(id).ok());
    ExpectDecidesAsAScan(*placer, cluster, second, options);
  }
}

// The plan's list of decisions, its copy of the job with the list of demands, and now and then a device's new place in
// the index.
TEST(WarmPlacer, AllocatesFourTimesAtMostForAJobOfOneGpu) {
  constexpr size_t kMany = 1'000'000;
  constexpr JobId kWarmUp = 64, kCounted = 65;
  constexpr JobId kStay = 5;  // jobs before it is released
  Cluster cluster = Nodes(4, 2);
  const auto placer = MakeAddingPlacer();
  std::vector<size_t> counts;
  for (JobId id = 1; id <= kWarmUp + kCounted; ++id) {
    const JobSpec job = OneGpu(id, 30, 500);
    allocations_left = kMany;
    const auto plan = placer->MakePlan(cluster, {&job, 1});
    const bool applied = plan.ok() && cluster.Apply(*plan).ok();
    const size_t count = kMany - allocations_left;
    allocations_left = kNever;
    ASSERT_TRUE(applied && cluster.HasJob(id));
    if (id > kWarmUp) counts.push_back(count);
    const bool released = id <= kStay || cluster.Release(id - kStay).ok();
    ASSERT_TRUE(released);
  }
  std::sort(counts.begin(), counts.end());
  EXPECT_LE(counts[counts.size() / 2], 4u);
}

}  // namespace
}  // namespace horus
