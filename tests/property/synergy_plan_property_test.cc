// SPDX-License-Identifier: Apache-2.0
// What holds of a cluster whose plans are rounds by sensitivity, however often they are repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "interference/registry.h"
#include "lab/policies/rivals.h"
#include "lab/synergy/round.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "place/state/snapshot.h"
#include "random_cluster.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing_property::MaybeInTwoWays;
using testing_property::MaybeSensitive;
using testing_property::Random;
using testing_property::RandomJob;
using testing_property::RandomNode;
using testing_property::TypeAt;

constexpr uint64_t kSteps = HORUS_PROPERTY_OPS / 10;
constexpr NodeId kNodes = 6;
constexpr JobId kJobIds = 60;
constexpr uint64_t kSnapshotEvery = 50;

std::vector<std::unique_ptr<Placer>> Placers() {
  std::vector<std::unique_ptr<Placer>> placers;
  const auto add = [&](std::string_view policy, bool grow) {
    placers.push_back(*Placer::Create(std::make_shared<UtilisationModel>(),
                                      *MakePolicy(policy, {.lab = Lab({.synergy_grow = grow})})));
  };
  for (const std::string_view name : SynergyNames()) {
#ifndef HORUS_TEST_LP
    if (name == "synergy-opt") continue;
#endif
    add(name, false);
  }
  add("synergy-tune", true);
  return placers;
}

bool IsRoundJob(const JobSpec& job) { return !IsCpuOnly(job) && (job.gpu_milli == 0 || job.gpu_milli == kMilliPerGpu); }

