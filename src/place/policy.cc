// SPDX-License-Identifier: Apache-2.0
// The list of built-in policies, and the explanation that fits any policy.
#include "place/policy.h"

#include <array>
#include <cmath>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "place/policies/builtin.h"
#include "place/synergy/round.h"

namespace horus {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};

template <SynergyRule rule>
std::unique_ptr<Policy> MakeSynergy(const PolicyOptions& options) {
  return MakeSynergyPolicy(rule, options);
}

constexpr std::array<Entry, 28> kPolicies = {{
    {"horus", MakeHorusPolicy},
    {"horus-paper", MakeHorusPaperPolicy},
    {"horus-as-coded", MakeHorusAsCodedPolicy},
    {"clwp-nlwp", MakeClwpNlwpPolicy},
    {"first-fit", MakeFirstFitPolicy},
    {"best-fit", MakeBestFitPolicy},
    {"random", MakeRandomPolicy},
    {"exclusive", MakeExclusivePolicy},
    {"fgd", MakeFgdPolicy},
    {"dotprod", MakeDotProdPolicy},
    {"gpu-packing", MakeGpuPackingPolicy},
    {"gpu-clustering", MakeGpuClusteringPolicy},
    {"least-utilised", MakeLeastUtilisedPolicy},
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
    {"synergy-greedy", MakeSynergy<SynergyRule::kGreedy>},
    {"synergy-fair", MakeSynergy<SynergyRule::kFair>},
    {"synergy-tune", MakeSynergy<SynergyRule::kTune>},
    {"synergy-opt", MakeSynergy<SynergyRule::kOpt>},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kPolicies[i].name;
  return names;
}();

absl::Status CheckOptions(const PolicyOptions& options) {
  if (!(options.pack_threshold >= 0 && std::isfinite(options.pack_threshold))) {
    return InvalidArgument("policy: pack_threshold: expected 0 or more, found %g", options.pack_threshold);
  }
  if (!(options.foreground_bound >= 1)) {  // infinity is legal
    return InvalidArgument("policy: foreground_bound: expected 1 or more, found %g", options.foreground_bound);
  }
  if (options.profiling_label.empty() || options.profiling_label.size() > kMaxNameBytes) {
    return InvalidArgument("policy: profiling_label: expected 1 to %d bytes, found %d", kMaxNameBytes,
                           options.profiling_label.size());
  }
  if (!(options.synergy_tolerance >= 0 && options.synergy_tolerance < 1)) {
    return InvalidArgument("policy: synergy_tolerance: expected 0 to below 1, found %g", options.synergy_tolerance);
  }
  return absl::OkStatus();
}

}  // namespace

void Policy::Explain(const DeviceCandidate& candidate, const PlaceCandidate& place,
                     std::vector<CostTerm>& terms) const {
  DeviceScore score;
  if (!ScoreDevice(candidate, score).ok()) return;
  terms.push_back({"device", score.cost});
  if (uses_place()) terms.push_back({"place", ScorePlace(place)});
}

absl::Status Policy::ScoreNode(const NodeCandidate& /*candidate*/, NodeScore& /*score*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "policy %s: prices no nodes", std::string(name()));
}

void Policy::ExplainNode(const NodeCandidate& /*candidate*/, const NodeScore& score,
                         std::vector<CostTerm>& terms) const {
  terms.push_back({"node", score.cost});
}

absl::Status CheckObserved(const ObservedSharing& observed) {
  if (observed.demands.size() != observed.throughput.size()) {
    return InvalidArgument("observed sharing: expected a throughput for each of %d tenants, found %d",
                           observed.demands.size(), observed.throughput.size());
  }
  for (size_t i = 0; i < observed.throughput.size(); ++i) {
    if (observed.demands[i] == nullptr) return InvalidArgument("observed sharing: tenant %d: expected a demand", i);
    if (observed.throughput[i] >= 0 && std::isfinite(observed.throughput[i])) continue;
    return InvalidArgument("observed sharing: tenant %d: throughput: expected 0 or more, found %g", i,
                           observed.throughput[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Revision> Policy::Revise(const ObservedSharing& observed) const {
  HORUS_RETURN_IF_ERROR(CheckObserved(observed));
  return Revision();
}

std::span<const std::string_view> PolicyNames() { return kNames; }

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(options);
  }
  return MakeError(absl::StatusCode::kNotFound, "policy: %s", ExpectedOneOf(PolicyNames(), name));
}

}  // namespace horus
