// SPDX-License-Identifier: Apache-2.0
// The columns that a comparison reports of each run, and what they come to over seeds.
//
// Enters:  metrics of runs.              Leaves: names with units, values; means and paired differences.
// Units:   in the names: _s seconds, _pct per cent; counts and factors without.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_LAB_GRID_METRICS_H_
#define HORUS_LAB_GRID_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lab/metrics.h"

namespace horus {

enum class Better : uint8_t { kLower, kHigher, kNeither };

struct GridMetric {
  std::string_view name;
  Better better = Better::kNeither;
  double (*get)(const SimMetrics& metrics) = nullptr;
};

// In a fixed order; names are only added.
[[nodiscard]] std::span<const GridMetric> GridMetrics();
[[nodiscard]] std::optional<size_t> FindGridMetric(std::string_view name);

// A mean over seeds, that of another policy on the same seeds, and the mean of the differences between them with its 95
// % interval (Student's t); the interval is NaN of fewer than two seeds.
struct PairedMean {
  double mean = 0;
  double baseline = 0;
  double difference = 0;
  double half_width = 0;

  // `amount` as a share of the baseline's size; none where that is 0, but for rounding, or nothing.
  [[nodiscard]] std::optional<double> OfBaseline(double amount) const;
};

// Both of one size, at least 1, in the order of the seeds.
[[nodiscard]] PairedMean ComparePaired(std::span<const double> values, std::span<const double> baseline);

// The quantile of Student's t distribution that 97.5 % do not exceed.
[[nodiscard]] double StudentT975(size_t degrees_of_freedom);

}  // namespace horus

#endif  // HORUS_LAB_GRID_METRICS_H_
