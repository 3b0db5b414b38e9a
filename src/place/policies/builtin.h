// SPDX-License-Identifier: Apache-2.0
// The built-in policies, one file each; policy.cc lists them by name.
//
// Enters:  options.                       Leaves: a policy.
// Units:   see docs/place.md.
// Cost:    one allocation.                Thread class: pure functions.
#ifndef HORUS_PLACE_POLICIES_BUILTIN_H_
#define HORUS_PLACE_POLICIES_BUILTIN_H_

#include <cstdint>
#include <memory>
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

enum class SynergyRule : uint8_t;
[[nodiscard]] std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options);

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_BUILTIN_H_
