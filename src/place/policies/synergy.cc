// SPDX-License-Identifier: Apache-2.0
// synergy-*: a round of whole GPUs with cores and host memory by sensitivity (Mohan et al., OSDI 2022).
#include "base/units.h"
#include "place/policies/builtin.h"
#include "place/synergy/round.h"

namespace horus {
namespace {

bool IsPart(int32_t gpu_milli) { return gpu_milli > 0 && gpu_milli < kMilliPerGpu; }

// The round itself is synergy/plan_round.cc. What is priced here are the devices of an idle cluster, and places for
// jobs that no rule knows.
class SynergyPolicy final : public Policy {
 public:
  SynergyPolicy(SynergyRule rule, const PolicyOptions& options)
      : settings_{rule, {options.synergy_tolerance, options.synergy_grow, options.lp_library}} {}

  std::string_view name() const override { return SynergyNames()[static_cast<size_t>(settings_.rule)]; }
  const SynergySettings* round() const override { return &settings_; }

  // Whole GPUs are for one job. Parts of a GPU are packed: the fullest device first, an idle one last.
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {};
    if (!IsPart(candidate.gpu_milli)) {
      score.declined = candidate.residents() > 0;
      return absl::OkStatus();
    }
    for (const TenantClass* tenant : candidate.tenants) score.declined |= !IsPart(tenant->gpu_milli);
    score.cost = static_cast<double>(kMilliPerGpu - candidate.milli_used - candidate.gpu_milli) / kMilliPerGpu;
    return absl::OkStatus();
  }

 private:
  SynergySettings settings_;
};

}  // namespace

std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options) {
  return std::make_unique<SynergyPolicy>(rule, options);
}

}  // namespace horus
