// SPDX-License-Identifier: Apache-2.0
// Rules of sizes and answers beyond what job.h, node.h and policy.h allow: each is refused by name, and nothing
// happens.
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "fixtures.h"
#include "lab/synergy/round.h"
#include "place/appraise.h"
#include "place/modes/batch.h"
#include "place/modes/what_if.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::Gang;
using testing_place::MakePlacer;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::PlanOf;
using testing_place::Type;
using testing_place::V100Node;

template <typename Change>
std::string RefusedJob(const Change& change) {
  JobSpec job = OneGpu(1);
  change(job);
  const absl::Status status = ValidateJob(job);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(Limits, OfAJob) {
  const std::vector<std::string> groups(kMaxGroupsPerJob + 1, "g");
  EXPECT_THAT(RefusedJob([&](JobSpec& job) { job.groups = groups; }), HasSubstr("groups: expected at most 64"));
  EXPECT_THAT(RefusedJob([&](JobSpec& job) { job.avoid_groups = groups; }),
              HasSubstr("avoid_groups: expected at most 64"));
  EXPECT_THAT(RefusedJob([](JobSpec& job) { job.node_selector.resize(kMaxSelectorsPerJob + 1); }),
              HasSubstr("at most 256 labels, found 257"));
  EXPECT_THAT(RefusedJob([](JobSpec& job) { job.alternatives.resize(kMaxAlternatives + 1); }),
              HasSubstr("alternatives: expected at most 64"));
  EXPECT_THAT(RefusedJob([](JobSpec& job) { job.share = static_cast<ShareWith>(3); }),
              HasSubstr("share: expected 1 (same tenant) or 2 (anyone), found 3"));
}

template <typename Change>
std::string RefusedNode(const Change& change) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, 2);
  change(node);
  const uint64_t before = cluster.state_hash();
  const absl::Status status = cluster.AddNode(node);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.state_hash(), before);
  return std::string(status.message());
}

TEST(Limits, OfANode) {
  const std::string longest(kMaxNameBytes + 1, 'n');
  EXPECT_THAT(RefusedNode([&](NodeSpec& node) { node.name = longest; }), HasSubstr("name: expected at most 1024"));
  EXPECT_THAT(RefusedNode([&](NodeSpec& node) { node.labels = {{"key", longest}}; }),
              HasSubstr("expected at most 1024 bytes"));
  EXPECT_THAT(RefusedNode([](NodeSpec& node) { node.labels.resize(kMaxLabelsPerNode + 1); }),
              HasSubstr("labels: expected at most 1024, found 1025"));
  EXPECT_THAT(RefusedNode([](NodeSpec& node) { node = V100Node(1, kMaxDevicesPerNode + 1); }),
              HasSubstr("devices: expected at most 1024, found 1025"));
  EXPECT_THAT(RefusedNode([](NodeSpec& node) { node.devices[1].mem_mib = -1; }),
              HasSubstr("devices[1].mem_mib: expected 0"));
  EXPECT_THAT(RefusedNode([](NodeSpec& node) {
                node.devices.assign(2, {.type = Type("a100-40gb"), .mode = SharingMode::kMig, .mig_profile = 0});
                node.devices[1].type = Type("a100-80gb");
                node.devices[0].physical_gpu = node.devices[1].physical_gpu = 0;
              }),
              HasSubstr("expected one GPU type on card 0, found a100-40gb and a100-80gb"));
}

TEST(Limits, OfAPlan) {
  const Cluster cluster = Nodes(1);
  const auto placer = MakePlacer("horus", {.max_jobs = 1});
  const std::vector<JobSpec> two = {OneGpu(1), OneGpu(2)};
  EXPECT_EQ(placer->MakePlan(cluster, two).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PlanBatch(*placer, cluster, two).status().code(), absl::StatusCode::kResourceExhausted);
  const auto rounds = MakePlacer("synergy-tune", {.max_jobs = 1});
  EXPECT_EQ(MakeRound(*rounds, cluster, two).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Limits, APlanOfAnotherTimeIsToldWhatIsGone) {
  Cluster cluster = Nodes(2);
  const auto placer = MakePlacer();
  const JobSpec job = OneGpu(1);
  const std::vector<NodeId> first = {1};
  const Plan plan = *placer->MakePlan(cluster, {&job, 1}, first);
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{2, 0, 0}}).ok());  // on a node that the plan did not see
  EXPECT_EQ(cluster.Apply(plan).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(cluster.Release(1).ok());
  ASSERT_TRUE(cluster.RemoveNode(1).ok());
  EXPECT_THAT(cluster.Apply(plan).message(), HasSubstr("node 1: was removed since the plan was made"));
  EXPECT_EQ(cluster.job_count(), 0u);
}

TEST(Limits, OfAWorkload) {
  std::vector<TaskClass> classes(64);
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i].gpus = 1;
    classes[i].gpu_milli = 1000;
    classes[i].share = 1.0 / static_cast<double>(classes.size());
    classes[i].types = {GpuTypeId(static_cast<uint16_t>(i))};
  }
  EXPECT_THAT(Workload::Create(classes).status().message(), HasSubstr("types: expected at most"));
}

// A policy that prices every device at `cost`.
class PricedAt final : public Policy {
 public:
  explicit PricedAt(DeviceScore score) : score_(score) {}
  std::string_view name() const override { return "priced"; }
  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = score_;
    return absl::OkStatus();
  }

 private:
  DeviceScore score_;
};

