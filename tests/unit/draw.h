// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and are a function of their argument.
#ifndef HORUS_TESTS_UNIT_DRAW_H_
#define HORUS_TESTS_UNIT_DRAW_H_

#include <cmath>
#include <cstdint>

#include "base/hash.h"

namespace horus {

// Uniform in (0, 1).
inline double Draw(uint64_t i) { return (static_cast<double>(Mix64(i) >> 11) + 0.5) / 9007199254740992.0; }

// Standard normal (Box and Muller).
inline double DrawNormal(uint64_t i) {
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(-2 * std::log(Draw(2 * i))) * std::cos(kTwoPi * Draw(2 * i + 1));
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_DRAW_H_
