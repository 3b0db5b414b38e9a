// SPDX-License-Identifier: Apache-2.0
// Parts of the search by themselves; that it finds what a scan finds is tested by PlaceIndex (tests/property).
#include "place/search/search.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fixtures.h"
#include "place/search/pair_table.h"
#include "place/search/ranking.h"
#include "place/work.h"

namespace horus {
namespace {

using testing_place::Nodes;
using testing_place::OneGpu;

// Each of two tenants loses as much as the other uses.
class OthersModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "others"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                          std::span<PairExcess> out) const override {
    for (size_t i = 0; i < tenants.size(); ++i) {
      for (size_t j = 0; j < tenants.size(); ++j) {
        const auto excess = i == j ? 0 : static_cast<int64_t>(1000 * tenants[j]->gpu_util_pct.estimate);
        out[i * tenants.size() + j] = {excess, excess};
      }
    }
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                     std::span<Slowdown> /*out*/) const override {
    return absl::OkStatus();
  }
};

TenantClass ClassOf(float util) {
  const JobSpec job = OneGpu(1, util);
  return MakeTenantClass(job, job.demands[0].demand);
}

TEST(PairTable, TellsWhatIsWhoseInEitherOrder) {
  PairTable table;
  const OthersModel model;
  const uint32_t context = table.ContextOf({.type = testing_place::Type("v100-sxm2-16gb")});
  const TenantClass light = ClassOf(10), heavy = ClassOf(90);
  for (int known = 0; known < 2; ++known) {
    TenantPair pair;
    ASSERT_TRUE(table.Find(model, context, light, heavy, pair).ok());
    EXPECT_EQ(pair.mine.estimate, 90'000);
    EXPECT_EQ(pair.theirs.estimate, 10'000);
    ASSERT_TRUE(table.Find(model, context, heavy, light, pair).ok());
    EXPECT_EQ(pair.mine.estimate, 10'000);
    EXPECT_EQ(pair.theirs.estimate, 90'000);
  }
}

TEST(WorkOn, IsOneWhereTheJobStatesNothing) {
  JobView view;
  view.types = {{.type = testing_place::Type("t4"), .tenant = {}, .relative_speed = 0.25}};
  EXPECT_EQ(view.WorkOn(testing_place::Type("t4")), 0.25);
  EXPECT_EQ(view.WorkOn(testing_place::Type("v100-sxm2-16gb")), 1);
  view.types[0].type = GpuTypeId::Invalid();  // any
  EXPECT_EQ(view.WorkOn(testing_place::Type("v100-sxm2-16gb")), 0.25);
}

// More kinds of guests come and go than the sieve keeps: what was sifted so far is forgotten, and nothing overlooked.
TEST(Search, DecidesAsAScanWhenTheSieveIsFull) {
  Cluster cluster = Nodes(2, 1);
  ASSERT_TRUE(cluster.Adopt(OneGpu(10, 70), std::vector<Slot>{{2, 0, 0}}).ok());
  const auto placer = testing_place::MakeAddingPlacer();
  const auto scan = testing_place::MakeAddingPlacer({.exhaustive = true});
  const JobSpec job = OneGpu(1, 30, 500);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(placer->MakePlan(cluster, {&job, 1}).ok());
  for (uint32_t i = 0; i < Sieve::kMostColumns + 10; ++i) {
    ASSERT_TRUE(cluster.Adopt(OneGpu(100, 50, 1000 + i), std::vector<Slot>{{1, 0, 0}}).ok());
    const auto plan = placer->MakePlan(cluster, {&job, 1});
    ASSERT_TRUE(plan.ok());
    if (i >= Sieve::kMostColumns - 10) {
      EXPECT_EQ(plan->decisions, scan->MakePlan(cluster, {&job, 1})->decisions) << i;
    }
    ASSERT_TRUE(cluster.Release(100).ok());
  }
}

TEST(WorkMeter, SaysTheSameWhateverItMayKeep) {
  Cluster cluster = Nodes(3);
  for (JobId id = 1; id <= 12; ++id) {
    const auto at = static_cast<int64_t>(id) / 2;
    ASSERT_TRUE(cluster
                    .Adopt(OneGpu(id, 5 * static_cast<float>(id)),
                           std::vector<Slot>{{static_cast<NodeId>(at % 3 + 1), static_cast<int32_t>(at % 2), 0}})
                    .ok());
  }
  const std::shared_ptr<const InterferenceModel> model = std::make_shared<UtilisationModel>();
  const std::shared_ptr<const Policy> policy = *MakePolicy("horus");
  const Ledger ledger(cluster);
  std::vector<double> works;
  for (const size_t most_kept : {size_t{0}, size_t{2}, WorkMeter::kMostKept}) {
    Scorer scorer(model, policy, {}, 1 << 20, false);
    WorkMeter meter(cluster, scorer, most_kept);
    for (int again = 0; again < 2; ++again) works.push_back(*meter.OfAll(ledger));
  }
  EXPECT_GT(works[0], 0);
  EXPECT_LT(works[0], 12);
  EXPECT_EQ(works, std::vector<double>(6, works[0]));
}

}  // namespace
}  // namespace horus
