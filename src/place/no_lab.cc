// SPDX-License-Identifier: Apache-2.0
// What libhorus has in place of the laboratory's policies: none.
#include "place/policies/builtin.h"
#include "place/synergy/rules.h"

namespace horus {

std::span<const PolicyEntry> LabPolicies() { return {}; }

absl::StatusOr<SynergyRound> PlaceOptimally(const SynergyInput& /*input*/, const ServerClasses& /*classes*/,
                                            const SynergyOptions& /*options*/) {
  return absl::UnimplementedError("synergy-opt: is part of the laboratory, libhorus_lab");
}

}  // namespace horus
