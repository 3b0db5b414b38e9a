// SPDX-License-Identifier: Apache-2.0
// The list of policies, and the plain ones.
#include "place/policies/policies.h"

#include <array>

#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

// Every feasible place costs the same, so the lowest node and device wins. `kExclusive`: one job a GPU, as slot-based
// managers do.
template <bool kExclusive>
class PlainPolicy final : public Policy {
 public:
  std::string_view name() const override { return kExclusive ? "exclusive" : "first-fit"; }
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.declined = kExclusive && candidate.residents() > 0};
    return absl::OkStatus();
  }
};

template <bool kExclusive>
std::unique_ptr<Policy> MakePlainPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<PlainPolicy<kExclusive>>();
}

constexpr std::array<PolicyEntry, 3> kPolicies = {{
    {"horus", [](const PolicyOptions& options) { return MakeHorusPolicy(options); }},
    {"first-fit", MakePlainPolicy<false>},
    {"exclusive", MakePlainPolicy<true>},
}};

// Written before anybody can read it: see RegisterLabPolicies.
constinit LabPolicies lab_policies;

}  // namespace

void RegisterLabPolicies(const LabPolicies& policies) { lab_policies = policies; }

std::string_view PolicyName(size_t index) {
  const std::span<const PolicyEntry> others = lab_policies.entries;
  if (index < kPolicies.size()) return kPolicies[index].name;
  return index - kPolicies.size() < others.size() ? others[index - kPolicies.size()].name : std::string_view();
}

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (size_t i = 0; !PolicyName(i).empty(); ++i) names.push_back(PolicyName(i));
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options) {
  for (const PolicyEntry& entry : kPolicies) {
    if (entry.name == name) return entry.make(options);
  }
  for (const PolicyEntry& entry : lab_policies.entries) {
    if (entry.name != name) continue;
    HORUS_RETURN_IF_ERROR(lab_policies.check(options));
    return entry.make(options);
  }
  return MakeError(
      absl::StatusCode::kNotFound, "policy: %s%s", ExpectedOneOf(PolicyNames(), name),
      lab_policies.entries.empty() ? "; rules of thumb and those of other systems are in libhorus_lab" : "");
}

}  // namespace horus
