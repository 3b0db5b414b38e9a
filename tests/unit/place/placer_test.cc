// SPDX-License-Identifier: Apache-2.0
// Rules of the placer: constraints, verdicts, explanations, gangs, order.
#include "place/placer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fixtures.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

Decision Decide(const Cluster& cluster, const JobSpec& job, std::string_view policy = "horus",
                PlacerOptions options = {}) {
  auto plan = MakePlacer(policy, options)->MakePlan(cluster, {&job, 1});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan->decisions.at(0);
}

struct RefusalCase {
  Reason reason;
  Verdict verdict;
  std::function<void(Cluster&, JobSpec&)> set_up;
};

TEST(Placer, NamesTheConstraintThatRefused) {
  const std::vector<Slot> both = {{1, 0, 0}};
  const std::vector<RefusalCase> cases = {
      {Reason::kNodeDown, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetNodeState(1, AdminState::kDown).ok()); }},
      {Reason::kNodeDrained, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetNodeState(1, AdminState::kDrained).ok()); }},
      {Reason::kDeviceDown, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetDeviceState(1, 0, AdminState::kDown).ok()); }},
      {Reason::kDeviceDrained, Verdict::kDefer,
       [](Cluster& c, JobSpec&) { ASSERT_TRUE(c.SetDeviceState(1, 0, AdminState::kDrained).ok()); }},
      {Reason::kGpuType, Verdict::kReject, [](Cluster&, JobSpec& j) { j.demands[0].type = Type("k80"); }},
      {Reason::kLabel, Verdict::kReject, [](Cluster&, JobSpec& j) { j.node_selector = {{"zone", "b"}}; }},
      {Reason::kCpu, Verdict::kReject, [](Cluster&, JobSpec& j) { j.cpu_milli = 33'000; }},
      {Reason::kHostMemory, Verdict::kReject, [](Cluster&, JobSpec& j) { j.mem_mib = 262'145; }},
      {Reason::kStorageBandwidth, Verdict::kReject, [](Cluster&, JobSpec& j) { j.storage_mb_s = 1001; }},
      {Reason::kGpuMemory, Verdict::kReject,
       [](Cluster&, JobSpec& j) { j.demands[0].demand.mem_mib = {15'885, 15'885}; }},
      {Reason::kGpuMemory, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) { ASSERT_TRUE(c.Adopt(OneGpu(1, 10, 14'000), both).ok()); }},
      {Reason::kGpuMilli, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         JobSpec half = OneGpu(1, 10);
         half.gpu_milli = 600;
         ASSERT_TRUE(c.Adopt(half, both).ok());
         j.gpu_milli = 500;
       }},
      {Reason::kTenantLimit, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) {
         for (JobId id = 1; id <= 3; ++id) ASSERT_TRUE(c.Adopt(OneGpu(id, 1, 10), both).ok());
       }},
      {Reason::kExclusive, Verdict::kDefer,
       [&](Cluster& c, JobSpec&) {
         JobSpec alone = OneGpu(1, 1, 10);
         alone.exclusive = true;
         ASSERT_TRUE(c.Adopt(alone, both).ok());
       }},
      {Reason::kExclusive, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.exclusive = true;
         ASSERT_TRUE(c.Adopt(OneGpu(1, 1, 10), both).ok());
       }},
      {Reason::kSlowdownOwn, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.slowdown_bound = 1.1f;
         ASSERT_TRUE(c.Adopt(OneGpu(1, 90), both).ok());
       }},
      {Reason::kSlowdownNeighbour, Verdict::kDefer,
       [&](Cluster& c, JobSpec& j) {
         j.slowdown_bound = 3;
         JobSpec strict = OneGpu(1, 90);
         strict.slowdown_bound = 1.1f;
         ASSERT_TRUE(c.Adopt(strict, both).ok());
       }},
      {Reason::kGang, Verdict::kReject, [](Cluster&, JobSpec& j) { j.tasks = 2; }},
  };
  for (const RefusalCase& one : cases) {
    Cluster cluster = Nodes(1, 1);
    JobSpec job = OneGpu(50);
    one.set_up(cluster, job);
    const Decision decision = Decide(cluster, job);
    EXPECT_EQ(decision.reason, one.reason) << ReasonName(one.reason) << " / " << ReasonName(decision.reason);
    EXPECT_EQ(decision.verdict, one.verdict) << ReasonName(one.reason);
    EXPECT_EQ(decision.miss.reason, one.reason) << ReasonName(one.reason);
    EXPECT_TRUE(decision.slots.empty());
  }
}

TEST(Placer, SaysHowFarOffARefusedJobWas) {
  Cluster cluster = Nodes(2, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 10, 10'000), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2, 10, 8'000), std::vector<Slot>{{2, 0, 0}}).ok());
  const Decision decision = Decide(cluster, OneGpu(50, 10, 9'000));
  EXPECT_EQ(decision.refused_devices[static_cast<size_t>(Reason::kGpuMemory)], 2u);
  EXPECT_EQ(decision.miss.node, 2u);
  EXPECT_EQ(decision.miss.needed, 9'000);
  EXPECT_EQ(decision.miss.available, 16'384 - 500 - 8'000);
  EXPECT_THAT(DescribeDecision(decision), HasSubstr("needed 9000, available 7884 MiB"));
}

TEST(Placer, TheSentenceOfARefusalTellsTheMainReasonAndTheNearestApart) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 2; ++id) ASSERT_TRUE(cluster.AddNode(V100Node(id, 2)).ok());
  NodeSpec zoned = V100Node(3, 1);
  zoned.labels = {{"zone", "a"}};
  ASSERT_TRUE(cluster.AddNode(zoned).ok());
  JobSpec job = OneGpu(50, 10, 20'000);
  job.node_selector = {{"zone", "a"}};
  EXPECT_EQ(
      DescribeDecision(Decide(cluster, job)),
      "Rejected: never fits this cluster. 4 of 5 devices: The node lacks a label that the job's selector asks for. "
      "Nearest: node 3 device 0, which failed another constraint (gpu_memory: needed 20000, available 15884 MiB).");
  job.node_selector.clear();
  EXPECT_EQ(DescribeDecision(Decide(cluster, job)),
            "Rejected: never fits this cluster. The tenants' memory bounds and the headroom would exceed the device. "
            "Nearest: node 1 device 0 (gpu_memory: needed 20000, available 15884 MiB).");
}

TEST(Placer, MigInstancesTakeNoGangs) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 0);
  node.devices.assign(2, {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 0, .physical_gpu = 0});
  ASSERT_TRUE(cluster.AddNode(node).ok());
  EXPECT_EQ(Decide(cluster, Gang(1, 1, 2)).reason, Reason::kSharingMode);
  EXPECT_EQ(Decide(cluster, OneGpu(1, 90, 1000)).verdict, Verdict::kPlace);
}

