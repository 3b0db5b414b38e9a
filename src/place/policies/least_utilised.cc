// SPDX-License-Identifier: Apache-2.0
// least-utilised: the device whose residents keep it least busy; no interference model.
#include "interference/slice.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

class LeastUtilisedPolicy final : public Policy {
 public:
  std::string_view name() const override { return "least-utilised"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = DeviceScore();
    for (const Demand* resident : candidate.demands.first(candidate.residents())) {
      score.cost += SliceUtilPct(static_cast<double>(resident->gpu_util_pct.estimate),
                                 static_cast<double>(candidate.device.compute_share));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeLeastUtilisedPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<LeastUtilisedPolicy>();
}

}  // namespace horus
