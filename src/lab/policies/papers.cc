// SPDX-License-Identifier: Apache-2.0
// The systems of the papers: horus-paper, horus-as-coded, clwp-nlwp.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "base/draws.h"
#include "base/hash.h"
#include "base/units.h"
#include "interference/laws.h"
#include "lab/policies/rivals.h"
#include "place/policies/policies.h"
#include "place/state/communication.h"

namespace horus {

// horus-paper: the published cost (Horus, TPDS 2022), as intended: over-commit penalised, never forbidden.

namespace {

// All from the publication.
constexpr double kMemoryWeight = 1.3;
constexpr double kOverCommitWeight = 1.6;  // against 1 for what is left unused
constexpr double kFullPct = 100.0;
constexpr size_t kMaxTenants = 3;
constexpr int64_t kFreeMib = 500;

struct Parts {
  double memory = 0;
  double utilisation = 0;
  double residents = 0;
};

class HorusPaperPolicy : public RivalPolicy {
 public:
  std::string_view name() const override { return "horus-paper"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    const Parts parts = PartsOf(candidate);
    const int64_t free = candidate.mem_mib - candidate.mem_used_mib - candidate.newcomer().mem_mib.estimate;
    return {.cost = parts.memory + parts.utilisation + parts.residents,
            .declined = candidate.residents() >= kMaxTenants || free <= kFreeMib};
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/, CostTerms& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"memory", parts.memory});
    terms.push_back({"utilisation", parts.utilisation});
    terms.push_back({"residents", parts.residents});
  }

 private:
  // Of the newcomer and the tenants there, by the device's memory.
  [[nodiscard]] virtual double MemoryPart(const DeviceCandidate& candidate) const {
    const int64_t memory = candidate.mem_used_mib + candidate.newcomer().mem_mib.estimate;
    return candidate.mem_mib > 0 ? kMemoryWeight * static_cast<double>(memory) / static_cast<double>(candidate.mem_mib)
                                 : 0;
  }
  [[nodiscard]] virtual double ResidentUtilPct(const DeviceCandidate& candidate, size_t i) const {
    return static_cast<double>(candidate.demands[i]->gpu_util_pct.estimate);
  }

  [[nodiscard]] Parts PartsOf(const DeviceCandidate& candidate) const {
    const auto share = static_cast<double>(candidate.device.compute_share);
    double now = 0;
    for (size_t i = 0; i < candidate.residents(); ++i) now += SliceUtilPct(ResidentUtilPct(candidate, i), share);
    const double excess =
        now + SliceUtilPct(static_cast<double>(candidate.newcomer().gpu_util_pct.upper), share) - kFullPct;
    return {.memory = MemoryPart(candidate),
            .utilisation = (excess > 0 ? kOverCommitWeight * excess : std::abs(excess)) / kFullPct,
            .residents = static_cast<double>(candidate.residents())};
  }
};

// horus-as-coded: the published cost as the authors' public simulator computes it, its slips included.

// Of the public simulator.
constexpr double kNodeScoreStart = 999.0;  // the least over the devices starts here, so nothing above it counts

// In (0, 1).
double Uniform(uint64_t draw) {
  return UnitOf(draw) + 0x1p-54;  // half a step
}

// Standard normal (Box and Muller 1958).
double Normal(uint64_t draw) {
  return std::sqrt(-2 * std::log(Uniform(draw))) * std::cos(2 * std::numbers::pi * Uniform(Mix64(draw)));
}

class HorusAsCodedPolicy final : public HorusPaperPolicy {
 public:
  explicit HorusAsCodedPolicy(const PolicyOptions& options) : seed_(options.seed) {}
  std::string_view name() const override { return "horus-as-coded"; }
  bool PricesNode(const JobSpec& job) const override { return job.gpus_per_task > 0; }
  bool node_uses_devices() const override { return true; }

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

 private:
  // MiB in use plus a ratio, as coded: it should have been the ratio of the sum.
  [[nodiscard]] double MemoryPart(const DeviceCandidate& candidate) const override {
    const double needed = candidate.mem_mib > 0 ? static_cast<double>(candidate.newcomer().mem_mib.estimate) /
                                                      static_cast<double>(candidate.mem_mib)
                                                : 0;
    return kMemoryWeight * (static_cast<double>(candidate.mem_used_mib) + needed);
  }
  [[nodiscard]] double ResidentUtilPct(const DeviceCandidate& candidate, size_t i) const override {
    const Bounded& util = candidate.demands[i]->gpu_util_pct;
    const auto mean = static_cast<double>(util.estimate);
    const double spread = (static_cast<double>(util.upper) - mean) / 2;
    // One lot per job class and device state: a price that changed from call to call could not be explained.
    const uint64_t lot =
        CombineHash(CombineHash(CombineHash(seed_, candidate.tenants.back()->order), candidate.tenants[i]->order), i);
    return std::clamp(mean + spread * Normal(lot), 0.0, kFullPct);
  }

