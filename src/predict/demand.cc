// SPDX-License-Identifier: Apache-2.0
// Validation of demands, wherever they come from.
#include "predict/demand.h"

#include <algorithm>

#include "base/status.h"

namespace horus {
namespace {

constexpr int64_t kMaxMemMib = kUnboundedMemMib, kMaxStepUs = static_cast<int64_t>(kMostStepUs);
constexpr float kMaxUtilPct = 100.0f, kMaxPowerW = static_cast<float>(kMostPowerW);
constexpr float kMaxDistance = 1e6f;

absl::Status CheckReal(const char* field, const char* unit, const Bounded& value, float limit) {
  const bool ordered = value.estimate >= 0 && value.upper >= value.estimate && value.upper <= limit;  // false for NaN
  if (ordered) return absl::OkStatus();
  return InvalidArgument("demand.%s: expected 0 <= estimate <= upper <= %g %s, found estimate %g, upper %g", field,
                         limit, unit, value.estimate, value.upper);
}

absl::Status CheckInteger(const char* field, const char* unit, const BoundedInt& value, int64_t limit) {
  if (value.estimate >= 0 && value.upper >= value.estimate && value.upper <= limit) return absl::OkStatus();
  return InvalidArgument("demand.%s: expected 0 <= estimate <= upper <= %d %s, found estimate %d, upper %d", field,
                         limit, unit, value.estimate, value.upper);
}

std::string_view TraitName(Trait trait) {
  constexpr std::array<std::string_view, kTraitCount> kNames = {
      "log_step_flops",        "log_step_bytes", "log_kernels",      "compute_bound_share",
      "bandwidth_bound_share", "log_device_us",  "log_device_share", "mean_parallelism"};
  return kNames[static_cast<size_t>(trait)];
}

}  // namespace

Bounded BoundedOf(double estimate, double upper, double most) {
  const double value = std::clamp(estimate, 0.0, most);
  const double bound = std::isnan(upper) ? most : std::clamp(upper, value, most);
  return {.estimate = static_cast<float>(value), .upper = static_cast<float>(bound)};
}

BoundedInt BoundedIntOf(double estimate, double upper, double most) {
  const double value = std::clamp(std::ceil(estimate), 0.0, most);
  const double bound = std::isnan(upper) ? most : std::clamp(std::ceil(upper), value, most);
  return {.estimate = static_cast<int64_t>(value), .upper = static_cast<int64_t>(bound)};
}

absl::Status ValidateDemand(const Demand& demand) {
  if (!(demand.sm_cap > 0 && demand.sm_cap <= 1))
    return InvalidArgument("demand.sm_cap: expected above 0 and at most 1, found %g", demand.sm_cap);
  HORUS_RETURN_IF_ERROR(CheckReal("gpu_util_pct", "per cent", demand.gpu_util_pct, kMaxUtilPct));
  HORUS_RETURN_IF_ERROR(CheckReal("mem_bw_util_pct", "per cent", demand.mem_bw_util_pct, kMaxUtilPct));
  HORUS_RETURN_IF_ERROR(CheckInteger("mem_mib", "MiB", demand.mem_mib, kMaxMemMib));
  HORUS_RETURN_IF_ERROR(CheckInteger("step_time_us", "us", demand.step_time_us, kMaxStepUs));
  HORUS_RETURN_IF_ERROR(CheckReal("power_w", "W", demand.power_w, kMaxPowerW));
  if (!(demand.distance >= 0 && demand.distance <= kMaxDistance))
    return InvalidArgument("demand.distance: expected 0 to %g, found %g", kMaxDistance, demand.distance);
  if (!(demand.operator_us >= 0 && demand.operator_us <= static_cast<float>(kMaxStepUs)))
    return InvalidArgument("demand.operator_us: expected 0 to %d us, found %g", kMaxStepUs, demand.operator_us);
  if (!(demand.host_us >= 0 && demand.host_us <= static_cast<double>(kMaxStepUs)))
    return InvalidArgument("demand.host_us: expected 0 to %d us, found %g", kMaxStepUs, demand.host_us);
  if (!(demand.duty > 0 && demand.duty <= 1))
    return InvalidArgument("demand.duty: expected above 0 and at most 1, found %g", demand.duty);
  if (!(demand.slowdown_bound >= 0 && demand.slowdown_bound <= kMaxDemandSlowdown)) {
    return InvalidArgument("demand.slowdown_bound: expected 0 to %g, found %g", kMaxDemandSlowdown,
                           demand.slowdown_bound);
  }
  if (demand.gradient_mib < 0 || demand.gradient_mib > kMaxMemMib)
    return InvalidArgument("demand.gradient_mib: expected 0 to %d MiB, found %d", kMaxMemMib, demand.gradient_mib);
  for (size_t i = 0; i < kTraitCount; ++i) {
    if (!std::isfinite(demand.traits[i])) {
      return InvalidArgument("demand.traits[%d] (%s): expected a finite number, found %g", static_cast<int>(i),
                             TraitName(static_cast<Trait>(i)), demand.traits[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
