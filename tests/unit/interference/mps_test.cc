// SPDX-License-Identifier: Apache-2.0
// How far a job fills a device under MPS, and what two cost each other.
#include <gtest/gtest.h>

#include <cmath>

#include "fake_model.h"
#include "interference/laws.h"

namespace horus {
namespace {

TEST(Mps, LongerOperatorsFillMoreAndFewerSmsAreFilledSooner) {
  Demand job{.gpu_util_pct = {100, 100}};
  double before = 0, slice_before = 0;
  for (const float us : {1.0f, 5.0f, 20.0f, 50.0f, 200.0f, 5000.0f}) {
    job.operator_us = us;
    const double fill = MpsFill(job, 1), on_slice = MpsFill(job, 1.0 / 7);
    EXPECT_GE(fill, before);
    EXPECT_GE(on_slice, slice_before);
    EXPECT_GE(on_slice, fill);
    EXPECT_LE(on_slice, 1);
    before = fill;
    slice_before = on_slice;
  }
  EXPECT_LT(MpsFill({.gpu_util_pct = {100, 100}, .operator_us = 5}, 1), 0.01);
  EXPECT_GT(before, 0.99);
}

TEST(Mps, AnOperatorThatLeavesSmsIdleFillsLess) {
  Demand job{.gpu_util_pct = {100, 100}, .operator_us = 40};
  const double whole = MpsFill(job, 1);
  job.traits[static_cast<size_t>(Trait::kMeanParallelism)] = 0.25f;
  EXPECT_LT(MpsFill(job, 1), whole);
}

// However long its operators are, between them its host keeps it waiting.
TEST(Mps, TheBusyShareIsTheMostThatAJobFills) {
  const Demand job{.gpu_util_pct = {10, 10}, .operator_us = 1000};
  EXPECT_NEAR(MpsFill(job, 1), std::pow(0.1, 1.5), 1e-6);
  EXPECT_NEAR(MpsFill(job, 0.5), std::pow(0.2, 1.5), 1e-6);
}

TEST(Mps, WithoutOperatorTimesTheBusyShareStands) {
  EXPECT_NEAR(MpsFill({.gpu_util_pct = {60, 80}}, 1), std::pow(0.6, 1.5), 1e-6);
  EXPECT_EQ(MpsFill({.gpu_util_pct = {60, 80}}, 0.5), 1);
}

TEST(Mps, NobodyIsHurtByOneWhoLeavesTheDeviceEmpty) {
  EXPECT_LT(MpsSlowdown(1, 0), 1.05);
  EXPECT_LT(MpsSlowdown(0, 1), 1.05);
  EXPECT_GT(MpsSlowdown(0.1, 0.9), MpsSlowdown(0.9, 0.1));  // who fills more hurts more
  EXPECT_NEAR(MpsSlowdown(1, 1), 1.92, 0.01);               // nearly taking turns
}

}  // namespace
}  // namespace horus