  uint64_t seed_;
};

// clwp-nlwp: the node by the interference expected on it, the GPUs inside by predicted performance and communication.

// What predicted performance is lost by everyone there, the job included.
double Interference(const DeviceCandidate& candidate) {
  double loss = static_cast<double>(candidate.after.back().estimate) - 1;
  for (size_t i = 0; i < candidate.residents(); ++i)
    loss += static_cast<double>(candidate.after[i].estimate) - static_cast<double>(candidate.before[i].estimate);
  return loss;
}

// NLWP: the cheapest devices of an island, a switch, a socket, or of the whole node, whichever costs least with the
// time of a step's all-reduce as a share of the step.
class Choice {
 public:
  Choice(const NodeCandidate& candidate, bool links)
      : candidate_(candidate), wanted_(static_cast<size_t>(candidate.job->gpus_per_task)), links_(links) {}

  std::vector<int32_t> Best() {
    for (size_t i = 0; i < candidate_.devices.size(); ++i)
      if (candidate_.devices[i].fits) order_.push_back(static_cast<int32_t>(i));
    Consider(Reach::kNode);
    if (links_ && wanted_ > 1 && candidate_.spec != nullptr) {
      for (const Reach reach : {Reach::kSocket, Reach::kSwitch, Reach::kIsland}) Consider(reach);
    }
    std::ranges::sort(best_);
    return best_;
  }

 private:
  [[nodiscard]] const NodeDevice& At(int32_t device) const { return candidate_.devices[static_cast<size_t>(device)]; }
  [[nodiscard]] int32_t Part(int32_t device, Reach reach) const {
    return reach == Reach::kNode ? 0 : PartOf(candidate_.spec->devices[static_cast<size_t>(device)], reach);
  }
  [[nodiscard]] double Communication(int32_t device, Reach reach) const {
    const Demand* demand = FindDemand(*candidate_.job, At(device).type);
    if (!links_ || demand == nullptr || candidate_.spec == nullptr) return 0;
    const double link = LinkMbPerS(candidate_.spec->devices[static_cast<size_t>(device)], reach);
    return CommunicationShare(*demand, RingUs(static_cast<double>(demand->gradient_mib), wanted_, link));
  }

  void Consider(Reach reach) {
    const auto key = [&](int32_t device) { return std::tuple(At(device).group, Part(device, reach)); };
    std::ranges::sort(order_, [&](int32_t a, int32_t b) {
      return std::tuple(key(a), At(a).cost, a) < std::tuple(key(b), At(b).cost, b);
    });
    for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      while (end < order_.size() && key(order_[end]) == key(order_[begin])) ++end;
      const bool no_island = reach == Reach::kIsland && Part(order_[begin], reach) < 0;
      if (end - begin < wanted_ || no_island) continue;
      double cost = Communication(order_[begin], reach);
      for (size_t i = begin; i < begin + wanted_; ++i) cost += At(order_[i]).cost;
      if (!best_.empty() && cost >= cost_) continue;
      cost_ = cost;
      best_.assign(order_.begin() + static_cast<ptrdiff_t>(begin),
                   order_.begin() + static_cast<ptrdiff_t>(begin + wanted_));
    }
  }

  const NodeCandidate& candidate_;
  size_t wanted_;
  bool links_;
  std::vector<int32_t> order_;  // fitting devices
  std::vector<int32_t> best_;
  double cost_ = 0;
};

class ClwpNlwpPolicy final : public RivalPolicy {
 public:
  explicit ClwpNlwpPolicy(const PolicyOptions& options) : links_(options.links) {}
  std::string_view name() const override { return "clwp-nlwp"; }
  bool PricesNode(const JobSpec& job) const override { return job.gpus_per_task > 0; }
  bool node_uses_devices() const override { return true; }

  DeviceScore Price(const DeviceCandidate& candidate) const override { return {.cost = Interference(candidate)}; }

  // CLWP: the mean over the devices that fit, as the job's GPUs are not chosen yet; per GPU of the task.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    double sum = 0;
    double fitting = 0;
    for (const NodeDevice& device : candidate.devices) {
      if (!device.fits) continue;
      sum += device.cost;
      ++fitting;
    }
    score.cost = fitting > 0 ? sum / fitting * static_cast<double>(candidate.job->gpus_per_task) : 0;
    score.devices = Choice(candidate, links_).Best();
    return absl::OkStatus();
  }

 private:
  bool links_;
};

constexpr PolicyEntry kPolicies[] = {{"horus-paper", PolicyOf<HorusPaperPolicy>},
                                     {"horus-as-coded", PolicyOf<HorusAsCodedPolicy>},
                                     {"clwp-nlwp", PolicyOf<ClwpNlwpPolicy>}};

}  // namespace

std::unique_ptr<RivalPolicy> MakeHorusPaperPolicy() { return std::make_unique<HorusPaperPolicy>(); }

std::span<const PolicyEntry> PaperPolicies() { return kPolicies; }

}  // namespace horus
