// SPDX-License-Identifier: Apache-2.0
// Adds excesses as whole numbers.
#include "interference/combine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace horus {
namespace {

constexpr double kUnitsPerSlowdown = 1e6;  // far finer than any measurement, and exact in sums
constexpr auto kMostUnits = static_cast<int64_t>((static_cast<double>(kMaxSlowdown) - 1) * kUnitsPerSlowdown);

int64_t ExcessOf(float slowdown) {
  if (slowdown <= 1) return 0;
  if (!(slowdown < kMaxSlowdown)) return kMostUnits;  // NaN too
  return std::llround((static_cast<double>(slowdown) - 1) * kUnitsPerSlowdown);
}

float SlowdownOf(int64_t excess) { return static_cast<float>(1 + static_cast<double>(excess) / kUnitsPerSlowdown); }

}  // namespace

void CombinePairs(std::span<const float> pairs, std::span<const float> pair_uppers, std::span<Slowdown> out) {
  const size_t count = out.size();
  assert(pairs.size() == count * count && pair_uppers.size() == count * count);
  for (size_t i = 0; i < count; ++i) {
    int64_t estimate = 0;
    int64_t upper = 0;
    for (size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const int64_t one = ExcessOf(pairs[i * count + j]);
      estimate = std::min(estimate + one, kMostUnits);
      upper = std::min(upper + std::max(one, ExcessOf(pair_uppers[i * count + j])), kMostUnits);
    }
    out[i] = {SlowdownOf(estimate), SlowdownOf(upper)};
  }
}

}  // namespace horus
