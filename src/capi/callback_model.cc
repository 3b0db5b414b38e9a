// SPDX-License-Identifier: Apache-2.0
// Asks the caller's model and checks what it answers.
#include "capi/callback_model.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "capi/demand_convert.h"
#include "capi/error.h"
#include "capi/sharing.h"

namespace horus::capi {
namespace {

absl::Status CheckAnswer(size_t tenant, float estimate, float upper) {
  if (estimate >= 1 && upper >= estimate && upper <= kMaxSlowdown) return absl::OkStatus();  // NaN fails too
  return CError(HORUS_ERR_CALLBACK,
                Formatted("interference callback: tenant %d: expected 1 <= slowdown <= slowdown_upper <= %g, "
                          "found slowdown %g, slowdown_upper %g",
                          tenant, kMaxSlowdown, estimate, upper));
}

}  // namespace

CallbackModel::CallbackModel(std::shared_ptr<const Catalogue> catalogue, horus_interference_callback callback,
                             void* user, uint64_t epoch, double upper_probability)
    : catalogue_(std::move(catalogue)),
      callback_(callback),
      user_(user),
      epoch_(epoch),
      upper_probability_(upper_probability) {}

absl::Status CallbackModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                    std::span<Slowdown> out) const {
  if (!catalogue_->Contains(device.type)) {
    return MakeError(absl::StatusCode::kNotFound, "GPU type: expected one of the %d that the model knows, found %d",
                     catalogue_->size(), device.type.value());
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

}  // namespace horus::capi
