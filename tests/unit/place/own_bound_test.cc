// SPDX-License-Identifier: Apache-2.0
// Rules of a job's own bound: what it states, and what its latency leaves.
#include "place/job/own_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fixtures.h"
#include "interference/laws.h"

namespace horus {
namespace {

using testing_place::Needs;
using testing_place::OneGpu;

JobSpec Service(int64_t bound_us, double rate_hz = 10) {
  JobSpec job = OneGpu(1);
  job.kind = JobKind::kInference;
  job.request_rate_hz = static_cast<float>(rate_hz);
  job.latency_bound_us = bound_us;
  return job;
}

double Largest(const JobSpec& job, int64_t step_us) {
  const RequestLoad load{.requests_per_s = job.request_rate_hz, .service_us = static_cast<double>(step_us)};
  return *LargestSlowdown(load, static_cast<double>(job.latency_bound_us));
}

TEST(OwnBound, IsTheLargestNumberThatKeepsTheLatency) {
  for (int64_t bound_us = 20'000; bound_us < 22'000; bound_us += 100) {
    const JobSpec job = Service(bound_us);
    const OwnBound own = OwnBoundOf(job, Needs(10, 100, 5'000));
    EXPECT_EQ(own.late, LateAlone());
    EXPECT_LE(static_cast<double>(own.slowdown), Largest(job, 5'000));
    const float next = std::nextafter(own.slowdown, std::numeric_limits<float>::infinity());
    EXPECT_GT(static_cast<double>(next), Largest(job, 5'000));
  }
}

TEST(OwnBound, IsExactWhereTheLargestIsANumberItself) {
  const JobSpec job = Service(20'000, 0.01);  // nobody ever waits
  ASSERT_EQ(Largest(job, 5'000), 4);
  EXPECT_EQ(OwnBoundOf(job, Needs(10, 100, 5'000)).slowdown, 4);
}

TEST(OwnBound, IsTheLowerOfWhatIsStatedAndWhatTheLatencyLeaves) {
  JobSpec job = Service(20'000);
  const Demand demand = Needs(10, 100, 5'000);
  const float left = OwnBoundOf(job, demand).slowdown;
  ASSERT_GT(left, 1.5f);
  for (const float stated : {1.0f, 1.5f}) {
    job.slowdown_bound = stated;
    EXPECT_EQ(OwnBoundOf(job, demand).slowdown, stated);
  }
  job.slowdown_bound = 100;
  EXPECT_EQ(OwnBoundOf(job, demand).slowdown, left);
}

TEST(OwnBound, OfALateJobSaysHowLongItTakesAlone) {
  const JobSpec job = Service(20'000);
  const OwnBound own = OwnBoundOf(job, Needs(10, 100, 30'000));
  EXPECT_EQ(own.slowdown, 1);
  EXPECT_EQ(own.late.bound_us, 20'000);
  EXPECT_EQ(own.late.p99_us, static_cast<float>(PredictLatency({.requests_per_s = 10, .service_us = 30'000})->p99_us));
}

TEST(OwnBound, AnEndlessQueueCountsAsTheLongestService) {
  const OwnBound own = OwnBoundOf(Service(20'000, 1000), Needs(10, 100, 30'000));
  EXPECT_EQ(own.late.p99_us, static_cast<float>(kMostServiceUs));
}

TEST(OwnBound, IsTheLowerOfWhatIsStatedAndWhatAServicePromises) {
  JobSpec job = OneGpu(1);
  Demand demand = Needs(10, 100, 5'000);
  demand.slowdown_bound = 1.5f;
  EXPECT_EQ(OwnBoundOf(job, demand).slowdown, 1.5f);
  job.slowdown_bound = 2;
  EXPECT_EQ(OwnBoundOf(job, demand).slowdown, 1.5f);
  job.slowdown_bound = 1.25f;
  EXPECT_EQ(OwnBoundOf(job, demand).slowdown, 1.25f);
}

TEST(OwnBound, OfAServiceThatKeepsNothingAloneSaysByHowMuch) {
  Demand demand = Needs(10, 100, 5'000);
  demand.slowdown_bound = 0.5f;
  const OwnBound own = OwnBoundOf(OneGpu(1), demand);
  EXPECT_EQ(own.slowdown, 1);
  EXPECT_EQ(own.late.bound_us, 0.5f * own.late.p99_us);
  EXPECT_EQ(own.late.p99_us, static_cast<float>(demand.step_time_us.upper));
}

TEST(OwnBound, WithoutALatencyIsWhatIsStated) {
  JobSpec job = OneGpu(1);
  EXPECT_EQ(OwnBoundOf(job, Needs(10, 100, 5'000)).slowdown, 0);
  job.slowdown_bound = 1.25f;
  EXPECT_EQ(OwnBoundOf(job, Needs(10, 100, 5'000)).slowdown, 1.25f);
}

}  // namespace
}  // namespace horus
