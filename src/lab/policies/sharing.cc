// SPDX-License-Identifier: Apache-2.0
// How systems that share GPUs choose partners: gandiva, gavel-threshold, gavel-maxmin, lucid, muri, miso, pollux-avoid.
#include <algorithm>
#include <array>
#include <utility>

#include "base/draws.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "lab/policies/options.h"
#include "lab/policies/rivals.h"
#include "place/policies/policies.h"

namespace horus {

// gandiva: packs at random when no device is idle, and never again what did less work together than one job alone.
namespace {

constexpr double kWorthIt = 1.0;            // published: summed normalised throughput of one job alone
constexpr size_t kMostRemembered = 65'536;  // packs; a chosen limit, half a MiB

// Of a pack: GPU type, sharing mode and the profiles of its tenants, whatever their order; 0 where one has none.
uint64_t KeyOf(const DeviceContext& device, std::span<const Demand* const> tenants) {
  std::vector<uint64_t> profiles;
  profiles.reserve(tenants.size());
  for (const Demand* tenant : tenants) {
    if (tenant->profile_id == 0) return 0;
    profiles.push_back(tenant->profile_id);
  }
  std::ranges::sort(profiles);
  SecretHasher key;
  key.Add(device.type.value());
  key.Add(static_cast<uint64_t>(device.mode));
  for (const uint64_t profile : profiles) key.Add(profile);
  return key.Hash();
}

class GandivaPolicy final : public RivalPolicy {
 public:
  explicit GandivaPolicy(const PolicyOptions& options) : seed_(options.seed) {}
  GandivaPolicy(uint64_t seed, std::vector<uint64_t> bad) : seed_(seed), bad_(std::move(bad)) {}
  std::string_view name() const override { return "gandiva"; }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return true; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    return {.cost = TierOf(candidate), .declined = IsBad(candidate)};
  }

  double ScorePlace(const PlaceCandidate& place) const override {
    const uint64_t draw =
        CombineHash(CombineHash(CombineHash(seed_, place.job), place.node), static_cast<uint64_t>(place.device));
    return UnitOf(draw);
  }

  absl::StatusOr<Revision> Revise(const ObservedSharing& observed) const override {
    if (const absl::Status status = CheckObserved(observed); !status.ok()) return status;
    Revision revision;
    if (observed.demands.size() < 2) return revision;
    double sum = 0;
    for (const double throughput : observed.throughput) sum += throughput;
    revision.undo = sum < kWorthIt;
    const uint64_t key = KeyOf(observed.device, observed.demands);
    const auto at = std::lower_bound(bad_.begin(), bad_.end(), key);
    const bool known = at != bad_.end() && *at == key;
    if (key == 0 || known == revision.undo || (revision.undo && bad_.size() >= kMostRemembered)) return revision;
    std::vector<uint64_t> bad = bad_;
    const auto there = bad.begin() + (at - bad_.begin());
    if (revision.undo) {
      bad.insert(there, key);
    } else {
      bad.erase(there);  // what does well by now may be tried again
    }
    revision.policy = std::make_unique<GandivaPolicy>(seed_, std::move(bad));
    return revision;
  }

 private:
  // The pack as a whole, or the newcomer beside one of the residents.
  [[nodiscard]] bool IsBad(const DeviceCandidate& candidate) const {
    if (candidate.residents() == 0 || bad_.empty()) return false;
    const auto remembered = [&](std::span<const Demand* const> tenants) {
      const uint64_t key = KeyOf(candidate.device, tenants);
      return key != 0 && std::binary_search(bad_.begin(), bad_.end(), key);
    };
    if (remembered(candidate.demands)) return true;
    for (size_t i = 0; i < candidate.residents(); ++i) {
      const std::array<const Demand*, 2> pair = {candidate.demands[i], &candidate.newcomer()};
      if (remembered(pair)) return true;
    }
    return false;
  }

