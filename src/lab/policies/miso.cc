// SPDX-License-Identifier: Apache-2.0
// miso: one job an instance, where its predicted speed is best; of equal ones the smallest instance.
#include "lab/policies/rivals.h"

namespace horus {
namespace {

// Orders instances on which the job is (nearly) as fast: below what predicted speeds can tell apart.
constexpr double kShareWeight = 1e-3;

class MisoPolicy final : public Policy {
 public:
  std::string_view name() const override { return "miso"; }

  // Instances do not disturb each other, so the best total speed is the newcomer's best speed.
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.cost = -candidate.relative_speed + kShareWeight * static_cast<double>(candidate.device.compute_share),
             .declined = candidate.residents() > 0};
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/,
               std::vector<CostTerm>& terms) const override {
    terms.push_back({"speed", -candidate.relative_speed});
    terms.push_back({"instance", kShareWeight * static_cast<double>(candidate.device.compute_share)});
  }
};

}  // namespace

std::unique_ptr<Policy> MakeMisoPolicy(const PolicyOptions& /*options*/) { return std::make_unique<MisoPolicy>(); }

}  // namespace horus