TEST(Placer, PrefersTheWholeGpuWhereASliceWouldBeTooSlow) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 0);
  node.devices.assign(2, {.type = Type("a100-40gb")});
  node.devices[0].mode = SharingMode::kMig;  // 1g.5gb: one of seven compute slices
  node.devices[0].mig_profile = 0;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  EXPECT_EQ(Decide(cluster, OneGpu(1, 90, 1000)).slots[0].device, 1);
  EXPECT_EQ(Decide(cluster, OneGpu(2, 10, 1000)).slots[0].device, 0);  // loses nothing, leaves the whole one free
}

TEST(Placer, AnMpsDeviceTakesNoMoreTenantsThanItsServerAdmits) {
  GpuType few = Catalogue::Default()->at(Type("v100-sxm2-16gb"));
  few.name = "few-clients";
  few.aliases.clear();
  few.max_mps_clients = 2;
  const auto catalogue = std::make_shared<const Catalogue>(*Catalogue::Extend(*Catalogue::Default(), {few}));
  for (const int32_t stated : {0, 1, 9}) {  // the smaller limit counts
    Cluster cluster(catalogue);
    NodeSpec node = V100Node(1, 1);
    node.devices[0] =
        DeviceSpec{.type = *catalogue->Find("few-clients"), .mode = SharingMode::kMps, .max_tenants = stated};
    ASSERT_TRUE(cluster.AddNode(node).ok());
    const auto placer = MakePlacer("first-fit", {.max_tenants = 5});
    const JobId most = stated == 1 ? 1 : 2;
    for (JobId id = 1; id <= most; ++id)
      EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(id, 1, 10)).verdict, Verdict::kPlace);
    const Decision refused = PlaceOne(cluster, *placer, OneGpu(9, 1, 10));
    EXPECT_EQ(refused.reason, Reason::kTenantLimit);
    EXPECT_EQ(refused.miss.unit, stated == 1 ? "tenants" : "MPS clients");
    EXPECT_EQ(refused.miss.available, static_cast<double>(most));
    const auto adopted = cluster.Adopt(OneGpu(9, 1, 10), std::vector<Slot>{{1, 0, 0}});
    EXPECT_EQ(adopted->reason, Reason::kTenantLimit);
  }
}

