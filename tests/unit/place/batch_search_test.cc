// SPDX-License-Identifier: Apache-2.0
// Rules of large batches, of a batch's budget, and of orders that do not hold when they are replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fixtures.h"
#include "place/modes/batch.h"
#include "support/invariants.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_place::MakePlacer;
using testing_place::Nodes;
using testing_place::OneGpu;
using testing_place::V100Node;

size_t PlacedIn(const Plan& plan) { return plan.actions.size(); }

// Jobs of several kinds and priorities.
std::vector<JobSpec> Many(size_t count, float busy = 1) {
  std::vector<JobSpec> jobs;
  for (JobId id = 1; id <= count; ++id) {
    jobs.push_back(
        OneGpu(id, busy * (35 + 15 * static_cast<float>(id % 5)), 3000 + 1500 * static_cast<int64_t>(id % 4)));
    jobs.back().priority = static_cast<int32_t>(id % 3);
  }
  return jobs;
}

// What holds for every batch: it can be applied, and is no worse than one by one.
void ExpectSound(const Cluster& cluster, const Plan& plan, const Plan& one_by_one, bool by_work) {
  Cluster applied = cluster;
  const absl::Status status = applied.Apply(plan);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckInvariants(applied).ok()) << CheckInvariants(applied);
  if (by_work) {
    EXPECT_GE(plan.work_after, plan.work_before - 1e-9);
  } else {
    EXPECT_GE(PlacedIn(plan), PlacedIn(one_by_one));
  }
}

TEST(BatchSearch, OfManyJobsIsNoWorseThanOneByOne) {
  for (const size_t gpus : {size_t{4}, size_t{20}}) {  // few devices for so many, and more than all are looked at
    Cluster cluster = Nodes(4, gpus);
    ASSERT_TRUE(cluster.Adopt(OneGpu(500, 50), std::vector<Slot>{{1, 0, 0}}).ok());
    const std::vector<JobSpec> jobs = Many(2 * kSmallBatch);
    for (const std::string_view policy : {"horus", "first-fit"}) {
      SCOPED_TRACE(std::string(policy) + ", " + std::to_string(gpus));
      const auto placer = MakePlacer(policy);
      const auto plan = PlanBatch(*placer, cluster, jobs);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ExpectSound(cluster, *plan, *placer->MakePlan(cluster, jobs), policy == "horus");
    }
  }
}

TEST(BatchSearch, OfManyJobsFindsWhatOneByOneMisses) {
  // First fit fills the large devices with the small jobs, which come first.
  Cluster cluster(Catalogue::Default());
  constexpr size_t kPairs = kSmallBatch / 2 + 3;
  NodeSpec small = V100Node(2, kPairs);
  for (size_t i = 0; i < kPairs; ++i) small.devices[i].mem_mib = 8000;
  ASSERT_TRUE(cluster.AddNode(V100Node(1, kPairs)).ok());
  ASSERT_TRUE(cluster.AddNode(small).ok());
  std::vector<JobSpec> jobs;
  for (JobId id = 1; id <= 2 * kPairs; ++id) {
    jobs.push_back(OneGpu(id, 10, id <= kPairs ? 7000 : 15'000));
    jobs.back().exclusive = true;
  }
  const auto placer = MakePlacer("first-fit");
  ASSERT_EQ(PlacedIn(*placer->MakePlan(cluster, jobs)), kPairs);
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlacedIn(*plan), 2 * kPairs);
}

TEST(BatchSearch, WithAnyBudgetIsSound) {
  Cluster cluster = Nodes(2, 2);
  ASSERT_TRUE(cluster.Adopt(OneGpu(500, 50), std::vector<Slot>{{1, 0, 0}}).ok());
  const Cluster wide = Nodes(4, 17);  // more devices than are all candidates
  struct Setup {
    const Cluster& where;
    size_t jobs;
    bool gains;  // with the usual budget
  };
  for (const auto& [where, count, gains] : {Setup{cluster, 10, false}, Setup{wide, 2 * kSmallBatch, true}}) {
    const std::vector<JobSpec> jobs = Many(count, gains ? 0.8f : 1);  // so that there is room for all
    const auto placer = MakePlacer();
    const Plan one_by_one = *placer->MakePlan(where, jobs);
    double before = 0;
    for (uint64_t budget = 0; budget < 20'000; budget = budget * 5 / 4 + 1) {
      SCOPED_TRACE(budget);
      const auto plan = PlanBatch(*placer, where, jobs, {.max_evaluations = budget});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ExpectSound(where, *plan, one_by_one, true);
      before = plan->work_before;
      if (budget == 0) {
        EXPECT_EQ(plan->work_after, plan->work_before);
      }
    }
    const auto best = PlanBatch(*placer, where, jobs);
    EXPECT_EQ(best->work_before, before) << "one by one has no budget";
    EXPECT_EQ(best->work_after > best->work_before + 1e-6, gains);
  }
}

// Two busy neighbours disturb each other, unless a quiet third (of no more than 10 %) is there too.
class PeacemakerModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "peacemaker"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    size_t busy = 0;
    for (const Demand* tenant : tenants) busy += tenant->gpu_util_pct.estimate > 10 ? 1 : 0;
    const float slowdown = busy > 1 && busy == tenants.size() ? 5.0f : 1.0f;
    for (Slowdown& one : out) one = {slowdown, slowdown};
    return absl::OkStatus();
  }
};

