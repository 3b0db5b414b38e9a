// SPDX-License-Identifier: Apache-2.0
// Rules of thumb: best-fit, random, least-utilised; and what policies that price nodes have in common.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/draws.h"
#include "base/hash.h"
#include "base/units.h"
#include "interference/laws.h"
#include "lab/policies/rivals.h"
#include "place/policies/policies.h"

namespace horus {

// ---- Sums over a node's devices and the usual choice among them.

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

absl::Status PointsPolicy::ScoreNode(const NodeCandidate& candidate, NodeScore& score) const {
  ChooseDevices(candidate, score.devices);
  score.cost = -Points(candidate);
  return absl::OkStatus();
}

// best-fit: the place that keeps least free. Sharers: memory of the device; hard requests: CPU and GPUs of the node.

namespace {

class BestFitPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "best-fit"; }
  // What a sharer without a request leaves is its memory's matter.
  bool PricesNode(const JobSpec& job) const override { return job.gpu_milli > 0 || IsCpuOnly(job); }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    const int64_t left = candidate.MemoryLeftMib();
    return {.cost = static_cast<double>(left) / static_cast<double>(std::max(candidate.mem_mib, int64_t{1}))};
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

// random: lots drawn from a hash of seed, job, node and device; the lowest wins. Hard requests draw a node, then its
// device; sharers draw among all devices.

class RandomPolicy final : public RivalPolicy {
 public:
  explicit RandomPolicy(const PolicyOptions& options) : seed_(options.seed) {}
  std::string_view name() const override { return "random"; }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return true; }
  bool PricesNode(const JobSpec& job) const override { return job.gpu_milli > 0 || IsCpuOnly(job); }
  bool draws() const override { return true; }

  double ScorePlace(const PlaceCandidate& place) const override {
    return UnitOf(Lot(Lot(Lot(seed_, place.job), place.node), static_cast<uint64_t>(place.device)));
  }

  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    ChooseDevices(candidate, score.devices);
    score.cost = 0;
    if (!IsShare(candidate)) return absl::OkStatus();
    const uint64_t lot = Lot(Lot(seed_, candidate.job->id), candidate.node);
    uint64_t lowest = 0;
    score.devices.clear();
    for (size_t i = 0; i < candidate.devices.size(); ++i) {
      const uint64_t one = Lot(lot, i);
      if (!candidate.devices[i].fits || (!score.devices.empty() && one >= lowest)) continue;
      lowest = one;
      score.devices.assign(1, static_cast<int32_t>(i));
    }
    return absl::OkStatus();
  }

  double Draw(JobId job, NodeId node) const override { return UnitOf(Lot(Lot(seed_, job), node)); }

 private:
  static uint64_t Lot(uint64_t seed, uint64_t part) { return CombineHash(seed, part); }

  uint64_t seed_;
};

// least-utilised: the device whose residents keep it least busy; no interference model.

class LeastUtilisedPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "least-utilised"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    DeviceScore score;
    for (const Demand* resident : candidate.demands.first(candidate.residents())) {
      score.cost += SliceUtilPct(static_cast<double>(resident->gpu_util_pct.estimate),
                                 static_cast<double>(candidate.device.compute_share));
    }
    return score;
  }
};

constexpr PolicyEntry kPolicies[] = {{"best-fit", PolicyOf<BestFitPolicy>},
                                     {"random", PolicyOf<RandomPolicy>},
                                     {"least-utilised", PolicyOf<LeastUtilisedPolicy>}};

}  // namespace

std::span<const PolicyEntry> PlainPolicies() { return kPolicies; }

}  // namespace horus
