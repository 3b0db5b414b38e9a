// SPDX-License-Identifier: Apache-2.0
// Jobs that need no GPU: slots without device, host resources, and what is said of them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "place/state/ledger.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_place::CpuOnly;
using testing_place::Decide;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::V100Node;

NodeSpec NodeWithoutGpus(NodeId id) {
  NodeSpec node = V100Node(id, 0);
  node.cpu_milli = 8000;
  return node;
}

TEST(CpuOnly, TakesHostResourcesAndNoDevice) {
  Cluster cluster = Nodes(1);
  const auto placer = MakePlacer();
  const Decision decision = PlaceOne(cluster, *placer, CpuOnly(1));
  EXPECT_THAT(decision.slots, ElementsAre(Slot{1, kNoDevice, 0}));
  EXPECT_TRUE(decision.cpu_only);
  EXPECT_EQ(decision.own, Slowdown());
  EXPECT_TRUE(decision.effects.empty());
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, 28'000);
  EXPECT_EQ(cluster.Totals().devices_used, 0u);
  EXPECT_EQ(cluster.Totals().jobs, 1u);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  const uint64_t empty = Nodes(1).state_hash();
  EXPECT_NE(cluster.state_hash(), empty);
  ASSERT_TRUE(cluster.Release(1).ok());
  EXPECT_EQ(cluster.state_hash(), empty);
}

TEST(CpuOnly, LeavesNodesWithIdleGpusToThoseWhoNeedThem) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.AddNode(NodeWithoutGpus(7)).ok());
  EXPECT_EQ(Decide(cluster, CpuOnly(1)).slots.front().node, 7u);
  EXPECT_EQ(Decide(cluster, CpuOnly(1), "first-fit").slots.front().node, 1u);
}

TEST(CpuOnly, FillsANodeExactlyAndIsThenDeferred) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(NodeWithoutGpus(7)).ok());
  const auto placer = MakePlacer();
  for (JobId id = 1; id <= 2; ++id) EXPECT_EQ(PlaceOne(cluster, *placer, CpuOnly(id)).verdict, Verdict::kPlace);
  const Decision decision = Decide(cluster, CpuOnly(3));
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_EQ(decision.reason, Reason::kCpu);
  EXPECT_EQ(decision.refused_devices[static_cast<size_t>(Reason::kCpu)], 1u);  // a node
  EXPECT_EQ(decision.miss.device, -1);
  EXPECT_EQ(decision.miss.needed, 4000);
}

TEST(CpuOnly, CountsNodesNotDevicesWhereItIsRefused) {
  Cluster cluster = Nodes(3, 4);
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDown).ok());
  JobSpec job = CpuOnly(1);
  job.cpu_milli = 30'000;
  ASSERT_TRUE(cluster.Adopt(CpuOnly(9), {{{2, kNoDevice, 0}}}).ok());
  ASSERT_TRUE(cluster.Adopt(CpuOnly(8), {{{3, kNoDevice, 0}}}).ok());
  const Decision decision = Decide(cluster, job);
  EXPECT_EQ(decision.verdict, Verdict::kDefer);
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("2 of 3 nodes: Too few CPU cores"));
  const NodeId only = 2;
  EXPECT_EQ(MakePlacer()
                ->MakePlan(cluster, {&job, 1}, {{&only, 1}})
                ->decisions[0]
                .refused_devices[static_cast<size_t>(Reason::kNotInSubset)],
            2u);
}

TEST(CpuOnly, AGangSpreadsOverNodesAllOrNothing) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 3; ++id) ASSERT_TRUE(cluster.AddNode(NodeWithoutGpus(id)).ok());
  const Decision decision = Decide(cluster, CpuOnly(1, 5));
  EXPECT_THAT(decision.slots, ElementsAre(Slot{1, kNoDevice, 0}, Slot{1, kNoDevice, 1}, Slot{2, kNoDevice, 2},
                                          Slot{2, kNoDevice, 3}, Slot{3, kNoDevice, 4}));
  EXPECT_TRUE(decision.spans_nodes);
  const Decision refused = Decide(cluster, CpuOnly(1, 7));
  EXPECT_EQ(refused.reason, Reason::kGang);
  EXPECT_EQ(refused.miss.needed, 7);
  EXPECT_EQ(refused.miss.available, 6);
  EXPECT_EQ(refused.miss.unit, "tasks");
  const auto placer = MakePlacer();
  EXPECT_EQ(PlaceOne(cluster, *placer, CpuOnly(1, 5)).verdict, Verdict::kPlace);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  EXPECT_EQ(Decide(cluster, CpuOnly(2, 2)).reason, Reason::kGang);
}

TEST(CpuOnly, StaysKnownToItsNode) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(CpuOnly(5), {{{2, kNoDevice, 0}}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(3), {{{2, 0, 0}}}).ok());
  EXPECT_THAT(cluster.Node(2)->jobs, ElementsAre(3, 5));
  EXPECT_THAT(*cluster.SetNodeState(2, AdminState::kDrained), ElementsAre(3, 5));
  ASSERT_TRUE(cluster.Release(3).ok());
  EXPECT_EQ(cluster.RemoveNode(2).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(cluster.Release(5).ok());
  EXPECT_TRUE(cluster.RemoveNode(2).ok());
}

TEST(CpuOnly, AdoptRefusesADeviceForItAndAMissingOneForOthers) {
  Cluster cluster = Nodes(1);
  EXPECT_EQ(cluster.Adopt(CpuOnly(1), {{{1, 0, 0}}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.Adopt(OneGpu(1), {{{1, kNoDevice, 0}}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster.Adopt(CpuOnly(1, 2), {{{1, kNoDevice, 0}}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.job_count(), 0u);
}

TEST(CpuOnly, ReleasedInAnyOrderTheOthersStayWhole) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 0)).ok());
  for (JobId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(cluster.Adopt(CpuOnly(id, 2), {{{1, kNoDevice, 0}, {1, kNoDevice, 1}}}).ok());
  }
  for (const JobId id : {2, 1, 3}) {
    ASSERT_TRUE(cluster.Release(id).ok());
    ASSERT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  }
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, 32'000);
}

TEST(CpuOnly, SurvivesASnapshot) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(CpuOnly(5, 2), {{{1, kNoDevice, 0}, {2, kNoDevice, 1}}}).ok());
  const std::string bytes = *SaveSnapshot(cluster);
  const auto restored =
      RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, Catalogue::Default());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  EXPECT_EQ(*SaveSnapshot(*restored), bytes);
}

TEST(CpuOnly, TheSentenceNamesNoDevice) {
  EXPECT_EQ(DescribeDecision(Decide(Nodes(1), CpuOnly(1))), "Placed on node 1; needs no GPU.");
}

TEST(CpuOnly, AWhatIfIsUndone) {
  const Cluster cluster = Nodes(1);
  Ledger ledger(cluster);
  const uint64_t before = ledger.Hash();
  const std::vector<PlacedSlot> slots = {{0, kNoDevice, 0, 0}, {0, kNoDevice, 1, 0}};
  ledger.Place(CpuOnly(1, 2), slots);
  EXPECT_EQ(ledger.node(0).free.cpu_milli, 24'000);
  ledger.UndoTo(0);
  EXPECT_EQ(ledger.Hash(), before);
}

}  // namespace
}  // namespace horus
