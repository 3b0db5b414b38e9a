// SPDX-License-Identifier: Apache-2.0
// What is done while jobs wait, and when most of the work is done: by hand, to the microsecond.
#include <gtest/gtest.h>

#include "lab/metrics.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::SimSetup;

// 0 alone until 10 and beside 1 from then on, at 0.5 and 0.8; 2 waits from 20 until 1 has done its 40 at 60. Then it is
// in 1's place: its 30 take 37.5 us, until 98. Job 0 did 10 + 25 + 19 then and has 46 left, until 144.
SimSetup ThreeOnOneGpu() {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0.5}, {{1, 0}, 0.8}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 40, 1);
  setup.AddJob(20, 30, 1);
  return setup;
}

TEST(SimBacklog, CountsTheWorkWhileAJobWaits) {
  SimSetup setup = ThreeOnOneGpu();
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->jobs[2].start_us, 60);
  ASSERT_EQ(result->jobs[0].end_us, 144);
  EXPECT_EQ(result->backlog_us, 40);
  EXPECT_EQ(result->use.backlog_device_us, 40);
  EXPECT_EQ(result->jobs[0].sums.backlogged, Work(20) * kFullRate);
  EXPECT_EQ(result->jobs[1].sums.backlogged, Work(32) * kFullRate);
  EXPECT_EQ(result->jobs[2].sums.backlogged, 0);
  const SimMetrics metrics = MetricsOf(setup.trace, *result);
  EXPECT_EQ(metrics.backlog_us, 40);
  EXPECT_DOUBLE_EQ(metrics.backlog_rate, 1.3);
  EXPECT_EQ(BacklogWork(setup.trace, *result), (std::vector<double>{20e-6, 32e-6}));
}

// A job that starts the moment it comes never waited; one that is refused for ever waits to the end.
TEST(SimBacklog, EndsWhenTheLastOfThemStarts) {
  SimSetup setup("exclusive");
  setup.options.horizon_us = 150;
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 40);
  setup.AddJob(40, 30);
  setup.AddJob(50, 500);
  setup.AddJob(60, 1);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->backlog_us, 100);
  EXPECT_EQ(result->jobs[1].sums.backlogged, Work(20) * kFullRate);
  EXPECT_EQ(result->jobs[2].sums.backlogged, Work(80) * kFullRate);
}

TEST(SimBacklog, AGangsWorkCountsByGpu) {
  SimSetup setup("exclusive", 2);
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100, 0, 2);
  setup.AddJob(50, 10);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(MetricsOf(setup.trace, *result).backlog_rate, 1);
  EXPECT_EQ(BacklogWork(setup.trace, *result), (std::vector<double>{100e-6}));
}

// 99 % of 170 are 168.3; 124 are done at 98, so the rest at full speed takes 44.3 us.
TEST(SimMostDone, IsTheMicrosecondInWhichMostWorkWasDone) {
  SimSetup setup = ThreeOnOneGpu();
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 143);
}

TEST(SimMostDone, CountsFromTheFirstSubmission) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.AddJob(50, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 149);
  EXPECT_EQ(MetricsOf(setup.trace, *result).most_done_us, 99);
}

// The gang brings 200 of 210: 207.9 are done when the single job, after it, did 7.9.
TEST(SimMostDone, CountsAGangByItsGpus) {
  SimSetup setup("exclusive", 2);
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100, 0, 2);
  setup.AddJob(0, 10);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 108);
}

TEST(SimMostDone, IsNeverWhereWorkIsLeft) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(0, 2);
  setup.options.horizon_us = 100;
  auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, -1);
  EXPECT_EQ(MetricsOf(setup.trace, *result).most_done_us, -1);
  SimSetup endless("exclusive");
  endless.AddProfile(40, 1000);
  endless.AddJob(0, 100);
  endless.AddJob(0, 0);
  endless.trace.jobs[1].endless = true;
  endless.options.horizon_us = 100'000;
  result = endless.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, -1);
}

}  // namespace
}  // namespace horus
