// SPDX-License-Identifier: Apache-2.0
// Order statistics of groups of scores.
#include "predict/calibrate.h"

#include <algorithm>
#include <cmath>

namespace horus {
namespace {

// Linear between order statistics.
double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double Margin(const std::vector<double>& group_scores, double promise) {
  return std::max(0.0, ConformalQuantile(group_scores, promise));
}

}  // namespace

double ConformalQuantile(std::vector<double> scores, double promise) {
  if (scores.empty()) return HUGE_VAL;
  constexpr double kRounding = 1e-9;  // 0.9 x 10 is a little more than 9
  std::sort(scores.begin(), scores.end());
  const auto rank = static_cast<size_t>(std::ceil(promise * static_cast<double>(scores.size() + 1) - kRounding));
  return scores[std::clamp<size_t>(rank, 1, scores.size()) - 1];
}

Calibration Calibrate(std::span<const double> scores, std::span<const uint32_t> group_of, size_t groups,
                      double promise) {
  std::vector<std::vector<double>> of_group(groups);
  for (size_t i = 0; i < scores.size(); ++i) of_group[group_of[i]].push_back(scores[i]);
  std::vector<double> group_scores;
  for (const std::vector<double>& rows : of_group) group_scores.push_back(Quantile(rows, promise));

  const auto n = static_cast<double>(groups);
  Calibration calibration{.margin = Margin(group_scores, promise), .promised = std::min(promise, n / (n + 1))};
  size_t covered = 0;
  for (size_t g = 0; g < groups; ++g) {
    std::vector<double> others = group_scores;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(g));
    const double margin = Margin(others, promise);
    for (const double score : of_group[g]) covered += score <= margin ? 1 : 0;
  }
  calibration.observed = static_cast<double>(covered) / static_cast<double>(scores.size());
  return calibration;
}

}  // namespace horus
