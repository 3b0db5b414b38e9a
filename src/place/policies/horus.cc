// SPDX-License-Identifier: Apache-2.0
// horus: most expected useful work, so that sharing happens where it pays and nowhere else.
#include <algorithm>

#include "place/policies/builtin.h"

namespace horus {
namespace {

// One unit of cost is one job alone on its fastest GPU. These weights only order places of (nearly) equal
// gain: together they stay below half a per cent of a job, less than predictions can tell apart.
constexpr double kMemoryLeftWeight = 1e-3;  // prefer the device whose memory the job fills best
constexpr double kOpensIdleWeight = 2e-3;   // keep idle devices for those who need them whole
constexpr double kIdleNodeWeight = 1e-3;    // keep idle nodes for gangs

// A share that gains no more than this in all is declined: waiting costs nobody anything.
constexpr double kMinGain = 0.0;

// "No tenant slower than 1.5 x", the bound that the literature's users ask for.
constexpr double kDefaultBound = 1.5;

struct Gain {
  double newcomer = 0;
  double neighbours = 0;  // <= 0: what they lose
};

// Normalised throughput that the device wins and loses, by the estimates.
Gain GainOf(const DeviceCandidate& candidate) {
  Gain gain;
  for (size_t i = 0; i < candidate.residents(); ++i) {
    gain.neighbours += 1.0 / static_cast<double>(candidate.after[i].estimate) -
                       1.0 / static_cast<double>(candidate.before[i].estimate);
  }
  gain.newcomer = candidate.relative_speed / static_cast<double>(candidate.after.back().estimate);
  return gain;
}

double MemoryLeft(const DeviceCandidate& candidate) {
  const int64_t left = candidate.mem_mib - candidate.mem_used_upper_mib - candidate.newcomer().mem_mib.upper;
  return static_cast<double>(std::max(left, int64_t{0})) / static_cast<double>(std::max(candidate.mem_mib, int64_t{1}));
}

double IdleShare(const PlaceCandidate& place) {
  return static_cast<double>(place.node_idle_devices) / static_cast<double>(std::max(place.node_devices, 1));
}

class HorusPolicy final : public Policy {
 public:
  explicit HorusPolicy(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  double default_slowdown_bound() const override { return kDefaultBound; }
  bool uses_place() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const Gain gain = GainOf(candidate);
    const double total = gain.newcomer + gain.neighbours;
    score.declined = total <= kMinGain;
    score.cost =
        -total + kMemoryLeftWeight * MemoryLeft(candidate) + (candidate.residents() == 0 ? kOpensIdleWeight : 0);
    return absl::OkStatus();
  }

  double ScorePlace(const PlaceCandidate& place) const override { return kIdleNodeWeight * IdleShare(place); }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place,
               std::vector<CostTerm>& terms) const override {
    const Gain gain = GainOf(candidate);
    terms.push_back({"newcomer_work", -gain.newcomer});
    terms.push_back({"neighbours_loss", -gain.neighbours});
    terms.push_back({"memory_left", kMemoryLeftWeight * MemoryLeft(candidate)});
    terms.push_back({"opens_idle_device", candidate.residents() == 0 ? kOpensIdleWeight : 0});
    terms.push_back({"idle_node", kIdleNodeWeight * IdleShare(place)});
  }

 private:
  std::string_view name_;
};

}  // namespace

std::unique_ptr<Policy> MakeHorusPolicyAs(std::string_view name, const PolicyOptions& /*options*/) {
  return std::make_unique<HorusPolicy>(name);
}

std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options) { return MakeHorusPolicyAs("horus", options); }

}  // namespace horus
