// SPDX-License-Identifier: Apache-2.0
// Cross-conformal calibration over groups: how far above a prediction the truth of a new group may lie.
//
// Enters:  scores (errors above the prediction) of rows that their model had not seen, and the rows' groups.
// Leaves:  the margin that covers a new group, what it promises and what it is seen to cover.
// Units:   of the scores.
// Cost:    n log n for each group.       Thread class: pure functions.
#ifndef HORUS_PREDICT_CALIBRATE_H_
#define HORUS_PREDICT_CALIBRATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace horus {

// The order statistic that bounds a new group's score with coverage min(promise, n / (n + 1)): the
// ceil(promise (n + 1))-th least of n scores, or the largest; infinite for none.
[[nodiscard]] double ConformalQuantile(std::vector<double> scores, double promise);

struct Calibration {
  double margin = 0;    // >= 0
  double promised = 0;  // 0-1
  double observed = 0;  // share of the rows at or below the margin that the other groups give
};

// A group's score is the promised quantile of its rows' scores. `group_of` counts from 0 without gaps.
[[nodiscard]] Calibration Calibrate(std::span<const double> scores, std::span<const uint32_t> group_of, size_t groups,
                                    double promise);

}  // namespace horus

#endif  // HORUS_PREDICT_CALIBRATE_H_
