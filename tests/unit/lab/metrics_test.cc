// SPDX-License-Identifier: Apache-2.0
// Metrics of results written down by hand.
#include "lab/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/grid.h"

namespace horus {
namespace {

SimJob Finished(int64_t start_us, int64_t end_us, int64_t work_us) {
  return {.start_us = start_us,
          .end_us = end_us,
          .sums = {Work(work_us) * kFullRate, Work(work_us) * kFullRate},
          .ran_us = end_us - start_us,
          .end = SimEnd::kFinished};
}

// Two jobs side by side on one of two GPUs, the first undisturbed, the second at half its speed.
struct TwoJobs {
  Trace trace;
  SimResult result;
  TwoJobs() {
    trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 100}, {.id = 1, .submit_us = 50, .duration_us = 20}};
    result.jobs = {Finished(0, 100, 100), Finished(60, 100, 20)};
    result.use = {.device_us = 200, .used_us = 100};
  }
};

TEST(Metrics, AreWhatTheirNamesSay) {
  const TwoJobs two;
  const SimMetrics metrics = MetricsOf(two.trace, two.result, {.slowdown_bound = 1.5});
  EXPECT_EQ(metrics.jobs, 2u);
  EXPECT_EQ(metrics.finished, 2u);
  EXPECT_EQ(metrics.makespan_us, 100);
  EXPECT_EQ(metrics.jct_us, (Spread{75, 50, 100, 100}));
  EXPECT_EQ(metrics.wait_us, (Spread{5, 0, 10, 10}));
  EXPECT_EQ(metrics.slowdown, (Spread{1.5, 1, 2, 2}));
  EXPECT_EQ(metrics.above_bound, 0.5);
  EXPECT_TRUE(std::isnan(MetricsOf(two.trace, two.result, {.slowdown_bound = 1.5, .bounded_milli = 0}).above_bound));
  EXPECT_EQ(metrics.allocation, 0.5);
  EXPECT_EQ(metrics.useful, 0.6);
  EXPECT_EQ(metrics.work_rate, 0.6);
}

TEST(Metrics, CountTheWindowAlone) {
  TwoJobs two;
  const SimMetrics metrics = MetricsOf(two.trace, two.result, {.from_us = 50});
  EXPECT_EQ(metrics.jobs, 1u);
  EXPECT_EQ(metrics.jct_us.mean, 50);
  EXPECT_EQ(metrics.makespan_us, 50);
  EXPECT_EQ(MetricsOf(two.trace, two.result, {.to_us = 50}).jct_us.mean, 100);
}

TEST(Metrics, EveryJobHasOneEnd) {
  TwoJobs two;
  two.trace.jobs.push_back({.id = 2, .submit_us = 60, .duration_us = 10, .tasks = 3});
  two.result.jobs.push_back({.end = SimEnd::kRejected});
  two.result.jobs[1].end = SimEnd::kRunning;
  two.result.jobs[0].end = SimEnd::kWaiting;
  const SimMetrics metrics = MetricsOf(two.trace, two.result);
  EXPECT_EQ(metrics.finished, 0u);
  EXPECT_EQ(metrics.running, 1u);
  EXPECT_EQ(metrics.waiting, 1u);
  EXPECT_EQ(metrics.rejected, 1u);
}

TEST(Metrics, OfNoFinishedJobThereIsNoTimeNotTheShortest) {
  TwoJobs two;
  two.result.jobs.assign(2, {.end = SimEnd::kWaiting});
  const SimMetrics metrics = MetricsOf(two.trace, two.result);
  for (const Spread& spread : {metrics.jct_us, metrics.wait_us, metrics.slowdown, metrics.finish_time_fairness}) {
    for (const double value : {spread.mean, spread.p50, spread.p95, spread.p99}) EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_TRUE(std::isnan(metrics.jain) && std::isnan(metrics.above_bound));
  EXPECT_EQ(metrics.makespan_us, -1);
  for (const GridMetric& metric : GridMetrics()) {
    EXPECT_TRUE(!metric.of_finished || std::isnan(metric.get(metrics))) << metric.name;
  }
}

// Until 300: 0 finishes after 100, 1 runs since 50, 2 waits since 100, 3 is endless, 4 comes when all is over.
TEST(Metrics, TheRestrictedMeanCountsWhoDidNotFinishUntilTheEnd) {
  TwoJobs two;
  two.trace.jobs.push_back({.id = 2, .submit_us = 100, .duration_us = 10});
  two.trace.jobs.push_back({.id = 3, .submit_us = 100, .endless = true});
  two.trace.jobs.push_back({.id = 4, .submit_us = 300, .duration_us = 10});
  two.result.jobs.resize(5);
  two.result.jobs[1].end = SimEnd::kRunning;
  two.result.jobs[3].end = SimEnd::kRunning;
  two.result.end_us = 300;
  const SimMetrics metrics = MetricsOf(two.trace, two.result);
  EXPECT_EQ(metrics.jct_us.mean, 100);
  EXPECT_EQ(metrics.jct_to_horizon_us, (Spread{(100 + 250 + 200) / 3.0, 200, 250, 250}));
  EXPECT_EQ(MetricsOf(two.trace, two.result, {.from_us = 100}).jct_to_horizon_us.mean, 200);
}

TEST(Metrics, GangsCountEachGpu) {
  TwoJobs two;
  two.trace.jobs[0].tasks = 2;
  EXPECT_EQ(MetricsOf(two.trace, two.result).work_rate, 1.1);
}

}  // namespace
}  // namespace horus
