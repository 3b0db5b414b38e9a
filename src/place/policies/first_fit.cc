// SPDX-License-Identifier: Apache-2.0
// first-fit: every feasible place costs the same, so the lowest node and device wins.
#include "place/policies/builtin.h"

namespace horus {
namespace {

class FirstFitPolicy final : public Policy {
 public:
  std::string_view name() const override { return "first-fit"; }

  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = DeviceScore();
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeFirstFitPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<FirstFitPolicy>();
}

}  // namespace horus
