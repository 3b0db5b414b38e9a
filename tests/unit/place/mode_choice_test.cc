// SPDX-License-Identifier: Apache-2.0
// Devices that can share by time slicing or under MPS: who decides, for whom, and for how long.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fixtures.h"
#include "interference/laws.h"
#include "place/modes/batch.h"
#include "place/modes/rebalance.h"
#include "place/state/ledger.h"
#include "place/state/snapshot.h"

namespace horus {
namespace {

using testing_place::OneGpu;
using testing_place::PlaceOne;
using testing_place::V100Node;

constexpr JobId kAny = 2, kLikesMps = 3, kLikesTurns = 4;  // ids; odd ones want MPS

// Two do well beside each other in the mode that one of them wants.
class PickyModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "picky"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] bool knows_caps() const override { return true; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    EXPECT_NE(device.mode, SharingMode::kTimeSliceOrMps) << "no model knows it";
    const auto wants_mps = [](const Demand* tenant) { return tenant->profile_id % 2 == 1; };
    const bool well = std::ranges::any_of(tenants, wants_mps) == (device.mode == SharingMode::kMps);
    const float slowed = tenants.size() == 1 ? 1.0f : well ? 1.1f : 2.9f;
    std::ranges::fill(out, Slowdown{slowed, slowed});
    return absl::OkStatus();
  }
};

std::unique_ptr<Placer> MakePicky(PlacerOptions options = {}) {
  return *Placer::Create(std::make_shared<PickyModel>(), *MakePolicy("horus"), options);
}

Cluster EitherGpus(size_t gpus) {
  Cluster cluster(Catalogue::Default());
  NodeSpec node = V100Node(1, gpus);
  for (size_t i = 0; i < gpus; ++i) node.devices[i].mode = SharingMode::kTimeSliceOrMps;
  EXPECT_TRUE(cluster.AddNode(node).ok());
  return cluster;
}

JobSpec JobLike(JobId id) {
  JobSpec job = OneGpu(id);
  job.demands[0].demand.step_time_us = {1000, 1000};
  job.demands[0].demand.profile_id = id;
  return job;
}

SharingMode ModeOf(const Cluster& cluster, int32_t device = 0) { return cluster.Device(1, device)->spec.mode; }

TEST(ModeChoice, WhoWaitsDecides) {
  for (const JobId next : {kLikesMps, kLikesTurns}) {
    for (const bool batch : {false, true}) {
      Cluster cluster = EitherGpus(1);
      const std::vector<JobSpec> jobs = {JobLike(kAny), JobLike(next)};
      const auto placer = MakePicky();
      const auto plan = batch ? PlanBatch(*placer, cluster, jobs) : placer->MakePlan(cluster, jobs);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const SharingMode mode = next == kLikesMps ? SharingMode::kMps : SharingMode::kTimeSlice;
      int chosen = 0;
      for (const Decision& decision : plan->decisions) {
        EXPECT_EQ(decision.verdict, Verdict::kPlace);
        EXPECT_EQ(decision.mode, mode);
        if (decision.mode_why != ModeReason::kWaiting) continue;
        ++chosen;
        EXPECT_NE(DescribeDecision(decision).find("those who wait"), std::string::npos);
      }
      EXPECT_EQ(chosen, 1) << "the first who comes";
      ASSERT_TRUE(cluster.Apply(*plan).ok());
      EXPECT_EQ(ModeOf(cluster), mode);
    }
  }
}

TEST(ModeChoice, HoldsUntilTheDeviceIsEmpty) {
  Cluster cluster = EitherGpus(1);
  EXPECT_EQ(ModeOf(cluster), SharingMode::kTimeSliceOrMps);
  const auto placer = MakePicky();
  EXPECT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesTurns)).mode, SharingMode::kTimeSlice);
  EXPECT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesMps)).verdict, Verdict::kDefer);
  JobSpec capped = JobLike(kAny);
  capped.sm_cap_pct = 30;
  EXPECT_EQ(PlaceOne(cluster, *placer, capped).reason, Reason::kSharingMode);
  ASSERT_TRUE(cluster.Release(kLikesTurns).ok());
  EXPECT_EQ(ModeOf(cluster), SharingMode::kTimeSliceOrMps);
  const Decision decision = PlaceOne(cluster, *placer, capped);
  EXPECT_EQ(decision.mode, SharingMode::kMps);
  EXPECT_EQ(decision.mode_why, ModeReason::kCap);
  EXPECT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesMps)).mode, SharingMode::kMps);
}

