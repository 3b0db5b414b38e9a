// SPDX-License-Identifier: Apache-2.0
// Rules of the utilisation proxy and of the registry.

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "interference/registry.h"

namespace horus {
namespace {

Demand Util(float estimate, float upper) {
  Demand demand;
  demand.gpu_util_pct = {estimate, upper};
  return demand;
}

std::vector<Slowdown> Predict(const std::vector<Demand>& demands, SharingMode mode = SharingMode::kTimeSlice) {
  std::vector<const Demand*> tenants;
  for (const Demand& demand : demands) tenants.push_back(&demand);
  std::vector<Slowdown> out(tenants.size(), Slowdown{-1, -1});
  const UtilisationModel model;
  EXPECT_TRUE(model.Predict({GpuTypeId(0), mode}, tenants, out).ok());
  return out;
}

TEST(UtilisationModel, LeavesALoneTenantUndisturbedInEveryMode) {
  for (const SharingMode mode : kSharingModes) {
    EXPECT_EQ(Predict({Util(100, 100)}, mode), (std::vector<Slowdown>{{1, 1}}));
  }
}

TEST(UtilisationModel, SharersBelowFullUseDoNotSlowEachOther) {
  EXPECT_EQ(Predict({Util(40, 50), Util(50, 50)}), (std::vector<Slowdown>{{1, 1}, {1, 1}}));
}

TEST(UtilisationModel, OverCommitSlowsEveryTenantByTheSum) {
  EXPECT_EQ(Predict({Util(80, 80), Util(70, 70)}), (std::vector<Slowdown>{{1.5f, 1.5f}, {1.5f, 1.5f}}));
  EXPECT_EQ(Predict({Util(80, 80), Util(70, 70), Util(50, 50)})[2], (Slowdown{2, 2}));
}

TEST(UtilisationModel, TenantsOfASliceShareWhatTheSliceHas) {
  // On half a GPU 40 % of the whole is 80 % of the slice; 70 % of the whole fills the slice and no more.
  const std::vector<Demand> demands = {Util(40, 40), Util(70, 70)};
  const std::vector<const Demand*> tenants = {&demands[0], &demands[1]};
  std::vector<Slowdown> out(2);
  const UtilisationModel model;
  ASSERT_TRUE(model.Predict({GpuTypeId(0), SharingMode::kMig, 0.5f}, tenants, out).ok());
  EXPECT_EQ(out, (std::vector<Slowdown>{{1.8f, 1.8f}, {1.8f, 1.8f}}));
  EXPECT_FALSE(model.Predict({GpuTypeId(0), SharingMode::kMig, 0.0f}, tenants, out).ok());
}

TEST(UtilisationModel, UpperBoundFollowsTheUpperBoundsOfTheDemands) {
  EXPECT_EQ(Predict({Util(40, 90), Util(50, 85)})[0], (Slowdown{1, 1.75f}));
}

TEST(UtilisationModel, DoesNotDependOnTheOrderOfTheTenants) {
  std::vector<Demand> demands = {Util(33.3f, 41.7f), Util(66.61f, 70.1f), Util(0.07f, 12.9f)};
  const Slowdown first = Predict(demands)[0];
  std::sort(demands.begin(), demands.end(),
            [](const Demand& a, const Demand& b) { return a.gpu_util_pct.upper < b.gpu_util_pct.upper; });
  EXPECT_EQ(Predict(demands)[0], first);
}

TEST(UtilisationModel, RefusesWrongArgumentsAndWritesNothing) {
  const UtilisationModel model;
  const Demand demand = Util(10, 10);
  const std::vector<const Demand*> one = {&demand};
  const std::vector<const Demand*> null = {nullptr};
  std::vector<Slowdown> out(2, Slowdown{7, 7});
  EXPECT_EQ(model.Predict({GpuTypeId(0), SharingMode::kMps}, one, out).code(), absl::StatusCode::kInvalidArgument);
  out.resize(1);
  EXPECT_EQ(model.Predict({GpuTypeId(0), static_cast<SharingMode>(9)}, one, out).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.Predict({GpuTypeId(0), SharingMode::kMps}, null, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(out[0], (Slowdown{7, 7}));
}

TEST(InterferenceRegistry, MakesEveryNameItLists) {
  for (const std::string_view name : InterferenceModelNames()) {
    const auto model = MakeInterferenceModel(name);
    ASSERT_TRUE(model.ok());
    EXPECT_EQ((*model)->name(), name);
  }
}

TEST(InterferenceRegistry, ListsTheNamesWhenOneIsUnknown) {
  const auto model = MakeInterferenceModel("oracle");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), testing::HasSubstr("utilisation"));
}

}  // namespace
}  // namespace horus
