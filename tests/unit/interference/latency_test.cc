// SPDX-License-Identifier: Apache-2.0
// Latency under load: against a simulated queue, and the rules that hold without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "draw.h"
#include "interference/laws.h"

namespace horus {
namespace {

using ::testing::HasSubstr;

constexpr double kServiceUs = 10'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

RequestLoad At(double rho, double cv, double slowdown = 1) {
  return {.requests_per_s = rho * 1e6 / kServiceUs, .service_us = kServiceUs, .slowdown = slowdown, .service_cv = cv};
}

Latency Predict(const RequestLoad& load) { return PredictLatency(load).value(); }

// Of mean 1: `shape` exponentials, or a constant for shape 0.
double Service(int shape, uint64_t& draw) {
  if (shape == 0) return 1;
  double sum = 0;
  for (int i = 0; i < shape; ++i) sum -= std::log(Draw(draw++));
  return sum / shape;
}

struct Simulated {
  double mean_us = 0, p99_us = 0;
  double mean_error = 0, p99_error = 0;  // standard errors, relative, from runs of equal length
};

// Lindley's recursion: the next wait = max(0, wait + service - time to the next arrival).
Simulated Simulate(double rho, int shape) {
  constexpr int kRuns = 20, kWarmUp = 5'000;
  const int requests = rho > 0.75 ? 400'000 : 60'000;  // a busy queue forgets slowly
  std::vector<double> means, p99s;
  uint64_t draw = static_cast<uint64_t>(shape) << 40 | static_cast<uint64_t>(rho * 1000) << 50;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> latencies;
    double wait = 0, sum = 0;
    for (int i = 0; i < kWarmUp + requests; ++i) {
      const double service = Service(shape, draw);
      if (i >= kWarmUp) {
        latencies.push_back((wait + service) * kServiceUs);
        sum += latencies.back();
      }
      wait = std::max(0.0, wait + service + std::log(Draw(draw++)) / rho);
    }
    const auto at = latencies.begin() + requests / 100 * 99;
    std::nth_element(latencies.begin(), at, latencies.end());
    means.push_back(sum / requests);
    p99s.push_back(*at);
  }
  const auto summarise = [](const std::vector<double>& values, double& mean, double& error) {
    double squares = 0;
    for (const double v : values) mean += v / kRuns;
    for (const double v : values) squares += (v - mean) * (v - mean);
    error = std::sqrt(squares / (kRuns - 1) / kRuns) / mean;
  };
  Simulated result;
  summarise(means, result.mean_us, result.mean_error);
  summarise(p99s, result.p99_us, result.p99_error);
  return result;
}

TEST(Latency, AgreesWithASimulatedQueue) {
  constexpr double kFormulaError = 0.02;       // of p99, what docs/interference.md promises
  constexpr double kMostSamplingError = 0.02;  // standard error at 90 % load; far less below
  struct Case {
    double cv;
    int shape;
  };
  for (const Case c : {Case{0, 0}, Case{0.5, 4}, Case{1, 1}}) {
    for (const double rho : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
      const Simulated truth = Simulate(rho, c.shape);
      const Latency found = Predict(At(rho, c.cv));
      SCOPED_TRACE(testing::Message() << "rho " << rho << ", cv " << c.cv << ": p99 " << found.p99_us << ", simulated "
                                      << truth.p99_us << " +- " << 100 * truth.p99_error << " %");
      EXPECT_DOUBLE_EQ(found.utilisation, rho);
      EXPECT_LT(truth.p99_error, kMostSamplingError);
      EXPECT_NEAR(found.mean_us / truth.mean_us, 1, 4 * truth.mean_error);
      EXPECT_NEAR(found.p99_us / truth.p99_us, 1, kFormulaError + 3 * truth.p99_error);
    }
  }
}

TEST(Latency, IsExactForExponentialService) {
  for (const double rho : {0.05, 0.3, 0.7, 0.95}) {
    const Latency found = Predict(At(rho, 1));
    EXPECT_NEAR(found.mean_us, kServiceUs / (1 - rho), 1e-6 * found.mean_us);
    EXPECT_NEAR(found.p99_us, kServiceUs * std::log(100) / (1 - rho), 2e-3 * found.p99_us);
  }
}

TEST(Latency, WithoutQueueIsTheServiceTime) {
  EXPECT_EQ(Predict(At(0, 0, 2)), (Latency{0, 2 * kServiceUs, 2 * kServiceUs}));
  EXPECT_EQ(Predict(At(0.01, 0)).p99_us, kServiceUs);  // one request in a hundred waits
}

TEST(Latency, GrowsWithRateAndSlowdown) {
  for (const double cv : {0.0, 0.2, 0.5, 1.0}) {
    Latency before;
    for (int i = 0; i < 999; ++i) {
      const Latency by_rate = Predict(At(i / 1000.0, cv));
      EXPECT_GE(by_rate.mean_us, before.mean_us) << i;
      EXPECT_GE(by_rate.p99_us, before.p99_us * (1 - 1e-9)) << "rho " << i / 1000.0 << ", cv " << cv;
      if (i > 10) {  // at less load one in a hundred waits and lifts only the mean
        EXPECT_GT(by_rate.p99_us, by_rate.mean_us) << i;
      }
      before = by_rate;
    }
    before = {};
    for (int i = 0; i < 900; ++i) {
      const Latency by_slowdown = Predict(At(0.1, cv, 1 + i / 100.0));
      EXPECT_GT(by_slowdown.p99_us, before.p99_us) << i;
      before = by_slowdown;
    }
  }
}

TEST(Latency, IsInfiniteWhereTheQueueGrowsWithoutEnd) {
  for (const double slowdown : {2.0, 2.5, 1e9}) {
    const Latency found = Predict(At(0.5, 0, slowdown));
    EXPECT_DOUBLE_EQ(found.utilisation, 0.5 * slowdown);
    EXPECT_EQ(found.mean_us, kInfinity);
    EXPECT_EQ(found.p99_us, kInfinity);
  }
  EXPECT_LT(Predict(At(0.5, 0, 1.9999)).p99_us, kInfinity);
}

TEST(Latency, LargestSlowdownIsTheInverse) {
  for (const double cv : {0.0, 0.5, 1.0}) {
    for (const double slowdown : {1.0, 1.3, 2.0, 3.1}) {
      const double bound = Predict(At(0.3, cv, slowdown)).p99_us;
      const double largest = LargestSlowdown(At(0.3, cv, 77), bound).value();  // the slowdown given is not read
      EXPECT_NEAR(largest, slowdown, 1e-9) << cv;
      EXPECT_LE(Predict(At(0.3, cv, largest)).p99_us, bound);
      EXPECT_GT(Predict(At(0.3, cv, largest * 1.001)).p99_us, bound);
    }
  }
}

TEST(Latency, LargestSlowdownKnowsItsEnds) {
  EXPECT_EQ(LargestSlowdown(At(0.3, 0), 0.9 * kServiceUs).value(), 0);
  EXPECT_EQ(LargestSlowdown(At(1.5, 0), 100 * kServiceUs).value(), 0);
  EXPECT_DOUBLE_EQ(LargestSlowdown(At(0, 0), 7 * kServiceUs).value(), 7);  // no request ever waits
  EXPECT_DOUBLE_EQ(LargestSlowdown(At(0, 0), 1e15).value(), 1e9);
}

TEST(Latency, NamesWhatIsWrong) {
  const auto wrong = [](RequestLoad load, const char* what) {
    const auto found = PredictLatency(load);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(what));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, nan, kInfinity}) {
    wrong({.requests_per_s = bad, .service_us = 1}, "requests_per_s");
    wrong({.requests_per_s = 1, .service_us = bad}, "service_us");
    wrong({.requests_per_s = 1, .service_us = 1, .slowdown = bad}, "slowdown");
    wrong({.requests_per_s = 1, .service_us = 1, .service_cv = bad}, "service_cv");
    EXPECT_FALSE(LargestSlowdown(At(0.5, 0), bad).ok());
  }
  wrong({.requests_per_s = 1, .service_us = 0}, "service_us");
  wrong({.requests_per_s = 1, .service_us = 1, .slowdown = 0.99}, "slowdown");
  wrong({.requests_per_s = 1, .service_us = 1, .service_cv = 1.01}, "service_cv: expected 0 to 1, found 1.01");
  EXPECT_FALSE(LargestSlowdown(At(0.5, 2), kServiceUs).ok());
}

}  // namespace
}  // namespace horus
