// SPDX-License-Identifier: Apache-2.0
// The policies of other systems; policies.cc lists them by name.
//
// Enters:  options.                       Leaves: a policy.
// Units:   see docs/place.md.
// Cost:    one allocation.                Thread class: pure functions.
#ifndef HORUS_LAB_POLICIES_RIVALS_H_
#define HORUS_LAB_POLICIES_RIVALS_H_

#include <memory>

#include "place/policies/builtin.h"
#include "place/policy.h"

namespace horus {

[[nodiscard]] std::unique_ptr<Policy> MakeReactivePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGandivaPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGavelThresholdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGavelMaxminPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeLucidPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeMuriPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeMisoPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakePolluxAvoidPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeForegroundPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFillerPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeOraclePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFgdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeDotProdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGpuPackingPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGpuClusteringPolicy(const PolicyOptions& options);

// ---- Tiers: for policies that take an idle device wherever there is one, and only then weigh sharing.

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

#endif  // HORUS_LAB_POLICIES_RIVALS_H_
