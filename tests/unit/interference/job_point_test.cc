// SPDX-License-Identifier: Apache-2.0
// Job points: what is unknown, what a slice changes, and a schema that bundles rely on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "interference/laws.h"

namespace horus {
namespace {

Demand Known() {
  Demand demand{.profile_id = 7, .gpu_util_pct = {50, 60}, .step_time_us = {10'000, 20'000}, .operator_us = 100};
  demand.traits[static_cast<size_t>(Trait::kLogKernels)] = 2;  // 100 kernels
  return demand;
}

double At(const Tenant& tenant, PointColumn column) {
  return static_cast<double>(tenant.point[static_cast<size_t>(column)]);
}

TEST(JobPoint, HoldsLogarithmsOfTheEstimates) {
  const Tenant tenant = TenantOf(Known(), {});
  EXPECT_EQ(tenant.profile_id, 7u);
  EXPECT_NEAR(At(tenant, PointColumn::kLogStepUs), std::log(10'000), 1e-5);
  EXPECT_NEAR(At(tenant, PointColumn::kLogKernelUs), std::log(0.5 * 10'000 / 100), 1e-5);
  EXPECT_NEAR(At(tenant, PointColumn::kLogOperatorUs), std::log(100), 1e-5);
  EXPECT_NEAR(At(tenant, PointColumn::kLogUtil), std::log(0.5), 1e-5);
}

// NVML's figure stands in where nothing else is known.
TEST(JobPoint, TheShareOfTheDeviceCountsBeforeUtilisation) {
  Demand demand = Known();
  demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)] = std::log10(0.8f);
  EXPECT_NEAR(At(TenantOf(demand, {}), PointColumn::kLogUtil), std::log(0.8), 1e-5);
  EXPECT_NEAR(At(TenantOf(demand, {}), PointColumn::kLogKernelUs), std::log(0.8 * 10'000 / 100), 1e-5);
  const DeviceContext slice{.mode = SharingMode::kMig, .compute_share = 4.0f / 7};
  EXPECT_EQ(At(TenantOf(demand, slice), PointColumn::kLogUtil), 0);
  ForgetDeviceShare(demand);
  EXPECT_NEAR(At(TenantOf(demand, {}), PointColumn::kLogUtil), std::log(0.5), 1e-5);
  EXPECT_NEAR(kLogLeastUtil, std::log(kLeastUtil), 1e-15);
}

TEST(JobPoint, ADemandOfAPointMakesThatPointAgain) {
  for (const Demand& demand : {Known(), Demand{}}) {
    const Tenant tenant = TenantOf(demand, {});
    const Tenant again = TenantOf(DemandOf(tenant.profile_id, tenant.point), {});
    EXPECT_EQ(again.profile_id, tenant.profile_id);
    for (size_t c = 0; c < kPointColumns; ++c) {
      EXPECT_EQ(std::isnan(again.point[c]), std::isnan(tenant.point[c])) << c;
      if (std::isnan(tenant.point[c])) continue;
      EXPECT_NEAR(again.point[c], tenant.point[c], 1e-4) << c;
    }
  }
}

TEST(JobPoint, WhatIsUnknownIsNotANumber) {
  const Tenant nothing = TenantOf(Demand{}, {});
  EXPECT_TRUE(std::isnan(At(nothing, PointColumn::kLogStepUs)));
  EXPECT_TRUE(std::isnan(At(nothing, PointColumn::kLogKernelUs)));
  EXPECT_TRUE(std::isnan(At(nothing, PointColumn::kLogOperatorUs)));
  EXPECT_NEAR(At(nothing, PointColumn::kLogUtil), std::log(kLeastUtil), 1e-5);  // an idle job is known to be idle
  Demand no_step = Known(), no_kernels = Known();
  no_step.step_time_us = {};
  no_kernels.traits = {};
  EXPECT_TRUE(std::isnan(At(TenantOf(no_step, {}), PointColumn::kLogKernelUs)));
  EXPECT_TRUE(std::isnan(At(TenantOf(no_kernels, {}), PointColumn::kLogKernelUs)));
  EXPECT_FALSE(std::isnan(At(TenantOf(no_kernels, {}), PointColumn::kLogStepUs)));
}

TEST(JobPoint, ExtremesStayFiniteOrUnknown) {
  Demand odd = Known();
  for (const float trait : {-1e30f, -1.0f, 0.0f, 1e-30f, 300.0f, 1e30f}) {
    odd.traits[static_cast<size_t>(Trait::kLogKernels)] = trait;
    for (const float share : {1e-30f, 1.0f / 7, 1.0f}) {
      for (const float value : TenantOf(odd, {.mode = SharingMode::kMig, .compute_share = share}).point) {
        EXPECT_FALSE(std::isinf(value)) << trait << " " << share;
      }
    }
  }
}

TEST(JobPoint, ASliceMakesAJobBusierAndLonger) {
  Tenant last = TenantOf(Known(), {});
  for (const float share : {4.0f / 7, 3.0f / 7, 2.0f / 7, 1.0f / 7}) {
    const Tenant tenant = TenantOf(Known(), {.mode = SharingMode::kMig, .compute_share = share});
    EXPECT_GE(At(tenant, PointColumn::kLogUtil), At(last, PointColumn::kLogUtil));
    EXPECT_GE(At(tenant, PointColumn::kLogStepUs), At(last, PointColumn::kLogStepUs));
    EXPECT_GT(At(tenant, PointColumn::kLogKernelUs), At(last, PointColumn::kLogKernelUs));
    EXPECT_GT(At(tenant, PointColumn::kLogOperatorUs), At(last, PointColumn::kLogOperatorUs));
    last = tenant;
  }
  // Half busy on the whole GPU: a seventh is always busy.
  EXPECT_NEAR(At(last, PointColumn::kLogUtil), 0, 1e-5);
  EXPECT_NEAR(At(last, PointColumn::kLogStepUs), std::log(10'000 / SliceSpeed(Known(), 1.0 / 7)), 1e-4);
}

TEST(JobPoint, DistancesCountInScalesAndLeaveOutTheUnknown) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const JobPoint origin = {0, 0, 0, 0};
  EXPECT_EQ(SquaredDistance(origin, origin), 0);
  EXPECT_NEAR(SquaredDistance(origin, {1.6f, 0, 0, 0}), 1, 1e-6);
  EXPECT_NEAR(SquaredDistance(origin, {0, 0, 0, 0.4f}), 1, 1e-6);
  EXPECT_NEAR(SquaredDistance(origin, {1.6f, 3.2f, 0, 0.4f}), 6, 1e-5);
  EXPECT_NEAR(SquaredDistance({kNan, 0, 0, 0}, {5, 1.6f, kNan, 0}), 1, 1e-6);
}

// Bundles carry this hash: whoever changes columns or their meaning must train the built-in bundle anew.
TEST(JobPoint, TheSchemaIsTheOneOfStoredBundles) {
  EXPECT_EQ(PointSchemaHash(), 0xc718e475d14bde92u);
  std::set<std::string_view> names;
  for (size_t i = 0; i < kPointColumns; ++i) names.insert(NameOf(static_cast<PointColumn>(i)));
  EXPECT_EQ(names.size(), kPointColumns);
}

}  // namespace
}  // namespace horus