// The quiet one has a request, so that the search leaves it where it is: the second finds room beside it. In planning
// order it comes last, and then nobody makes peace.
TEST(BatchSearch, AnOrderThatDoesNotHoldIsNotPlanned) {
  const Cluster cluster = Nodes(1, 1);
  JobSpec quiet = OneGpu(3, 5, 1000);
  quiet.gpu_milli = 100;
  const std::vector<JobSpec> jobs = {OneGpu(1, 50, 1000), OneGpu(2, 50, 1000), quiet, OneGpu(4, 50, 50'000)};
  const auto placer = *Placer::Create(std::make_shared<PeacemakerModel>(), *MakePolicy("horus"));
  const auto one_by_one = placer->MakePlan(cluster, jobs);
  ASSERT_TRUE(one_by_one.ok()) << one_by_one.status();
  ASSERT_EQ(PlacedIn(*one_by_one), 2u);
  const auto plan = PlanBatch(*placer, cluster, jobs);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT_EQ(plan->decisions[i].slots, one_by_one->decisions[i].slots) << i;
  EXPECT_EQ(plan->work_after, plan->work_before);
}

// Where no GPU is idle it waits: the search, which knows nothing of probes, must not put it beside another.
TEST(BatchSearch, AProbeThatFindsNoIdleGpuWaits) {
  const auto placer = MakePlacer("horus", {.probe_outside = true});
  std::vector<JobSpec> jobs = {OneGpu(1, 20), OneGpu(2, 20)};
  jobs[0].priority = 1;
  jobs[1].demands[0].demand.flags = kDemandOutside;
  for (const bool prices : {false, true}) {
    const auto plan = PlanBatch(*placer, Nodes(1, 1), jobs, {.prices = prices});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->decisions[1].verdict, Verdict::kDefer) << prices;
  }
}

// Nobody joins a job that is not known yet, wherever the search moves the others.
TEST(BatchSearch, ProbesAreAlone) {
  const auto placer = MakePlacer("horus", {.probe_outside = true});
  std::vector<JobSpec> jobs = {OneGpu(1, 40), OneGpu(2, 40), OneGpu(3, 40), OneGpu(4, 40)};
  jobs[1].demands[0].demand.flags = kDemandOutside;
  for (const bool prices : {false, true}) {
    const auto plan = PlanBatch(*placer, Nodes(1, 2), jobs, {.prices = prices});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto probe = std::ranges::find(plan->decisions, 2u, &Decision::job);
    ASSERT_EQ(probe->verdict, Verdict::kPlace);
    EXPECT_TRUE(probe->probe);
    for (const Decision& decision : plan->decisions) {
      EXPECT_TRUE(decision.job == 2 || decision.slots != probe->slots);
    }
  }
}

}  // namespace
}  // namespace horus
