// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/statistics.h"
#include "interference/laws.h"

namespace horus {
namespace {

TEST(Quantile, DeviationsAreThoseOfTheNormalTable) {
  EXPECT_EQ(DeviationsAt(0.5), 0);
  EXPECT_NEAR(DeviationsAt(0.9), 1.281552, 1e-6);
  EXPECT_NEAR(DeviationsAt(0.95), 1.644854, 1e-6);
  EXPECT_NEAR(DeviationsAt(0.999), 3.090232, 1e-6);
  EXPECT_NEAR(DeviationsAt(0.1), -DeviationsAt(0.9), 1e-12);
}

TEST(Quantile, GoesThroughTheEstimateAndTheUpperBound) {
  const Slowdown answer{1.2f, 1.8f};
  EXPECT_NEAR(SlowdownAt(answer, 0.9, 0.5), 1.2, 1e-6);
  EXPECT_EQ(SlowdownAt(answer, 0.9, 0.9), static_cast<double>(1.8f));
  EXPECT_EQ(SlowdownAt(answer, 0.95, 0.95), static_cast<double>(1.8f));
}

// A bound for 0.9 says the same as the one for 0.95 that follows from it.
TEST(Quantile, AgreesWithItself) {
  const Slowdown answer{1.3f, 2.0f};
  const auto at95 = static_cast<float>(SlowdownAt(answer, 0.9, 0.95));
  EXPECT_NEAR(SlowdownAt({1.3f, at95}, 0.95, 0.9), 2.0, 1e-5);
  EXPECT_NEAR(SlowdownAt({1.3f, at95}, 0.95, 0.99), SlowdownAt(answer, 0.9, 0.99), 1e-4);
}

TEST(Quantile, RisesWithTheProbabilityAndNeverBeyondTheLimit) {
  double before = 0;
  for (const double probability : {0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999}) {
    const double now = SlowdownAt({1.2f, 1.8f}, 0.9, probability);
    EXPECT_GT(now, before) << probability;
    before = now;
  }
  EXPECT_EQ(SlowdownAt({2.0f, kMaxSlowdown}, 0.9, 0.999), static_cast<double>(kMaxSlowdown));
  EXPECT_EQ(SlowdownAt({1, 1}, 0.9, 0.999), 1) << "what is certain stays so";
}

}  // namespace
}  // namespace horus
