// SPDX-License-Identifier: Apache-2.0
// Weighted quantiles of sorted scores, with and without one group.
#include "trees/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

namespace horus {
namespace {

constexpr double kRounding = 1e-9;  // 0.9 x 10 is a little more than 9

class SortedScores {
 public:
  SortedScores(std::span<const double> scores, std::span<const uint32_t> group_of, size_t groups)
      : scores_(scores), group_of_(group_of), order_(scores.size()), below_(scores.size()), places_(groups) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, [&](size_t a, size_t b) { return scores[a] < scores[b]; });
    for (size_t k = 0; k < order_.size(); ++k) places_[group_of[order_[k]]].push_back(k);
    double sum = 0;
    for (size_t k = 0; k < order_.size(); ++k) {
      sum += 1 / static_cast<double>(places_[group_of[order_[k]]].size());
      below_[k] = sum;
    }
  }

  // The margin that all groups give, or all but `without`.
  [[nodiscard]] double Margin(double promise, std::optional<size_t> without) const {
    const auto groups = static_cast<double>(places_.size() - (without.has_value() ? 1 : 0));
    if (groups == 0) return HUGE_VAL;
    const double wanted = std::min(promise * (groups + 1), groups) - kRounding;  // in groups
    const auto mass = [&](size_t k) {
      if (!without.has_value()) return below_[k];
      const std::vector<size_t>& own = places_[*without];
      const auto passed = std::upper_bound(own.begin(), own.end(), k) - own.begin();
      return below_[k] - static_cast<double>(passed) / static_cast<double>(own.size());
    };
    size_t low = 0, high = order_.size() - 1;  // the least k whose mass is enough
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (mass(middle) >= wanted) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return std::max(0.0, scores_[order_[low]]);
  }

 private:
  std::span<const double> scores_;
  std::span<const uint32_t> group_of_;
  std::vector<size_t> order_;                // of rows, by score
  std::vector<double> below_;                // groups' mass at or below each place in the order
  std::vector<std::vector<size_t>> places_;  // of each group's rows in the order, ascending
};

}  // namespace

Calibration Calibrate(std::span<const double> scores, std::span<const uint32_t> group_of, size_t groups,
                      double promise) {
  const SortedScores sorted(scores, group_of, groups);
  const auto n = static_cast<double>(groups);
  Calibration calibration{.margin = sorted.Margin(promise, std::nullopt), .promised = std::min(promise, n / (n + 1))};
  std::vector<double> without(groups);
  for (size_t g = 0; g < groups; ++g) without[g] = sorted.Margin(promise, g);
  size_t covered = 0;
  for (size_t i = 0; i < scores.size(); ++i) covered += scores[i] <= without[group_of[i]] ? 1 : 0;
  calibration.observed = static_cast<double>(covered) / static_cast<double>(scores.size());
  return calibration;
}

}  // namespace horus
