// SPDX-License-Identifier: Apache-2.0
// Floats as integers of the same order, so that the walk compares integers.
//
// Enters:  a float32 that is not NaN.
// Leaves:  a key: OrderKey(a) < OrderKey(b) exactly when a < b; strictly between the two missing keys.
// Units:   none; -0 and 0 have one key.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace horus {

inline constexpr int32_t kMissingLeftKey = std::numeric_limits<int32_t>::min();   // below the key of -infinity
inline constexpr int32_t kMissingRightKey = std::numeric_limits<int32_t>::max();  // above that of +infinity

[[nodiscard]] constexpr int32_t OrderKey(float value) {
  constexpr int32_t kMinusZero = std::numeric_limits<int32_t>::min();
  const auto bits = std::bit_cast<int32_t>(value);
  if (bits == kMinusZero) return 0;
  return bits < 0 ? bits ^ std::numeric_limits<int32_t>::max() : bits;
}

}  // namespace horus
