// SPDX-License-Identifier: Apache-2.0
// gavel-maxmin: the place after which the worst-off job concerned fares best, speeds of GPU types included.
#include <algorithm>

#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

constexpr size_t kMostResidents = 1;  // pairs, as published
// They order places that leave the worst-off job alike, and stay below what predictions can tell apart.
constexpr double kWorkWeight = 1e-3;
constexpr double kResidentWeight = 1e-6;

struct Parts {
  double worst = 1;  // least normalised throughput of those concerned
  double work = 0;   // normalised throughput won by all of them together
};

Parts PartsOf(const DeviceCandidate& candidate) {
  Parts parts;
  for (size_t i = 0; i < candidate.residents(); ++i) {
    parts.worst = std::min(parts.worst, Throughput(candidate.after[i]));
    parts.work += Throughput(candidate.after[i]) - Throughput(candidate.before[i]);
  }
  const double own = candidate.relative_speed * Throughput(candidate.after.back());
  parts.worst = std::min(parts.worst, own);
  parts.work += own;
  return parts;
}

class GavelMaxminPolicy final : public Policy {
 public:
  std::string_view name() const override { return "gavel-maxmin"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const Parts parts = PartsOf(candidate);
    score = {
        .cost = -parts.worst - kWorkWeight * parts.work + kResidentWeight * static_cast<double>(candidate.residents()),
        .declined = candidate.residents() > kMostResidents};
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/,
               std::vector<CostTerm>& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"worst_off", -parts.worst});
    terms.push_back({"work", -kWorkWeight * parts.work});
    terms.push_back({"residents", kResidentWeight * static_cast<double>(candidate.residents())});
  }
};

}  // namespace

std::unique_ptr<Policy> MakeGavelMaxminPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<GavelMaxminPolicy>();
}

}  // namespace horus
