// SPDX-License-Identifier: Apache-2.0
// Checks what a caller asks of a round; of this folder only.
//
// Enters:  the input and options as the caller gave them.
// Leaves:  OK, or INVALID_ARGUMENT "synergy: <what>[<index>].<field>: expected ..., found ...".
// Units:   as round.h.
// Cost:    linear.                       Thread class: pure function.
#ifndef HORUS_PLACE_SYNERGY_CHECK_H_
#define HORUS_PLACE_SYNERGY_CHECK_H_

#include "absl/status/status.h"
#include "place/synergy/round.h"

namespace horus {

[[nodiscard]] absl::Status CheckRound(SynergyRule rule, const SynergyInput& input, const SynergyOptions& options);

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_CHECK_H_
