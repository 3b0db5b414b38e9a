// SPDX-License-Identifier: Apache-2.0
// A model or a policy that fails, at each of its answers in turn: the mode says so, and the placer forgets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fixtures.h"
#include "lab/synergy/round.h"
#include "place/appraise.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::AddingModel;
using testing_place::CpuOnly;
using testing_place::Gang;
using testing_place::Needs;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::Type;
using testing_place::V100Node;

// Counts the answers of those who share it; the one at `left` is an error.
struct Patience {
  static constexpr uint64_t kForEver = UINT64_MAX;
  uint64_t left = kForEver;
  uint64_t asked = 0;

  absl::Status Ask() {
    ++asked;
    return left-- == 0 ? absl::DataLossError("worn out") : absl::OkStatus();
  }
};

// As `model`, as long as the patience lasts. Loads are not counted: who does not get one asks for the slowdowns.
class TiringModel final : public InterferenceModel {
 public:
  TiringModel(std::shared_ptr<const InterferenceModel> model, Patience& patience, bool loads_fail = false)
      : model_(std::move(model)), patience_(patience), loads_fail_(loads_fail) {}
  [[nodiscard]] std::string_view name() const override { return model_->name(); }
  [[nodiscard]] uint64_t epoch() const override { return model_->epoch(); }
  [[nodiscard]] bool adds_pairs() const override { return model_->adds_pairs(); }
  [[nodiscard]] bool adds_loads() const override { return model_->adds_loads(); }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    const absl::Status status = patience_.Ask();
    return status.ok() ? model_->Predict(device, tenants, out) : status;
  }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& device, std::span<const Demand* const> tenants,
                                          std::span<PairExcess> out) const override {
    const absl::Status status = patience_.Ask();
    return status.ok() ? model_->PredictPairs(device, tenants, out) : status;
  }
  [[nodiscard]] absl::Status PredictLoad(const DeviceContext& device, const Demand& tenant, Load& load) const override {
    return loads_fail_ ? absl::DataLossError("no load") : model_->PredictLoad(device, tenant, load);
  }

 private:
  std::shared_ptr<const InterferenceModel> model_;
  Patience& patience_;
  bool loads_fail_;
};

// Neither loads nor pairs: each crowd is another question.
class PlainModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "plain"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    return model_.Predict(device, tenants, out);
  }

 private:
  UtilisationModel model_;
};

// As the policy of that name, as long as the patience lasts.
template <class Base>
class Tiring : public Base {
 public:
  Tiring(std::string_view name, Patience& patience) : policy_(*MakePolicy(name)), patience_(patience) {}
  std::string_view name() const override { return policy_->name(); }
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const absl::Status status = patience_.Ask();
    return status.ok() ? policy_->ScoreDevice(candidate, score) : status;
  }
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    const absl::Status status = patience_.Ask();
    return status.ok() ? policy_->ScoreNode(candidate, score) : status;
  }
  const LeastCost* least_cost() const override { return policy_->least_cost(); }
  bool maximises_work() const override { return policy_->maximises_work(); }
  bool prices_links() const override { return policy_->prices_links(); }
  bool uses_place() const override { return policy_->uses_place(); }
  double ScorePlace(const PlaceCandidate& place) const override { return policy_->ScorePlace(place); }
  bool place_by_device() const override { return policy_->place_by_device(); }
  bool PricesNode(const JobSpec& job) const override { return policy_->PricesNode(job); }
  bool node_uses_devices() const override { return policy_->node_uses_devices(); }
  bool draws() const override { return policy_->draws(); }
  double Draw(JobId job, NodeId node) const override { return policy_->Draw(job, node); }
  void ExplainNode(const NodeCandidate& candidate, const NodeScore& score, CostTerms& terms) const override {
    policy_->ExplainNode(candidate, score, terms);
  }
  bool admits_nodes() const override { return policy_->admits_nodes(); }
  bool AdmitsNode(const NodeAdmission& node) const override { return policy_->AdmitsNode(node); }
  double default_slowdown_bound() const override { return policy_->default_slowdown_bound(); }
  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const override {
    policy_->Explain(candidate, place, terms);
  }

 protected:
  std::unique_ptr<Policy> policy_;

 private:
  Patience& patience_;
};

using TiringPolicy = Tiring<Policy>;

