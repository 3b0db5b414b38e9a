// SPDX-License-Identifier: Apache-2.0
// gpu-clustering: jobs beside their own kind (share, 1 GPU, 2 GPUs, ...), as the FGD simulator has it.
#include "lab/policies/rivals.h"
#include "place/policies/node_choice.h"

namespace horus {
namespace {

class GpuClusteringPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-clustering"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    uint64_t kinds = 0;
    for (const NodeDevice& device : candidate.devices) kinds |= device.kinds;
    return kFullness * (kMaxNodeGpuMilli - FreeMilli(candidate)) / kMaxNodeGpuMilli + Company(kinds, candidate.kind);
  }

  static int32_t Company(uint64_t kinds, uint64_t own) {
    if (kinds == own) return 75;
    if ((kinds & own) != 0) return 50;
    return kinds == 0 ? 25 : 0;
  }

  static constexpr int32_t kFullness = 25;  // points of a node without free GPUs; whole numbers, rounded down
};

}  // namespace

std::unique_ptr<Policy> MakeGpuClusteringPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<GpuClusteringPolicy>();
}

}  // namespace horus
