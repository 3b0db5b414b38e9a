// SPDX-License-Identifier: Apache-2.0
#include "place/state/communication.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "fixtures.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Type;
using testing_place::V100Node;

constexpr double kPcie = 15'754;  // of a V100, one direction
constexpr double kNvlink = 150'000;

// 8 V100: islands of 4, switches of 2, sockets of 4; the islands reach over the sockets.
NodeSpec LinkedNode(NodeId id = 1) {
  NodeSpec node = V100Node(id, 8);
  for (size_t i = 0; i < 8; ++i) {
    node.devices[i].island = static_cast<int16_t>(i % 2);
    node.devices[i].pcie_switch = static_cast<int16_t>(i / 2);
    node.devices[i].socket = static_cast<int16_t>(i / 4);
  }
  EXPECT_TRUE(ResolveNode(*Catalogue::Default(), node).ok());
  return node;
}

double Link(std::vector<int32_t> devices) { return LinkAmong(LinkedNode(), devices); }

TEST(Communication, GpusUseTheFastestLinksThatAllOfThemShare) {
  EXPECT_DOUBLE_EQ(Link({0, 2, 4, 6}), kNvlink);  // one island over both sockets
  EXPECT_DOUBLE_EQ(Link({0, 1}), kPcie);          // a switch
  EXPECT_DOUBLE_EQ(Link({1, 2}), kPcie * 5 / 6);  // a socket
  EXPECT_DOUBLE_EQ(Link({3, 4}), kPcie / 2);      // two sockets
}

TEST(Communication, WithoutSwitchNumbersASocketCountsAsOneSwitch) {
  NodeSpec node = LinkedNode();
  for (DeviceSpec& device : node.devices) device.pcie_switch = 0;
  ASSERT_TRUE(ResolveNode(*Catalogue::Default(), node).ok());
  EXPECT_DOUBLE_EQ(LinkAmong(node, std::vector<int32_t>{1, 2}), kPcie);
  EXPECT_DOUBLE_EQ(LinkAmong(node, std::vector<int32_t>{3, 4}), kPcie / 2);
}

