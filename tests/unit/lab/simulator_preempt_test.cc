// SPDX-License-Identifier: Apache-2.0
// Preemption, restarts and latency, by hand to the microsecond; and the order in which the literature finds queues.
#include <gtest/gtest.h>

#include <string>

#include "lab/metrics.h"
#include "lab/trace/synthetic.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::SimSetup;
using Kind = SimEventKind;

SimSetup Preempting(std::string_view queue, size_t gpus = 1, const QueueOptions& options = {}) {
  SimSetup setup("exclusive", gpus);
  setup.queue = *MakeQueue(queue, options);
  setup.options.preempt = true;
  setup.AddProfile(40, 1000);
  return setup;
}

// 0 has 90 left at 10, when 1 comes with 20: it runs until 30, then 0 until 120.
TEST(SimPreempt, TheShorterRestGoesFirst) {
  SimSetup setup = Preempting("srtf");
  setup.AddJob(0, 100);
  setup.AddJob(10, 20);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].end_us, 30);
  EXPECT_EQ(result->jobs[0].end_us, 120);
  EXPECT_EQ(result->jobs[0].preemptions, 1);
  EXPECT_EQ(result->jobs[0].restarts, 1);
  EXPECT_EQ(result->jobs[0].start_us, 0);
  EXPECT_EQ(result->jobs[0].ran_us, 100);
  EXPECT_EQ(result->jobs[0].sums.done, Work(100) * kFullRate);
  EXPECT_EQ(result->backlog_us, 20);
  EXPECT_EQ(result->most_done_us, 119);
  const std::vector<std::tuple<Kind, int64_t, uint32_t>> expected = {
      {Kind::kArrive, 0, 0}, {Kind::kStart, 0, 0},   {Kind::kArrive, 10, 1}, {Kind::kPreempt, 10, 0},
      {Kind::kStart, 10, 1}, {Kind::kFinish, 30, 1}, {Kind::kStart, 30, 0},  {Kind::kFinish, 120, 0}};
  EXPECT_EQ(setup.events, expected);
}

TEST(SimPreempt, WhoDoesNotComeFirstWaits) {
  SimSetup setup = Preempting("srtf");
  setup.AddJob(0, 100);
  setup.AddJob(10, 90);  // as much as is left of the first
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 100);
  EXPECT_EQ(result->jobs[0].preemptions, 0);
}

TEST(SimPreempt, ARestartHoldsThePlaceAndDoesNothing) {
  SimSetup setup = Preempting("srtf");
  setup.options.restart_us = 5;
  setup.AddJob(0, 100);
  setup.AddJob(10, 20);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].end_us, 30) << "a first start costs nothing";
  EXPECT_EQ(result->jobs[0].end_us, 125);
  EXPECT_EQ(result->jobs[0].ran_us, 100);
  EXPECT_EQ(result->use.used_us, 125) << "held is used";
}

TEST(SimPreempt, RoundsPreemptAtTheirMultiplesAlone) {
  SimSetup setup = Preempting("srtf");
  setup.options.round_us = 60;
  setup.AddJob(0, 100);
  setup.AddJob(10, 20);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 60);
  EXPECT_EQ(result->jobs[1].end_us, 80);
  EXPECT_EQ(result->jobs[0].end_us, 160);  // 40 left, from the round at 120 on
}

// Service so far, asked every 10 us; the earlier one goes first among equals: 0 until 10, 1, 0 from 20, 1 from 30, 0
// from 40 to its end at 50, 1 to 60.
TEST(SimPreempt, ServiceSoFarIsToldEveryRound) {
  SimSetup setup = Preempting("las", 1, {.las_continuous = true});
  setup.options.round_us = 10;
  setup.options.know_run_times = false;
  setup.AddJob(0, 30);
  setup.AddJob(0, 30);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end_us, 50);
  EXPECT_EQ(result->jobs[1].end_us, 60);
  EXPECT_EQ(result->jobs[0].preemptions, 2);
  EXPECT_EQ(result->jobs[1].preemptions, 2);
}

TEST(SimPreempt, ATraceCannotAskForRoundsWithoutEnd) {
  const auto run = [](bool preempt, int64_t round_us, int64_t rebalance_us) {
    SimSetup setup = Preempting("las", 1, {.las_continuous = true});
    setup.options.preempt = preempt;
    setup.options.know_run_times = false;
    setup.options.round_us = round_us;
    setup.options.rebalance_us = rebalance_us;
    setup.options.most_rounds = 1000;
    setup.AddJob(0, int64_t{1} << 40);
    setup.AddJob(0, int64_t{1} << 40);
    return setup.Go().status();
  };
  EXPECT_TRUE(run(false, 0, 0).ok()) << "nothing asks meanwhile";
  for (const absl::Status& refused : {run(true, 10, 0), run(false, 0, 10)}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(std::string(refused.message()),
              "simulation: expected at most 1000 rounds of decisions and rebalances, found more at 10000 us");
  }
}

