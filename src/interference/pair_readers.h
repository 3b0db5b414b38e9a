// SPDX-License-Identifier: Apache-2.0
// Learned kinds read from a bundle, by name: what every build can do, training or not.
//
// Enters:  a target and who was measured where.   Leaves: the model, or an error that lists the names.
// Units:   none.
// Cost:    that of the kind.             Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_PAIR_READERS_H_
#define HORUS_INTERFERENCE_PAIR_READERS_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "interference/pair_model.h"

namespace horus {

// The default first.
[[nodiscard]] std::span<const std::string_view> LearnedModelNames();

// By the target's name. NOT_FOUND lists the names; else the errors of the kind.
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadPairModel(const PairHeader& header,
                                                                             const BundleTarget& target);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_PAIR_READERS_H_
