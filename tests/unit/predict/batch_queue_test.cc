// SPDX-License-Identifier: Apache-2.0
// Dynamic batching against its simulation, and what must hold whatever the times are.
#include "predict/batch_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace horus {
namespace {

constexpr double kUsPerSecond = 1e6;

// A step of so many requests takes fixed + each x requests, us.
struct Net {
  double fixed = 0, each = 0;
  int most = 32;
};

BatchQueue QueueOf(const Net& net) {
  std::vector<std::pair<double, double>> steps;
  for (int batch = 1; batch <= net.most; batch *= 2) steps.emplace_back(batch, net.fixed + net.each * batch);
  return BatchQueue(std::move(steps));
}

double MostOf(const Net& net) { return net.most / (net.fixed + net.each * net.most) * kUsPerSecond; }

struct Seen {
  double mean_us = 0, nine_in_ten_us = 0, busy = 0;
};

// Poisson arrivals; a server that is free takes all who wait, at most `most`.
Seen Simulate(const Net& net, double requests_per_s) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(requests_per_s / kUsPerSecond);
  std::vector<double> arrivals(100'000);
  double at = 0;
  for (double& arrival : arrivals) arrival = at += gap(random);
  std::vector<double> took;
  double now = 0, busy = 0;
  for (size_t first = 0; first < arrivals.size();) {
    now = std::max(now, arrivals[first]);
    size_t last = first;
    while (last < arrivals.size() && last - first < static_cast<size_t>(net.most) && arrivals[last] <= now) ++last;
    const double step_us = net.fixed + net.each * static_cast<double>(last - first);
    now += step_us;
    busy += step_us;
    for (; first < last; ++first) took.push_back(now - arrivals[first]);
  }
  std::ranges::sort(took);
  double sum = 0;
  for (const double one : took) sum += one;
  return {sum / static_cast<double>(took.size()), took[took.size() * 9 / 10], busy / now};
}

class Nets : public ::testing::TestWithParam<Net> {};

TEST_P(Nets, TimesAreThoseOfASimulation) {
  for (const double load : {0.02, 0.1, 0.3, 0.5, 0.7, 0.9}) {
    const double rate = load * MostOf(GetParam());
    const Seen seen = Simulate(GetParam(), rate);
    const auto point = QueueOf(GetParam()).At(rate, 1, 0.9);
    ASSERT_TRUE(point.has_value());
    EXPECT_NEAR(point->mean_us / seen.mean_us, 1, 0.17) << load;
    EXPECT_NEAR(point->upper_us / seen.nine_in_ten_us, 1, 0.17) << load;
    EXPECT_NEAR(point->busy, seen.busy, 0.25) << load;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Nets,
                         ::testing::Values(Net{5000, 1000, 4}, Net{5000, 1000, 32}, Net{2000, 100, 8},
                                           Net{10'000, 200, 32}, Net{1000, 1000, 8}, Net{1000, 300, 32}));

TEST(BatchQueueTest, MoreRequestsAndMoreSlowdownNeverMakeAnybodyFaster) {
  const Net net{5000, 400, 16};
  const BatchQueue queue = QueueOf(net);
  BatchQueue::Point before{.batch = 0, .rate = 0, .busy = 0, .mean_us = 0, .upper_us = 0};
  for (double load = 0.05; load < 0.95; load += 0.05) {
    const auto point = queue.At(load * MostOf(net), 1, 0.9);
    ASSERT_TRUE(point.has_value()) << load;
    EXPECT_GE(point->mean_us, before.mean_us);
    EXPECT_GE(point->upper_us, before.upper_us);
    EXPECT_GE(point->batch, before.batch);
    const auto slowed = queue.At(load * MostOf(net), 1.04, 0.9);
    if (slowed.has_value()) {
      EXPECT_GT(slowed->mean_us, point->mean_us);
    }
    before = *point;
  }
}

TEST(BatchQueueTest, ServesWhatItsLargestBatchesDoAndNoMore) {
  const Net net{5000, 400, 16};
  EXPECT_TRUE(QueueOf(net).At(0.97 * MostOf(net), 1, 0.9).has_value());
  EXPECT_FALSE(QueueOf(net).At(0.99 * MostOf(net), 1, 0.9).has_value());
  EXPECT_FALSE(QueueOf(net).At(0.97 * MostOf(net), 1.1, 0.9).has_value());
}

TEST(BatchQueueTest, UsersWhoAskAgainAreServedHalfAtATime) {
  const Net net{5000, 400, 16};
  const auto one = QueueOf(net).OfUsers(1, 1), many = QueueOf(net).OfUsers(64, 1);
  EXPECT_DOUBLE_EQ(one.mean_us, 5400);
  EXPECT_DOUBLE_EQ(many.rate, MostOf(net));
  EXPECT_DOUBLE_EQ(many.rate * many.mean_us / kUsPerSecond, 64) << "Little's law";
}

}  // namespace
}  // namespace horus
