// SPDX-License-Identifier: Apache-2.0
// z: the scale on which slowdowns are learned.
//
// Enters:  a slowdown.                   Leaves: z = ln(slowdown - kSlowdownShift), and back.
// Units:   slowdown = step time shared / step time alone.
// Cost:    a logarithm.                  Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_EXCESS_H_
#define HORUS_INTERFERENCE_EXCESS_H_

#include <algorithm>
#include <cmath>

#include "interference/model.h"

namespace horus {

// The excess above 1 is nearly a product of what the victim suffers and what the other inflicts, hence the logarithm.
// It is counted from a little below 1: measured slowdowns just below 1 are noise, and must not count as infinitely
// good.
inline constexpr double kSlowdownShift = 0.9;
inline constexpr double kLeastExcess = 0.02;  // slowdown - shift counts as at least so much

[[nodiscard]] inline double ExcessOf(double slowdown) {
  return std::log(std::max(slowdown - kSlowdownShift, kLeastExcess));
}

// At least 1, at most kMaxSlowdown, which is also the answer for no number.
[[nodiscard]] inline double SlowdownOf(double z) {
  if (std::isnan(z)) return static_cast<double>(kMaxSlowdown);
  return std::clamp(kSlowdownShift + std::exp(z), 1.0, static_cast<double>(kMaxSlowdown));
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_EXCESS_H_
