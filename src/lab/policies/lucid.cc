// SPDX-License-Identifier: Apache-2.0
// lucid: pairs whose sharing classes, by predicted pair speed, sum to at most two; idle devices first.
#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

// All published (Lucid, ASPLOS 2023).
constexpr double kTinySpeed = 0.95;  // class 0 from here on
constexpr double kMediumSpeed = 0.85;
constexpr int kMostClasses = 2;
constexpr size_t kMostResidents = 1;

int SharingClass(double speed) {
  if (speed >= kTinySpeed) return 0;
  return speed >= kMediumSpeed ? 1 : 2;
}

class LucidPolicy final : public Policy {
 public:
  std::string_view name() const override { return "lucid"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = DeviceScore();
    if (candidate.residents() == 0) return absl::OkStatus();
    int classes = 0;
    bool alike = true;  // a pair has the same number of GPUs
    for (size_t i = 0; i < candidate.after.size(); ++i) {
      classes += SharingClass(Throughput(candidate.after[i]));
      alike &= candidate.tenants[i]->gpus == candidate.tenants.back()->gpus;
    }
    score.declined = candidate.residents() > kMostResidents || classes > kMostClasses || !alike;
    score.cost = TierOf(candidate) + static_cast<double>(classes);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeLucidPolicy(const PolicyOptions& /*options*/) { return std::make_unique<LucidPolicy>(); }

}  // namespace horus
