// SPDX-License-Identifier: Apache-2.0
// What the learned models share: their scale of slowdown, standardised points, the law they start from, stored series.
//
// Enters:  rows of a PairSet, points of jobs, series of a BundleTarget.
// Leaves:  margins, standardised columns; series of the right size and magnitude, or an error.
// Units:   margin = ln(slowdown - kSlowdownShift); standardised columns in standard deviations of the training points.
// Cost:    nanoseconds a point.          Thread class: pure functions over values.
#ifndef HORUS_INTERFERENCE_PAIR_COLUMNS_H_
#define HORUS_INTERFERENCE_PAIR_COLUMNS_H_

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/job_point.h"
#include "interference/pair_set.h"
#include "trees/bundle.h"

namespace horus {

using Columns = std::array<double, kPointColumns>;

// Mean and standard deviation of each column over the points that took part in training.
struct PointScale {
  Columns mean = {}, spread = {};

  // What is unknown is the mean; beyond kFarthest standard deviations, where few jobs are, none says more than there.
  [[nodiscard]] Columns Standardise(const JobPoint& point) const;

  // TheoryOf, where what is unknown is the mean.
  [[nodiscard]] double Theory(const JobPoint& victim, const JobPoint& other) const;
};
inline constexpr double kFarthest = 2;

// Whether device `d` or job `j` has a row: what has none must not be learned from.
struct Presence {
  std::vector<bool> devices, jobs;
};

[[nodiscard]] Presence PresenceOf(const PairSet& set, std::span<const PairRow> rows);
[[nodiscard]] PointScale ScaleOf(const PairSet& set, std::span<const PairRow> rows);
// Of the rows' margins over Theory, of each device and of all; a device without rows has that of all.
struct MeanResidual {
  std::vector<double> devices;
  double all = 0;
};
[[nodiscard]] MeanResidual MeanResidualOf(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale);

// The margin over Theory of each row.
[[nodiscard]] std::vector<double> ResidualsOf(const PairSet& set, std::span<const PairRow> rows,
                                              const PointScale& scale);

void AddScale(const PointScale& scale, BundleTarget& target);
[[nodiscard]] absl::StatusOr<PointScale> ReadScale(const BundleTarget& target);

// A series of `count` numbers of magnitude up to `most`; else kDataLoss.
[[nodiscard]] absl::StatusOr<std::span<const double>> ReadSeries(const BundleTarget& target, std::string_view name,
                                                                 size_t count, double most);
// Name and link of a target that a learned model wrote, and how many features its trees read (0: it has no trees).
[[nodiscard]] absl::Status CheckPairTarget(const BundleTarget& target, std::string_view name, uint32_t features);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_PAIR_COLUMNS_H_
