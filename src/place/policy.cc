// SPDX-License-Identifier: Apache-2.0
// The list of built-in policies, and the explanation that fits any policy.
#include "place/policy.h"

#include <array>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};

constexpr std::array<Entry, 10> kPolicies = {{
    {"horus", MakeHorusPolicy},
    {"horus-paper", MakeHorusPaperPolicy},
    {"first-fit", MakeFirstFitPolicy},
    {"best-fit", MakeBestFitPolicy},
    {"random", MakeRandomPolicy},
    {"exclusive", MakeExclusivePolicy},
    {"fgd", MakeFgdPolicy},
    {"dotprod", MakeDotProdPolicy},
    {"gpu-packing", MakeGpuPackingPolicy},
    {"gpu-clustering", MakeGpuClusteringPolicy},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kPolicies.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kPolicies[i].name;
  return names;
}();

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

std::span<const std::string_view> PolicyNames() { return kNames; }

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(options);
  }
  return MakeError(absl::StatusCode::kNotFound, "policy: expected one of %s, found %s", Listed(PolicyNames()),
                   Quoted(name));
}

}  // namespace horus
