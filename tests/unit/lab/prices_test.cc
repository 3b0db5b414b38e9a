// SPDX-License-Identifier: Apache-2.0
// Prices of work, computed by hand from the dual of the bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "lab/bound/potential.h"
#include "sim_setup.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using testing_sim::SimSetup;

SimSetup Fillers() {
  SimSetup setup("horus");
  for (const float util : {30.0f, 95.0f, 30.0f}) setup.AddProfile(util, 1000);
  return setup;
}

// One part of A (30 % busy) to four of B (95 %): A goes beside B, both at 0.8, the rest is B beside B, both at 1 / 1.9.
// With r the worth of a GPU 2/1.9 b = r and 0.8 (a + b) = r, and a/5 + 4b/5 = 1: r = 1.2195, b = 1.1585, a = 0.3659.
TEST(WorkPrices, AreWhatTheBoundsDualSays) {
  const SimSetup setup = Fillers();
  const auto prices = WorkPrices::Create(setup.beliefs, setup.cluster, *setup.placer);
  ASSERT_TRUE(prices.ok()) << prices.status();
  const auto found = prices->Of(std::vector<double>{10, 40, 0});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ElementsAre(0.37f, 1.2f, 1.0f)) << "what nobody asks for costs no more than a GPU alone";
}

TEST(WorkPrices, AreAllAlikeWhereNothingIsToBeDoneOrNobodyMayShare) {
  SimSetup setup = Fillers();
  const auto prices = *WorkPrices::Create(setup.beliefs, setup.cluster, *setup.placer);
  EXPECT_THAT(*prices.Of(std::vector<double>{0, 0, 0}), ElementsAre(1, 1, 1));
  const SimSetup alone("exclusive", 1, 1);
  const auto apart = *WorkPrices::Create(setup.beliefs, alone.cluster, *alone.placer);
  EXPECT_THAT(*apart.Of(std::vector<double>{10, 40, 0}), ElementsAre(1, 1, 1));
}

TEST(WorkPrices, KeepTheSlowdownBound) {
  SimSetup setup = Fillers();
  setup.placer = *Placer::Create(*MakeInterferenceModel("utilisation"), *MakePolicy("horus"),
                                 {.slowdown_bound = 1.1, .max_tenants = 2});
  const auto prices = *WorkPrices::Create(setup.beliefs, setup.cluster, *setup.placer);
  // A beside A is all that is left: 2 a = r, b = r, a/5 + 4b/5 = 1.
  EXPECT_THAT(*prices.Of(std::vector<double>{10, 40, 0}), ElementsAre(0.56f, 1.1f, 1.0f));
}

}  // namespace
}  // namespace horus