  uint64_t seed_;
  std::vector<uint64_t> bad_;  // keys of packs, ascending
};

// gavel-threshold: two jobs share a device only where their summed normalised throughput is predicted above a
// threshold.
constexpr size_t kMostResidents = 1;  // pairs, as published
constexpr double kPairTenants = 2;    // no pair can do more work than this

class GavelThresholdPolicy final : public RivalPolicy {
 public:
  explicit GavelThresholdPolicy(const PolicyOptions& options) : threshold_(LabOf(options).pack_threshold) {}
  std::string_view name() const override { return "gavel-threshold"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    if (candidate.residents() == 0) {
      return {.cost = 1 - candidate.relative_speed};  // heterogeneity-aware: the fastest type first
    }
    double sum = 0;
    for (const Slowdown& tenant : candidate.after) sum += Throughput(tenant);
    return {.cost = TierOf(candidate) + kPairTenants - sum,
            .declined = candidate.residents() > kMostResidents || sum <= threshold_};
  }

 private:
  double threshold_;
};

// gavel-maxmin: the place after which the worst-off job concerned fares best, speeds of GPU types included.
// They order places that leave the worst-off job alike, and stay below what predictions can tell apart.
constexpr double kWorkWeight = 1e-3;
constexpr double kResidentWeight = 1e-6;

struct Parts {
  double worst = 1;  // least normalised throughput of those concerned
  double work = 0;   // normalised throughput won by all of them together
};

Parts PartsOf(const DeviceCandidate& candidate) {
  Parts parts;
  for (size_t i = 0; i < candidate.residents(); ++i) {
    parts.worst = std::min(parts.worst, Throughput(candidate.after[i]));
    parts.work += Throughput(candidate.after[i]) - Throughput(candidate.before[i]);
  }
  const double own = candidate.relative_speed * Throughput(candidate.after.back());
  parts.worst = std::min(parts.worst, own);
  parts.work += own;
  return parts;
}

class GavelMaxminPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "gavel-maxmin"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    const Parts parts = PartsOf(candidate);
    return {
        .cost = -parts.worst - kWorkWeight * parts.work + kResidentWeight * static_cast<double>(candidate.residents()),
        .declined = candidate.residents() > kMostResidents};
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/, CostTerms& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"worst_off", -parts.worst});
    terms.push_back({"work", -kWorkWeight * parts.work});
    terms.push_back({"residents", kResidentWeight * static_cast<double>(candidate.residents())});
  }
};

// lucid: pairs whose sharing classes, by predicted pair speed, sum to at most two; idle devices first.
// All published (Lucid, ASPLOS 2023).
constexpr double kTinySpeed = 0.95;  // class 0 from here on
constexpr double kMediumSpeed = 0.85;
constexpr int kMostClasses = 2;

int SharingClass(double speed) {
  if (speed >= kTinySpeed) return 0;
  return speed >= kMediumSpeed ? 1 : 2;
}

class LucidPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "lucid"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    if (candidate.residents() == 0) return {};
    int classes = 0;
    bool alike = true;  // a pair has the same number of GPUs
    for (size_t i = 0; i < candidate.after.size(); ++i) {
      classes += SharingClass(Throughput(candidate.after[i]));
      alike &= candidate.tenants[i]->gpus == candidate.tenants.back()->gpus;
    }
    return {.cost = TierOf(candidate) + static_cast<double>(classes),
            .declined = candidate.residents() > kMostResidents || classes > kMostClasses || !alike};
  }
};

// muri: jobs whose stages complement each other take turns on host, arithmetic and memory; idle devices first.
// What a step does one after the other, as far as a demand tells; see src/place/policies/README.md.
constexpr size_t kStages = 3;  // host, arithmetic, device memory
using Stages = std::array<double, kStages>;

