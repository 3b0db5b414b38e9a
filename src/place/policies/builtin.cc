// SPDX-License-Identifier: Apache-2.0
// The plain policies of the core: first-fit and exclusive.
#include "place/policies/builtin.h"

namespace horus {

// first-fit: every feasible place costs the same, so the lowest node and device wins.

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

// exclusive: one job a GPU, first fit, as slot-based managers do.

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
