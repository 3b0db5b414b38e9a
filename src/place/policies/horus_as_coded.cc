// SPDX-License-Identifier: Apache-2.0
// horus-as-coded: the published cost as the authors' public simulator computes it, its slips included.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/hash.h"
#include "interference/slice.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

// All from the publication and the public simulator.
constexpr double kMemoryWeight = 1.3;
constexpr double kOverCommitWeight = 1.6;
constexpr double kFullPct = 100.0;
constexpr double kNodeScoreStart = 999.0;  // the least over the devices starts here, so nothing above it counts
constexpr size_t kMaxTenants = 3;
constexpr int64_t kFreeMib = 500;
constexpr int kDoubleBits = 53;  // of a double's mantissa

// In (0, 1).
double Uniform(uint64_t draw) {
  return (static_cast<double>(draw >> (64 - kDoubleBits)) + 0.5) / static_cast<double>(uint64_t{1} << kDoubleBits);
}

// Standard normal (Box and Muller 1958).
double Normal(uint64_t draw) {
  return std::sqrt(-2 * std::log(Uniform(draw))) * std::cos(2 * std::numbers::pi * Uniform(Mix64(draw)));
}

struct Parts {
  double memory = 0;
  double utilisation = 0;
  double residents = 0;
};

class HorusAsCodedPolicy final : public Policy {
 public:
  explicit HorusAsCodedPolicy(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "horus-as-coded"; }
  bool PricesNode(const JobSpec& job) const override { return job.gpus_per_task > 0; }
  bool node_uses_devices() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const Parts parts = PartsOf(candidate);
    score.cost = parts.memory + parts.utilisation + parts.residents;
    const int64_t free = candidate.mem_mib - candidate.mem_used_mib - candidate.newcomer().mem_mib.estimate;
    score.declined = candidate.residents() >= kMaxTenants || free <= kFreeMib;
    return absl::OkStatus();
  }

  // Scores order nodes only; the devices inside are the first that fit.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    score.cost = kNodeScoreStart;
    score.devices.clear();
    const auto wanted = static_cast<size_t>(candidate.job->gpus_per_task);
    uint32_t group = 0;
    for (size_t i = 0; i < candidate.devices.size(); ++i) {
      const NodeDevice& device = candidate.devices[i];
      if (!device.fits) continue;
      score.cost = std::min(score.cost, device.cost);
      if (score.devices.empty()) group = device.group;
      if (device.group == group && score.devices.size() < wanted) score.devices.push_back(static_cast<int32_t>(i));
    }
    return absl::OkStatus();
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/,
               std::vector<CostTerm>& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"memory", parts.memory});
    terms.push_back({"utilisation", parts.utilisation});
    terms.push_back({"residents", parts.residents});
  }

 private:
  [[nodiscard]] Parts PartsOf(const DeviceCandidate& candidate) const {
    Parts parts;
    // MiB in use plus a ratio, as coded: it should have been the ratio of the sum.
    const double needed = candidate.mem_mib > 0 ? static_cast<double>(candidate.newcomer().mem_mib.estimate) /
                                                      static_cast<double>(candidate.mem_mib)
                                                : 0;
    parts.memory = kMemoryWeight * (static_cast<double>(candidate.mem_used_mib) + needed);
    const auto share = static_cast<double>(candidate.device.compute_share);
    double now = 0;
    for (size_t i = 0; i < candidate.residents(); ++i) {
      const Bounded& util = candidate.demands[i]->gpu_util_pct;
      const auto mean = static_cast<double>(util.estimate);
      const double spread = (static_cast<double>(util.upper) - mean) / 2;
      // One lot per job class and device state: a price that changed from call to call could not be explained.
      const uint64_t lot =
          CombineHash(CombineHash(CombineHash(seed_, candidate.tenants.back()->order), candidate.tenants[i]->order), i);
      now += SliceUtilPct(std::clamp(mean + spread * Normal(lot), 0.0, kFullPct), share);
    }
    const double excess =
        now + SliceUtilPct(static_cast<double>(candidate.newcomer().gpu_util_pct.upper), share) - kFullPct;
    parts.utilisation = (excess > 0 ? kOverCommitWeight * excess : std::abs(excess)) / kFullPct;
    parts.residents = static_cast<double>(candidate.residents());
    return parts;
  }

  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> MakeHorusAsCodedPolicy(const PolicyOptions& options) {
  return std::make_unique<HorusAsCodedPolicy>(options.seed);
}

}  // namespace horus
