// SPDX-License-Identifier: Apache-2.0
// dotprod: the node whose free CPU and GPU point least in the direction of the request, as the FGD simulator has it.
#include <cmath>

#include "lab/policies/rivals.h"
#include "place/policies/node_choice.h"

namespace horus {
namespace {

class DotProdPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "dotprod"; }

 private:
  // CPU and GPUs of the node, all GPUs merged, times those of the request; in whole points from 0 to 100.
  double Points(const NodeCandidate& candidate) const override {
    const double cpu = static_cast<double>(candidate.cpu_free_milli) / kMaxNodeCpuMilli *
                       (static_cast<double>(candidate.job->cpu_milli) / kMaxNodeCpuMilli);
    const double gpu = static_cast<double>(FreeMilli(candidate)) / kMaxNodeGpuMilli *
                       (static_cast<double>(RequestMilli(candidate)) / kMaxNodeGpuMilli);
    return std::floor(100 * (1 - (cpu + gpu) / 2));
  }
};

}  // namespace

std::unique_ptr<Policy> MakeDotProdPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<DotProdPolicy>();
}

}  // namespace horus
