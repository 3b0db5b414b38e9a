// SPDX-License-Identifier: Apache-2.0
// pollux-avoid: one job a GPU, and at most one distributed job a node, so that none waits for another's all-reduce.
#include "lab/policies/rivals.h"

namespace horus {
namespace {

class PolluxAvoidPolicy final : public Policy {
 public:
  std::string_view name() const override { return "pollux-avoid"; }
  bool admits_nodes() const override { return true; }

  bool AdmitsNode(const NodeAdmission& node) const override {
    return node.job->tasks == 1 || node.job->gpus_per_task == 0 || !node.holds_distributed;
  }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.cost = 0, .declined = candidate.residents() > 0};
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakePolluxAvoidPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<PolluxAvoidPolicy>();
}

}  // namespace horus
