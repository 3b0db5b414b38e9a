// SPDX-License-Identifier: Apache-2.0
// CallbackModel: an interference model that the caller of the C ABI wrote.
//
// Enters:  a C callback, its user pointer and the catalogue that names the GPU types.
// Leaves:  checked slowdowns; CALLBACK for a failure or a value out of range.
// Units:   slowdown = shared / alone.
// Cost:    that of the callback and three small allocations.   Thread class: as the callback allows.
#ifndef HORUS_CAPI_CALLBACK_MODEL_H_
#define HORUS_CAPI_CALLBACK_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "device/catalogue.h"
#include "horus/interference.h"
#include "interference/model.h"

namespace horus::capi {

class CallbackModel final : public InterferenceModel {
 public:
  CallbackModel(std::shared_ptr<const Catalogue> catalogue, horus_interference_callback callback, void* user,
                uint64_t epoch, double upper_probability);

  [[nodiscard]] std::string_view name() const override { return "callback"; }
  [[nodiscard]] uint64_t epoch() const override { return epoch_; }
  [[nodiscard]] double upper_probability() const override { return upper_probability_; }
  [[nodiscard]] bool has_quantiles() const override { return false; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override;

 private:
  std::shared_ptr<const Catalogue> catalogue_;
  horus_interference_callback callback_;
  void* user_;
  uint64_t epoch_;
  double upper_probability_;
};

}  // namespace horus::capi

#endif  // HORUS_CAPI_CALLBACK_MODEL_H_
