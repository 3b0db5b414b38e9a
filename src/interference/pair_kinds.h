// SPDX-License-Identifier: Apache-2.0
// The kinds of learned interference models by name.
//
// Enters:  a name.                       Leaves: the kind, or an error that lists the names.
// Units:   none.
// Cost:    a few comparisons.            Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_PAIR_KINDS_H_
#define HORUS_INTERFERENCE_PAIR_KINDS_H_

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "interference/pair_model.h"

namespace horus {

// The default first.
[[nodiscard]] std::span<const PairModelKind> PairModelKinds();
[[nodiscard]] absl::StatusOr<const PairModelKind*> FindPairModelKind(std::string_view name);  // NOT_FOUND

}  // namespace horus

#endif  // HORUS_INTERFERENCE_PAIR_KINDS_H_
