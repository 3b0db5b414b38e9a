// SPDX-License-Identifier: Apache-2.0
// What holds of rounds that decide jobs which run again, however often they are repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "interference/registry.h"
#include "lab/synergy/round.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "random_cluster.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_property::MaybeSensitive;
using testing_property::Random;
using testing_property::TypeAt;

constexpr uint64_t kSteps = HORUS_PROPERTY_OPS / 40;
constexpr NodeId kNodes = 5;
constexpr JobId kJobIds = 30;

// Whole GPUs of one type, jobs that state no cores: whatever runs fits where it is at its floor.
class Leases {
 public:
  Leases(uint64_t seed, std::string_view policy)
      : random_(seed),
        cluster_(Catalogue::Default()),
        placer_(*Placer::Create(std::make_shared<UtilisationModel>(), *MakePolicy(policy))),
        keeps_places_(policy == "synergy-fair" || policy == "synergy-greedy") {
    for (NodeId id = 0; id < kNodes; ++id) {
      NodeSpec node{.id = id, .cpu_milli = 8'000 + 4'000 * static_cast<int64_t>(random_.Below(3)), .mem_mib = 65'536};
      node.devices = std::vector<DeviceSpec>(random_.OneIn(2) ? 4 : 8, DeviceSpec{.type = TypeAt(1)});
      EXPECT_TRUE(cluster_.AddNode(node).ok());
    }
  }

  void Step() {
    for (uint64_t i = random_.Below(6); i > 0; --i) (void)cluster_.Release(random_.Below(kJobIds));
    std::vector<JobSpec> jobs;
    for (JobId id = 0; id < kJobIds; ++id) {
      if (cluster_.HasJob(id)) {
        jobs.push_back(*cluster_.Job(id)->spec);
      } else if (random_.OneIn(4)) {
        jobs.push_back(NewJob(id));
      }
    }
    for (size_t i = jobs.size(); i > 1; --i) std::swap(jobs[i - 1], jobs[random_.Below(i)]);
    const auto plan = MakeRound(*placer_, cluster_, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    Count(*plan);
    Apply(*plan);
    if (testing::Test::HasFatalFailure()) return;
    std::vector<JobSpec> running;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Decision& decision = plan->decisions[i];
      ASSERT_EQ(decision.job, jobs[i].id);
      ASSERT_EQ(cluster_.HasJob(jobs[i].id), decision.verdict == Verdict::kPlace);
      if (decision.verdict != Verdict::kPlace) continue;
      ASSERT_EQ(cluster_.Job(jobs[i].id)->slots, decision.slots);
      running.push_back(jobs[i]);
    }
    const auto again = MakeRound(*placer_, cluster_, running);
    ASSERT_TRUE(again.ok()) << again.status();
    for (const Action& action : again->actions) {
      ASSERT_NE(action.kind, ActionKind::kPreempt) << "job " << action.job->id;
      ASSERT_FALSE(keeps_places_) << "job " << action.job->id;
    }
    Apply(*again);
  }

  [[nodiscard]] uint64_t moved() const { return moved_; }
  [[nodiscard]] uint64_t preempted() const { return preempted_; }

 private:
  JobSpec NewJob(JobId id) {
    JobSpec job{.id = id};
    job.gpus_per_task = 1 << random_.Below(4);
    if (random_.OneIn(4)) job.tasks = 2;
    job.demands = {{TypeAt(1), {.gpu_util_pct = {50, 50}, .mem_mib = {1000, 1000}, .flags = kDemandGiven}}};
    return MaybeSensitive(random_, std::move(job));
  }
  void Count(const Plan& plan) {
    for (const Move& move : plan.moves) {
      moved_ += move.kind == ActionKind::kMigrate ? 1 : 0;
      preempted_ += move.kind == ActionKind::kPreempt ? 1 : 0;
    }
  }
  void Apply(const Plan& plan) {
    const absl::Status applied = cluster_.Apply(plan);
    ASSERT_TRUE(applied.ok()) << applied;
    const absl::Status whole = CheckInvariants(cluster_);
    ASSERT_TRUE(whole.ok()) << whole;
    for (const NodeId id : cluster_.NodeIds()) {
      const NodeInfo node = *cluster_.Node(id);
      ASSERT_GE(std::min(node.cpu_free_milli, node.mem_free_mib), 0) << "node " << id;
    }
  }

  Random random_;
  Cluster cluster_;
  std::unique_ptr<Placer> placer_;
  bool keeps_places_;  // with the same jobs in the same order
  uint64_t moved_ = 0, preempted_ = 0;
};

TEST(SynergyLeasesProperty, WhoRunsAndIsDecidedAgainWithoutOthersGoesOn) {
  for (const std::string_view policy : SynergyNames()) {
#ifndef HORUS_TEST_LP
    if (policy == "synergy-opt") continue;
#endif
    uint64_t moved = 0, preempted = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Leases leases(seed, policy);
      for (uint64_t i = 0; i < kSteps / 16; ++i) {
        SCOPED_TRACE(std::string(policy) + " " + std::to_string(seed) + " " + std::to_string(i));
        leases.Step();
        if (testing::Test::HasFatalFailure()) return;
      }
      moved += leases.moved();
      preempted += leases.preempted();
    }
    EXPECT_GT(moved, 0u) << policy;  // or the walk did not see enough
    EXPECT_GT(preempted, moved) << policy;
  }
}

}  // namespace
}  // namespace horus
