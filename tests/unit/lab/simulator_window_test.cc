// SPDX-License-Identifier: Apache-2.0
// The job that suits a place best, and what work counts: schedules computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_setup.h"

namespace horus {
namespace {

using testing::HasSubstr;
using testing_sim::SimSetup;

constexpr double kHalf = 0.5;

// By utilisation: 60 beside 90 is slowed by 1.5, beside 50 by 1.1.
SimSetup Crowd(bool choose) {
  SimSetup setup("horus");
  for (const float util : {60.0f, 90.0f, 50.0f}) setup.AddProfile(util, 1000);
  setup.options.look_ahead = 2;
  setup.options.one_by_one = !choose;
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 100, 1);
  setup.AddJob(10, 100, 2);
  return setup;
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
  SimSetup setup = Crowd(true);
  setup.trace.jobs[1].priority = 1;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
}

// Short jobs that suit the place better come again and again.
TEST(SimWindow, NobodyPassesAJobWhosePatienceIsOver) {
  for (const int64_t patience_us : {0, 15}) {
    SimSetup setup = Crowd(true);
    setup.queue = *MakeQueue("fifo", {.patience_us = patience_us});
    setup.trace.jobs[2].duration_us = 20;
    setup.AddJob(11, 20, 2);
    const auto result = setup.Go();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->jobs[2].start_us, 10);
    EXPECT_EQ(result->jobs[1].start_us < result->jobs[3].start_us, patience_us > 0);
  }
}

TEST(SimWindow, LooksNoFurtherThanItMay) {
  SimSetup setup = Crowd(true);
  setup.options.look_ahead = 1;
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 10);
}

// Two that fill the GPU: each would do half. That gains nothing, unless the newcomer is short.
TEST(SimWindow, AShortJobMaySlowALongOneAndNotTheOtherWayRound) {
  const auto start = [](int64_t resident_us, int64_t newcomer_us, SimWeights weights) {
    SimSetup setup("horus");
    setup.AddProfile(100, 1000);
    setup.truth.share = {{{0, 0}, kHalf}};
    setup.options.weights = weights;
    setup.AddJob(0, resident_us);
    setup.AddJob(10, newcomer_us);
    const auto result = setup.Go();
    EXPECT_TRUE(result.ok()) << result.status();
    return result->jobs[1].start_us;
  };
  EXPECT_EQ(start(8000, 1000, SimWeights::kShortest), 10);
  EXPECT_EQ(start(8000, 1000, SimWeights::kAlike), 8000);
  EXPECT_EQ(start(1000, 8000, SimWeights::kShortest), 1000);
  EXPECT_EQ(start(8000, 7000, SimWeights::kShortest), 8000) << "of about one length";
}

TEST(SimWindow, RefusesWhatDoesNotGoTogether) {
  SimSetup unknown = Crowd(false);
  unknown.options.weights = SimWeights::kShortest;
  unknown.options.know_run_times = false;
  EXPECT_THAT(unknown.Go().status().message(), HasSubstr("know_run_times"));
}

// The gang can have both GPUs at 100, when the first job ends. One that ends by then passes it, a longer one does not.
TEST(SimWindow, NobodyPassesAGangWhomItWouldWaitFor) {
  for (const bool shortest_first : {true, false}) {
    SimSetup setup("first-fit", 2, 1);
    setup.AddProfile(50, 1000);
    if (shortest_first) setup.queue = *MakeQueue("srtf");
    setup.options.look_ahead = 5;
    setup.AddJob(0, 100);
    setup.AddJob(10, 30, 0, 2);
    setup.AddJob(10, 60);
    setup.AddJob(20, 200);
    const auto result = setup.Go();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->jobs[2].start_us, 10);
    EXPECT_EQ(result->jobs[3].start_us, shortest_first ? 130 : 70);
    EXPECT_EQ(result->jobs[1].start_us, shortest_first ? 100 : 270);
  }
}

}  // namespace
}  // namespace horus