class TiringRoundPolicy final : public Tiring<RoundPolicy> {
 public:
  using Tiring::Tiring;
  absl::StatusOr<Plan> PlanRound(Engine& engine, const Cluster& cluster, const RoundRequest& request) const override {
    return dynamic_cast<const RoundPolicy&>(*policy_).PlanRound(engine, cluster, request);
  }
};

JobSpec AtPriority(JobSpec job, int32_t priority) {
  job.priority = priority;
  return job;
}
JobSpec Part(JobSpec job, int32_t gpu_milli) {
  job.gpu_milli = gpu_milli;
  return job;
}
JobSpec Linked(JobSpec job) {
  job.demands[0].demand.step_time_us = {100'000, 100'000};
  job.demands[0].demand.gradient_mib = 300;
  return job;
}

// Two racks: V100 that one, two, three or nobody use, a gang over two nodes; and an A100 node.
Cluster Busy() {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 4; ++id) {
    NodeSpec node = V100Node(id, 2, id / 3);
    if (id == 4) node.devices.assign(2, DeviceSpec{.type = Type("a100-40gb")});
    EXPECT_TRUE(cluster.AddNode(node).ok());
  }
  const auto adopt = [&](const JobSpec& job, const std::vector<Slot>& slots) {
    EXPECT_TRUE(cluster.Adopt(job, slots).ok());
  };
  adopt(OneGpu(101, 60), {{1, 0, 0}});
  adopt(OneGpu(102, 70), {{1, 0, 0}});
  adopt(OneGpu(108, 10, 500), {{1, 0, 0}});
  adopt(OneGpu(103, 30, 15'000), {{1, 1, 0}});
  adopt(Linked(Gang(104, 2, 1, 45)), {{2, 0, 0}, {3, 0, 1}});
  adopt(OneGpu(105, 55, 3000), {{2, 0, 0}});
  adopt(Part(OneGpu(106, 20, 1000), 300), {{3, 1, 0}});
  adopt(CpuOnly(107), {{2, kNoDevice, 0}});
  return cluster;
}

std::vector<JobSpec> Newcomers() {
  JobSpec alone = OneGpu(5, 80, 2000);
  alone.exclusive = true;
  JobSpec either;
  either.id = 8;
  either.alternatives = {{.rate = 1, .demands = {{GpuTypeId::Invalid(), Needs(40, 4000, 1000)}}},
                         {.gpus_per_task = 2, .rate = 1.7, .demands = {{GpuTypeId::Invalid(), Needs(50, 4000, 1000)}}}};
  return {OneGpu(1, 20, 1000),
          OneGpu(2, 20, 1000),
          Linked(Gang(3, 2, 1, 30)),
          Linked(Gang(4, 1, 2, 30)),
          alone,
          Part(OneGpu(6, 20, 1000), 400),
          CpuOnly(7),
          either,
          OneGpu(9, 95, 20'000),
          OneGpu(10, 20, 15'900)};
}

using Answer = std::function<absl::StatusOr<Plan>(Placer&, const Cluster&)>;

using Modes = std::map<std::string, Answer>;

Modes PlainModes() {
  const auto settled = [] {
    std::vector<JobSpec> jobs = Newcomers();
    std::erase_if(jobs, [](const JobSpec& job) { return !job.alternatives.empty(); });
    return jobs;
  };
  return {
      {"plan", [](Placer& placer, const Cluster& cluster) { return placer.MakePlan(cluster, Newcomers()); }},
      {"batch",
       [=](Placer& placer, const Cluster& cluster) { return PlanBatch(placer, cluster, settled(), {.restarts = 1}); }},
      {"preempt some",  // one of the three may stay
       [](Placer& placer, const Cluster& cluster) {
         const std::vector<NodeId> first = {1};
         return PlanPreemption(placer, cluster, AtPriority(Part(OneGpu(1, 80, 12'000), 900), 5), {}, first);
       }},
      {"preempt two",
       [](Placer& placer, const Cluster& cluster) {
         const std::vector<NodeId> first = {1};
         JobSpec job = AtPriority(Linked(Gang(1, 1, 2, 90)), 5);
         job.demands[0].demand.mem_mib = {15'000, 15'000};
         return PlanPreemption(placer, cluster, job, {}, first);
       }},
      {"preempt gang",  // one V100 is idle, and two A100
       [](Placer& placer, const Cluster& cluster) {
         JobSpec job = AtPriority(Linked(Gang(1, 3, 1, 90)), 5);
         job.demands[0].demand.mem_mib = {15'000, 15'000};
         return PlanPreemption(placer, cluster, job);
       }},
      {"preempt host",  // whose devices have room, but not its cores
       [](Placer& placer, const Cluster& cluster) {
         JobSpec job = AtPriority(OneGpu(1, 30, 15'000), 5);
         job.cpu_milli = 32'000;
         const std::vector<NodeId> second = {2};
         return PlanPreemption(placer, cluster, job, {}, second);
       }},
      {"rebalance",
       [](Placer& placer, const Cluster& cluster) { return Rebalance(placer, cluster, {.downtime_s = 1}); }},
      {"evacuate",
       [](Placer& placer, const Cluster& cluster) {
         const std::vector<NodeId> first = {1};
         return Evacuate(placer, cluster, first);
       }},
      {"review",
       [](Placer& placer, const Cluster& cluster) -> absl::StatusOr<Plan> {
         HORUS_ASSIGN_OR_RETURN(ReviewResult result, Review(placer, cluster, {.downtime_s = 1}));
         return std::move(result.plan);
       }},
      {"what-if",
       [=](Placer& placer, const Cluster& cluster) {
         const std::vector<SupposedChange> changes = {
             {.kind = ChangeKind::kRelease, .job = 102},
             {.kind = ChangeKind::kMigrate, .job = 104, .slots = {{1, 1, 0}, {4, 0, 1}}}};
         return WhatIf(placer, cluster, changes, settled());
       }},
      {"verdicts",
       [](Placer& placer, const Cluster& cluster) -> absl::StatusOr<Plan> {
         for (const JobSpec& job : Newcomers()) {
           const auto verdicts = placer.Verdicts(cluster, job, cluster.NodeIds());
           if (!verdicts.ok()) return verdicts.status();
         }
         return Plan();
       }},
  };
}

std::string Told(const Plan& plan) {
  std::string all;
  for (const Decision& decision : plan.decisions) all += DescribeDecision(decision) + "\n";
  return all;
}

constexpr uint64_t kMostTried = 300;  // of one call's answers, evenly

// A mode with each of its answers failing: the n-th question is answered by an error, and the call by the same; then
// the placer decides as one that never heard of it.
void ExpectEveryFailureTold(const Cluster& cluster, const std::function<std::unique_ptr<Placer>(Patience&)>& make,
                            const Modes& modes = PlainModes()) {
  const uint64_t hash = cluster.state_hash();
  for (const auto& [name, run] : modes) {
    SCOPED_TRACE(name);
    Patience patience;
    const auto unhurt = make(patience);
    const auto expected = run(*unhurt, cluster);
    ASSERT_TRUE(expected.ok()) << expected.status();
    if (name.starts_with("preempt")) {
      EXPECT_FALSE(expected->candidates.empty()) << Told(*expected);
    }
    const uint64_t questions = patience.asked;
    const uint64_t step = 1 + questions / kMostTried;
    for (uint64_t at = 0; at < questions; at += step) {
      Patience short_lived;
      const auto placer = make(short_lived);
      short_lived.left = at;
      ASSERT_EQ(run(*placer, cluster).status(), absl::DataLossError("worn out")) << "question " << at;
      short_lived.left = Patience::kForEver;
      const auto again = run(*placer, cluster);
      ASSERT_TRUE(again.ok()) << "question " << at << ": " << again.status();
      ASSERT_EQ(again->decisions, expected->decisions) << "question " << at << ": " << Told(*again) << Told(*expected);
      ASSERT_EQ(again->moves, expected->moves) << "question " << at;
      ASSERT_EQ(again->candidates, expected->candidates) << "question " << at;
    }
  }
  EXPECT_EQ(cluster.state_hash(), hash);
}

std::vector<PlacerOptions> EveryWayToSearch() { return {{}, {.exhaustive = true}, {.max_candidates = 2}}; }

TEST(FailingAnswers, OfTheModelEndEveryMode) {
  const Cluster cluster = Busy();
  const std::vector<std::shared_ptr<const InterferenceModel>> models = {
      std::make_shared<UtilisationModel>(), std::make_shared<AddingModel>(), std::make_shared<PlainModel>()};
  for (const auto& model : models) {
    for (const PlacerOptions& options : EveryWayToSearch()) {
      for (const std::string_view policy : {"horus", "best-fit"}) {
        if (policy == "best-fit" && options.exhaustive) continue;  // asks as the other does
        SCOPED_TRACE(std::string(model->name()) + ", " + std::string(policy));
        ExpectEveryFailureTold(cluster, [&](Patience& patience) {
          return *Placer::Create(std::make_shared<TiringModel>(model, patience), *MakePolicy(policy), options);
        });
      }
    }
  }
}

TEST(FailingAnswers, OfThePolicyEndEveryMode) {
  const Cluster cluster = Busy();
  for (const std::string_view policy : {"horus", "best-fit", "fgd", "clwp-nlwp"}) {
    for (const PlacerOptions& options : EveryWayToSearch()) {
      SCOPED_TRACE(policy);
      ExpectEveryFailureTold(cluster, [&](Patience& patience) {
        return *Placer::Create(std::make_shared<UtilisationModel>(), std::make_shared<TiringPolicy>(policy, patience),
                               options);
      });
    }
  }
}

// Of whole GPUs: granted, waiting for cores, waiting for GPUs, refused for good; then those whom no rule knows.
TEST(FailingAnswers, OfThePolicyEndEveryRound) {
  Cluster cluster = Nodes(3, 2);
  const auto unhurt = testing_place::MakePlacer("synergy-tune");
  const std::vector<JobSpec> first = {OneGpu(101), Gang(102, 1, 2)};
  ASSERT_TRUE(cluster.Apply(*unhurt->MakePlan(cluster, first)).ok());
  const auto hungry = [](JobSpec job) {
    job.cpu_milli = 30'000;
    return job;
  };
  const std::vector<JobSpec> jobs = {OneGpu(1),     Gang(2, 2, 1),        hungry(OneGpu(3)), Gang(4, 1, 2),
                                     Gang(5, 1, 4), Part(OneGpu(6), 400), CpuOnly(7),        OneGpu(8, 40, 20'000)};
  const Modes modes = {{"plan", [&](Placer& placer, const Cluster& where) { return placer.MakePlan(where, jobs); }},
                       {"round", [&](Placer& placer, const Cluster& where) {
                          return MakeRound(placer, where,
                                           std::vector{Gang(2, 1, 2), OneGpu(101), OneGpu(3), Gang(102, 1, 2)});
                        }}};
  for (const bool exhaustive : {false, true}) {
    ExpectEveryFailureTold(
        cluster,
        [&](Patience& patience) {
          return *Placer::Create(std::make_shared<UtilisationModel>(),
                                 std::make_shared<TiringRoundPolicy>("synergy-tune", patience),
                                 PlacerOptions{.exhaustive = exhaustive});
        },
        modes);
  }
}

TEST(FailingAnswers, OfLoadsAreAskedForWhole) {
  const Cluster cluster = Busy();
  Patience patience;
  const auto model = std::make_shared<UtilisationModel>();
  const auto placer = *Placer::Create(std::make_shared<TiringModel>(model, patience, true), *MakePolicy("horus"));
  const auto expected = (*Placer::Create(model, *MakePolicy("horus")))->MakePlan(cluster, Newcomers());
  for (int again = 0; again < 3; ++again) {
    const auto plan = placer->MakePlan(cluster, Newcomers());
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->decisions, expected->decisions);
  }
}

TEST(FailingAnswers, EndAnAppraisal) {
  const Cluster cluster = Busy();
  const JobSpec job = OneGpu(1);
  const std::vector<Slot> slots = {{1, 0, 0}};
  for (uint64_t at = 0;; ++at) {
    ASSERT_LT(at, 10u);
    Patience patience{.left = at};
    const Appraiser appraiser(std::make_shared<TiringModel>(std::make_shared<UtilisationModel>(), patience),
                              FitLimits(), 1);
    const auto appraisal = appraiser.Of(cluster, job, slots);
    const auto now = appraiser.Now(cluster, 1, 0);
    if (appraisal.ok() && now.ok()) break;
    EXPECT_EQ((appraisal.ok() ? now.status() : appraisal.status()), absl::DataLossError("worn out"));
    EXPECT_EQ(appraisal.ok(), !now.ok());
  }
}

}  // namespace
}  // namespace horus
