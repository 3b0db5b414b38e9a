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
#include "lab/synergy/round.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Decide;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::Type;
using testing_place::V100Node;

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
  std::vector<JobSpec> jobs = {OneGpu(1, 80), OneGpu(2, 60), OneGpu(3, 60)};
  jobs[2].slowdown_bound = 1.5;
  const auto plan = MakePlacer()->MakePlan(cluster, jobs);
  EXPECT_EQ(plan->decisions[1].effects.at(1).job, 1u);
  EXPECT_FLOAT_EQ(plan->decisions[1].own.estimate, 1.4f);
  EXPECT_EQ(plan->decisions[2].verdict, Verdict::kDefer);
  EXPECT_EQ(plan->actions.size(), 2u);
  EXPECT_EQ(plan->seen.size(), 1u);
}

TEST(Placer, CostTermsSumToTheCost) {
  for (const std::string_view policy : PolicyNames()) {
    if (policy == "synergy-opt") continue;  // needs its library: synergy_opt_test.cc
    JobSpec job = OneGpu(3);
    job.demands[0].demand.flags = kDemandMeasured;  // others go to profilers alone under "reactive"
    const Decision decision = Decide(Nodes(2), job, policy);
    const bool round = policy.starts_with("synergy-");  // which compares no places
    ASSERT_EQ(decision.has_runner_up, !round) << policy;
    for (const PricedPlace& place : {decision.winner, decision.runner_up}) {
      double sum = 0;
      for (const CostTerm& term : place.terms) sum += term.value;
      EXPECT_NEAR(sum, place.cost, 1e-12) << policy;
    }
    EXPECT_TRUE(round || decision.winner.cost <= decision.runner_up.cost);
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
  EXPECT_THAT(nodes_of(Gang(9, 4, 1)), testing::ElementsAre(3, 3, 4, 4)) << "keeps the larger node";
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

  const std::vector<NodeId> unknown = {77};
  EXPECT_EQ(MakePlacer()->MakePlan(cluster, {&job, 1}, unknown).status().code(), absl::StatusCode::kNotFound);
  const auto none = MakePlacer()->MakePlan(cluster, {&job, 1}, std::vector<NodeId>());
  EXPECT_EQ(none->decisions[0].reason, Reason::kNotInSubset);
  EXPECT_EQ(none->decisions[0].refused_devices[static_cast<size_t>(Reason::kNotInSubset)], 6u);
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

TEST(Placer, ADecisionIsASentenceThatNamesTheNodeTheNeighboursAndWhatTheyLose) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 1);
  node.name = "left";
  ASSERT_TRUE(cluster.AddNode(node).ok());
  const auto placer = MakePlacer();
  EXPECT_EQ(DescribeDecision(PlaceOne(cluster, *placer, OneGpu(7, 60, 1000))), "Placed on left device 0, alone.");
  EXPECT_EQ(DescribeDecision(PlaceOne(cluster, *placer, OneGpu(8, 60, 1000))),
            "Placed on left device 0 beside job 7; expected slowdown 1.2 (at most 1.2); slows job 7 from 1 to 1.2.");
  Cluster two = Nodes(1, 2);
  ASSERT_TRUE(two.Adopt(Gang(5, 1, 2, 20), std::vector<Slot>{{1, 0, 0}, {1, 1, 0}}).ok());
  EXPECT_THAT(DescribeDecision(Decide(two, Gang(6, 1, 2, 20))), HasSubstr("beside job 5; ")) << "once";
  EXPECT_THAT(DescribeDecision(Decide(cluster, OneGpu(9, 60, 1 << 20))), HasSubstr("Nearest: left device 0"));
}

}  // namespace
}  // namespace horus
