// SPDX-License-Identifier: Apache-2.0
// Cross-conformal bounds: order statistics, what they promise, and that they keep it on groups never seen.
#include "trees/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "draw.h"

namespace horus {
namespace {

// Each score a group of its own.
double Margin(const std::vector<double>& scores, double promise) {
  std::vector<uint32_t> groups;
  for (uint32_t g = 0; g < scores.size(); ++g) groups.push_back(g);
  return Calibrate(scores, groups, scores.size(), promise).margin;
}

TEST(Calibrate, WithOneRowAGroupTheMarginIsTheOrderStatistic) {
  const std::vector<double> nine = {9, 1, 8, 2, 7, 3, 6, 4, 5};
  EXPECT_EQ(Margin(nine, 0.9), 9);  // the ceil(0.9 x 10)-th
  EXPECT_EQ(Margin(nine, 0.8), 8);
  EXPECT_EQ(Margin(nine, 0.5), 5);
  EXPECT_EQ(Margin({3, 1, 2}, 0.9), 3);  // three groups cannot promise more than 3 / 4
}

TEST(Calibrate, GroupsWeighTheSameHoweverManyRowsTheyHave) {
  // One group of a hundred small scores and nine of one large score each: the hundred are a tenth.
  std::vector<double> scores(100, 0.0);
  std::vector<uint32_t> groups(100, 0);
  for (uint32_t g = 1; g < 10; ++g) {
    scores.push_back(g);
    groups.push_back(g);
  }
  EXPECT_EQ(Calibrate(scores, groups, 10, 0.5).margin, 5);  // 0.5 x 11 = 5.5 groups lie at or below it
}

// Share of the rows of new groups at or below the margin; groups differ by `between`, their rows by `within`.
double Coverage(size_t groups, size_t rows, double between, double within) {
  size_t covered = 0, trials = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const auto score = [&](size_t group, size_t row) {
      return between * Draw(seed * 100'000 + group) + within * Draw(seed * 100'000 + 500 + group * 100 + row);
    };
    std::vector<double> scores;
    std::vector<uint32_t> group_of;
    for (uint32_t g = 0; g < groups; ++g) {
      for (size_t r = 0; r < rows; ++r) {
        scores.push_back(score(g, r));
        group_of.push_back(g);
      }
    }
    const double margin = Calibrate(scores, group_of, groups, 0.9).margin;
    for (size_t r = 0; r < rows; ++r) {
      covered += score(groups, r) <= margin ? 1 : 0;
      ++trials;
    }
  }
  return static_cast<double>(covered) / static_cast<double>(trials);
}

TEST(Calibrate, CoversRowsOfNewGroupsAsOftenAsPromised) {
  for (const size_t rows : {1u, 3u, 4u, 20u}) {
    for (const auto& [between, within] : {std::pair(1.0, 0.0), std::pair(1.0, 0.1), std::pair(0.1, 1.0)}) {
      const double coverage = Coverage(19, rows, between, within);
      EXPECT_GE(coverage, 0.885) << rows << " rows, " << between << " between, " << within << " within";
      EXPECT_LE(coverage, 0.96) << rows << " rows, " << between << " between, " << within << " within";
    }
  }
}

TEST(Calibrate, PromisesNoMoreThanItsGroupsAllow) {
  const std::vector<double> scores = {1, 2, 3};
  const std::vector<uint32_t> groups = {0, 1, 2};
  const Calibration calibration = Calibrate(scores, groups, 3, 0.9);
  EXPECT_DOUBLE_EQ(calibration.promised, 0.75);
  EXPECT_EQ(calibration.margin, 3);
  EXPECT_NEAR(calibration.observed, 2.0 / 3, 1e-12);  // the largest exceeds what the other two give
  EXPECT_GE(Coverage(3, 4, 1.0, 0.5), 0.74);
}

TEST(Calibrate, AMarginIsNeverNegative) {
  const std::vector<double> scores = {-1, -2};
  const std::vector<uint32_t> groups = {0, 1};
  EXPECT_EQ(Calibrate(scores, groups, 2, 0.9).margin, 0);
}

}  // namespace
}  // namespace horus
