// SPDX-License-Identifier: Apache-2.0
// The policies of the core; policy.cc lists them by name. Those of the laboratory are in lab/policies.
//
// Enters:  options.                       Leaves: a policy.
// Units:   see docs/place.md.
// Cost:    one allocation.                Thread class: pure functions.
#ifndef HORUS_PLACE_POLICIES_BUILTIN_H_
#define HORUS_PLACE_POLICIES_BUILTIN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "place/policy.h"

namespace horus {

[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options);
// The same objective under another name; `name` is static text.
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicyAs(std::string_view name, const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPaperPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeHorusAsCodedPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeClwpNlwpPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFirstFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeBestFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeRandomPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeExclusivePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeLeastUtilisedPolicy(const PolicyOptions& options);

struct PolicyEntry {
  std::string_view name;  // static text
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};
// What the laboratory adds. Each library says at link time whether it has it: place/no_lab.cc or lab/policies.
[[nodiscard]] std::span<const PolicyEntry> LabPolicies();

enum class SynergyRule : uint8_t;
[[nodiscard]] std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options);

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_BUILTIN_H_
