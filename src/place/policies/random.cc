// SPDX-License-Identifier: Apache-2.0
// random: lots drawn from a hash of seed, job, node and device; the lowest wins. Hard requests draw a node, then its
// device; sharers draw among all devices.
#include <algorithm>

#include "base/hash.h"
#include "place/policies/builtin.h"
#include "place/policies/node_choice.h"

namespace horus {
namespace {

constexpr int kDoubleBits = 53;  // of a double's mantissa

class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "random"; }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return true; }
  bool PricesNode(const JobSpec& job) const override { return job.gpu_milli > 0 || IsCpuOnly(job); }
  bool draws() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = DeviceScore();
    return absl::OkStatus();
  }

  double ScorePlace(const PlaceCandidate& place) const override {
    return Unit(Lot(Lot(Lot(seed_, place.job), place.node), static_cast<uint64_t>(place.device)));
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

  double Draw(JobId job, NodeId node) const override { return Unit(Lot(Lot(seed_, job), node)); }

 private:
  static uint64_t Lot(uint64_t seed, uint64_t part) { return CombineHash(seed, part); }
  static double Unit(uint64_t lot) {
    return static_cast<double>(lot >> (64 - kDoubleBits)) / static_cast<double>(uint64_t{1} << kDoubleBits);
  }

  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> MakeRandomPolicy(const PolicyOptions& options) {
  return std::make_unique<RandomPolicy>(options.seed);
}

}  // namespace horus
