// SPDX-License-Identifier: Apache-2.0
// Schedules computed by hand, to the microsecond, and what is conserved whatever happens.
#include "lab/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim_setup.h"

namespace horus {
namespace {

using testing::HasSubstr;

using testing_sim::SimSetup;
using testing_sim::Type;

TEST(Simulator, RunsOneAfterTheOtherWhereOneFits) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(10, 50);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100);
  EXPECT_EQ(result->jobs[1].start_us, 100);
  EXPECT_EQ(result->jobs[1].end_us, 150);
  EXPECT_EQ(result->use.device_us, 150);
  EXPECT_EQ(result->use.used_us, 150);
}

// 0 alone until 10, then both: 0 at 0.5 and 1 at 0.8. Job 1 needs 40: 50 us, until 60; job 0 did 10 + 25 then and has
// 65 left alone, until 125.
TEST(Simulator, RatesChangeWithTheNeighbours) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0.5}, {{1, 0}, 0.8}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 40, 1);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].end_us, 60);
  EXPECT_EQ(result->jobs[0].end_us, 125);
  EXPECT_EQ(result->jobs[0].sums.done, Work(100) * kFullRate);
  EXPECT_EQ(result->use.used_us, 125);
}

// 100 us of work at a third of the speed are done in the 300th microsecond that begins.
TEST(Simulator, WhatIsLeftOfAMicrosecondIsAWholeOne) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.truth.alone = {{{0, static_cast<uint16_t>(Type("v100-sxm2-16gb").value())}, 1.0 / 3}};
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 301);  // a third is rounded down to billionths
}

TEST(Simulator, AGangRunsAsItsSlowestGpu) {
  SimSetup setup("first-fit", 2);
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0.5}, {{1, 0}, 1}};
  setup.AddJob(0, 100, 0, 2);
  setup.AddJob(0, 30, 1);  // beside one of the gang's GPUs until 30: the gang did 15
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 115);
}

TEST(Simulator, WhatCannotRunTogetherIsRetriedAlone) {
  SimSetup setup;
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0}, {{1, 0}, 0}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 40, 1);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].failures, 1);
  EXPECT_EQ(result->jobs[1].start_us, 100);
  EXPECT_EQ(result->jobs[0].end_us, 100) << "those who are there notice nothing";
}

TEST(Simulator, LookAheadPassesAJobThatDoesNotFit) {
  for (const size_t look_ahead : {1, 2}) {
    SimSetup setup("exclusive", 2);
    setup.options.look_ahead = look_ahead;
    setup.AddProfile(40, 1000);
    setup.AddJob(0, 100);
    setup.AddJob(1, 100, 0, 2);
    setup.AddJob(2, 10);
    const auto result = setup.Go();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->jobs[2].start_us, look_ahead == 1 ? 200 : 2);
  }
}

TEST(Simulator, RoundsDecideAtTheirMultiplesAlone) {
  SimSetup setup("exclusive", 2);
  setup.options.round_us = 60;
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(1, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].start_us, 0);
  EXPECT_EQ(result->jobs[1].start_us, 60);
}

TEST(Simulator, TheHorizonEndsEverything) {
  SimSetup setup("exclusive");
  setup.options.horizon_us = 150;
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(0, 100);
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end, SimEnd::kFinished);
  EXPECT_EQ(result->jobs[1].end, SimEnd::kRunning);
  EXPECT_EQ(result->jobs[1].sums.done, Work(50) * kFullRate);
  EXPECT_EQ(result->jobs[2].end, SimEnd::kWaiting);
  EXPECT_EQ(result->end_us, 150);
}

TEST(Simulator, WhatNeverFitsIsRejected) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1'000'000);
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end, SimEnd::kRejected);
}

TEST(Simulator, EventsComeInOrder) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(100, 50);
  ASSERT_TRUE(setup.Go().ok());
  using Kind = SimEventKind;
  const std::vector<std::tuple<Kind, int64_t, uint32_t>> expected = {{Kind::kArrive, 0, 0},   {Kind::kStart, 0, 0},
                                                                     {Kind::kFinish, 100, 0}, {Kind::kArrive, 100, 1},
                                                                     {Kind::kStart, 100, 1},  {Kind::kFinish, 150, 1}};
  EXPECT_EQ(setup.events, expected);
}

TEST(Simulator, RefusesWhatItCannotRun) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 0);
  setup.trace.jobs[0].steps = 10;
  EXPECT_THAT(std::string(setup.Go().status().message()),
              HasSubstr("job[0]: duration_us: expected a run time, found steps alone"));
  setup.trace.jobs[0] = {.id = 0, .duration_us = 5, .profile = 0, .endless = true};
  EXPECT_THAT(std::string(setup.Go().status().message()), HasSubstr("horizon_us"));
  setup.trace.jobs[0] = {.id = 0, .duration_us = 5, .profile = 0};
  setup.beliefs[0].clear();
  EXPECT_THAT(std::string(setup.Go().status().message()), HasSubstr("job[0]: profile: expected one"));
}

TEST(Simulator, AnObserverMayCancel) {
  SimSetup setup("exclusive");
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  const auto result = Simulate(setup.trace, setup.beliefs, setup.truth, setup.cluster, *setup.queue, *setup.placer, {},
                               [](const SimEvent&) { return false; });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace horus
