// SPDX-License-Identifier: Apache-2.0
// Interference models and placement policies that the caller of the C ABI wrote.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/catalogue.h"
#include "horus/interference.h"
#include "horus/place.h"
#include "interference/model.h"
#include "place/search/policy.h"

namespace horus::capi {

// ---- CallbackModel: an interference model that the caller of the C ABI wrote.
// Cost: that of the callback and three small allocations.

class CallbackModel final : public InterferenceModel {
 public:
  CallbackModel(std::shared_ptr<const Catalogue> catalogue, horus_interference_callback callback, void* user,
                uint64_t epoch, double upper_probability)
      : catalogue_(std::move(catalogue)),
        callback_(callback),
        user_(user),
        epoch_(epoch),
        upper_probability_(upper_probability) {}

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

// ---- CallbackPolicy: a placement policy that the caller of the C ABI wrote.
// Cost: that of the callback and a few small allocations.

class CallbackPolicy final : public Policy {
 public:
  CallbackPolicy(std::shared_ptr<const Catalogue> catalogue, horus_policy_callback callback, void* user,
                 std::string name)
      : catalogue_(std::move(catalogue)), callback_(callback), user_(user), name_(std::move(name)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override;

 private:
  std::shared_ptr<const Catalogue> catalogue_;
  horus_policy_callback callback_;
  void* user_;
  std::string name_;
};

}  // namespace horus::capi