TEST(Limits, PricesAreFinite) {
  const Cluster cluster = Nodes(1);
  const auto plan_at = [&](const DeviceScore& score, const JobSpec& job) {
    const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), std::make_unique<PricedAt>(score));
    return placer->MakePlan(cluster, {&job, 1}).status();
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const JobSpec& job : {OneGpu(1), Gang(1, 2, 1)}) {
    EXPECT_TRUE(plan_at({.cost = 1}, job).ok());
    EXPECT_THAT(plan_at({.cost = kNan}, job).message(), HasSubstr("policy priced: expected a finite cost, found nan"));
    EXPECT_THAT(plan_at({.cost = 1, .own_work = kNan}, job).message(), HasSubstr("expected a finite own work"));
  }
}

// A policy whose devices and places each have a price, and no sum.
class BeyondMeasure final : public Policy {
 public:
  BeyondMeasure(double place, bool by_device) : place_(place), by_device_(by_device) {}
  std::string_view name() const override { return "dear"; }
  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score.cost = std::numeric_limits<double>::max();
    return absl::OkStatus();
  }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return by_device_; }
  double ScorePlace(const PlaceCandidate& /*place*/) const override { return place_; }

 private:
  double place_;
  bool by_device_;
};

TEST(Limits, PricesOfPlacesAreFiniteAndSoAreSums) {
  const Cluster cluster = Nodes(2);
  constexpr double kMost = std::numeric_limits<double>::max();
  for (const PlacerOptions& options :
       {PlacerOptions{}, PlacerOptions{.exhaustive = true}, PlacerOptions{.max_candidates = 2}}) {
    for (const bool by_device : {false, true}) {
      const auto plan_at = [&](double place, const JobSpec& job) {
        const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(),
                                            std::make_unique<BeyondMeasure>(place, by_device), options);
        return placer->MakePlan(cluster, {&job, 1}).status();
      };
      for (const JobSpec& job : {OneGpu(1), Gang(1, 1, 2), Gang(1, 3, 1)}) {
        EXPECT_THAT(plan_at(kMost, job).message(), HasSubstr("policy dear: expected a finite cost for node"));
        EXPECT_EQ(plan_at(kMost, job).code(), absl::StatusCode::kInternal);
        EXPECT_EQ(plan_at(-std::numeric_limits<double>::infinity(), job).code(), absl::StatusCode::kInternal);
      }
      JobSpec host = testing_place::CpuOnly(1);
      EXPECT_TRUE(plan_at(kMost, host).ok());
      EXPECT_EQ(plan_at(std::numeric_limits<double>::quiet_NaN(), host).code(), absl::StatusCode::kInternal);
      EXPECT_TRUE(plan_at(-kMost, OneGpu(1)).ok());
    }
  }
}

// Whose nodes have a price as long as nobody is there.
class PricesIdleNodes final : public Policy {
 public:
  std::string_view name() const override { return "idle"; }
  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = {};
    return absl::OkStatus();
  }
  bool uses_place() const override { return true; }
  double ScorePlace(const PlaceCandidate& place) const override {
    return place.node_idle_devices == place.node_devices ? 0 : std::numeric_limits<double>::infinity();
  }
};

TEST(Limits, APriceThatCeasesToBeFiniteEndsThePlansFromThenOn) {
  Cluster cluster = Nodes(2);
  const JobSpec job = OneGpu(1);
  const auto placer = *Placer::Create(std::make_shared<UtilisationModel>(), std::make_unique<PricesIdleNodes>());
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(placer->MakePlan(cluster, {&job, 1}).ok());
    ASSERT_TRUE(cluster.Adopt(OneGpu(9), std::vector<Slot>{{2, 0, 0}}).ok());
    EXPECT_THAT(placer->MakePlan(cluster, {&job, 1}).status().message(),
                HasSubstr("policy idle: expected a finite cost for node 2, found inf"));
    ASSERT_TRUE(cluster.Release(9).ok());
  }
}

TEST(Limits, WhatAPolicyDoesNotSayChangesNothing) {
  const PricedAt policy({.cost = 1});
  EXPECT_FALSE(policy.prices_links());
  EXPECT_EQ(policy.ScorePlace({}), 0);
  EXPECT_EQ(policy.Draw(1, 2), 0);
  EXPECT_TRUE(policy.AdmitsNode({}));
}

TEST(Limits, WhatPricesNoNodesSaysSo) {
  const PricedAt policy({.cost = 1});
  NodeScore score;
  EXPECT_EQ(policy.ScoreNode(NodeCandidate(), score).code(), absl::StatusCode::kUnimplemented);
}

// Whose slowdowns are none.
class NothingModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "nothing"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                     std::span<Slowdown> out) const override {
    for (Slowdown& one : out) one = {0, 0};
    return absl::OkStatus();
  }
};

TEST(Limits, WorkIsMeasuredBySlowdownsAboveNothing) {
  Cluster cluster = Nodes(1, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(1), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(2), std::vector<Slot>{{1, 0, 0}}).ok());
  const auto placer = *Placer::Create(std::make_shared<NothingModel>(), *MakePolicy("first-fit"));
  EXPECT_THAT(WhatIf(*placer, cluster, {}, {}).status().message(),
              HasSubstr("interference model nothing: expected a slowdown above 0, found 0"));
}

TEST(Limits, ADeviceThatIsNotThereHasNoSlowdowns) {
  const Cluster cluster = Nodes(1, 1);
  const Appraiser appraiser(std::make_shared<UtilisationModel>(), FitLimits(), 1);
  EXPECT_TRUE(appraiser.Now(cluster, 1, 0).ok());
  for (const auto& [node, device] : {std::pair<NodeId, int32_t>(2, 0), {1, 1}, {1, -1}}) {
    EXPECT_EQ(appraiser.Now(cluster, node, device).status().code(), absl::StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace horus
