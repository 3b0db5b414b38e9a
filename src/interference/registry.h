// SPDX-License-Identifier: Apache-2.0
// Interference models by name, from the bundle that the library brings or from another one.
//
// Enters:  a name; a bundle.             Leaves: the model, or an error that lists the names.
// Units:   none.
// Cost:    linear in the bundle, under a millisecond for the built-in one.   Thread class: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

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

}  // namespace horus
