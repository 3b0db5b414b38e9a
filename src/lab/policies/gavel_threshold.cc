// SPDX-License-Identifier: Apache-2.0
// gavel-threshold: two jobs share a device only where their summed normalised throughput is predicted above a
// threshold.
#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

constexpr size_t kMostResidents = 1;  // pairs, as published
constexpr double kPairTenants = 2;    // no pair can do more work than this

class GavelThresholdPolicy final : public Policy {
 public:
  explicit GavelThresholdPolicy(double threshold) : threshold_(threshold) {}
  std::string_view name() const override { return "gavel-threshold"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    if (candidate.residents() == 0) {
      score = {.cost = 1 - candidate.relative_speed};  // heterogeneity-aware: the fastest type first
      return absl::OkStatus();
    }
    double sum = 0;
    for (const Slowdown& tenant : candidate.after) sum += Throughput(tenant);
    score = {.cost = TierOf(candidate) + kPairTenants - sum,
             .declined = candidate.residents() > kMostResidents || sum <= threshold_};
    return absl::OkStatus();
  }

 private:
  double threshold_;
};

}  // namespace

std::unique_ptr<Policy> MakeGavelThresholdPolicy(const PolicyOptions& options) {
  return std::make_unique<GavelThresholdPolicy>(options.pack_threshold);
}

}  // namespace horus
