// SPDX-License-Identifier: Apache-2.0
// Speed and utilisation on a slice of a GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "interference/laws.h"

namespace horus {
namespace {

Demand Busy(float pct, float bandwidth_pct) {
  return {.gpu_util_pct = {pct, pct}, .mem_bw_util_pct = {bandwidth_pct, bandwidth_pct}};
}

TEST(Slice, TheWholeGpuIsFullSpeed) {
  for (const float bandwidth : {0.0f, 30.0f, 100.0f}) EXPECT_DOUBLE_EQ(SliceSpeed(Busy(90, bandwidth), 1), 1);
  EXPECT_DOUBLE_EQ(SliceUtilPct(90, 1), 90);
}

TEST(Slice, ThreeAndFourOfSevenHaveTheSameMemory) {
  EXPECT_DOUBLE_EQ(SliceShare(3.0 / 7), std::sqrt(3.0 / 7 * 0.5));
  EXPECT_DOUBLE_EQ(SliceShare(4.0 / 7), std::sqrt(4.0 / 7 * 0.5));
  EXPECT_DOUBLE_EQ(SliceShare(0.25), 0.25);  // A30: of four
}

TEST(Slice, AJobThatFillsTheGpuRunsAsTheSlice) {
  for (const double share : {1.0 / 7, 3.0 / 7, 0.5})
    EXPECT_NEAR(SliceSpeed(Busy(100, 100), share), SliceShare(share), 1e-12);
}

TEST(Slice, WhereTheBandwidthIsUnknownItIsACapacity) {
  EXPECT_EQ(SliceSpeed(Busy(10, 0), 1.0 / 7), 1);
  EXPECT_NEAR(SliceSpeed(Busy(50, 0), 1.0 / 7), 2.0 / 7, 1e-12);
}

TEST(Slice, SpeedLiesBetweenTheSliceAndOne) {
  for (int share = 1; share <= 7; ++share) {
    double before = 1;
    for (float bandwidth = 1; bandwidth <= 100; ++bandwidth) {
      const double speed = SliceSpeed(Busy(95, bandwidth), share / 7.0);
      EXPECT_GE(speed, SliceShare(share / 7.0) - 1e-12);
      EXPECT_LE(speed, before);  // more traffic, more loss
      before = speed;
    }
    EXPECT_LE(SliceSpeed(Busy(60, 30), share / 7.0), SliceSpeed(Busy(60, 30), (share + 1) / 7.0));
  }
}

}  // namespace
}  // namespace horus
