// SPDX-License-Identifier: Apache-2.0
// The policies of the core; policies.cc lists them by name. Those of the laboratory are in lab/policies.
//
// Enters:  options.   Leaves: a policy.
#pragma once

#include <memory>
#include <string_view>

#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {

// A tenant that states no slowdown_bound is not expected to keep less than a third of its speed. On V100, P100 and K80
// a tighter guard leaves work undone and no guard gains nothing (docs/interference.md, "Sharing by expectation").
inline constexpr double kSlowdownGuard = 3;
// A service that states neither bound nor latency: somebody waits for each of its answers.
inline constexpr double kServiceGuard = 1.2;
[[nodiscard]] inline double GuardOf(JobKind kind) {
  return kind == JobKind::kInference ? kServiceGuard : kSlowdownGuard;
}

[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options);
// The same objective under another name; `name` is static text.
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicyAs(std::string_view name, const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFirstFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeExclusivePolicy(const PolicyOptions& options);

}  // namespace horus