// What is known of the mode lies with the jobs: a restored cluster, and a planner that follows, see the same.
TEST(ModeChoice, SnapshotsKeepIt) {
  Cluster cluster = EitherGpus(2);
  const auto placer = MakePicky();
  ASSERT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesMps)).mode, SharingMode::kMps);
  ASSERT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesTurns)).mode, SharingMode::kTimeSlice);
  const auto bytes = SaveSnapshot(cluster);
  ASSERT_TRUE(bytes.ok());
  const auto restored = RestoreSnapshot(std::span(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()),
                                        cluster.shared_catalogue());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->state_hash(), cluster.state_hash());
  EXPECT_EQ(ModeOf(*restored, 0), SharingMode::kMps);
  EXPECT_EQ(ModeOf(*restored, 1), SharingMode::kTimeSlice);
  const std::vector<JobSpec> more = {JobLike(5)};
  EXPECT_EQ(MakePicky()->MakePlan(*restored, more)->decisions, placer->MakePlan(cluster, more)->decisions);
}

// Another planner was faster: the device is in a mode for which the plan was not made.
TEST(ModeChoice, APlanForTheOtherModeIsRefused) {
  Cluster cluster = EitherGpus(1);
  const std::vector<JobSpec> first = {JobLike(kLikesMps)}, second = {JobLike(kLikesTurns)};
  const auto plan = MakePicky()->MakePlan(cluster, first);
  const auto late = MakePicky()->MakePlan(cluster, second);
  ASSERT_TRUE(plan.ok() && late.ok() && cluster.Apply(*plan).ok());
  EXPECT_EQ(cluster.Apply(*late).code(), absl::StatusCode::kAborted);
  auto forced = *late;
  forced.seen[0].version = cluster.Node(1)->version;
  EXPECT_EQ(cluster.Apply(forced).code(), absl::StatusCode::kFailedPrecondition);
  const auto adopted = cluster.Adopt(JobLike(kLikesTurns), std::vector<Slot>{{1, 0, 0}});
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(adopted->reason, Reason::kSharingMode);
}

TEST(ModeChoice, GpusOfAGangHaveOneMode) {
  Cluster cluster = EitherGpus(3);
  const auto placer = MakePicky();
  JobSpec gang = JobLike(kAny);
  gang.gpus_per_task = 3;
  const std::vector<JobSpec> jobs = {gang, JobLike(kLikesMps)};
  const auto plan = placer->MakePlan(cluster, jobs);
  ASSERT_TRUE(plan.ok() && cluster.Apply(*plan).ok());
  EXPECT_EQ(plan->decisions[0].mode, SharingMode::kMps);
  for (const int32_t device : {0, 1, 2}) EXPECT_EQ(ModeOf(cluster, device), SharingMode::kMps);
}

// A resident that moves takes the mode of where it comes, which may be another.
TEST(ModeChoice, WhoMovesRunsAsThoseWhoAreThere) {
  Cluster cluster = EitherGpus(1);
  NodeSpec other = V100Node(2, 1);
  other.devices[0].mode = SharingMode::kTimeSliceOrMps;
  ASSERT_TRUE(cluster.AddNode(other).ok());
  const auto placer = MakePicky();
  ASSERT_EQ(PlaceOne(cluster, *placer, JobLike(kLikesTurns)).mode, SharingMode::kTimeSlice);
  JobSpec moves = JobLike(kAny);
  moves.mps_chosen = true;
  ASSERT_TRUE(cluster.Adopt(moves, std::vector<Slot>{{2, 0, 0}}).ok());
  EXPECT_EQ(cluster.Device(2, 0)->spec.mode, SharingMode::kMps);
  ASSERT_TRUE(cluster.SetNodeState(2, AdminState::kDrained).ok());
  const auto plan = Evacuate(*placer, cluster, std::vector<NodeId>{2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->moves.size(), 1u);
  ASSERT_TRUE(cluster.Apply(*plan).ok());
  EXPECT_EQ(ModeOf(cluster), SharingMode::kTimeSlice);
  EXPECT_FALSE(cluster.Job(kAny)->over_committed);
}

TEST(ModeChoice, TrialsLeaveTheLedgerAsItWas) {
  const Cluster cluster = EitherGpus(1);
  Ledger ledger(cluster);
  const uint64_t before = ledger.Hash();
  const std::vector<PlacedSlot> slots = {SlotAt(0, 0)};
  JobSpec job = JobLike(kLikesMps);
  job.mps_chosen = true;
  ledger.Place(job, slots);
  EXPECT_EQ(ledger.state(0).mode, SharingMode::kMps);
  ledger.Remove(job, slots);
  EXPECT_EQ(ledger.Hash(), before);
  ledger.UndoTo(0);
  EXPECT_EQ(ledger.Hash(), before);
}

}  // namespace
}  // namespace horus