TEST(Placer, ExclusiveDevicesTakeOneJob) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 1);
  node.devices[0].mode = SharingMode::kExclusive;
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const auto placer = MakePlacer();
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(1, 1, 10)).verdict, Verdict::kPlace);
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(2, 1, 10)).reason, Reason::kSharingMode);
}

TEST(Placer, FractionsFillADeviceExactly) {
  Cluster cluster = Nodes(1, 1);
  const auto placer = MakePlacer("first-fit", {.max_tenants = 8});
  JobSpec quarter = OneGpu(1, 10, 100);
  quarter.gpu_milli = 250;
  for (JobId id = 1; id <= 4; ++id) {
    quarter.id = id;
    EXPECT_EQ(PlaceOne(cluster, *placer, quarter).verdict, Verdict::kPlace);
  }
  EXPECT_EQ(PlaceOne(cluster, *placer, OneGpu(9, 1, 10)).reason, Reason::kGpuMilli);  // not a thousandth is left
}

TEST(Placer, EveryoneTouchedIsListedWithSlowdownBeforeAndAfter) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(5, 80), std::vector<Slot>{{1, 0, 0}}).ok());
  const Decision decision = Decide(cluster, OneGpu(3, 60));
  ASSERT_EQ(decision.effects.size(), 2u);
  EXPECT_EQ(decision.effects[0], (TenantEffect{3, 1, 0, true, {1, 1}, {1.4f, 1.4f}}));
  EXPECT_EQ(decision.effects[1], (TenantEffect{5, 1, 0, false, {1, 1}, {1.4f, 1.4f}}));
  EXPECT_EQ(decision.own, (Slowdown{1.4f, 1.4f}));
}

TEST(Placer, AGangBesideAGangListsTheResidentOnceForEachDevice) {
  Cluster cluster = Nodes(3, 4);
  std::vector<Slot> pairs;  // tasks of two GPUs, the later ones on lower nodes
  std::vector<Slot> singles;
  for (int32_t i = 0; i < 12; ++i) {
    pairs.push_back({static_cast<NodeId>(3 - i / 4), 3 - i % 4, i / 2});
    singles.push_back({pairs.back().node, pairs.back().device, i});
  }
  ASSERT_TRUE(cluster.Adopt(Gang(5, 6, 2, 30), pairs).ok());
  ASSERT_TRUE(cluster.Adopt(Gang(4, 12, 1, 10), singles).ok());
  const Decision decision = Decide(cluster, Gang(9, 3, 4, 20));
  ASSERT_EQ(decision.verdict, Verdict::kPlace);
  ASSERT_EQ(decision.effects.size(), 36u);
  for (size_t i = 0; i < 36; i += 3) {
    const auto node = static_cast<NodeId>(1 + i / 12);
    const auto device = static_cast<int32_t>(i / 3 % 4);
    EXPECT_EQ(decision.effects[i], (TenantEffect{9, node, device, true, {1, 1}, {1, 1}}));
    EXPECT_EQ(decision.effects[i + 1], (TenantEffect{4, node, device, false, {1, 1}, {1, 1}}));
    EXPECT_EQ(decision.effects[i + 2], (TenantEffect{5, node, device, false, {1, 1}, {1, 1}}));
  }
}

TEST(Placer, JobsOfOnePlanSeeEachOther) {
  Cluster cluster = Nodes(1, 1);
  const std::vector<JobSpec> jobs = {OneGpu(1, 80), OneGpu(2, 60), OneGpu(3, 60)};
  const auto plan = MakePlacer()->MakePlan(cluster, jobs);
  EXPECT_EQ(plan->decisions[1].effects.at(1).job, 1u);
  EXPECT_FLOAT_EQ(plan->decisions[1].own.estimate, 1.4f);
  EXPECT_EQ(plan->decisions[2].verdict, Verdict::kDefer);
  EXPECT_EQ(plan->actions.size(), 2u);
  EXPECT_EQ(plan->seen.size(), 1u);
}

