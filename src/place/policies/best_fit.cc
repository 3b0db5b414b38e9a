// SPDX-License-Identifier: Apache-2.0
// best-fit: the device that keeps the least memory free, as a share of the device; no interference model.
#include <algorithm>

#include "place/policies/builtin.h"

namespace horus {
namespace {

class BestFitPolicy final : public Policy {
 public:
  std::string_view name() const override { return "best-fit"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const int64_t left = candidate.mem_mib - candidate.mem_used_upper_mib - candidate.newcomer().mem_mib.upper;
    score.cost = static_cast<double>(left) / static_cast<double>(std::max(candidate.mem_mib, int64_t{1}));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeBestFitPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<BestFitPolicy>();
}

}  // namespace horus
