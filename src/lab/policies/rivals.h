// SPDX-License-Identifier: Apache-2.0
// The policies of papers and other systems, and rules of thumb, and their options; policies.cc lists them by name.
//
// Enters:  PolicyOptions.   Leaves: a policy, or what is wrong with the options.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "place/job/sensitivity.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {

inline constexpr const char* kProfilingLabel = "horus-profiling";

// Beside the options of all policies.
struct LabPolicyOptions {
  double pack_threshold = 1.5;                    // gavel-threshold: least summed normalised throughput of a pack
  double foreground_bound = 1.1;                  // foreground: slowdown of a foreground job that states none
  std::string profiling_label = kProfilingLabel;  // reactive: nodes with this label, whatever its value, only profile
  double synergy_tolerance = kBestCellTolerance;  // synergy-*: a speed this much below the best counts as the best
  bool synergy_grow = false;                      // synergy-tune: hand out what is left, residents included
  std::string lp_library;                         // synergy-opt: libhorus_lp.so; empty = searched for
};

[[nodiscard]] inline std::shared_ptr<const LabPolicyOptions> Lab(LabPolicyOptions options) {
  return std::make_shared<const LabPolicyOptions>(std::move(options));
}
[[nodiscard]] inline LabPolicyOptions LabOf(const PolicyOptions& options) {
  return options.lab == nullptr ? LabPolicyOptions() : *options.lab;
}

// Those of packing.cc by name.
[[nodiscard]] std::span<const PolicyEntry> PackingPolicies();

// A policy of this folder: none of them fails to price a device.
class RivalPolicy : public Policy {
 public:
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const final {
    score = Price(candidate);
    return absl::OkStatus();
  }
  // All devices alike, unless a policy says so.
  [[nodiscard]] virtual DeviceScore Price(const DeviceCandidate& /*candidate*/) const { return {}; }
};

[[nodiscard]] std::unique_ptr<RivalPolicy> MakeHorusPaperPolicy();

// For a PolicyEntry: a policy that takes the options, or none.
template <typename Made>
[[nodiscard]] std::unique_ptr<Policy> PolicyOf(const PolicyOptions& options) {
  if constexpr (std::is_constructible_v<Made, const PolicyOptions&>) {
    return std::make_unique<Made>(options);
  } else {
    return std::make_unique<Made>();
  }
}

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