Cluster Restored(const Cluster& cluster) {
  const std::string bytes = *SaveSnapshot(cluster);
  return *RestoreSnapshot({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, cluster.shared_catalogue());
}

class Rounds {
 public:
  explicit Rounds(uint64_t seed) : random_(seed), cluster_(Catalogue::Default()), placers_(Placers()) {
    for (NodeId id = 0; id < kNodes; ++id) {
      NodeSpec node = RandomNode(random_, id);
      // Some with GPUs of two kinds.
      if (random_.OneIn(3) && node.devices.front().mode != SharingMode::kMig) {
        node.devices.push_back({.type = TypeAt(random_.Below(2)), .mode = node.devices.front().mode});
      }
      EXPECT_TRUE(cluster_.AddNode(node).ok());
    }
  }

  void Step() {
    for (uint64_t i = random_.Below(8); i > 0; --i) (void)cluster_.Release(random_.Below(kJobIds));
    const auto state = static_cast<AdminState>(random_.OneIn(3) ? random_.Below(3) : 0);
    const NodeId node = random_.Below(kNodes);
    ASSERT_TRUE((random_.OneIn(2) ? cluster_.SetNodeState(node, state) : cluster_.SetDeviceState(node, 0, state)).ok());
    std::vector<JobSpec> jobs;
    for (JobId id = 0; id < kJobIds; ++id) {
      if (cluster_.HasJob(id) || !random_.OneIn(6)) continue;
      jobs.push_back(MaybeInTwoWays(random_, MaybeSensitive(random_, RandomJob(random_, id))));
    }
    for (const JobSpec& job : jobs) {
      if (!job.alternatives.empty())
        placed_by_search_.insert(job.id);
      else
        placed_by_search_.erase(job.id);
    }
    const size_t with = random_.Below(placers_.size());
    const auto plan = placers_[with]->MakePlan(cluster_, jobs);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (++steps_ % kSnapshotEvery == 0) {
      const Cluster restored = Restored(cluster_);
      const auto again = Placers()[with]->MakePlan(restored, jobs);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_EQ(again->decisions, plan->decisions);
      ASSERT_EQ(again->moves, plan->moves);
      ASSERT_EQ(again->seen, plan->seen);
    }
    ExpectAllOrNothing(*plan);
    const absl::Status applied = cluster_.Apply(*plan);
    ASSERT_TRUE(applied.ok()) << applied;
    for (const Move& move : plan->moves) {
      ASSERT_EQ(cluster_.Job(move.job)->slots, move.from);
      ASSERT_EQ(cluster_.Job(move.job)->spec->cpu_milli, move.host_to.cpu_milli);
      ++resized_;
      cut_ += move.host_to.cpu_milli < move.host_from.cpu_milli ? 1 : 0;
    }
    const absl::Status whole = CheckInvariants(cluster_);
    ASSERT_TRUE(whole.ok()) << whole;
    ExpectNobodyBelowItsShare();
  }

  [[nodiscard]] uint64_t resized() const { return resized_; }
  [[nodiscard]] uint64_t cut() const { return cut_; }

 private:
  // One more job that does not fit, the last to come: nothing of the plan happens.
  void ExpectAllOrNothing(const Plan& plan) {
    if (plan.moves.empty()) return;
    auto huge = std::make_shared<JobSpec>();
    huge->id = kJobIds;
    huge->gpus_per_task = 0;
    huge->cpu_milli = kMaxHostQuantity;
    Plan spoilt = plan;
    spoilt.actions.push_back({ActionKind::kPlace, huge, {{plan.seen.front().node, kNoDevice, 0}}});
    const std::string before = *SaveSnapshot(cluster_);
    ASSERT_EQ(cluster_.Apply(spoilt).code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_EQ(*SaveSnapshot(cluster_), before);
  }

  // Of whole-GPU jobs: what they stated, and the speed of the GPU-proportional share.
  void ExpectNobodyBelowItsShare() {
    for (const JobId id : cluster_.JobIds()) {
      const JobInfo job = *cluster_.Job(id);
      const JobSpec& spec = *job.spec;
      ASSERT_GE(spec.cpu_milli, StatedCpuMilli(spec));
      ASSERT_GE(spec.mem_mib, StatedMemMib(spec));
      if (!IsRoundJob(spec) || placed_by_search_.contains(id)) continue;
      const HostShare held = FairShare(spec.cpu_milli, spec.mem_mib, spec.gpus_per_task);
      for (const Slot& slot : job.slots) {
        const NodeInfo node = *cluster_.Node(slot.node);
        const HostShare fair =
            FairShare(node.spec.cpu_milli, node.spec.mem_mib, static_cast<int32_t>(node.spec.devices.size()));
        const Sensitivity* matrix = spec.sensitivity.get();
        if (matrix == nullptr) {
          ASSERT_TRUE(IsWithin(fair, held)) << "job " << id;
        } else {
          ASSERT_GE(matrix->Speed(held), matrix->Speed(fair)) << "job " << id;
        }
      }
    }
    for (const NodeId id : cluster_.NodeIds()) {
      const NodeInfo node = *cluster_.Node(id);
      ASSERT_GE(std::min({node.cpu_free_milli, node.mem_free_mib, node.storage_free_mb_s}), 0) << "node " << id;
    }
  }

  Random random_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Placer>> placers_;
  std::set<JobId> placed_by_search_;  // with what they state and no more: no rule knows their alternatives
  uint64_t steps_ = 0;
  uint64_t resized_ = 0;
  uint64_t cut_ = 0;
};

TEST(SynergyPlanProperty, NobodyFallsBelowItsShareHoweverManyRoundsThereAre) {
  uint64_t resized = 0;
  uint64_t cut = 0;
  constexpr uint64_t kSeeds = 8;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Rounds rounds(seed);
    for (uint64_t i = 0; i < kSteps / kSeeds; ++i) {
      SCOPED_TRACE(seed * 1'000'000 + i);
      rounds.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    resized += rounds.resized();
    cut += rounds.cut();
  }
  EXPECT_GT(cut, kSteps / 100);  // or the walk did not see enough
  EXPECT_GT(resized, cut);
}

}  // namespace
}  // namespace horus
