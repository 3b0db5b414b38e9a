// SPDX-License-Identifier: Apache-2.0
// gpu-packing: used GPUs before idle ones, used nodes before idle ones, as the FGD simulator has it.
#include <algorithm>

#include "base/units.h"
#include "lab/policies/rivals.h"
#include "place/policies/node_choice.h"

namespace horus {
namespace {

class GpuPackingPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-packing"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    const auto count = static_cast<int32_t>(candidate.devices.size());
    const bool idle = std::all_of(candidate.devices.begin(), candidate.devices.end(),
                                  [](const NodeDevice& device) { return device.free_milli == kMilliPerGpu; });
    if (idle) return kIdleNode - count;
    if (!IsShare(candidate)) return kIdleGpu - candidate.job->gpus_per_task;
    const int32_t left = candidate.devices[static_cast<size_t>(TightestDevice(candidate))].free_milli;
    return left == kMilliPerGpu ? kIdleGpu - 1 : kUsedGpu - left / kMilliPerPoint;
  }

  // Three bands of points: used GPUs, idle GPUs of used nodes, idle nodes; inside, the smaller the better.
  static constexpr int32_t kUsedGpu = 100;
  static constexpr int32_t kIdleGpu = 50;
  static constexpr int32_t kIdleNode = 33;
  static constexpr int32_t kMilliPerPoint = 100;
};

}  // namespace

std::unique_ptr<Policy> MakeGpuPackingPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<GpuPackingPolicy>();
}

}  // namespace horus