// Tiresias with a first queue of 25 GPU x us: 0, on two GPUs, is through with it when it has run for 13 us.
TEST(SimPreempt, TiresiasCountsGpusTimesTime) {
  SimSetup setup = Preempting("las", 2, {.las_thresholds_gpu_us = {25}});
  setup.options.round_us = 1;
  setup.AddJob(0, 100, 0, 2);
  setup.AddJob(5, 10, 0, 2);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].start_us, 13);
  EXPECT_EQ(result->jobs[1].end_us, 23);
  EXPECT_EQ(result->jobs[0].end_us, 110);
}

// Four run; the newcomer takes three GPUs: the one with the shortest rest stays.
TEST(SimPreempt, WhomTheJobCanDoWithoutStays) {
  SimSetup setup = Preempting("srtf", 4);
  for (const int64_t duration : {1000, 800, 900, 700}) setup.AddJob(0, duration);
  setup.AddJob(10, 50, 0, 3);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[4].start_us, 10);
  EXPECT_EQ(result->jobs[3].preemptions, 0);
  for (const size_t job : {0, 1, 2}) EXPECT_EQ(result->jobs[job].preemptions, 1) << job;
}

// The gang ranks before the second job alone, whose GPU is not enough for it.
TEST(SimPreempt, NobodyLeavesForAJobThatDoesNotFitAnyway) {
  SimSetup setup = Preempting("srtf", 2);
  setup.AddJob(0, 100);
  setup.AddJob(0, 200);
  setup.AddJob(10, 150, 0, 2);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].preemptions, 0);
  EXPECT_EQ(result->jobs[2].start_us, 200) << "at 100, when the first has left, the second has less left";
}

TEST(SimLatency, HoldsThePlaceUntilTheJobWorks) {
  SimSetup setup("exclusive");
  setup.options.latency_us = 7;
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  setup.AddJob(3, 10);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].start_us, 7);
  EXPECT_EQ(result->jobs[0].end_us, 107);
  EXPECT_EQ(result->jobs[1].start_us, 114);
  EXPECT_EQ(result->use.used_us, 124);
}

// What cannot run together is seen when it starts, at 15; others may have the place then.
TEST(SimLatency, AFailedStartGivesThePlaceBack) {
  SimSetup setup;
  setup.options.latency_us = 5;
  setup.AddProfile(40, 1000);
  setup.AddProfile(30, 1000);
  setup.truth.share = {{{0, 1}, 0}, {{1, 0}, 0}};
  setup.AddJob(0, 100, 0);
  setup.AddJob(10, 40, 1);
  setup.AddJob(12, 40, 0);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[1].failures, 1);
  EXPECT_EQ(result->jobs[1].start_us, 110);
  EXPECT_EQ(result->jobs[2].start_us, 155) << "first come, first served: behind the one that waits to be alone";
}

TEST(SimLatency, WhoIsToStartAtTheHorizonHoldsItsPlace) {
  SimSetup setup("exclusive");
  setup.options.latency_us = 50;
  setup.options.horizon_us = 30;
  setup.AddProfile(40, 1000);
  setup.AddJob(0, 100);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->jobs[0].end, SimEnd::kRunning);
  EXPECT_EQ(result->jobs[0].start_us, -1);
  EXPECT_EQ(result->jobs[0].sums.done, 0);
  EXPECT_EQ(setup.cluster.job_count(), 0u);
}

// Mean completion time: shortest remaining time < least attained service < first come, first served. Tiresias (NSDI
// 2019) has least attained service before arrival order by up to 5.5 times and behind what knows run times; Synergy
// (OSDI 2022) finds the same order under its own rounds.
TEST(SimPreempt, ThePublishedOrderOfQueuesHolds) {
  constexpr int64_t kRoundUs = 360'000'000;  // Gavel's (OSDI 2020)
  SyntheticOptions synthetic = *SyntheticPreset("philly");
  synthetic.jobs = 300;
  synthetic.capacity_gpu_milli = 16 * kMilliPerGpu;
  synthetic.sizes = {{1, 8}, {2, 1}, {4, 1}};
  const Trace trace = *MakeSynthetic(synthetic);
  std::map<std::string_view, double> mean;
  for (const std::string_view queue : {"fifo", "las", "srtf"}) {
    SimSetup setup = Preempting(queue, 16);
    setup.trace = trace;
    setup.beliefs.assign(trace.profiles.size(), setup.beliefs[0]);
    setup.options.round_us = kRoundUs;
    setup.options.preempt = queue != "fifo";
    const auto result = setup.Go();
    ASSERT_TRUE(result.ok()) << result.status();
    const SimMetrics metrics = MetricsOf(setup.trace, *result);
    ASSERT_EQ(metrics.finished, trace.jobs.size());
    mean[queue] = metrics.jct_us.mean;
  }
  EXPECT_LT(mean["srtf"], mean["las"]);
  EXPECT_LT(mean["las"], mean["fifo"]);
}

}  // namespace
}  // namespace horus
