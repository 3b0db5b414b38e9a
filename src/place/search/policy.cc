// SPDX-License-Identifier: Apache-2.0
// What holds for any policy.
#include "place/search/policy.h"

#include <cmath>

#include "base/status.h"

namespace horus {
void Policy::Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const {
  DeviceScore score;
  if (!ScoreDevice(candidate, score).ok()) return;
  terms.push_back({"device", score.cost});
  if (uses_place()) terms.push_back({"place", ScorePlace(place)});
}

absl::Status Policy::ScoreNode(const NodeCandidate& /*candidate*/, NodeScore& /*score*/) const {
  return Unimplemented("policy %s: prices no nodes", std::string(name()));
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

}  // namespace horus
