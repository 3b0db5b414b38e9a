// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fixtures.h"
#include "place/modes/rebalance.h"

namespace horus {
namespace {

using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;

// Beside anybody everybody is slowed by 1.2, by at most `upper` with probability 0.9.
class Uncertain final : public InterferenceModel {
 public:
  explicit Uncertain(float upper = 1.5f) : upper_(upper) {}
  [[nodiscard]] std::string_view name() const override { return "uncertain"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    for (Slowdown& one : out) one = tenants.size() > 1 ? Slowdown{1.2f, upper_} : Slowdown{};
    return absl::OkStatus();
  }
  void CalibratedUpTo(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                      std::span<float> up_to) const override {
    std::fill(up_to.begin(), up_to.end(), tenants.size() > 1 ? 0.75f : 1.0f);
  }

 private:
  float upper_;
};

// On GPU 0 of node 1; the slowdown of two is the sum of their utilisations, at least 1.
void Put(Cluster& cluster, JobId id, float util, float bound = 0, int32_t device = 0) {
  JobSpec job = OneGpu(id, util, 1000);
  job.slowdown_bound = bound;
  ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, device, 0}}).ok());
}

TEST(Review, LooksAtThoseWhoShareAndLeavesAloneWhoIsFine) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, 1, 40, 1.5f);
  Put(cluster, 2, 70);
  Put(cluster, 3, 90, 1.1f, 1);  // alone
  const ReviewResult result = *Review(*MakePlacer(), cluster);
  ASSERT_EQ(result.tenants.size(), 2u);
  EXPECT_TRUE(result.plan.actions.empty());
  for (const TenantReview& one : result.tenants) {
    EXPECT_EQ(one.advice, Advice::kStay);
    EXPECT_NEAR(static_cast<double>(one.slowdown.estimate), 1.1, 1e-5);
    EXPECT_NEAR(one.pack_work, 2 / 1.1, 1e-5);
    EXPECT_EQ(std::isinf(one.bound), one.job == 2);
  }
}

TEST(Review, MovesABrokenBoundFirstAndThenWhoIsRelievedStays) {
  Cluster cluster = Nodes(1, 2);
  Put(cluster, 1, 90, 1.5f);
  Put(cluster, 2, 90, 1.2f);  // further beyond its bound
  const ReviewResult result = *Review(*MakePlacer(), cluster);
  ASSERT_EQ(result.tenants.size(), 2u);
  EXPECT_EQ(result.tenants[0].job, 2u);
  EXPECT_TRUE(result.tenants[0].broken() && result.tenants[1].broken());
  EXPECT_EQ(result.tenants[0].advice, Advice::kMove);
  EXPECT_EQ(result.tenants[1].advice, Advice::kStay);
  ASSERT_EQ(result.plan.moves.size(), 1u);
  EXPECT_GT(result.plan.work_after, result.plan.work_before);
  ASSERT_TRUE(cluster.Apply(result.plan).ok());
  EXPECT_TRUE(Review(*MakePlacer(), cluster)->tenants.empty());
}

TEST(Review, SaysThatAJobMustRunAloneWhereNoPlaceIsBetter) {
  Cluster cluster = Nodes(1, 1);
  Put(cluster, 1, 90, 1.2f);
  Put(cluster, 2, 90);
  const ReviewResult result = *Review(*MakePlacer(), cluster);
  EXPECT_EQ(result.tenants[0].job, 1u);
  EXPECT_EQ(result.tenants[0].advice, Advice::kRunAlone);
  EXPECT_EQ(result.tenants[1].advice, Advice::kStay) << "who has no bound and loses nothing by taking turns";
  EXPECT_TRUE(result.plan.actions.empty());
}

TEST(Review, HoldsTheConfidenceOfEachJobAgainstItsBound) {
  const auto model = std::make_shared<Uncertain>();
  for (const auto& [confidence, broken] : {std::pair(0.0f, false), std::pair(0.99f, true), std::pair(0.6f, false)}) {
    Cluster cluster = Nodes(1, 1);
    JobSpec job = OneGpu(1, 10, 1000);
    job.slowdown_bound = 1.6f;
    job.slowdown_confidence = confidence;
    ASSERT_TRUE(cluster.Adopt(job, std::vector<Slot>{{1, 0, 0}}).ok());
    Put(cluster, 2, 10);
    const auto placer = *Placer::Create(model, *MakePolicy("horus"));
    EXPECT_EQ(Review(*placer, cluster)->tenants[0].broken(), broken) << confidence;
  }
}

// Two who each keep half of their speed at least do the work of one: at a bound of 2 sharing is sure to cost nothing.
TEST(Review, IsAndPlacesATrialWhereSharingPaysByExpectationButNotByTheBounds) {
  for (const auto& [upper, trial] : {std::pair(1.99f, false), std::pair(2.0f, false), std::pair(2.01f, true)}) {
    Cluster cluster = Nodes(1, 1);
    const auto placer = *Placer::Create(std::make_shared<Uncertain>(upper), *MakePolicy("horus"));
    EXPECT_FALSE(testing_place::PlaceOne(cluster, *placer, OneGpu(1, 10, 1000)).trial) << "alone";
    const Decision decision = testing_place::PlaceOne(cluster, *placer, OneGpu(2, 10, 1000));
    EXPECT_EQ(decision.trial, trial) << upper;
    for (const TenantEffect& effect : decision.effects) EXPECT_EQ(effect.calibrated, 0.75f);
    const ReviewResult result = *Review(*placer, cluster);
    ASSERT_EQ(result.tenants.size(), 2u);
    for (const TenantReview& one : result.tenants) EXPECT_EQ(one.trial, trial) << upper;
  }
}

TEST(Review, ChecksItsOptions) {
  const Cluster cluster = Nodes(1, 1);
  EXPECT_EQ(Review(*MakePlacer(), cluster, {.downtime_s = -1}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace horus
