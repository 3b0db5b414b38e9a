// SPDX-License-Identifier: Apache-2.0
// Rules of preemption on crowded devices and large nodes, and of its budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fixtures.h"
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
using testing_place::Type;
using testing_place::V100Node;

void Adopt(Cluster& cluster, const JobSpec& job, const std::vector<Slot>& slots) {
  const auto adopted = cluster.Adopt(job, slots);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
}

// The plan can be carried out, and whoever leaves has a lower priority.
void ExpectSound(Cluster cluster, const Plan& plan, const JobSpec& job) {
  for (const Move& move : plan.moves) EXPECT_LT(cluster.Job(move.job)->spec->priority, job.priority);
  const absl::Status status = cluster.Apply(plan);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  EXPECT_TRUE(cluster.HasJob(job.id));
}

TEST(Victims, TellsNoMorePlacesThanAskedForTheCheapestAlways) {
  Cluster cluster = Nodes(3, 1);
  for (JobId id = 1; id <= 3; ++id)
    Adopt(cluster, AtPriority(OneGpu(id, 10, 15'000), 3 - static_cast<int32_t>(id)), {{id, 0, 0}});
  const JobSpec urgent = AtPriority(OneGpu(9, 10, 15'000), 5);
  for (const uint32_t most : {1u, 2u, 3u}) {
    const auto plan = PlanPreemption(*MakePlacer(), cluster, urgent, {.max_candidates = most});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->candidates.size(), most);
    for (uint32_t i = 0; i < most; ++i) EXPECT_EQ(plan->candidates[i].victims, (std::vector<JobId>{3 - i}));
  }
}

TEST(Victims, OfAVeryCrowdedDeviceAreLookedForAmongTheCheapest) {
  Cluster cluster = Nodes(1, 1);
  for (JobId id = 1; id <= 10; ++id)
    Adopt(cluster, AtPriority(OneGpu(id, 1, 1000), static_cast<int32_t>(id)), {{1, 0, 0}});
  const JobSpec urgent = AtPriority(OneGpu(99, 1, 8000), 50);
  const auto placer = MakePlacer("first-fit", {.max_tenants = 16});
  const auto plan = PlanPreemption(*placer, cluster, urgent);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->candidates.size(), 1u);
  EXPECT_EQ(plan->candidates[0].victims, (std::vector<JobId>{1, 2, 3}));  // 10 of 16 GB less 8 and the headroom
  EXPECT_FALSE(plan->candidates[0].exact);
  ExpectSound(cluster, *plan, urgent);
}

TEST(Victims, OfManyDevicesAreAmongTheFirstCombinations) {
  Cluster cluster = Nodes(1, 16);
  for (JobId id = 0; id < 16; ++id) Adopt(cluster, OneGpu(id + 1, 10, 15'000), {{1, static_cast<int32_t>(id), 0}});
  const JobSpec urgent = AtPriority(Gang(99, 1, 8), 5);  // 12,870 ways to choose
  const auto plan = PlanPreemption(*MakePlacer(), cluster, urgent);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->candidates.size(), 1u);
  EXPECT_EQ(plan->candidates[0].victims.size(), 8u);
  EXPECT_FALSE(plan->candidates[0].exact);
  ExpectSound(cluster, *plan, urgent);
}

TEST(Victims, MakeRoomOnDevicesOfOneType) {
  Cluster cluster(Catalogue::Default());
  NodeSpec mixed = V100Node(1, 4);
  mixed.devices[1] = mixed.devices[3] = DeviceSpec{.type = Type("a100-40gb")};
  ASSERT_TRUE(cluster.AddNode(mixed).ok());
  // The cheapest of each type are on devices 0 and 1.
  for (JobId id = 0; id < 4; ++id) {
    Adopt(cluster, AtPriority(OneGpu(id + 1, 10, 15'000), id == 2 ? 4 : 0), {{1, static_cast<int32_t>(id), 0}});
  }
  JobSpec urgent = AtPriority(Gang(99, 1, 2), 5);
  urgent.exclusive = true;
  const auto plan = PlanPreemption(*MakePlacer(), cluster, urgent);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->candidates.size(), 1u);
  EXPECT_EQ(plan->candidates[0].victims, (std::vector<JobId>{2, 4}));
  ExpectSound(cluster, *plan, urgent);
}

// The host is what is short: whoever holds its cores leaves too, whatever the budget ends the search at.
TEST(Victims, WithAnyBudgetAreSound) {
  Cluster cluster = Nodes(2, 2);
  for (JobId id = 1; id <= 4; ++id) {
    JobSpec job = AtPriority(OneGpu(id, 40, 9000), static_cast<int32_t>(id) % 2);
    job.cpu_milli = 6000;
    Adopt(cluster, job, {{1 + id / 3, static_cast<int32_t>(id % 2), 0}});
    JobSpec host = AtPriority(CpuOnly(10 + id), static_cast<int32_t>(id) % 3);
    Adopt(cluster, host, {{1 + id / 3, kNoDevice, 0}});
  }
  JobSpec urgent = AtPriority(OneGpu(99, 40, 9000), 5);
  urgent.cpu_milli = 24'000;
  JobSpec gang = AtPriority(Gang(98, 2, 1, 40), 5);
  gang.demands[0].demand.mem_mib = {9000, 9000};
  gang.cpu_milli = 24'000;
  for (const JobSpec& job : {urgent, gang}) {
    const auto placer = MakePlacer();
    const auto best = PlanPreemption(*placer, cluster, job);
    ASSERT_TRUE(best.ok()) << best.status();
    ASSERT_FALSE(best->candidates.empty());
    size_t found = 0;
    for (uint64_t budget = 0; budget < 200; ++budget) {
      SCOPED_TRACE(budget);
      const auto plan = PlanPreemption(*placer, cluster, job, {.max_checks = budget});
      ASSERT_TRUE(plan.ok()) << plan.status();
      if (plan->candidates.empty()) {
        EXPECT_EQ(plan->decisions.at(0).verdict, Verdict::kDefer);
        continue;
      }
      ++found;
      EXPECT_GE(plan->candidates[0].loss, best->candidates[0].loss - 1e-9);
      ExpectSound(cluster, *plan, job);
    }
    EXPECT_GT(found, 0u);
    EXPECT_LT(found, 200u) << "without a budget nobody is found";
  }
}

}  // namespace
}  // namespace horus