TEST(Placer, CostTermsSumToTheCost) {
  for (const std::string_view policy : PolicyNames()) {
    const Decision decision = Decide(Nodes(2), OneGpu(3), policy);
    ASSERT_TRUE(decision.has_runner_up) << policy;
    for (const PricedPlace& place : {decision.winner, decision.runner_up}) {
      double sum = 0;
      for (const CostTerm& term : place.terms) sum += term.value;
      EXPECT_NEAR(sum, place.cost, 1e-12) << policy;
    }
    EXPECT_LE(decision.winner.cost, decision.runner_up.cost);
  }
}

TEST(Placer, OrderIsPriorityThenSubmissionThenId) {
  Cluster cluster = Nodes(1, 1);
  std::vector<JobSpec> jobs = {OneGpu(1), OneGpu(2), OneGpu(3), OneGpu(4)};
  for (JobSpec& job : jobs) job.submit_us = 100;
  jobs[2].submit_us = 50;
  jobs[3].priority = 1;
  const auto plan = MakePlacer()->MakePlan(cluster, jobs);
  std::vector<JobId> order;
  for (const Decision& decision : plan->decisions) order.push_back(decision.job);
  EXPECT_THAT(order, testing::ElementsAre(4, 3, 1, 2));
}

TEST(Placer, GangsPreferOneNodeThenOneRackThenFewNodes) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 1, 0)).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(2, 3, 0)).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(3, 2, 1)).ok());
  ASSERT_TRUE(cluster.AddNode(V100Node(4, 2, 1)).ok());
  const auto nodes_of = [&](const JobSpec& job) {
    std::vector<NodeId> nodes;
    for (const Slot& slot : Decide(cluster, job).slots) nodes.push_back(slot.node);
    return nodes;
  };
  EXPECT_THAT(nodes_of(Gang(9, 3, 1)), testing::ElementsAre(2, 2, 2));
  EXPECT_THAT(nodes_of(Gang(9, 2, 2)), testing::ElementsAre(3, 3, 4, 4));
  EXPECT_THAT(nodes_of(Gang(9, 4, 1)), testing::ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(nodes_of(Gang(9, 8, 1)).size(), 8u);
  const Decision refused = Decide(cluster, Gang(9, 9, 1));
  EXPECT_EQ(refused.verdict, Verdict::kReject);
  EXPECT_EQ(refused.miss.needed, 9);
  EXPECT_EQ(refused.miss.available, 8);
}

TEST(Placer, AGangCountsHostResourcesPerTask) {
  Cluster cluster = Nodes(2, 4);
  JobSpec job = Gang(9, 4, 1);
  job.cpu_milli = 16'000;  // two tasks a node
  const Decision decision = Decide(cluster, job);
  ASSERT_EQ(decision.slots.size(), 4u);
  EXPECT_EQ(
      std::count_if(decision.slots.begin(), decision.slots.end(), [](const Slot& slot) { return slot.node == 1; }), 2);
}

TEST(Placer, ConsidersOnlyTheSubset) {
  const Cluster cluster = Nodes(3);
  const JobSpec job = OneGpu(1);
  const std::vector<NodeId> subset = {3, 2, 3};
  const auto plan = MakePlacer("first-fit")->MakePlan(cluster, {&job, 1}, subset);
  EXPECT_EQ(plan->decisions[0].slots[0].node, 2u);
  EXPECT_EQ(plan->decisions[0].refused_devices[static_cast<size_t>(Reason::kNotInSubset)], 2u);
  const std::vector<NodeId> unknown = {77};
  EXPECT_EQ(MakePlacer()->MakePlan(cluster, {&job, 1}, unknown).status().code(), absl::StatusCode::kNotFound);
  const auto none = MakePlacer()->MakePlan(cluster, {&job, 1}, std::vector<NodeId>());
  EXPECT_EQ(none->decisions[0].reason, Reason::kNotInSubset);
}

