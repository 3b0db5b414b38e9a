// SPDX-License-Identifier: Apache-2.0
// Interference models by name.
//
// Enters:  a name.                        Leaves: the model, or an error that lists the names.
// Units:   none.
// Cost:    one allocation.                Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_REGISTRY_H_
#define HORUS_INTERFERENCE_REGISTRY_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "interference/model.h"

namespace horus {

// The names, in a fixed order.
[[nodiscard]] std::span<const std::string_view> InterferenceModelNames();

// NOT_FOUND lists the names.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_REGISTRY_H_
