// SPDX-License-Identifier: Apache-2.0
// The Horus utilisation proxy: tenants slow each other down once their summed utilisation passes 100 %.
//
// Enters:  demands of the tenants of one device; sharing mode.
// Leaves:  the same slowdown for every tenant (the proxy cannot tell them apart).
// Units:   per cent of GPU-busy time; slowdown >= 1.
// Cost:    a few nanoseconds a tenant.    Thread class: immutable, share freely.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "interference/model.h"

namespace horus {

class UtilisationModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "utilisation"; }
  [[nodiscard]] uint64_t epoch() const override { return 1; }  // learns nothing
  // The formula and its reasons: README.md. INVALID_ARGUMENT: sizes differ, unknown mode, null tenant.
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override;
  [[nodiscard]] bool adds_loads() const override { return true; }
  [[nodiscard]] absl::Status PredictLoad(const DeviceContext& device, const Demand& tenant, Load& load) const override;
};

}  // namespace horus
