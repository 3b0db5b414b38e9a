// SPDX-License-Identifier: Apache-2.0
// Interference models and placement policies that the caller of the C ABI wrote.
#include "capi/callbacks.h"

#include <cmath>
#include <limits>

#include "capi/convert.h"

namespace horus::capi {
namespace {

// ---- Asks the caller's model and checks what it answers.

absl::Status CheckAnswer(size_t tenant, float estimate, float upper) {
  if (estimate >= 1 && upper >= estimate && upper <= kMaxSlowdown) return absl::OkStatus();  // NaN fails too
  return CError(HORUS_ERR_CALLBACK,
                Formatted("interference callback: tenant %d: expected 1 <= slowdown <= slowdown_upper <= %g, "
                          "found slowdown %g, slowdown_upper %g",
                          tenant, kMaxSlowdown, estimate, upper));
}

// ---- Shows the caller's policy a candidate as columns and checks what it answers.

struct Columns {
  std::vector<horus_demand> demands;
  std::vector<const horus_demand*> pointers;
  std::vector<int32_t> kinds, priorities, gpu_milli;
  std::vector<float> bounds, before, before_upper, after, after_upper;
};

Columns ColumnsOf(const DeviceCandidate& candidate) {
  const size_t count = candidate.demands.size();
  Columns columns;
  columns.demands.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const TenantClass& tenant = *candidate.tenants[i];
    const Slowdown before = i < candidate.residents() ? candidate.before[i] : Slowdown();
    columns.demands.push_back(DemandToC(*candidate.demands[i]));
    columns.kinds.push_back(static_cast<int32_t>(tenant.kind));
    columns.priorities.push_back(tenant.priority);
    columns.gpu_milli.push_back(tenant.gpu_milli);
    columns.bounds.push_back(tenant.promise.bound);
    columns.before.push_back(before.estimate);
    columns.before_upper.push_back(before.upper);
    columns.after.push_back(candidate.after[i].estimate);
    columns.after_upper.push_back(candidate.after[i].upper);
  }
  for (const horus_demand& demand : columns.demands) columns.pointers.push_back(&demand);
  return columns;
}

}  // namespace

absl::Status CallbackModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                    std::span<Slowdown> out) const {
  if (!catalogue_->Contains(device.type)) {
    return NotFound("GPU type: expected one of the %d that the model knows, found %d", catalogue_->size(),
                    device.type.value());
  }
  constexpr float kUnset = std::numeric_limits<float>::quiet_NaN();
  const size_t count = tenants.size();
  std::vector<horus_demand> demands;
  std::vector<const horus_demand*> pointers;
  std::vector<float> slowdown(count, kUnset);
  std::vector<float> upper(count, kUnset);
  demands.reserve(count);
  for (const Demand* tenant : tenants) demands.push_back(DemandToC(*tenant));
  for (const horus_demand& demand : demands) pointers.push_back(&demand);

  const horus_device seen = {sizeof(horus_device), SharingToC(device.mode), catalogue_->at(device.type).name.c_str(),
                             static_cast<double>(device.compute_share)};
  const int32_t failed = callback_(user_, &seen, count, pointers.data(), slowdown.data(), upper.data());
  if (failed != 0) return CError(HORUS_ERR_CALLBACK, Formatted("interference callback: returned %d", failed));
  for (size_t i = 0; i < count; ++i) {
    if (std::isnan(upper[i])) upper[i] = slowdown[i];
    HORUS_RETURN_IF_ERROR(CheckAnswer(i, slowdown[i], upper[i]));
  }
  for (size_t i = 0; i < count; ++i) out[i] = {slowdown[i], upper[i]};
  return absl::OkStatus();
}

absl::Status CallbackPolicy::ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const {
  if (!catalogue_->Contains(candidate.device.type)) {
    return NotFound("GPU type: expected one of the %d that policy %s knows, found %d", catalogue_->size(), name_,
                    candidate.device.type.value());
  }
  const Columns columns = ColumnsOf(candidate);
  const horus_device device = {sizeof(horus_device), SharingToC(candidate.device.mode),
                               catalogue_->at(candidate.device.type).name.c_str(),
                               static_cast<double>(candidate.device.compute_share)};
  const horus_policy_candidate seen = {.struct_size = sizeof(horus_policy_candidate),
                                       .gpu_milli_used = candidate.milli_used,
                                       .device = &device,
                                       .mem_mib = candidate.mem_mib,
                                       .mem_used_mib = candidate.mem_used_mib,
                                       .mem_used_mib_upper = candidate.mem_used_upper_mib,
                                       .relative_speed = candidate.relative_speed,
                                       .count = columns.pointers.size(),
                                       .demands = columns.pointers.data(),
                                       .kinds = columns.kinds.data(),
                                       .priorities = columns.priorities.data(),
                                       .gpu_milli = columns.gpu_milli.data(),
                                       .slowdown_bounds = columns.bounds.data(),
                                       .slowdown_before = columns.before.data(),
                                       .slowdown_before_upper = columns.before_upper.data(),
                                       .slowdown_after = columns.after.data(),
                                       .slowdown_after_upper = columns.after_upper.data()};
  double cost = std::numeric_limits<double>::quiet_NaN();
  int32_t declined = 0;
  if (const int32_t failed = callback_(user_, &seen, &cost, &declined); failed != 0)
    return CError(HORUS_ERR_CALLBACK, Formatted("policy %s: callback returned %d", name_, failed));
  if (declined != 0 && declined != 1)
    return CError(HORUS_ERR_CALLBACK, Formatted("policy %s: declined: expected 0 or 1, found %d", name_, declined));
  if (declined == 0 && !std::isfinite(cost))
    return CError(HORUS_ERR_CALLBACK, Formatted("policy %s: cost: expected a finite number, found %g", name_, cost));
  score = {.cost = declined == 1 ? 0 : cost, .declined = declined == 1};
  return absl::OkStatus();
}

}  // namespace horus::capi
