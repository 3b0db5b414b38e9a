// SPDX-License-Identifier: Apache-2.0
// The job that suits a place best, and what work counts: schedules computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_sim::World;

constexpr double kHalf = 0.5;

// By utilisation: 60 beside 90 is slowed by 1.5, beside 50 by 1.1.
World Crowd(bool best) {
  World world("horus");
  for (const float util : {60.0f, 90.0f, 50.0f}) world.AddProfile(util, 1000);
  world.options.look_ahead = 2;
  world.options.best_of_window = best;
  world.AddJob(0, 100, 0);
  world.AddJob(10, 100, 1);
  world.AddJob(10, 100, 2);
  return world;
}

TEST(SimWindow, TheFirstThatFitsGoesFirst) {
  const auto result = Crowd(false).Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
  EXPECT_EQ(result->jobs[2].start_us, 100);
}

TEST(SimWindow, TheJobThatSuitsThePlaceBestGoesFirst) {
  const auto result = Crowd(true).Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 100);
  EXPECT_EQ(result->jobs[2].start_us, 10);
}

TEST(SimWindow, PriorityGoesBeforeWhatSuits) {
  World world = Crowd(true);
  world.trace.jobs[1].priority = 1;
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
}

TEST(SimWindow, LooksNoFurtherThanItMay) {
  World world = Crowd(true);
  world.options.look_ahead = 1;
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
}

// Two that fill the GPU: each would do half. That gains nothing, unless the newcomer is short.
TEST(SimWindow, AShortJobMaySlowALongOneAndNotTheOtherWayRound) {
  const auto start = [](int64_t resident_us, int64_t newcomer_us, SimWeights weights) {
    World world("horus");
    world.AddProfile(100, 1000);
    world.truth.share = {{{0, 0}, kHalf}};
    world.options.weights = weights;
    world.AddJob(0, resident_us);
    world.AddJob(10, newcomer_us);
    const auto result = world.Go();
    EXPECT_TRUE(result.ok()) << result.status();
    return result->jobs[1].start_us;
  };
  EXPECT_EQ(start(8000, 1000, SimWeights::kShortest), 10);
  EXPECT_EQ(start(8000, 1000, SimWeights::kAlike), 8000);
  EXPECT_EQ(start(1000, 8000, SimWeights::kShortest), 1000);
  EXPECT_EQ(start(8000, 7000, SimWeights::kShortest), 8000) << "of about one length";
}

TEST(SimWindow, RefusesWhatDoesNotGoTogether) {
  World world = Crowd(true);
  world.options.preempt = true;
  EXPECT_THAT(world.Go().status().message(), HasSubstr("best_of_window"));
  World unknown = Crowd(false);
  unknown.options.weights = SimWeights::kShortest;
  unknown.options.know_run_times = false;
  EXPECT_THAT(unknown.Go().status().message(), HasSubstr("know_run_times"));
  World prices = Crowd(false);
  prices.options.weights = SimWeights::kPrices;
  prices.options.lp_library = "/no/such/library.so";
  EXPECT_FALSE(prices.Go().ok()) << "without the solver there are no prices";
}

}  // namespace
}  // namespace horus
