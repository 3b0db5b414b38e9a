// SPDX-License-Identifier: Apache-2.0
// The policies by name, those of the laboratory included where it is there; guards of those who state no bound.
//
// Enters:  a name, settings.   Leaves: a policy.
// Thread class: any thread, once all is loaded.
#pragma once

#include "place/search/policy.h"

namespace horus {

struct LabPolicyOptions;  // lab/policies/rivals.h
class Workload;           // workload.h

// Settings of single policies; src/place/policies/README.md says which of them are published.
struct PolicyOptions {
  uint64_t seed = 0;                            // of policies that draw
  bool links = true;                            // horus, clwp-nlwp: weigh the links between a gang's GPUs
  std::shared_ptr<const Workload> workload;     // tasks by which fragments are measured; null = whole GPUs
  std::shared_ptr<const LabPolicyOptions> lab;  // of the laboratory's policies; null = their defaults
};

struct PolicyEntry {
  std::string_view name;  // static text, ends with NUL
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};
// What the laboratory adds to the built-in policies.
struct LabPolicies {
  std::span<const PolicyEntry> entries;
  absl::Status (*check)(const PolicyOptions& options) = nullptr;  // before any of them is made
};
// Called once, by a library or program that has the laboratory, while it is loaded and so before any other call
// (lab/policies/policies.cc). The entries stay.
void RegisterLabPolicies(const LabPolicies& policies);

// The names, in a fixed order; "horus" first.
[[nodiscard]] std::vector<std::string_view> PolicyNames();
[[nodiscard]] std::string_view PolicyName(size_t index);  // ends with NUL; empty past the end

// The policy called `name`. Errors: NOT_FOUND (lists the names), INVALID_ARGUMENT (a setting out of range).
[[nodiscard]] absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name,
                                                                 const PolicyOptions& options = {});

// The policy `horus`, or its objective under another name, which is static text.
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options, std::string_view name = "horus");

// A tenant that states no slowdown_bound is not expected to keep less than a third of its speed. On V100, P100 and K80
// a tighter guard leaves work undone and no guard gains nothing (docs/interference.md, "Sharing by expectation").
inline constexpr double kSlowdownGuard = 3;
// A service that states neither bound nor latency: somebody waits for each of its answers.
inline constexpr double kServiceGuard = 1.2;
[[nodiscard]] inline double GuardOf(JobKind kind) {
  return kind == JobKind::kInference ? kServiceGuard : kSlowdownGuard;
}

}  // namespace horus
