// SPDX-License-Identifier: Apache-2.0
// Cross-conformal calibration over groups: how far above a prediction the truth of a new group's row may lie.
//
// Enters:  scores (errors above the prediction) of rows that their model had not seen, and the rows' groups.
// Leaves:  the margin that covers a row of a new group, what it promises and what it is seen to cover.
// Cost:    n log n in rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace horus {

struct Calibration {
  double margin = 0;    // >= 0
  double promised = 0;  // 0-1
  double observed = 0;  // share of the rows at or below the margin that the other groups give
};

// Hierarchical conformal prediction (Lee, Barber and Willett, 2023, arXiv:2306.06342): every group weighs 1 / (n + 1),
// spread evenly over its rows, and the group to come the same at infinity; the margin is the promised quantile of that
// distribution. A row of a group that is exchangeable with the n others lies at or below it with the promised
// probability, min(promise, n / (n + 1)): where n groups cannot promise more, the margin is the largest score.
// `group_of` counts from 0 to groups - 1 without gaps.
[[nodiscard]] Calibration Calibrate(std::span<const double> scores, std::span<const uint32_t> group_of, size_t groups,
                                    double promise);

}  // namespace horus
