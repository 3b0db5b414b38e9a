// SPDX-License-Identifier: Apache-2.0
// Fairness of results written down by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/metrics.h"

namespace horus {
namespace {

SimJob Finished(int64_t end_us) { return {.end_us = end_us, .end = SimEnd::kFinished}; }

// On one device: 0 is there from 0 to 100, 1 from 20 to 80, which is 160 jobs x us of 100 and 120 of 60.
TEST(Fairness, AShareIsOneOfTheMeanNumberOfJobs) {
  Trace trace;
  trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 80}, {.id = 1, .submit_us = 20, .duration_us = 20}};
  SimResult result;
  result.devices = 1;
  result.jobs = {Finished(100), Finished(80)};
  const std::vector<double> rho = FinishTimeFairness(trace, result);
  EXPECT_DOUBLE_EQ(rho[0], 100 / (80 * 1.6));
  EXPECT_DOUBLE_EQ(rho[1], 60 / (20 * 2.0));
  const SimMetrics metrics = MetricsOf(trace, result);
  EXPECT_DOUBLE_EQ(metrics.finish_time_fairness.p99, 1.5);
  EXPECT_DOUBLE_EQ(metrics.jain, JainIndex(std::vector<double>{1.28, 1 / 1.5}));
}

// Four devices are enough for both at full speed, a gang of four is not alone there for its share.
TEST(Fairness, AShareIsNeverMoreThanTheJobAsksFor) {
  Trace trace;
  trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 80}, {.id = 1, .submit_us = 0, .duration_us = 20, .tasks = 4}};
  SimResult result;
  result.devices = 4;
  result.jobs = {Finished(100), Finished(100)};
  const std::vector<double> rho = FinishTimeFairness(trace, result);
  EXPECT_DOUBLE_EQ(rho[0], 100 / 80.0);
  EXPECT_DOUBLE_EQ(rho[1], 100 / 40.0);
}

TEST(Fairness, WhoWaitsIsInTheSystemAndWhoIsRejectedIsNot) {
  Trace trace;
  trace.jobs = {{.id = 0, .submit_us = 0, .duration_us = 50},
                {.id = 1, .submit_us = 0, .duration_us = 50},
                {.id = 2, .submit_us = 0, .duration_us = 50}};
  SimResult result;
  result.devices = 1;
  result.jobs = {Finished(100), {}, {.end = SimEnd::kRejected}};
  const std::vector<double> rho = FinishTimeFairness(trace, result);
  EXPECT_DOUBLE_EQ(rho[0], 1);
  EXPECT_EQ(rho[1], 0);
  EXPECT_EQ(rho[2], 0);
  EXPECT_DOUBLE_EQ(MetricsOf(trace, result).finish_time_fairness.mean, 1) << "of those that finished";
}

TEST(Fairness, JainsIndexGoesFromOneOfNToOne) {
  EXPECT_DOUBLE_EQ(JainIndex(std::vector<double>{3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(JainIndex(std::vector<double>{0, 0, 5, 0}), 0.25);
  EXPECT_DOUBLE_EQ(JainIndex(std::vector<double>{1, 3}), 0.8);
  EXPECT_TRUE(std::isnan(JainIndex({})));
}

}  // namespace
}  // namespace horus
