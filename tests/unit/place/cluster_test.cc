// SPDX-License-Identifier: Apache-2.0
// Rules of the cluster: nodes, states, adopt, apply, release.
#include "place/state/cluster.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

class Unchanged {  // fails the test when the cluster differs at the end of the scope
 public:
  explicit Unchanged(const Cluster& cluster) : cluster_(cluster), hash_(cluster.state_hash()) {}
  ~Unchanged() {
    EXPECT_EQ(cluster_.state_hash(), hash_);
    EXPECT_TRUE(CheckInvariants(cluster_).ok()) << CheckInvariants(cluster_);
  }

 private:
  const Cluster& cluster_;
  uint64_t hash_;
};

TEST(Cluster, RefusesASecondNodeOfTheSameId) {
  Cluster cluster = Nodes(2);
  const Unchanged unchanged(cluster);
  EXPECT_EQ(cluster.AddNode(V100Node(2)).code(), absl::StatusCode::kAlreadyExists);
}

TEST(Cluster, ZeroIsAnIdLikeAnyOther) {
  Cluster cluster(Catalogue::Default());
  EXPECT_TRUE(cluster.AddNode(V100Node(0)).ok());
  EXPECT_TRUE(cluster.Adopt(OneGpu(0), std::vector<Slot>{{0, 0, 0}}).ok());
  EXPECT_EQ(cluster.Job(0)->slots.size(), 1u);
}

TEST(Cluster, RefusesBadNodesNamingTheField) {
  Cluster cluster = Nodes(1);
  const Unchanged unchanged(cluster);
  NodeSpec node = V100Node(9);
  node.devices[1].type = GpuTypeId(4000);
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("devices[1].type"));
  node = V100Node(9);
  node.cpu_milli = -1;
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("cpu_milli"));
  node = V100Node(9);
  node.labels = {{"zone", "a"}, {"zone", "b"}};
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("'zone' twice"));
  node = V100Node(9);
  node.devices[0].mig_profile = 0;
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("mig_profile"));
}

TEST(Cluster, RefusesMpsOnATypeThatAdmitsNoClients) {
  GpuType old = Catalogue::Default()->at(Type("k80"));
  old.name = "old";
  old.aliases.clear();
  old.compute_capability = 30;  // before MPS
  old.max_mps_clients = 0;
  const auto catalogue = std::make_shared<const Catalogue>(*Catalogue::Extend(*Catalogue::Default(), {old}));
  Cluster cluster(catalogue);
  NodeSpec node = V100Node(1, 1);
  node.devices[0] = DeviceSpec{.type = *catalogue->Find("old"), .mode = SharingMode::kMps};
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("devices[0].mode: expected a mode other than mps"));
  node.devices[0].mode = SharingMode::kTimeSlice;
  EXPECT_TRUE(cluster.AddNode(node).ok());
}

TEST(Cluster, RefusesMixedSharingModesOnOneCard) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 2);
  const GpuTypeId a100 = Type("a100-40gb");
  node.devices = {{.type = a100, .mode = SharingMode::kMig, .mig_profile = 0, .physical_gpu = 0},
                  {.type = a100, .mode = SharingMode::kTimeSlice, .physical_gpu = 0}};
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("only MIG instances share a card"));
  node.devices[1] = node.devices[0];
  EXPECT_TRUE(cluster.AddNode(node).ok());
  EXPECT_EQ(cluster.Device(1, 0)->spec.mem_mib, Catalogue::Default()->at(a100).mig[0].mem_mib);
}

TEST(Cluster, CopiesThatPlacedAJobOnDifferentDevicesDiffer) {
  const Cluster base = Nodes(1, 2);
  Cluster one = base;
  Cluster other = base;
  ASSERT_TRUE(one.Adopt(OneGpu(7, 50), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(other.Adopt(OneGpu(7, 50), std::vector<Slot>{{1, 1, 0}}).ok());
  EXPECT_NE(one.Node(1)->version, other.Node(1)->version);
}

TEST(Cluster, RefusesMoreMigSlicesThanACardHas) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 0);
  node.devices.assign(8, {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 0, .physical_gpu = 3});
  EXPECT_THAT(Message(cluster.AddNode(node)), HasSubstr("compute slices on card 3"));
}

TEST(Cluster, RemovesOnlyEmptyNodesAndSaysWhoIsThere) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(12), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(11), std::vector<Slot>{{1, 1, 0}}).ok());
  const absl::Status status = cluster.RemoveNode(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("2 jobs are there, the first is 11"));
  EXPECT_TRUE(cluster.RemoveNode(2).ok());
  EXPECT_EQ(cluster.RemoveNode(2).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(CheckInvariants(cluster).ok());
}

