// SPDX-License-Identifier: Apache-2.0
// best-fit: the place that keeps least free. Sharers: memory of the device; hard requests: CPU and GPUs of the node.
#include <algorithm>
#include <cmath>

#include "place/policies/builtin.h"
#include "place/policies/node_choice.h"

namespace horus {
namespace {

class BestFitPolicy final : public Policy {
 public:
  std::string_view name() const override { return "best-fit"; }
  // What a sharer without a request leaves is its memory's matter.
  bool PricesNode(const JobSpec& job) const override { return job.gpu_milli > 0 || IsCpuOnly(job); }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const int64_t left = candidate.MemoryLeftMib();
    score.cost = static_cast<double>(left) / static_cast<double>(std::max(candidate.mem_mib, int64_t{1}));
    return absl::OkStatus();
  }

  // As the FGD simulator has it, in whole points from 0 to 100.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    ChooseDevices(candidate, score.devices);
    const double cpu = static_cast<double>(candidate.cpu_free_milli - candidate.job->cpu_milli) / kMaxNodeCpuMilli;
    const double gpu = static_cast<double>(FreeMilli(candidate) - RequestMilli(candidate)) / kMaxNodeGpuMilli;
    score.cost = -std::floor((1 - (cpu * 0.5 + gpu * 0.5)) * 100);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeBestFitPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<BestFitPolicy>();
}

}  // namespace horus
