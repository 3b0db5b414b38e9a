// SPDX-License-Identifier: Apache-2.0
// The list of built-in policies, and the explanation that fits any policy.
#include "place/policy.h"

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "place/policies/builtin.h"
#include "place/synergy/round.h"

namespace horus {
namespace {

template <SynergyRule rule>
std::unique_ptr<Policy> MakeSynergy(const PolicyOptions& options) {
  return MakeSynergyPolicy(rule, options);
}

constexpr std::array<PolicyEntry, 12> kPolicies = {{
    {"horus", MakeHorusPolicy},
    {"horus-paper", MakeHorusPaperPolicy},
    {"horus-as-coded", MakeHorusAsCodedPolicy},
    {"clwp-nlwp", MakeClwpNlwpPolicy},
    {"first-fit", MakeFirstFitPolicy},
    {"best-fit", MakeBestFitPolicy},
    {"random", MakeRandomPolicy},
    {"exclusive", MakeExclusivePolicy},
    {"least-utilised", MakeLeastUtilisedPolicy},
    {"synergy-greedy", MakeSynergy<SynergyRule::kGreedy>},
    {"synergy-fair", MakeSynergy<SynergyRule::kFair>},
    {"synergy-tune", MakeSynergy<SynergyRule::kTune>},
}};

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

void Policy::Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const {
  DeviceScore score;
  if (!ScoreDevice(candidate, score).ok()) return;
  terms.push_back({"device", score.cost});
  if (uses_place()) terms.push_back({"place", ScorePlace(place)});
}

absl::Status Policy::ScoreNode(const NodeCandidate& /*candidate*/, NodeScore& /*score*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "policy %s: prices no nodes", std::string(name()));
}

void Policy::ExplainNode(const NodeCandidate& /*candidate*/, const NodeScore& score, CostTerms& terms) const {
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

std::string_view PolicyName(size_t index) {
  const std::span<const PolicyEntry> others = LabPolicies();
  if (index < kPolicies.size()) return kPolicies[index].name;
  return index - kPolicies.size() < others.size() ? others[index - kPolicies.size()].name : std::string_view();
}

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (size_t i = 0; !PolicyName(i).empty(); ++i) names.push_back(PolicyName(i));
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  for (const std::span<const PolicyEntry> entries : {std::span<const PolicyEntry>(kPolicies), LabPolicies()}) {
    for (const PolicyEntry& entry : entries) {
      if (entry.name == name) return entry.make(options);
    }
  }
  return MakeError(absl::StatusCode::kNotFound, "policy: %s%s", ExpectedOneOf(PolicyNames(), name),
                   LabPolicies().empty() ? "; those of other systems are in libhorus_lab" : "");
}

}  // namespace horus
