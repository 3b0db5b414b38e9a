// SPDX-License-Identifier: Apache-2.0
// The loss of usable GPUs by a placement.
#include "place/policies/fragmentation.h"

#include <cmath>

#include "absl/container/inlined_vector.h"
#include "base/units.h"

namespace horus {
namespace {

constexpr size_t kUsualDevices = 16;
constexpr double kRounding = 1e-3;  // of a step: sums that differ by rounding alone are the same step

}  // namespace

double FragmentationCost(const NodeCandidate& candidate, std::span<const int32_t> devices, const Workload& workload) {
  absl::InlinedVector<FreeGpu, kUsualDevices> gpus;
  for (const NodeDevice& device : candidate.devices) gpus.push_back({device.type, device.free_milli});
  const double before = workload.Usable(candidate.cpu_free_milli, gpus);
  double taken = 0;
  for (const int32_t device : devices) {
    gpus[static_cast<size_t>(device)].free_milli -= candidate.gpu_milli;
    taken += candidate.gpu_milli;
  }
  const double after = workload.Usable(candidate.cpu_free_milli - candidate.job->cpu_milli, gpus);
  const double lost_gpus = (before - after - taken) / kMilliPerGpu;
  return std::floor(lost_gpus / kFragmentStepGpus + kRounding) * kFragmentStepGpus;
}

}  // namespace horus
