// SPDX-License-Identifier: Apache-2.0
// Floats as unsigned integers of the same order, so that the walk compares integers.
//
// Enters:  a float32 that is not NaN.
// Leaves:  a key: OrderKey(a) < OrderKey(b) exactly when a < b; strictly between the two missing keys.
// Units:   none; -0 and 0 have one key.
// Cost:    four instructions.            Thread class: pure functions.
#ifndef HORUS_TREES_ORDER_KEY_H_
#define HORUS_TREES_ORDER_KEY_H_

#include <bit>
#include <cstdint>
#include <limits>

namespace horus {

inline constexpr uint32_t kMissingLeftKey = 0;                                      // below the key of -infinity
inline constexpr uint32_t kMissingRightKey = std::numeric_limits<uint32_t>::max();  // above that of +infinity

[[nodiscard]] constexpr uint32_t OrderKey(float value) {
  constexpr uint32_t kSign = 0x80000000u;
  const auto bits = std::bit_cast<uint32_t>(value);
  if (bits == kSign) return kSign;  // -0
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

}  // namespace horus

#endif  // HORUS_TREES_ORDER_KEY_H_
