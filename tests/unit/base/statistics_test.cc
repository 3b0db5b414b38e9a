// SPDX-License-Identifier: Apache-2.0
// Medians and rank correlations by hand.
#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace horus {
namespace {

TEST(Statistics, TheMedianIsTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_TRUE(std::isnan(Median({})));
}

TEST(Statistics, RankCorrelationSeesOrderOnly) {
  const std::vector<double> values = {1, 10, 100, 1000};
  EXPECT_DOUBLE_EQ(RankCorrelation(values, std::vector<double>{1, 2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation(values, std::vector<double>{4, 3, 2, 1}), -1);
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
  EXPECT_DOUBLE_EQ(RankCorrelation(std::vector<double>{1, 5, 5, 9}, values), 4.5 / std::sqrt(4.5 * 5));
  EXPECT_TRUE(std::isnan(RankCorrelation(std::vector<double>{2, 2, 2, 2}, values)));
  EXPECT_TRUE(std::isnan(RankCorrelation({}, {})));
}

}  // namespace
}  // namespace horus
