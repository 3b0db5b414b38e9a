// SPDX-License-Identifier: Apache-2.0
// The policies of the core: plain baselines, and what policies that price nodes have in common. policy.cc lists them by
// name; those of the laboratory are in lab/policies.
//
// Enters:  options.                       Leaves: a policy.
// Units:   see docs/place.md.
// Cost:    one allocation.                Thread class: pure functions.
#ifndef HORUS_PLACE_POLICIES_BUILTIN_H_
#define HORUS_PLACE_POLICIES_BUILTIN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "place/policy.h"

namespace horus {

// A tenant that states no slowdown_bound is not expected to keep less than a third of its speed. On V100, P100 and K80
// a tighter guard leaves work undone and no guard gains nothing (docs/interference.md, "Sharing by expectation").
inline constexpr double kSlowdownGuard = 3;

[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options);
// The same objective under another name; `name` is static text.
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPolicyAs(std::string_view name, const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeHorusPaperPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeHorusAsCodedPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeClwpNlwpPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeFirstFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeBestFitPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeRandomPolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeExclusivePolicy(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> MakeLeastUtilisedPolicy(const PolicyOptions& options);

struct PolicyEntry {
  std::string_view name;  // static text
  std::unique_ptr<Policy> (*make)(const PolicyOptions&);
};
// What the laboratory adds. Each library says at link time whether it has it: place/no_lab.cc or lab/policies.
[[nodiscard]] std::span<const PolicyEntry> LabPolicies();

enum class SynergyRule : uint8_t;
[[nodiscard]] std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options);

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

#endif  // HORUS_PLACE_POLICIES_BUILTIN_H_
