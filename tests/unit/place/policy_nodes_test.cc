// SPDX-License-Identifier: Apache-2.0
// Rules of the policies that first choose a node and then devices inside it.
#include <gmock/gmock.h>

#include <set>
#include <vector>

#include "fixtures.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {
namespace {

using testing_place::Decide;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

constexpr uint32_t kGroup = 7;

std::vector<NodeDevice> Devices(std::initializer_list<double> costs) {
  std::vector<NodeDevice> devices;
  for (const double cost : costs)
    devices.push_back({.type = Type("v100-sxm2-16gb"), .group = kGroup, .fits = true, .cost = cost});
  return devices;
}

NodeScore ScoreOf(std::string_view policy, const JobSpec& job, const std::vector<NodeDevice>& devices,
                  const NodeSpec* spec = nullptr) {
  NodeScore score;
  const auto made = MakePolicy(policy);
  EXPECT_TRUE((*made)->PricesNode(job) && (*made)->node_uses_devices());
  EXPECT_TRUE((*made)->ScoreNode({.job = &job, .spec = spec, .devices = devices}, score).ok());
  return score;
}

JobSpec OnGpus(int32_t gpus) {
  JobSpec job = OneGpu(1);
  job.gpus_per_task = gpus;
  return job;
}

// The price of a device of 16 GiB whose resident's utilisation is known exactly or not; 4,000 MiB each.
double DeviceCost(float resident_upper, uint64_t seed) {
  JobSpec resident = OneGpu(100, 80), job = OneGpu(1, 50);
  resident.demands[0].demand.gpu_util_pct.upper = resident_upper;
  const TenantClass there = MakeTenantClass(resident, resident.demands[0].demand);
  const TenantClass newcomer = MakeTenantClass(job, job.demands[0].demand);
  const std::vector<const Demand*> demands = {&there.demand, &newcomer.demand};
  const std::vector<const TenantClass*> tenants = {&there, &newcomer};
  const std::vector<Slowdown> slowdowns(2);
  DeviceCandidate candidate;
  candidate.mem_mib = 16'384;
  candidate.mem_used_mib = candidate.mem_used_upper_mib = 4000;
  candidate.demands = demands;
  candidate.tenants = tenants;
  candidate.before = std::span(slowdowns).first(1);
  candidate.after = slowdowns;
  const auto policy = *MakePolicy("horus-as-coded", {.seed = seed});
  DeviceScore score;
  EXPECT_TRUE(policy->ScoreDevice(candidate, score).ok());
  EXPECT_FALSE(score.declined);
  CostTerms terms;
  policy->Explain(candidate, {}, terms);
  double sum = 0;
  for (const CostTerm& term : terms) sum += term.value;
  EXPECT_DOUBLE_EQ(sum, score.cost);
  return score.cost;
}

TEST(HorusAsCodedPolicy, AddsMibToARatio) {
  // Memory 4000 MiB + 4000 / 16384, over-commit 80 + 50 - 100 = 30, one resident.
  EXPECT_NEAR(DeviceCost(80, 0), 1.3 * (4000 + 4000.0 / 16384) + 1.6 * 30 / 100 + 1, 1e-9);
}

TEST(HorusAsCodedPolicy, DrawsWhatResidentsUseFromTheSeed) {
  std::set<double> costs;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    costs.insert(DeviceCost(100, seed));
    EXPECT_EQ(DeviceCost(100, seed), DeviceCost(100, seed));
  }
  EXPECT_GT(costs.size(), 30u);
  const double memory = 1.3 * (4000 + 4000.0 / 16384) + 1;
  EXPECT_LE(*costs.rbegin(), memory + 1.6 * 50 / 100 + 1e-9);  // a draw is capped at 100 %
}

TEST(HorusAsCodedPolicy, OrdersNodesByTheirLeastDeviceFrom999AndTakesTheFirstThatFits) {
  const NodeScore one = ScoreOf("horus-as-coded", OnGpus(1), Devices({700, 3, 500}));
  EXPECT_EQ(one.cost, 3);
  EXPECT_THAT(one.devices, testing::ElementsAre(0));  // not the cheapest
  EXPECT_EQ(ScoreOf("horus-as-coded", OnGpus(1), Devices({5000, 6000})).cost, 999);
  auto devices = Devices({1, 2, 3, 4});
  devices[0].fits = false;
  devices[2].group = kGroup + 1;
  EXPECT_THAT(ScoreOf("horus-as-coded", OnGpus(2), devices).devices, testing::ElementsAre(1, 3));
}

TEST(HorusAsCodedPolicy, GoesToTheNodeWithTheIdleDeviceAndThereToTheFirst) {
  Cluster cluster = Nodes(2, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(101), std::vector<Slot>{{1, 1, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(102), std::vector<Slot>{{2, 0, 0}}).ok());
  const Decision decision = Decide(cluster, OneGpu(1, 60), "horus-as-coded");
  EXPECT_EQ(decision.slots[0], (Slot{2, 0, 0}));  // shared, though device 1 beside it is idle
  EXPECT_NEAR(decision.winner.cost, 1.3 * 4000 / 16384 + 0.4, 1e-9);
}

TEST(ClwpNlwpPolicy, TakesTheDeviceWhereLeastPerformanceIsLost) {
  Cluster cluster = Nodes(1, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 90), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(101, 70), std::vector<Slot>{{1, 1, 0}}).ok());
  EXPECT_EQ(Decide(cluster, OneGpu(1, 60), "clwp-nlwp").slots[0], (Slot{1, 1, 0}));
}

TEST(ClwpNlwpPolicy, OrdersNodesByTheMeanAndDevicesByTheirOwn) {
  const NodeScore score = ScoreOf("clwp-nlwp", OnGpus(1), Devices({0.9, 0.1, 0.5}));
  EXPECT_DOUBLE_EQ(score.cost, 0.5);
  EXPECT_THAT(score.devices, testing::ElementsAre(1));
}

TEST(ClwpNlwpPolicy, KeepsTasksThatTalkMuchInOneIsland) {
  NodeSpec node = V100Node(1, 4);
  for (size_t i = 0; i < 4; ++i) {
    node.devices[i].island = static_cast<int16_t>(i / 2);
    node.devices[i].socket = static_cast<int16_t>(i / 2);
  }
  ASSERT_TRUE(ResolveNode(*Catalogue::Default(), node).ok());
  JobSpec job = OnGpus(2);
  job.demands[0].demand = Needs(90, 4000, 100'000);
  const auto devices = Devices({0.1, 0.4, 0.2, 0.35});  // the cheapest two are in two islands
  EXPECT_THAT(ScoreOf("clwp-nlwp", job, devices, &node).devices, testing::ElementsAre(0, 2));
  job.demands[0].demand.gradient_mib = 4000;  // half a second between sockets, with steps of 0.1 s
  EXPECT_THAT(ScoreOf("clwp-nlwp", job, devices, &node).devices, testing::ElementsAre(0, 1));
  EXPECT_THAT(ScoreOf("clwp-nlwp", job, devices).devices, testing::ElementsAre(0, 2));  // topology not known
}

}  // namespace
}  // namespace horus