double StepWith(int64_t gradient_mib, size_t gpus, double mb_per_s) {
  Demand demand = Needs(90, 4000, 100'000);
  demand.gradient_mib = gradient_mib;
  return 1 + CommunicationShare(demand, RingUs(static_cast<double>(gradient_mib), gpus, mb_per_s));
}

TEST(Communication, CostsMoreForMoreGradientsGpusAndSlowerLinksAndNothingForOneGpu) {
  EXPECT_EQ(StepWith(100, 1, 1000), 1);
  for (const int64_t mib : {1, 10, 100, 1000}) {
    EXPECT_GT(StepWith(mib, 2, 1000), 1);
    EXPECT_GT(StepWith(2 * mib, 4, 1000), StepWith(mib, 4, 1000));
    EXPECT_GT(StepWith(mib, 8, 1000), StepWith(mib, 4, 1000));
    EXPECT_LT(StepWith(mib, 4, 2000), StepWith(mib, 4, 1000));
  }
}

TEST(Communication, RunsBesideTheBackwardPassWhereItIsShortAndIsPaidWhereItIsLong) {
  Demand demand = Needs(90, 4000, 100'000);
  demand.gradient_mib = 10;
  EXPECT_LT(CommunicationShare(demand, 10'000), 0.01);
  EXPECT_NEAR(CommunicationShare(demand, 1e8), 1e8 / 100'000 - 2.0 / 3, 0.01);
}

TEST(Communication, ARingOverNodesAndRacksIsAsFastAsItsSlowestLink) {
  NodeSpec node = LinkedNode();
  node.network_mb_s = 1000;
  NodeSpec other = node;
  other.rack = 2;
  const auto us = [&](std::vector<GangSlot> slots, double oversubscription = 1) {
    return GangAllReduceUs(100, slots, oversubscription);
  };
  EXPECT_DOUBLE_EQ(us({{&node, 0}, {&node, 2}}, 4), RingUs(100, 2, kNvlink));
  EXPECT_DOUBLE_EQ(us({{&node, 0}, {&other, 0}}, 4), RingUs(100, 2, 250));
  const double linked = us({{&node, 0}, {&node, 2}, {&other, 0}});
  EXPECT_NEAR(linked, RingUs(100, 3, 1000), 0.01 * linked);
  EXPECT_LT(linked, us({{&node, 0}, {&node, 1}, {&other, 0}}));  // faster links inside a node still help
}

TEST(Communication, IsNothingWithoutGradientsOrStepTime) {
  Demand demand = Needs(90, 4000, 1000);
  EXPECT_EQ(CommunicationShare(demand, 500), 0);
  demand.gradient_mib = 10;
  EXPECT_GT(CommunicationShare(demand, 500), 0);
  demand.step_time_us = {};
  EXPECT_EQ(CommunicationShare(demand, 500), 0);
}

absl::Status AddNode(const NodeSpec& node) { return Cluster(Catalogue::Default()).AddNode(node); }

TEST(Topology, ASwitchIsInOneSocket) {
  NodeSpec node = LinkedNode();
  node.devices[1].socket = 1;
  EXPECT_THAT(
      AddNode(node).message(),
      HasSubstr("node 1: devices[1]: expected PCIe switch 0 in one socket, found socket 1, and 0 at devices[0]"));
}

TEST(Topology, AnIslandHoldsOneGpuType) {
  NodeSpec node = LinkedNode();
  node.devices[2].type = Type("a100-40gb");
  EXPECT_THAT(AddNode(node).message(), HasSubstr("devices[2]: expected one GPU type in NVLink island 0"));
}

TEST(Topology, InstancesOfACardAreInOnePlace) {
  NodeSpec node = V100Node(1, 2);
  for (DeviceSpec& device : node.devices) {
    device.type = Type("a100-40gb");
    device.mode = SharingMode::kMig;
    device.mig_profile = device.physical_gpu = 0;
    device.mem_mib = 0;
  }
  EXPECT_TRUE(AddNode(node).ok());
  node.devices[1].socket = 1;
  EXPECT_THAT(AddNode(node).message(), HasSubstr("expected the instances of card 0 in one NVLink island"));
}

TEST(Topology, TheNetworkHasADefaultAndIsNeverNegative) {
  EXPECT_EQ(LinkedNode().network_mb_s, kDefaultNetworkMbPerS);
  NodeSpec node = LinkedNode();
  node.network_mb_s = -1;
  EXPECT_THAT(AddNode(node).message(), HasSubstr("network_mb_s: expected 0 to"));
}

// A step of 100 ms alone.
JobSpec Sender(JobId id, int32_t tasks, int32_t gpus_per_task, int64_t gradient_mib) {
  JobSpec job = Gang(id, tasks, gpus_per_task);
  job.demands[0].demand = Needs(90, 4000, 100'000);
  job.demands[0].demand.gradient_mib = gradient_mib;
  return job;
}

std::vector<int32_t> DevicesOf(const Decision& decision) {
  std::vector<int32_t> devices;
  for (const Slot& slot : decision.slots) devices.push_back(slot.device);
  return devices;
}

TEST(HorusCommunication, GpusThatSendAreLinked) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(LinkedNode()).ok());
  for (const auto& [tasks, gpus] : {std::pair(1, 4), std::pair(4, 1), std::pair(2, 2)}) {
    EXPECT_THAT(DevicesOf(Decide(cluster, Sender(1, tasks, gpus, 0))), testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(DevicesOf(Decide(cluster, Sender(1, tasks, gpus, 500))), testing::ElementsAre(0, 2, 4, 6));
  }
  JobSpec whole = Sender(1, 1, 4, 500);
  whole.gpu_milli = 1000;
  EXPECT_THAT(DevicesOf(Decide(cluster, whole)), testing::ElementsAre(0, 2, 4, 6));
}

TEST(HorusCommunication, LosesTheShareOfAStepThatIsSpentSending) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(LinkedNode()).ok());
  const double without = Decide(cluster, Sender(1, 1, 4, 0)).winner.cost;
  const JobSpec job = Sender(1, 1, 4, 500);
  const Decision decision = Decide(cluster, job);
  const double share = CommunicationShare(job.demands[0].demand, RingUs(500, 4, kNvlink));
  EXPECT_NEAR(decision.winner.cost - without, 4 * (1 - 1 / (1 + share)), 1e-12);
  const auto& terms = decision.winner.terms;
  const auto term =
      std::find_if(terms.begin(), terms.end(), [](const CostTerm& one) { return one.name == "communication"; });
  ASSERT_NE(term, terms.end());
  EXPECT_NEAR(term->value, 4 * (1 - 1 / (1 + share)), 1e-12);
}

TEST(HorusCommunication, SharesAGpuWhereLinksAreWorthIt) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(LinkedNode()).ok());
  JobSpec light = Gang(7, 1, 1, 15);  // slows a neighbour by little
  light.demands[0].demand = Needs(15, 1000, 50'000);
  const Slot slot{1, 6, 0};
  ASSERT_TRUE(cluster.Adopt(light, {&slot, 1}).ok());
  EXPECT_THAT(DevicesOf(Decide(cluster, Sender(1, 1, 4, 0))), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(DevicesOf(Decide(cluster, Sender(1, 1, 4, 4000))), testing::ElementsAre(1, 3, 5, 7));
  light.id = 8;
  const Slot other{1, 7, 0};
  ASSERT_TRUE(cluster.Adopt(light, {&other, 1}).ok());  // no island is idle any more
  EXPECT_THAT(DevicesOf(Decide(cluster, Sender(1, 1, 4, 4000))), testing::ElementsAre(0, 2, 4, 6));
}

TEST(HorusCommunication, AGangOverNodesTakesLinkedGpusOfEach) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 2; ++id) {
    ASSERT_TRUE(cluster.AddNode(LinkedNode(id)).ok());
  }
  JobSpec job = Sender(1, 2, 4, 500);
  job.cpu_milli = 20'000;  // one task a node
  const Decision decision = Decide(cluster, job);
  ASSERT_TRUE(decision.spans_nodes);
  EXPECT_THAT(DevicesOf(decision), testing::ElementsAre(0, 2, 4, 6, 0, 2, 4, 6));
  job.demands[0].demand.gradient_mib = 0;
  EXPECT_THAT(DevicesOf(Decide(cluster, job)), testing::ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(HorusCommunication, ASlowNetworkCostsWork) {
  Cluster slow(Catalogue::Default());
  Cluster fast(Catalogue::Default());
  for (NodeId id = 1; id <= 2; ++id) {
    NodeSpec node = V100Node(id, 1);
    node.network_mb_s = 1'000;
    ASSERT_TRUE(slow.AddNode(node).ok());
    node.network_mb_s = 100'000;
    ASSERT_TRUE(fast.AddNode(node).ok());
  }
  const double ring = CommunicationShare(Sender(1, 2, 1, 500).demands[0].demand, RingUs(500, 2, 1'000));
  const double cost = Decide(slow, Sender(1, 2, 1, 500)).winner.cost;
  EXPECT_GT(cost, Decide(fast, Sender(1, 2, 1, 500)).winner.cost);
  EXPECT_NEAR(cost - Decide(slow, Sender(1, 2, 1, 0)).winner.cost, 2 * (1 - 1 / (1 + ring)), 1e-12);
}

TEST(HorusCommunication, CanBeSwitchedOff) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(LinkedNode()).ok());
  for (const std::string_view policy : {"horus", "clwp-nlwp"}) {
    const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy(policy, {.links = false}));
    const JobSpec job = Sender(1, 1, 4, 500);
    EXPECT_THAT(DevicesOf(placer->MakePlan(cluster, {&job, 1})->decisions[0]), testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(DevicesOf(Decide(cluster, job, policy)), testing::ElementsAre(0, 2, 4, 6));
  }
}

}  // namespace
}  // namespace horus
