// SPDX-License-Identifier: Apache-2.0
// Interference models by name, from the bundle that the library brings or from another one; the utilisation proxy.
//
// Enters:  a name; a bundle.             Leaves: the model, or an error that lists the names.
// Cost:    linear in the bundle, under a millisecond for the built-in one.   Thread class: pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/model.h"

namespace horus {

// In a fixed order, the default first. `table` is not among them: it needs a table (table_model.h).
[[nodiscard]] std::vector<std::string_view> InterferenceModelNames();
inline constexpr std::string_view kDefaultInterferenceModel = "horus";

// A learned model knows the types of Catalogue::Default(), and those of catalogues that extend it. NOT_FOUND lists the
// names.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name);

// From a trained bundle; types are known by the names of `catalogue`. Errors: those of ReadBundle and
// LearnedModel::Create.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> InterferenceModelFromBundle(
    std::span<const uint8_t> bundle, std::string_view name, const Catalogue& catalogue);

// ---- The Horus utilisation proxy: tenants slow each other down, all alike, once their summed utilisation passes what
// a GPU has. In per cent of GPU-busy time; a few nanoseconds a tenant.

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
