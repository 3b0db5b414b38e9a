// SPDX-License-Identifier: Apache-2.0
// The policies of papers and other systems, and rules of thumb; policies.cc lists them by name.
//
// Enters:  options.   Leaves: a policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {

// All of the laboratory by name, those of synergy too.
[[nodiscard]] std::span<const PolicyEntry> LabPolicyEntries();

// Those of one file each.
[[nodiscard]] std::span<const PolicyEntry> PlainPolicies();
[[nodiscard]] std::span<const PolicyEntry> PaperPolicies();
[[nodiscard]] std::span<const PolicyEntry> SharingPolicies();

// A policy of this folder: none of them fails to price a device.
class RivalPolicy : public Policy {
 public:
  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const final {
    score = Price(candidate);
    return absl::OkStatus();
  }
  // All devices alike, unless a policy says so.
  [[nodiscard]] virtual DeviceScore Price(const DeviceCandidate& /*candidate*/) const { return {}; }
};

[[nodiscard]] std::unique_ptr<RivalPolicy> MakeHorusPaperPolicy();

// For a PolicyEntry: a policy that takes the options, or none.
template <typename Made>
[[nodiscard]] std::unique_ptr<Policy> PolicyOf(const PolicyOptions& options) {
  if constexpr (std::is_constructible_v<Made, const PolicyOptions&>) {
    return std::make_unique<Made>(options);
  } else {
    return std::make_unique<Made>();
  }
}

// ---- Tiers: for policies that take an idle device wherever there is one, and only then weigh sharing.

inline constexpr double kFinest = 4.0;
// More than the finer costs of the largest gang add up to: one shared device costs more than all idle ones.
inline constexpr double kSharedTier = kFinest * kMaxGpusPerJob;

[[nodiscard]] inline double TierOf(const DeviceCandidate& candidate) {
  return candidate.residents() == 0 ? 0 : kSharedTier;
}

// Normalised throughput by the estimate: speed beside the others / speed alone on this device.
[[nodiscard]] inline double Throughput(const Slowdown& slowdown) {
  return 1.0 / static_cast<double>(slowdown.estimate);
}

// ---- What the policies that price nodes have in common: kinds of requests, sums over devices, devices inside a node.
// Cost: O(devices of the node).

// A policy that gives each node points, the more the better; its devices as ChooseDevices.
class PointsPolicy : public RivalPolicy {
 public:
  bool PricesNode(const JobSpec& /*job*/) const final { return true; }
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