TEST(Placer, ARejectionTellsWhatRefusesForGoodAndNotWhatIsBusyNow) {
  Cluster cluster = Nodes(1, 2);
  std::vector<JobSpec> residents = {OneGpu(1), OneGpu(2)};
  for (JobSpec& resident : residents) resident.exclusive = true;
  const auto placer = MakePlacer();
  ASSERT_TRUE(cluster.Apply(*placer->MakePlan(cluster, residents)).ok());
  JobSpec wide = OneGpu(3);
  wide.gpus_per_task = 3;
  const Decision decision = Decide(cluster, wide);
  EXPECT_EQ(decision.verdict, Verdict::kReject);
  EXPECT_EQ(decision.reason, Reason::kGang);
  EXPECT_EQ(decision.miss.reason, Reason::kGang);
}

TEST(Placer, AnEmptyClusterRejects) {
  const Cluster cluster(Catalogue::Default());
  EXPECT_EQ(Decide(cluster, OneGpu(1)).verdict, Verdict::kReject);
  EXPECT_EQ(Decide(cluster, OneGpu(1)).reason, Reason::kGang);
}

TEST(Placer, RefusesBadCallsAndNamesTheJob) {
  Cluster cluster = Nodes(1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  const auto placer = MakePlacer("horus", {.max_jobs = 2});
  const auto code = [&](std::vector<JobSpec> jobs) { return placer->MakePlan(cluster, jobs).status().code(); };
  EXPECT_EQ(code({OneGpu(1)}), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code({OneGpu(2), OneGpu(2)}), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code({OneGpu(2), OneGpu(3), OneGpu(4)}), absl::StatusCode::kResourceExhausted);
  JobSpec bad = OneGpu(2);
  bad.tasks = 0;
  EXPECT_EQ(code({bad}), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(placer->MakePlan(cluster, {}).ok());
}

TEST(Placer, ProgressMayCancel) {
  const JobSpec job = OneGpu(1);
  const auto plan = MakePlacer()->MakePlan(Nodes(1), {&job, 1}, std::nullopt, [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kCancelled);
}

TEST(Placer, RefusesBadOptions) {
  const auto code = [](PlacerOptions options) {
    return Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy("horus"), options).status().code();
  };
  EXPECT_EQ(code({.slowdown_bound = 0.9}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.max_tenants = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.mem_headroom_mib = -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Placer::Create(nullptr, *MakePolicy("horus")).status().code(), absl::StatusCode::kInvalidArgument);
}

class Broken final : public InterferenceModel {
 public:
  explicit Broken(float value) : value_(value) {}
  std::string_view name() const override { return "broken"; }
  uint64_t epoch() const override { return 1; }
  absl::Status Predict(const DeviceContext&, std::span<const Demand* const>, std::span<Slowdown> out) const override {
    std::fill(out.begin(), out.end(), Slowdown{value_, value_});
    return absl::OkStatus();
  }

 private:
  float value_;
};

TEST(Placer, AModelThatAnswersNonsenseEndsThePlan) {
  const JobSpec job = OneGpu(1);
  for (const float value : {std::nanf(""), 0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    auto placer = Placer::Create(std::make_shared<Broken>(value), *MakePolicy("horus"));
    const auto plan = (*placer)->MakePlan(Nodes(1), {&job, 1});
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr("broken"));
  }
}

TEST(Placer, VerdictsAnswerPerNodeAndForOneTaskOfAGang) {
  Cluster cluster = Nodes(3, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1, 90, 14'000), std::vector<Slot>{{2, 0, 0}}).ok());
  const std::vector<NodeId> nodes = {3, 2, 1};
  const auto verdicts = MakePlacer()->Verdicts(cluster, Gang(9, 2, 1), nodes);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_THAT(verdicts->verdict, testing::ElementsAre(Verdict::kPlace, Verdict::kDefer, Verdict::kPlace));
  EXPECT_THAT(verdicts->reason, testing::ElementsAre(Reason::kNone, Reason::kGpuMemory, Reason::kNone));
  EXPECT_TRUE(std::isnan(verdicts->cost[1]));
  EXPECT_EQ(verdicts->cost[0], verdicts->cost[2]);
  EXPECT_EQ(MakePlacer()->Verdicts(cluster, OneGpu(9), std::vector<NodeId>{8}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace horus
