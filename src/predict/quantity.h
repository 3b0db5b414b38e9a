// SPDX-License-Identifier: Apache-2.0
// Quantity: what is predicted of a job on a GPU type, and how it is measured, bounded and trained.
#pragma once

#include <optional>

#include "predict/demand.h"
#include "trees/bundle.h"

namespace horus {

enum class Quantity : uint8_t { kGpuUtil, kMemBwUtil, kMemory, kStepTime, kGpuUtilMax, kPower };
inline constexpr size_t kQuantityCount = 6;

struct QuantityInfo {
  std::string_view name;  // of bundle targets and of dataset columns
  std::string_view unit;
  Link link = Link::kExp;         // errors are ratios; percentages near zero are kept apart from it by log1p
  double most = 0;                // largest value that is not refused
  double default_factor = 0;      // from the roofline's estimate to its uncalibrated bound; an assumption
  bool grows_with_batch = false;  // its forest never falls as the batch grows
};

inline constexpr std::array<QuantityInfo, kQuantityCount> kQuantities = {{
    {"gpu_util_pct", "per cent", Link::kExpm1, 100, 2.0, false},
    {"mem_bw_util_pct", "per cent", Link::kExpm1, 100, 2.0, false},
    {"mem_mib", "MiB", Link::kExp, kMostMemMib, 1.5, true},
    {"step_time_us", "us", Link::kExp, kMostStepUs, 2.5, true},
    {"gpu_util_max_pct", "per cent", Link::kExpm1, 100, 2.0, false},
    {"power_w", "W", Link::kExp, kMostPowerW, 1.5, false},
}};

[[nodiscard]] constexpr const QuantityInfo& InfoOf(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)];
}
[[nodiscard]] constexpr std::optional<Quantity> FindQuantity(std::string_view name) {
  for (size_t i = 0; i < kQuantityCount; ++i) {
    if (kQuantities[i].name == name) return static_cast<Quantity>(i);
  }
  return std::nullopt;
}

// The inverse of ApplyLink, for values of zero or more.
[[nodiscard]] double MarginOf(Link link, double value);

}  // namespace horus
