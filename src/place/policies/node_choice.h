// SPDX-License-Identifier: Apache-2.0
// What the policies that price nodes have in common: kinds of requests, sums over devices, devices inside a node.
//
// Enters:  a candidate.                   Leaves: sums and devices.
// Units:   thousandths of a GPU.
// Cost:    O(devices of the node).        Thread class: pure functions.
#ifndef HORUS_PLACE_POLICIES_NODE_CHOICE_H_
#define HORUS_PLACE_POLICIES_NODE_CHOICE_H_

#include <cstdint>
#include <vector>

#include "place/policy.h"

namespace horus {

// A policy that gives each node points, the more the better; its devices as ChooseDevices.
class PointsPolicy : public Policy {
 public:
  bool PricesNode(const JobSpec& /*job*/) const final { return true; }
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const final;
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const final;

 private:
  [[nodiscard]] virtual double Points(const NodeCandidate& candidate) const = 0;
};

// The fixed maxima of the FGD simulator (ATC 2023), not the node's own size.
inline constexpr double kMaxNodeCpuMilli = 128'000;
inline constexpr int32_t kMaxNodeGpuMilli = 8000;

// Part of one GPU; otherwise whole GPUs, or none.
[[nodiscard]] bool IsShare(const NodeCandidate& candidate);
// GPU milli of the task, and free on the node.
[[nodiscard]] int32_t RequestMilli(const NodeCandidate& candidate);
[[nodiscard]] int32_t FreeMilli(const NodeCandidate& candidate);

// The fitting device with the least left, the first of equals; requires one.
[[nodiscard]] int32_t TightestDevice(const NodeCandidate& candidate);
// A share takes the tightest device, whole GPUs the lowest fitting ones of one group; none without GPUs.
void ChooseDevices(const NodeCandidate& candidate, std::vector<int32_t>& devices);

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_NODE_CHOICE_H_