TEST(Cluster, ReportsTheJobsOfANodeThatGoesDownAndKeepsThem) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(Gang(5, 2, 1), std::vector<Slot>{{1, 0, 0}, {1, 1, 1}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(3), std::vector<Slot>{{1, 1, 0}}).ok());
  EXPECT_THAT(*cluster.SetNodeState(1, AdminState::kDown), ElementsAre(3, 5));
  EXPECT_THAT(*cluster.SetDeviceState(1, 0, AdminState::kDrained), ElementsAre(5));
  EXPECT_TRUE(cluster.HasJob(3));
  EXPECT_EQ(cluster.SetNodeState(9, AdminState::kUp).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster.SetDeviceState(1, 7, AdminState::kUp).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster.SetNodeState(1, static_cast<AdminState>(7)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Cluster, ChangesANodeUnlessAResidentWouldLoseItsPlace) {
  Cluster cluster = Nodes(2);
  JobSpec job = OneGpu(3);
  job.cpu_milli = 8000;
  job.mem_mib = 1000;
  job.storage_mb_s = 10;
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, 1, 0}}).ok());
  {
    const Unchanged unchanged(cluster);
    EXPECT_THAT(Message(cluster.ChangeNode(V100Node(1, 1))), HasSubstr("devices[1] is used by job 3"));
    NodeSpec other = V100Node(1);
    other.devices[1].mode = SharingMode::kMps;
    EXPECT_THAT(Message(cluster.ChangeNode(other)), HasSubstr("devices[1] is used by job 3"));
    NodeSpec small = V100Node(1);
    small.cpu_milli = 4000;
    EXPECT_THAT(Message(cluster.ChangeNode(small)), HasSubstr("cpu_milli: its jobs use 8000"));
    small = V100Node(1);
    small.mem_mib = 999;
    EXPECT_THAT(Message(cluster.ChangeNode(small)), HasSubstr("mem_mib: its jobs use 1000"));
    small = V100Node(1);
    small.storage_mb_s = 9;
    EXPECT_THAT(Message(cluster.ChangeNode(small)), HasSubstr("storage_mb_s: its jobs use 10"));
    EXPECT_EQ(cluster.ChangeNode(V100Node(9)).code(), absl::StatusCode::kNotFound);
  }
  NodeSpec more = V100Node(1, 4);
  more.cpu_milli = 8000;
  EXPECT_TRUE(cluster.ChangeNode(more).ok());
  EXPECT_EQ(cluster.Node(1)->cpu_free_milli, 0);
  EXPECT_EQ(cluster.Device(1, 1)->residents.size(), 1u);
  EXPECT_EQ(cluster.device_count(), 6u);
  EXPECT_TRUE(CheckInvariants(cluster).ok()) << CheckInvariants(cluster);
  EXPECT_TRUE(cluster.Release(3).ok());
}