// In units of the step's time, or in microseconds where every tenant's is known.
Stages StagesOf(const Demand& demand, bool timed) {
  const double busy = std::clamp(static_cast<double>(demand.gpu_util_pct.estimate) / 100.0, 0.0, 1.0);
  const double memory = std::clamp(static_cast<double>(demand.mem_bw_util_pct.estimate) / 100.0, 0.0, busy);
  const double step = timed ? static_cast<double>(demand.step_time_us.estimate) : 1.0;
  return {(1 - busy) * step, (busy - memory) * step, memory * step};
}

// The time of one round in which each job does one step, the i-th job `offsets[i]` stages ahead.
double RoundTime(std::span<const Stages> jobs, const std::array<size_t, kStages>& offsets) {
  double time = 0;
  for (size_t slot = 0; slot < kStages; ++slot) {
    double longest = 0;
    for (size_t i = 0; i < jobs.size(); ++i) longest = std::max(longest, jobs[i][(slot + offsets[i]) % kStages]);
    time += longest;
  }
  return time;
}

// Share of the round in which a resource is busy, mean over the resources, for the best order: 1 = no gap.
double Efficiency(std::span<const Stages> jobs) {
  double work = 0;
  for (const Stages& job : jobs) work += job[0] + job[1] + job[2];
  if (work <= 0) return 0;
  // Only differences matter, so the first job never moves: two orders for two jobs and for three.
  const double best = std::min(RoundTime(jobs, {0, 1, 2}), RoundTime(jobs, {0, 2, 1}));
  return work / (static_cast<double>(kStages) * best);
}

class MuriPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "muri"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    if (candidate.residents() == 0) return {};
    if (candidate.demands.size() > kStages) return {.declined = true};  // one job a stage: the rest would wait
    const bool timed =
        std::ranges::all_of(candidate.demands, [](const Demand* demand) { return demand->step_time_us.estimate > 0; });
    std::array<Stages, kStages> jobs;
    for (size_t i = 0; i < candidate.demands.size(); ++i) jobs[i] = StagesOf(*candidate.demands[i], timed);
    return {.cost = TierOf(candidate) + 1 - Efficiency(std::span(jobs).first(candidate.demands.size()))};
  }
};

// miso: one job an instance, where its predicted speed is best; of equal ones the smallest instance.
// Orders instances on which the job is (nearly) as fast: below what predicted speeds can tell apart.
constexpr double kShareWeight = 1e-3;

class MisoPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "miso"; }

  // Instances do not disturb each other, so the best total speed is the newcomer's best speed.
  DeviceScore Price(const DeviceCandidate& candidate) const override {
    return {.cost = -candidate.relative_speed + kShareWeight * static_cast<double>(candidate.device.compute_share),
            .declined = candidate.residents() > 0};
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/, CostTerms& terms) const override {
    terms.push_back({"speed", -candidate.relative_speed});
    terms.push_back({"instance", kShareWeight * static_cast<double>(candidate.device.compute_share)});
  }
};

// pollux-avoid: one job a GPU, and at most one distributed job a node, so that none waits for another's all-reduce.
class PolluxAvoidPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "pollux-avoid"; }
  bool admits_nodes() const override { return true; }

  bool AdmitsNode(const NodeAdmission& node) const override {
    return node.job->tasks == 1 || node.job->gpus_per_task == 0 || !node.holds_distributed;
  }

  DeviceScore Price(const DeviceCandidate& candidate) const override { return {.declined = candidate.residents() > 0}; }
};

constexpr PolicyEntry kPolicies[] = {{"gandiva", PolicyOf<GandivaPolicy>},
                                     {"gavel-threshold", PolicyOf<GavelThresholdPolicy>},
                                     {"gavel-maxmin", PolicyOf<GavelMaxminPolicy>},
                                     {"lucid", PolicyOf<LucidPolicy>},
                                     {"muri", PolicyOf<MuriPolicy>},
                                     {"miso", PolicyOf<MisoPolicy>},
                                     {"pollux-avoid", PolicyOf<PolluxAvoidPolicy>}};

}  // namespace

std::span<const PolicyEntry> SharingPolicies() { return kPolicies; }

}  // namespace horus
