// SPDX-License-Identifier: Apache-2.0
// Sums over a node's devices and the usual choice among them.
#include "place/policies/node_choice.h"

#include <cstddef>

#include "base/units.h"

namespace horus {

bool IsShare(const NodeCandidate& candidate) {
  return candidate.job->gpus_per_task == 1 && candidate.gpu_milli < kMilliPerGpu;
}

int32_t RequestMilli(const NodeCandidate& candidate) { return candidate.job->gpus_per_task * candidate.gpu_milli; }

int32_t FreeMilli(const NodeCandidate& candidate) {
  int32_t free = 0;
  for (const NodeDevice& device : candidate.devices) free += device.free_milli;
  return free;
}

int32_t TightestDevice(const NodeCandidate& candidate) {
  size_t best = candidate.devices.size();
  for (size_t i = 0; i < candidate.devices.size(); ++i) {
    const NodeDevice& device = candidate.devices[i];
    if (!device.fits) continue;
    if (best == candidate.devices.size() || device.free_milli < candidate.devices[best].free_milli) best = i;
  }
  return static_cast<int32_t>(best);
}

void ChooseDevices(const NodeCandidate& candidate, std::vector<int32_t>& devices) {
  devices.clear();
  if (IsShare(candidate)) {
    devices.push_back(TightestDevice(candidate));
    return;
  }
  const auto wanted = static_cast<size_t>(candidate.job->gpus_per_task);
  uint32_t group = 0;
  for (size_t i = 0; i < candidate.devices.size() && devices.size() < wanted; ++i) {
    const NodeDevice& device = candidate.devices[i];
    if (!device.fits) continue;  // a device that fits has enough others in its group
    if (devices.empty()) group = device.group;
    if (device.group == group) devices.push_back(static_cast<int32_t>(i));
  }
}

absl::Status PointsPolicy::ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const {
  score = DeviceScore();
  return absl::OkStatus();
}

absl::Status PointsPolicy::ScoreNode(const NodeCandidate& candidate, NodeScore& score) const {
  ChooseDevices(candidate, score.devices);
  score.cost = -Points(candidate);
  return absl::OkStatus();
}

}  // namespace horus
