// SPDX-License-Identifier: Apache-2.0
// Units and checked integer arithmetic for quantities that come from outside.
//
// Enters:  integers with the unit in the name (_mib, _milli, _us, _bytes).
// Leaves:  the same; nullopt where 64 bits would overflow.
// Units:   MiB = 2^20 bytes; milli = 1/1000 of a GPU or of a CPU core; us = microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace horus {

inline constexpr int64_t kBytesPerMib = int64_t{1} << 20;
inline constexpr int32_t kMilliPerGpu = 1000;
inline constexpr int32_t kMilliPerCore = 1000;
inline constexpr double kUsPerS = 1e6;

[[nodiscard]] constexpr std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] constexpr std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Product of all factors; 1 for none; nullopt on overflow.
[[nodiscard]] constexpr std::optional<int64_t> CheckedProduct(std::span<const int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

inline constexpr double kPct = 100;  // of a share of 1

// Bytes to whole MiB, rounded up; `bytes` >= 0.
[[nodiscard]] constexpr int64_t MibCeil(int64_t bytes) {
  return bytes / kBytesPerMib + (bytes % kBytesPerMib != 0 ? 1 : 0);
}

}  // namespace horus
