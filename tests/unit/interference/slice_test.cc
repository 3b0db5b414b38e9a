// SPDX-License-Identifier: Apache-2.0
// Speed and utilisation on a slice of a GPU.
#include <gtest/gtest.h>

#include "interference/laws.h"

namespace horus {
namespace {

TEST(Slice, TheWholeGpuIsFullSpeed) {
  for (const double bandwidth : {0.0, 30.0, 100.0}) EXPECT_DOUBLE_EQ(SliceSpeed(90, bandwidth, 1), 1);
  EXPECT_DOUBLE_EQ(SliceUtilPct(90, 1), 90);
}

TEST(Slice, OnlyPartOfTheStepScales) {
  // 0.2 x 50 % + 1.3 x 20 % = 36 % of the step takes three and a half times as long.
  EXPECT_DOUBLE_EQ(SliceSpeed(50, 20, 2.0 / 7), 1 / (0.64 + 0.36 * 3.5));
}

TEST(Slice, SpeedLiesBetweenTheShareAndOne) {
  for (int share = 1; share <= 7; ++share) {
    double before = 1;
    for (int bandwidth = 1; bandwidth <= 100; ++bandwidth) {
      const double speed = SliceSpeed(95, bandwidth, share / 7.0);
      EXPECT_GE(speed, share / 7.0 - 1e-12);
      EXPECT_LE(speed, before);  // more traffic, more loss
      before = speed;
    }
    EXPECT_LE(SliceSpeed(60, 30, share / 7.0), SliceSpeed(60, 30, (share + 1) / 7.0));
  }
}

TEST(Slice, IsACapacityWhereTheBandwidthIsUnknown) {
  EXPECT_DOUBLE_EQ(SliceSpeed(40, 0, 0.5), 1);
  EXPECT_DOUBLE_EQ(SliceSpeed(80, 0, 0.5), 0.625);
  EXPECT_DOUBLE_EQ(SliceUtilPct(40, 0.5), 80);
  EXPECT_DOUBLE_EQ(SliceUtilPct(80, 0.5), 100);
}

}  // namespace
}  // namespace horus
