// SPDX-License-Identifier: Apache-2.0
// Tiers: for policies that take an idle device wherever there is one, and only then weigh sharing.
//
// Enters:  a candidate.                   Leaves: the part of its cost that no finer part can outweigh.
// Units:   the policies' own; finer costs lie in [0, kFinest).
// Cost:    none.                          Thread class: pure functions.
#ifndef HORUS_PLACE_POLICIES_TIERS_H_
#define HORUS_PLACE_POLICIES_TIERS_H_

#include "place/policy.h"

namespace horus {

inline constexpr double kFinest = 4.0;
// More than the finer costs of the largest gang add up to: one shared device costs more than all idle ones.
inline constexpr double kSharedTier = kFinest * kMaxGpusPerJob;

[[nodiscard]] inline double TierOf(const DeviceCandidate& candidate) {
  return candidate.residents() == 0 ? 0 : kSharedTier;
}

// Normalised throughput by the estimate: speed beside the others / speed alone on this device.
[[nodiscard]] inline double Throughput(const Slowdown& slowdown) {
  return 1.0 / static_cast<double>(slowdown.estimate);
}

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_TIERS_H_
