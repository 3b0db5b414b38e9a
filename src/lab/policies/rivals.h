// SPDX-License-Identifier: Apache-2.0
// The policies of papers and other systems, and rules of thumb; policies.cc lists them by name.
//
// Enters:  options.   Leaves: a policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "place/policies/builtin.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus {

// All of the laboratory by name, those of synergy too.
[[nodiscard]] std::span<const PolicyEntry> LabPolicyEntries();

[[nodiscard]] std::unique_ptr<Policy> MakeHorusPaperPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeHorusAsCodedPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeClwpNlwpPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeBestFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeRandomPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeLeastUtilisedPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeReactivePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGandivaPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGavelThresholdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGavelMaxminPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeLucidPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeMuriPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeMisoPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakePolluxAvoidPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeForegroundPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFillerPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeOraclePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFgdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeDotProdPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGpuPackingPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeGpuClusteringPolicy(const PolicyOptions& options);

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