TEST(Cluster, AdoptsWhatRunsEvenWhereItOverCommitsAndFlagsIt) {
  Cluster cluster = Nodes(1);
  const auto fits = cluster.Adopt(OneGpu(1, 40, 10'000), std::vector<Slot>{{1, 0, 0}});
  EXPECT_FALSE(fits->over_committed);
  const auto over = cluster.Adopt(OneGpu(2, 40, 10'000), std::vector<Slot>{{1, 0, 0}});
  EXPECT_TRUE(over->over_committed);
  EXPECT_EQ(over->reason, Reason::kGpuMemory);
  EXPECT_TRUE(cluster.Job(2)->over_committed);
  EXPECT_EQ(cluster.Device(1, 0)->mem_used_upper_mib, 20'000);
}

TEST(Cluster, AdoptFlagsAMissingLabelAndNoDrainedPlace) {
  Cluster cluster = Nodes(1);
  JobSpec picky = OneGpu(1);
  picky.node_selector = {{"zone", "a"}};
  EXPECT_EQ(cluster.Adopt(picky, std::vector<Slot>{{1, 0, 0}})->reason, Reason::kLabel);
  EXPECT_TRUE(cluster.Job(1)->over_committed);
  JobId id = 2;
  for (const AdminState state : {AdminState::kDrained, AdminState::kDown}) {
    ASSERT_TRUE(cluster.SetNodeState(1, state).ok());
    ASSERT_TRUE(cluster.SetDeviceState(1, 1, state).ok());
    const auto there = cluster.Adopt(OneGpu(id), std::vector<Slot>{{1, 1, 0}});
    EXPECT_EQ(there->reason, Reason::kNone) << AdminStateName(state);
    EXPECT_FALSE(cluster.Job(id++)->over_committed) << AdminStateName(state);
  }
}

TEST(Cluster, ApplyKeepsNodeRulesWhoeverMadeThePlan) {
  Cluster cluster = Nodes(1);
  JobSpec job = OneGpu(1);
  const auto apply = [&] {
    Plan plan;  // hand-made
    plan.actions.push_back({ActionKind::kPlace, std::make_shared<const JobSpec>(job), {{1, 0, 0}}});
    plan.seen.push_back({1, cluster.Node(1)->version});
    return Message(cluster.Apply(plan));
  };
  job.node_selector = {{"zone", "a"}};
  EXPECT_THAT(apply(), HasSubstr("label"));
  job.node_selector.clear();
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kDrained).ok());
  EXPECT_THAT(apply(), HasSubstr("node is drained"));
  ASSERT_TRUE(cluster.SetNodeState(1, AdminState::kUp).ok());
  ASSERT_TRUE(cluster.SetDeviceState(1, 0, AdminState::kDrained).ok());
  EXPECT_THAT(apply(), HasSubstr("device is drained"));
  ASSERT_TRUE(cluster.SetDeviceState(1, 0, AdminState::kUp).ok());
  EXPECT_EQ(apply(), "");
}

TEST(Cluster, AdoptRefusesUnknownPlacesWrongShapesAndKnownIds) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  const Unchanged unchanged(cluster);
  const auto code = [&](const JobSpec& job, std::vector<Slot> slots) {
    return cluster.Adopt(job, slots).status().code();
  };
  EXPECT_EQ(code(OneGpu(1), {{1, 1, 0}}), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(OneGpu(2), {{9, 0, 0}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(OneGpu(2), {{1, 2, 0}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(OneGpu(2), {{1, -1, 0}}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(OneGpu(2), {}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(OneGpu(2), {{1, 0, 5}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Gang(2, 2, 1), {{1, 0, 0}, {1, 0, 1}}), absl::StatusCode::kInvalidArgument);  // one device twice
  EXPECT_EQ(code(Gang(2, 1, 2), {{1, 0, 0}, {2, 0, 0}}), absl::StatusCode::kInvalidArgument);  // one task, two nodes
  EXPECT_EQ(code(Gang(2, 2, 1), {{1, 0, 0}, {1, 1, 0}}), absl::StatusCode::kInvalidArgument);  // a task without GPU
  JobSpec unknown = OneGpu(2);
  unknown.demands[0].type = GpuTypeId(4000);
  EXPECT_EQ(code(unknown, {{1, 0, 0}}), absl::StatusCode::kInvalidArgument);
}

TEST(Cluster, ApplyingTwiceAnswersAlreadyExistsAndChangesNothing) {
  Cluster cluster = Nodes(1);
  const auto placer = MakePlacer();
  const JobSpec job = OneGpu(7);
  const auto plan = placer->MakePlan(cluster, {&job, 1});
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  const Unchanged unchanged(cluster);
  EXPECT_EQ(cluster.Apply(*plan).code(), absl::StatusCode::kAlreadyExists);
}

TEST(Cluster, ApplyAbortsWhenATouchedNodeChangedAndOnlyThen) {
  Cluster cluster = Nodes(2);
  const auto placer = MakePlacer("first-fit");
  const JobSpec job = OneGpu(7);
  const auto plan = placer->MakePlan(cluster, {&job, 1});
  ASSERT_TRUE(cluster.SetNodeState(2, AdminState::kDrained).ok());  // not touched by the plan
  Cluster same = cluster;
  EXPECT_TRUE(same.Apply(*plan).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(8), std::vector<Slot>{{1, 1, 0}}).ok());
  const Unchanged unchanged(cluster);
  const absl::Status status = cluster.Apply(*plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Message(status), HasSubstr("node 1"));
}

TEST(Cluster, ApplyAbortsOnACopyThatWentAnotherWay) {
  Cluster one = Nodes(1);
  Cluster two = one;
  ASSERT_TRUE(one.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(two.Adopt(OneGpu(2, 100, 15'000), std::vector<Slot>{{1, 0, 0}}).ok());
  const JobSpec job = OneGpu(7);
  const auto plan = MakePlacer("first-fit")->MakePlan(one, {&job, 1});
  EXPECT_EQ(two.Apply(*plan).code(), absl::StatusCode::kAborted);
}

TEST(Cluster, ApplyAbortsOnACopyWhoseNodeWasDescribedOtherwise) {
  const auto change = [](NodeSpec& node, const std::string& what) {
    if (what == "labels") node.labels = {{"zone", "a"}};
    if (what == "rack") node.rack = 9;
    if (what == "cpu") node.cpu_milli = 64'000;
    if (what == "island") node.devices[1].island = 0;
  };
  const JobSpec job = OneGpu(7);
  const auto placer = MakePlacer("first-fit");
  for (const char* what : {"labels", "rack", "cpu", "island"}) {
    SCOPED_TRACE(what);
    NodeSpec node = V100Node(1);
    change(node, what);
    // Changed one way here, another way there.
    Cluster one = Nodes(1);
    Cluster two = one;
    ASSERT_TRUE(one.ChangeNode(V100Node(1)).ok());
    ASSERT_TRUE(two.ChangeNode(node).ok());
    EXPECT_EQ(two.Apply(*placer->MakePlan(one, {&job, 1})).code(), absl::StatusCode::kAborted);
    // Added one way here, another way there.
    Cluster three(Catalogue::Default());
    Cluster four(Catalogue::Default());
    ASSERT_TRUE(three.AddNode(V100Node(1)).ok());
    ASSERT_TRUE(four.AddNode(node).ok());
    EXPECT_EQ(four.Apply(*placer->MakePlan(three, {&job, 1})).code(), absl::StatusCode::kAborted);
  }
}

TEST(Cluster, AppliesAllOrNothing) {
  Cluster cluster = Nodes(1);
  const JobSpec job = OneGpu(7);
  Plan plan = *MakePlacer("first-fit")->MakePlan(cluster, {&job, 1});
  JobSpec big = OneGpu(8, 50, 100'000);  // hand-made: beyond the device
  plan.actions.push_back({ActionKind::kPlace, std::make_shared<const JobSpec>(big), {{1, 1, 0}}});
  const Unchanged unchanged(cluster);
  const uint64_t version = cluster.Node(1)->version;
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cluster.Node(1)->version, version);
  plan.actions[1].kind = static_cast<ActionKind>(4);
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kUnimplemented);
  plan.actions[1].kind = ActionKind::kPlace;
  plan.seen.clear();
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Cluster, RefusesPlansForPlacesAndStatesThatAreNot) {
  Cluster cluster = Nodes(1);
  const JobSpec job = OneGpu(7);
  Plan plan = *MakePlacer("first-fit")->MakePlan(cluster, {&job, 1});
  const Unchanged unchanged(cluster);
  plan.actions[0].slots[0].device = 2;
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kNotFound);
  plan.actions[0].slots = {{1, 0, 0}, {1, 1, 1}};
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.Device(9, 0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cluster.SetNodeState(1, static_cast<AdminState>(3)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.SetDeviceState(1, 0, static_cast<AdminState>(3)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Cluster, AdoptFlagsTasksThatShouldHaveSpread) {
  Cluster cluster = Nodes(2);
  JobSpec job = testing_place::Gang(1, 2, 1);
  job.spread_tasks = true;
  EXPECT_EQ(cluster.Adopt(job, std::vector<Slot>{{1, 0, 0}, {1, 1, 1}})->reason, Reason::kAntiAffinity);
  job.id = 2;
  EXPECT_FALSE(cluster.Adopt(job, std::vector<Slot>{{1, 0, 0}, {2, 1, 1}})->over_committed);
}

TEST(Cluster, ReleaseGivesEverythingBack) {
  Cluster cluster = Nodes(2);
  const uint64_t before = cluster.state_hash();
  const auto placer = MakePlacer();
  JobSpec job = Gang(7, 2, 1);
  job.cpu_milli = 1000;
  ASSERT_EQ(PlaceOne(cluster, *placer, job).verdict, Verdict::kPlace);
  EXPECT_NE(cluster.state_hash(), before);
  EXPECT_TRUE(cluster.Release(7).ok());
  EXPECT_EQ(cluster.state_hash(), before);
  EXPECT_EQ(cluster.Release(7).code(), absl::StatusCode::kNotFound);
}

TEST(Cluster, TotalsCountWhatIsThere) {
  Cluster cluster = Nodes(2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 80), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2, 80), std::vector<Slot>{{1, 0, 0}}).ok());
  const ClusterTotals totals = cluster.Totals();
  EXPECT_EQ(totals.devices, 4u);
  EXPECT_EQ(totals.devices_used, 1u);
  EXPECT_EQ(totals.slots, 2u);
  EXPECT_EQ(totals.gpu_mem_used_mib, 8000);
  EXPECT_DOUBLE_EQ(totals.gpu_util_pct, 25);  // one of four, capped at 100
}

}  // namespace
}  // namespace horus
