// SPDX-License-Identifier: Apache-2.0
// The policies that the laboratory adds to those of the placer, by name.
#include <array>

#include "lab/policies/rivals.h"
#include "place/policies/builtin.h"
#include "place/synergy/round.h"

namespace horus {
namespace {

std::unique_ptr<Policy> MakeSynergyOptPolicy(const PolicyOptions& options) {
  return MakeSynergyPolicy(SynergyRule::kOpt, options);
}

constexpr std::array<PolicyEntry, 16> kPolicies = {{
    {"fgd", MakeFgdPolicy},
    {"dotprod", MakeDotProdPolicy},
    {"gpu-packing", MakeGpuPackingPolicy},
    {"gpu-clustering", MakeGpuClusteringPolicy},
    {"reactive", MakeReactivePolicy},
    {"gandiva", MakeGandivaPolicy},
    {"gavel-threshold", MakeGavelThresholdPolicy},
    {"gavel-maxmin", MakeGavelMaxminPolicy},
    {"lucid", MakeLucidPolicy},
    {"muri", MakeMuriPolicy},
    {"miso", MakeMisoPolicy},
    {"pollux-avoid", MakePolluxAvoidPolicy},
    {"foreground", MakeForegroundPolicy},
    {"filler", MakeFillerPolicy},
    {"oracle", MakeOraclePolicy},
    {"synergy-opt", MakeSynergyOptPolicy},
}};

}  // namespace

std::span<const PolicyEntry> LabPolicies() { return kPolicies; }

}  // namespace horus
