// SPDX-License-Identifier: Apache-2.0
// What theory says of time slicing: the law that all learned models refine.
//
// Enters:  victim and other.             Leaves: z up to a constant.
// Units:   z of excess.h.
// Cost:    a few additions.              Thread class: pure function.
#ifndef HORUS_INTERFERENCE_THEORY_H_
#define HORUS_INTERFERENCE_THEORY_H_

#include <algorithm>
#include <cmath>

#include "interference/job_point.h"

namespace horus {

// Of its waiting that a victim's host does not hide: half-way between none and all.
inline constexpr double kVictimShare = 0.5;

// How long a victim waits grows with the share of the time in which the other is busy, and with half the logarithm of
// its own, because waiting partly hides behind the host's work. `unknown` stands for an unknown logarithm of a busy
// share: 0 is busy all the time.
[[nodiscard]] inline double TheoryOf(const JobPoint& victim, const JobPoint& other, double unknown = 0) {
  const auto log_util = [unknown](const JobPoint& point) {
    const auto value = static_cast<double>(point[static_cast<size_t>(PointColumn::kLogUtil)]);
    return std::clamp(std::isnan(value) ? unknown : value, std::log(kLeastUtil), 0.0);
  };
  return kVictimShare * log_util(victim) + log_util(other);
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_THEORY_H_
