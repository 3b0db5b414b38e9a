// SPDX-License-Identifier: Apache-2.0
// Options of the laboratory's policies, beside those of all (place/search/policy.h).
//
// Enters:  PolicyOptions.   Leaves: the record, or what is wrong with it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "place/job/sensitivity.h"
#include "place/policies/policies.h"

namespace horus {

inline constexpr const char* kProfilingLabel = "horus-profiling";

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

// INVALID_ARGUMENT "policy: <field>: expected ..., found ...".
[[nodiscard]] absl::Status CheckLabOptions(const PolicyOptions& options);

}  // namespace horus
