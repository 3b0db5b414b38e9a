// SPDX-License-Identifier: Apache-2.0
// How systems that share GPUs choose partners: gandiva, gavel-threshold, gavel-maxmin, lucid, muri, miso, pollux-avoid,
// foreground, filler, reactive. And what the core is told of the laboratory: all its policies by name, and its models.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/draws.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "base/units.h"
#include "interference/pair_bundle.h"
#include "lab/models/learned_models.h"
#include "lab/policies/rivals.h"
#include "lab/synergy/round.h"
#include "place/state/fit.h"

namespace horus {
namespace {

// gandiva: packs at random when no device is idle, and never again what did less work together than one job alone.
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
constexpr double kMaxminResidentWeight = 1e-6;

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
    return {.cost = -parts.worst - kWorkWeight * parts.work +
                    kMaxminResidentWeight * static_cast<double>(candidate.residents()),
            .declined = candidate.residents() > kMostResidents};
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& /*place*/, CostTerms& terms) const override {
    const Parts parts = PartsOf(candidate);
    terms.push_back({"worst_off", -parts.worst});
    terms.push_back({"work", -kWorkWeight * parts.work});
    terms.push_back({"residents", kMaxminResidentWeight * static_cast<double>(candidate.residents())});
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

// foreground: one foreground job a device, and beside it only background that never slows it beyond its bound.
constexpr double kResidentWeight = 1e-3;  // among equal slowdowns the emptier device; chosen

bool IsBestEffort(const TenantClass& tenant) { return tenant.kind == JobKind::kBestEffort; }

// Best effort is background to everything else, a lower priority to a higher one.
bool IsBackgroundTo(const TenantClass& one, const TenantClass& other) {
  const auto rank = [](const TenantClass& tenant) { return std::tuple(!IsBestEffort(tenant), tenant.priority); };
  return rank(one) < rank(other);
}

class ForegroundPolicy final : public RivalPolicy {
 public:
  explicit ForegroundPolicy(const PolicyOptions& options) : bound_(LabOf(options).foreground_bound) {}
  std::string_view name() const override { return "foreground"; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    const TenantClass& newcomer = *candidate.tenants.back();
    DeviceScore score;
    for (size_t i = 0; i < candidate.residents(); ++i) {
      const TenantClass& resident = *candidate.tenants[i];
      const bool best_effort = IsBestEffort(newcomer) && IsBestEffort(resident);
      // Two foreground jobs of equal rank would each be the other's background.
      if (!best_effort && !IsBackgroundTo(newcomer, resident) && !IsBackgroundTo(resident, newcomer))
        score.declined = true;
      if (IsBackgroundTo(newcomer, resident) && !Holds(resident, candidate.before[i], candidate.after[i]))
        score.declined = true;
      if (IsBackgroundTo(resident, newcomer) && !Holds(newcomer, Slowdown(), candidate.after.back()))
        score.declined = true;
      score.cost +=
          static_cast<double>(candidate.after[i].estimate) - static_cast<double>(candidate.before[i].estimate);
    }
    score.cost += static_cast<double>(candidate.after.back().estimate) - 1 +
                  kResidentWeight * static_cast<double>(candidate.residents());
    return score;
  }

 private:
  // By upper bounds, as every limit. Who is beyond its bound already must not become slower.
  [[nodiscard]] bool Holds(const TenantClass& tenant, const Slowdown& before, const Slowdown& after) const {
    if (IsBestEffort(tenant)) return true;
    const double bound = tenant.promise.bound > 0 ? static_cast<double>(tenant.promise.bound) : bound_;
    return !IsBeyond(static_cast<double>(after.upper), bound) ||
           !IsBeyond(static_cast<double>(after.upper), static_cast<double>(before.upper));
  }

  double bound_;
};

// filler: best-effort jobs fill what is idle now; all others have devices to themselves but for fillers.
class FillerPolicy final : public RivalPolicy {
 public:
  std::string_view name() const override { return "filler"; }
  bool uses_place() const override { return true; }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    const auto residents = candidate.tenants.first(candidate.residents());
    const bool fillers_only = std::ranges::all_of(
        residents, [](const TenantClass* resident) { return resident->kind == JobKind::kBestEffort; });
    const bool is_filler = candidate.kind == JobKind::kBestEffort;
    return {.cost = TierOf(candidate), .declined = is_filler ? !residents.empty() : !fillers_only};
  }

  // Nodes that are partly in use first: an idle node stays whole for those who need all of it.
  double ScorePlace(const PlaceCandidate& place) const override {
    return static_cast<double>(place.node_idle_devices) / static_cast<double>(std::max(place.node_devices, 1));
  }
};

// reactive: jobs that nobody measured run alone on reserved GPUs; measured ones are placed like horus-paper elsewhere.
bool IsMeasured(const Demand& demand) { return (demand.flags & kDemandMeasured) != 0; }

class ReactivePolicy final : public RivalPolicy {
 public:
  explicit ReactivePolicy(const PolicyOptions& options)
      : label_(LabOf(options).profiling_label), packing_(MakeHorusPaperPolicy()) {}
  std::string_view name() const override { return "reactive"; }
  bool admits_nodes() const override { return true; }

