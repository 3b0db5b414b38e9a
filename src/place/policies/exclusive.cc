// SPDX-License-Identifier: Apache-2.0
// exclusive: one job a GPU, first fit, as slot-based managers do.
#include "place/policies/builtin.h"

namespace horus {
namespace {

class ExclusivePolicy final : public Policy {
 public:
  std::string_view name() const override { return "exclusive"; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.cost = 0, .declined = candidate.residents() > 0};
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeExclusivePolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<ExclusivePolicy>();
}

}  // namespace horus
