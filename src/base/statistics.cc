// SPDX-License-Identifier: Apache-2.0
// Medians, ranks and the normal quantile.
#include "base/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <numeric>

namespace horus {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// From 0; equal values share the mean of their ranks.
std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&values](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

double Correlation(std::span<const double> a, std::span<const double> b) {
  const auto mean = [](std::span<const double> v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : kNone;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return kNone;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double RankCorrelation(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  return a.empty() ? kNone : Correlation(RanksOf(a), RanksOf(b));
}

double DeviationsAt(double probability) {
  // Newton's method on the distribution function; from 0 it approaches from below and does not overshoot.
  const double tail = std::min(probability, 1 - probability);
  double x = 0;
  for (int i = 0; i < 100; ++i) {
    const double left = 0.5 * std::erfc(x / std::numbers::sqrt2) - tail;  // still above x
    const double step = left * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x += step;
    if (std::abs(step) < 1e-12) break;
  }
  return probability < 0.5 ? -x : x;
}

}  // namespace horus
