// SPDX-License-Identifier: Apache-2.0
// What is done while jobs wait, and when most of the work is done: by hand, to the microsecond.
#include <gtest/gtest.h>

#include "sim/metrics.h"
#include "world.h"

namespace horus {
namespace {

using testing_sim::World;

// 0 alone until 10 and beside 1 from then on, at 0.5 and 0.8; 2 waits from 20 until 1 has done its 40 at 60. Then it is
// in 1's place: its 30 take 37.5 us, until 98. Job 0 did 10 + 25 + 19 then and has 46 left, until 144.
World ThreeOnOneGpu() {
  World world;
  world.AddProfile(40, 1000);
  world.AddProfile(30, 1000);
  world.truth.share = {{{0, 1}, 0.5}, {{1, 0}, 0.8}};
  world.AddJob(0, 100, 0);
  world.AddJob(10, 40, 1);
  world.AddJob(20, 30, 1);
  return world;
}

TEST(SimBacklog, CountsTheWorkWhileAJobWaits) {
  World world = ThreeOnOneGpu();
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->jobs[2].start_us, 60);
  ASSERT_EQ(result->jobs[0].end_us, 144);
  EXPECT_EQ(result->backlog_us, 40);
  EXPECT_EQ(result->use.backlog_device_us, 40);
  EXPECT_EQ(result->jobs[0].sums.backlogged, Work(20) * kFullRate);
  EXPECT_EQ(result->jobs[1].sums.backlogged, Work(32) * kFullRate);
  EXPECT_EQ(result->jobs[2].sums.backlogged, 0);
  const SimMetrics metrics = MetricsOf(world.trace, *result);
  EXPECT_EQ(metrics.backlog_us, 40);
  EXPECT_DOUBLE_EQ(metrics.backlog_rate, 1.3);
  EXPECT_EQ(BacklogWork(world.trace, *result), (std::vector<double>{20e-6, 32e-6}));
}

// A job that starts the moment it comes never waited; one that is refused for ever waits to the end.
TEST(SimBacklog, EndsWhenTheLastOfThemStarts) {
  World world("exclusive");
  world.options.horizon_us = 150;
  world.AddProfile(40, 1000);
  world.AddJob(0, 40);
  world.AddJob(40, 30);
  world.AddJob(50, 500);
  world.AddJob(60, 1);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->backlog_us, 100);
  EXPECT_EQ(result->jobs[1].sums.backlogged, Work(20) * kFullRate);
  EXPECT_EQ(result->jobs[2].sums.backlogged, Work(80) * kFullRate);
}

TEST(SimBacklog, AGangsWorkCountsByGpu) {
  World world("exclusive", 2);
  world.AddProfile(40, 1000);
  world.AddJob(0, 100, 0, 2);
  world.AddJob(50, 10);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(MetricsOf(world.trace, *result).backlog_rate, 1);
  EXPECT_EQ(BacklogWork(world.trace, *result), (std::vector<double>{100e-6}));
}

// 99 % of 170 are 168.3; 124 are done at 98, so the rest at full speed takes 44.3 us.
TEST(SimMostDone, IsTheMicrosecondInWhichMostWorkWasDone) {
  World world = ThreeOnOneGpu();
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 143);
}

TEST(SimMostDone, CountsFromTheFirstSubmission) {
  World world;
  world.AddProfile(40, 1000);
  world.AddJob(50, 100);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 149);
  EXPECT_EQ(MetricsOf(world.trace, *result).most_done_us, 99);
}

// The gang brings 200 of 210: 207.9 are done when the single job, after it, did 7.9.
TEST(SimMostDone, CountsAGangByItsGpus) {
  World world("exclusive", 2);
  world.AddProfile(40, 1000);
  world.AddJob(0, 100, 0, 2);
  world.AddJob(0, 10);
  const auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, 108);
}

TEST(SimMostDone, IsNeverWhereWorkIsLeft) {
  World world("exclusive");
  world.AddProfile(40, 1000);
  world.AddJob(0, 100);
  world.AddJob(0, 2);
  world.options.horizon_us = 100;
  auto result = world.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->most_done_us, -1);
  EXPECT_EQ(MetricsOf(world.trace, *result).most_done_us, -1);
  World endless("exclusive");
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