  bool AdmitsNode(const NodeAdmission& node) const override {
    const auto& labels = node.node->labels;  // ascending by key
    const bool profiles = FindSorted(labels, label_, [](const auto& label) -> auto& { return label.first; }) != nullptr;
    const auto& demands = node.job->demands;
    const bool measured =
        std::ranges::any_of(demands, [](const TypeDemand& entry) { return IsMeasured(entry.demand); });
    return profiles != (measured || demands.empty());  // without GPUs there is nothing to profile
  }

  DeviceScore Price(const DeviceCandidate& candidate) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->Price(candidate);
    return {.declined = candidate.residents() > 0};
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const override {
    if (IsMeasured(candidate.newcomer())) return packing_->Explain(candidate, place, terms);
    Policy::Explain(candidate, place, terms);
  }

 private:
  std::string label_;
  std::unique_ptr<const RivalPolicy> packing_;
};

template <SynergyRule rule>
std::unique_ptr<Policy> MakeSynergy(const PolicyOptions& options) {
  return MakeSynergyPolicy(rule, options);
}

constexpr PolicyEntry kSharing[] = {
    {"reactive", PolicyOf<ReactivePolicy>},
    {"gandiva", PolicyOf<GandivaPolicy>},
    {"gavel-threshold", PolicyOf<GavelThresholdPolicy>},
    {"gavel-maxmin", PolicyOf<GavelMaxminPolicy>},
    {"lucid", PolicyOf<LucidPolicy>},
    {"muri", PolicyOf<MuriPolicy>},
    {"miso", PolicyOf<MisoPolicy>},
    {"pollux-avoid", PolicyOf<PolluxAvoidPolicy>},
    {"foreground", PolicyOf<ForegroundPolicy>},
    {"filler", PolicyOf<FillerPolicy>},
    // The objective of horus, for a placer whose model is the truth; a name of its own for tables.
    {"oracle", [](const PolicyOptions& options) { return MakeHorusPolicy(options, "oracle"); }},
    {"synergy-greedy", MakeSynergy<SynergyRule::kGreedy>},
    {"synergy-fair", MakeSynergy<SynergyRule::kFair>},
    {"synergy-tune", MakeSynergy<SynergyRule::kTune>},
    {"synergy-opt", MakeSynergy<SynergyRule::kOpt>},
};

// All of the laboratory by name, in the order in which they are told, which stays.
std::span<const PolicyEntry> AllPolicies() {
  static const auto all = [] {
    std::array<PolicyEntry, 25> joined;
    std::ranges::copy(kSharing, std::ranges::copy(PackingPolicies(), joined.begin()).out);
    return joined;
  }();
  return all;
}

// INVALID_ARGUMENT "policy: <field>: expected ..., found ...".
absl::Status CheckLabOptions(const PolicyOptions& given) {
  const LabPolicyOptions options = LabOf(given);
  if (!(options.pack_threshold >= 0 && std::isfinite(options.pack_threshold)))
    return InvalidArgument("policy: pack_threshold: expected 0 or more, found %g", options.pack_threshold);
  if (!(options.foreground_bound >= 1)) {  // infinity is legal
    return InvalidArgument("policy: foreground_bound: expected 1 or more, found %g", options.foreground_bound);
  }
  if (options.profiling_label.empty() || options.profiling_label.size() > kMaxNameBytes) {
    return InvalidArgument("policy: profiling_label: expected 1 to %d bytes, found %d", kMaxNameBytes,
                           options.profiling_label.size());
  }
  if (!(options.synergy_tolerance >= 0 && options.synergy_tolerance < 1))
    return InvalidArgument("policy: synergy_tolerance: expected 0 to below 1, found %g", options.synergy_tolerance);
  return absl::OkStatus();
}

constexpr std::array<PairModelReader, 3> kPairModels = {
    {{kBoostedName, ReadBoosted}, {kIaspName, ReadIasp}, {kIappName, ReadIapp}}};

// When the library or program that has the laboratory is loaded: before main or the end of dlopen, when nothing can ask
// yet. What is told are constants, so no order of initialisation matters.
[[gnu::constructor]] void Enter() {
  RegisterLabPolicies({AllPolicies(), CheckLabOptions});
  RegisterLabPairModels(kPairModels);
}

}  // namespace
}  // namespace horus
