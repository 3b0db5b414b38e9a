// SPDX-License-Identifier: Apache-2.0
// Cross-conformal bounds: order statistics, what they promise, and that they keep it on groups never seen.
#include "predict/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rows.h"

namespace horus {
namespace {

TEST(ConformalQuantile, IsTheOrderStatisticThatCoversANewGroup) {
  const std::vector<double> nine = {9, 1, 8, 2, 7, 3, 6, 4, 5};
  EXPECT_EQ(ConformalQuantile(nine, 0.9), 9);  // ceil(0.9 x 10)
  EXPECT_EQ(ConformalQuantile(nine, 0.8), 8);
  EXPECT_EQ(ConformalQuantile(nine, 0.5), 5);
  EXPECT_EQ(ConformalQuantile({3, 1, 2}, 0.9), 3);  // three groups cannot promise more than 3 / 4
  EXPECT_TRUE(std::isinf(ConformalQuantile({}, 0.9)));
}

TEST(Calibrate, CoversANewGroupAsOftenAsPromised) {
  // Groups with errors of their own; 4,000 times 19 of them calibrate and a 20th is looked at.
  constexpr size_t kGroups = 19, kRows = 5;
  int covered = 0, trials = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const auto score = [seed](size_t group, size_t row) {
      return 2 * Draw(seed * 1000 + group) + 0.2 * Draw(seed * 1000 + 500 + group * 10 + row);
    };
    std::vector<double> scores;
    std::vector<uint32_t> groups;
    for (uint32_t g = 0; g < kGroups; ++g) {
      for (size_t r = 0; r < kRows; ++r) {
        scores.push_back(score(g, r));
        groups.push_back(g);
      }
    }
    const Calibration calibration = Calibrate(scores, groups, kGroups, 0.9);
    EXPECT_DOUBLE_EQ(calibration.promised, 0.9);
    for (size_t r = 0; r < kRows; ++r) {
      covered += score(kGroups, r) <= calibration.margin ? 1 : 0;
      ++trials;
    }
  }
  EXPECT_GE(covered, 0.88 * trials);
  EXPECT_LE(covered, 0.95 * trials);  // and the bound is no larger than it must be
}

TEST(Calibrate, PromisesNoMoreThanItsGroupsAllow) {
  const std::vector<double> scores = {1, 2, 3};
  const std::vector<uint32_t> groups = {0, 1, 2};
  const Calibration calibration = Calibrate(scores, groups, 3, 0.9);
  EXPECT_DOUBLE_EQ(calibration.promised, 0.75);
  EXPECT_EQ(calibration.margin, 3);
  EXPECT_NEAR(calibration.observed, 2.0 / 3, 1e-12);  // the largest exceeds what the other two give
}

TEST(Calibrate, AMarginIsNeverNegative) {
  const std::vector<double> scores = {-1, -2};
  const std::vector<uint32_t> groups = {0, 1};
  EXPECT_EQ(Calibrate(scores, groups, 2, 0.9).margin, 0);
}

}  // namespace
}  // namespace horus
