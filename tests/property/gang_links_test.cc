// SPDX-License-Identifier: Apache-2.0
// Gangs that send gradients: exact inside a node, and the index decides as the scan does.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "interference/registry.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "place/state/communication.h"
#include "random_cluster.h"

namespace horus {
namespace {

using testing_property::Random;
using testing_property::RandomDemand;
using testing_property::TypeAt;

std::unique_ptr<Placer> MakePlacer(bool exhaustive, std::string_view policy = "horus") {
  return *Placer::Create(*MakeInterferenceModel("utilisation"), *MakePolicy(policy),
                         {.rack_oversubscription = 2, .exhaustive = exhaustive});
}

// Islands of 2 to 4 GPUs that may reach over sockets, switches of 2, sockets of half the node.
NodeSpec NodeWithLinks(Random& random, NodeId id, size_t most_devices) {
  NodeSpec node;
  node.id = id;
  node.cpu_milli = 64'000;
  node.mem_mib = 262'144;
  node.rack = random.Below(4);
  if (random.OneIn(2)) node.network_mb_s = 1'250;
  const size_t type = 1 + random.Below(2);
  const size_t count = 2 + random.Below(most_devices - 1);
  const size_t island = 2 + random.Below(3);
  for (size_t i = 0; i < count; ++i) {
    DeviceSpec device{.type = TypeAt(type)};
    if (!random.OneIn(4)) device.island = static_cast<int16_t>((i + random.Below(2)) / island);
    device.socket = static_cast<int16_t>(i >= count / 2 ? 1 : 0);
    device.pcie_switch = static_cast<int16_t>(2 * device.socket + static_cast<int16_t>(random.Below(2)));
    node.devices.push_back(device);
  }
  return node;
}

JobSpec Gang(Random& random, JobId id, int32_t tasks, int32_t gpus_per_task) {
  JobSpec job;
  job.id = id;
  job.tasks = tasks;
  job.gpus_per_task = gpus_per_task;
  for (const size_t type : {size_t{1}, size_t{2}}) {
    Demand demand = RandomDemand(random, 10, type);
    demand.gradient_mib = static_cast<int64_t>(random.Below(3000));
    demand.mem_mib = {2000, 2000};
    job.demands.push_back({TypeAt(type), demand});
  }
  return job;
}

void AddResidents(Random& random, Cluster& cluster, JobId count) {
  const auto first_fit = MakePlacer(true, "random");
  for (JobId id = 0; id < count; ++id) {
    const JobSpec job = Gang(random, 1'000'000 + id, 1, 1);
    const auto plan = first_fit->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(cluster.Apply(*plan).ok());
  }
}

double SumOfTerms(const Decision& decision) {
  double sum = 0;
  for (const CostTerm& term : decision.winner.terms) sum += term.value;
  return sum;
}

// The price of exactly those devices: all others are drained, which changes no other part of a price.
double PriceOf(const Cluster& cluster, const JobSpec& job, uint32_t devices) {
  Cluster copy = cluster;
  const size_t count = copy.Node(0)->spec.devices.size();
  for (size_t i = 0; i < count; ++i) {
    if ((devices >> i & 1) == 0) (void)copy.SetDeviceState(0, static_cast<int32_t>(i), AdminState::kDrained);
  }
  const auto plan = MakePlacer(true)->MakePlan(copy, {&job, 1});
  const Decision& decision = plan->decisions[0];
  return decision.verdict == Verdict::kPlace ? decision.winner.cost : std::numeric_limits<double>::infinity();
}

TEST(GangLinks, TheChoiceInsideANodeIsTheCheapestOfAllSubsets) {
  int differ = 0;  // from the choice without links
  constexpr uint64_t kSeeds = 20 + HORUS_PROPERTY_OPS / 100;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Cluster cluster(Catalogue::Default());
    const NodeSpec node = NodeWithLinks(random, 0, 6);
    ASSERT_TRUE(cluster.AddNode(node).ok());
    AddResidents(random, cluster, random.Below(8));
    const auto gpus = static_cast<int32_t>(2 + random.Below(3));
    JobSpec job = random.OneIn(3) ? Gang(random, 1, gpus, 1) : Gang(random, 1, 1, gpus);
    if (random.OneIn(4)) job.gpu_milli = 1000;
    const auto plan = MakePlacer(false)->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok()) << plan.status();
    double best = std::numeric_limits<double>::infinity();
    for (uint32_t subset = 0; subset < 1u << node.devices.size(); ++subset) {
      if (__builtin_popcount(subset) == gpus) best = std::min(best, PriceOf(cluster, job, subset));
    }
    const Decision& decision = plan->decisions[0];
    ASSERT_EQ(decision.verdict == Verdict::kPlace, best < std::numeric_limits<double>::infinity());
    if (decision.verdict != Verdict::kPlace) continue;
    EXPECT_NEAR(decision.winner.cost, best, 1e-9);
    EXPECT_NEAR(decision.winner.cost, SumOfTerms(decision), 1e-9);
    const auto without = *Placer::Create(*MakeInterferenceModel("utilisation"), *MakePolicy("horus", {.links = false}));
    differ += without->MakePlan(cluster, {&job, 1})->decisions[0].slots != decision.slots ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

TEST(GangLinks, TheIndexDecidesAsTheScan) {
  int spanning = 0;
  for (const std::string_view policy : {"horus", "first-fit", "clwp-nlwp", "horus-paper"}) {
    SCOPED_TRACE(policy);
    Random random(77);
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < 40; ++id) ASSERT_TRUE(cluster.AddNode(NodeWithLinks(random, id, 8)).ok());
    AddResidents(random, cluster, 60);
    const auto indexed = MakePlacer(false, policy);
    const auto scan = MakePlacer(true, policy);
    std::vector<JobId> residents;
    for (JobId id = 1; id < JobId{100 + HORUS_PROPERTY_OPS / 20}; ++id) {
      JobSpec job =
          Gang(random, id, static_cast<int32_t>(1 + random.Below(20)), static_cast<int32_t>(1 + random.Below(3)));
      if (random.OneIn(5)) job.gpu_milli = 1000;
      if (random.OneIn(5)) job.cpu_milli = 12'000;
      const auto plan = indexed->MakePlan(cluster, {&job, 1});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->decisions, scan->MakePlan(cluster, {&job, 1})->decisions) << "job " << id;
      const Decision& decision = plan->decisions[0];
      if (decision.verdict == Verdict::kPlace) {
        EXPECT_NEAR(decision.winner.cost, SumOfTerms(decision), 1e-9);
        residents.push_back(id);
      }
      spanning += decision.spans_nodes ? 1 : 0;
      ASSERT_TRUE(cluster.Apply(*plan).ok());
      if (random.OneIn(9))
        (void)cluster.SetNodeState(random.Below(40), random.OneIn(2) ? AdminState::kDrained : AdminState::kUp);
      while (residents.size() > 12) {
        const size_t victim = random.Below(residents.size());
        ASSERT_TRUE(cluster.Release(residents[victim]).ok());
        residents.erase(residents.begin() + static_cast<ptrdiff_t>(victim));
      }
    }
  }
  EXPECT_GT(spanning, 50);
}

}  // namespace
}  // namespace horus
