// SPDX-License-Identifier: Apache-2.0
// Policies that the laboratory adds to those of the placer, by name; those that pack requests, and those that part jobs
// by rank or knowledge.
#include "place/policies/policies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "base/units.h"
#include "lab/policies/options.h"
#include "lab/policies/rivals.h"
#include "lab/synergy/plan_round.h"
#include "place/policies/workload.h"
#include "place/state/fit.h"

namespace horus {

// ---- Policies that pack requests: fgd, dotprod, gpu-packing, gpu-clustering.

// fgd: fragmentation gradient descent (ATC 2023): the node whose free GPUs stay most useful for typical tasks.

namespace {

constexpr size_t kUsualDevices = 16;
constexpr double kScoreSteps = 100;  // of the publication: scores are whole numbers from 0 to 100

class FgdPolicy final : public RivalPolicy {
 public:
  explicit FgdPolicy(const PolicyOptions& options)
      : workload_(options.workload != nullptr ? options.workload : Workload::WholeGpus()) {}
  std::string_view name() const override { return "fgd"; }
  bool PricesNode(const JobSpec& /*job*/) const override { return true; }

  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    absl::InlinedVector<FreeGpu, kUsualDevices> gpus;
    for (const NodeDevice& device : candidate.devices) gpus.push_back({device.type, device.free_milli});
    const double before = workload_->Fragment(candidate.cpu_free_milli, gpus);
    const auto points = [&] {
      const double after = workload_->Fragment(candidate.cpu_free_milli - candidate.job->cpu_milli, gpus);
      return std::floor(kScoreSteps / (1 + std::exp((after - before) / kMilliPerGpu)));
    };
    if (!IsShare(candidate)) {
      ChooseDevices(candidate, score.devices);
      for (const int32_t device : score.devices) gpus[static_cast<size_t>(device)].free_milli -= candidate.gpu_milli;
      score.cost = -points();
      return absl::OkStatus();
    }
    score.cost = 1;  // above any
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (!candidate.devices[i].fits || SeenBefore(candidate.devices, i)) continue;
      gpus[i].free_milli -= candidate.gpu_milli;
      if (const double cost = -points(); cost < score.cost) {
        score.cost = cost;
        score.devices.assign(1, static_cast<int32_t>(i));
      }
      gpus[i].free_milli += candidate.gpu_milli;
    }
    return absl::OkStatus();
  }

 private:
  // An equal device came before: it scores the same, and the first of equals is taken.
  static bool SeenBefore(std::span<const NodeDevice> devices, size_t index) {
    for (size_t i = 0; i < index; ++i) {
      if (devices[i].fits && devices[i].free_milli == devices[index].free_milli &&
          devices[i].type == devices[index].type) {
        return true;
      }
    }
    return false;
  }

  std::shared_ptr<const Workload> workload_;
};

// dotprod: the node whose free CPU and GPU point least in the direction of the request, as the FGD simulator has it.

class DotProdPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "dotprod"; }

 private:
  // CPU and GPUs of the node, all GPUs merged, times those of the request; in whole points from 0 to 100.
  double Points(const NodeCandidate& candidate) const override {
    const double cpu = static_cast<double>(candidate.cpu_free_milli) / kMaxNodeCpuMilli *
                       (static_cast<double>(candidate.job->cpu_milli) / kMaxNodeCpuMilli);
    const double gpu = static_cast<double>(FreeMilli(candidate)) / kMaxNodeGpuMilli *
                       (static_cast<double>(RequestMilli(candidate)) / kMaxNodeGpuMilli);
    return std::floor(100 * (1 - (cpu + gpu) / 2));
  }
};

// gpu-packing: used GPUs before idle ones, used nodes before idle ones, as the FGD simulator has it.

class GpuPackingPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-packing"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    const auto count = static_cast<int32_t>(candidate.devices.size());
    const bool idle = std::ranges::all_of(candidate.devices,
                                          [](const NodeDevice& device) { return device.free_milli == kMilliPerGpu; });
    if (idle) return kIdleNode - count;
    if (!IsShare(candidate)) return kIdleGpu - candidate.job->gpus_per_task;
    const int32_t left = candidate.devices[static_cast<size_t>(TightestDevice(candidate))].free_milli;
    return left == kMilliPerGpu ? kIdleGpu - 1 : kUsedGpu - left / kMilliPerPoint;
  }

  // Three bands of points: used GPUs, idle GPUs of used nodes, idle nodes; inside, the smaller the better.
  static constexpr int32_t kUsedGpu = 100;
  static constexpr int32_t kIdleGpu = 50;
  static constexpr int32_t kIdleNode = 33;
  static constexpr int32_t kMilliPerPoint = 100;
};

// gpu-clustering: jobs beside their own kind (share, 1 GPU, 2 GPUs, ...), as the FGD simulator has it.

class GpuClusteringPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-clustering"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    uint64_t kinds = 0;
    for (const NodeDevice& device : candidate.devices) kinds |= device.kinds;
    return kFullness * (kMaxNodeGpuMilli - FreeMilli(candidate)) / kMaxNodeGpuMilli + Company(kinds, candidate.kind);
  }

  static int32_t Company(uint64_t kinds, uint64_t own) {
    if (kinds == own) return 75;
    if ((kinds & own) != 0) return 50;
    return kinds == 0 ? 25 : 0;
  }

  static constexpr int32_t kFullness = 25;  // points of a node without free GPUs; whole numbers, rounded down
};

// ---- Policies that part jobs by rank or knowledge: foreground, filler, reactive.

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
      if (!best_effort && !IsBackgroundTo(newcomer, resident) && !IsBackgroundTo(resident, newcomer)) {
        score.declined = true;
      }
      if (IsBackgroundTo(newcomer, resident) && !Holds(resident, candidate.before[i], candidate.after[i])) {
        score.declined = true;
      }
      if (IsBackgroundTo(resident, newcomer) && !Holds(newcomer, Slowdown(), candidate.after.back())) {
        score.declined = true;
      }
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
    const auto at = std::lower_bound(labels.begin(), labels.end(), label_,
                                     [](const auto& label, const std::string& key) { return label.first < key; });
    const bool profiles = at != labels.end() && at->first == label_;
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

constexpr PolicyEntry kPacking[] = {{"fgd", PolicyOf<FgdPolicy>},
                                    {"dotprod", PolicyOf<DotProdPolicy>},
                                    {"gpu-packing", PolicyOf<GpuPackingPolicy>},
                                    {"gpu-clustering", PolicyOf<GpuClusteringPolicy>},
                                    {"reactive", PolicyOf<ReactivePolicy>}};
constexpr PolicyEntry kOthers[] = {
    {"foreground", PolicyOf<ForegroundPolicy>},
    {"filler", PolicyOf<FillerPolicy>},
    // The objective of horus, for a placer whose model is the truth; a name of its own for tables.
    {"oracle", [](const PolicyOptions& options) { return MakeHorusPolicy(options, "oracle"); }},
    {"synergy-greedy", MakeSynergy<SynergyRule::kGreedy>},
    {"synergy-fair", MakeSynergy<SynergyRule::kFair>},
    {"synergy-tune", MakeSynergy<SynergyRule::kTune>},
    {"synergy-opt", MakeSynergy<SynergyRule::kOpt>},
};

}  // namespace

// In the order in which they are told, which stays.
std::span<const PolicyEntry> LabPolicyEntries() {
  static const auto all = [] {
    std::array<PolicyEntry, 25> joined;
    auto at = joined.begin();
    for (const std::span<const PolicyEntry> part :
         {PlainPolicies(), PaperPolicies(), std::span<const PolicyEntry>(kPacking), SharingPolicies(),
          std::span<const PolicyEntry>(kOthers)}) {
      at = std::ranges::copy(part, at).out;
    }
    return joined;
  }();
  return all;
}

absl::Status CheckLabOptions(const PolicyOptions& given) {
  const LabPolicyOptions options = LabOf(given);
  if (!(options.pack_threshold >= 0 && std::isfinite(options.pack_threshold))) {
    return InvalidArgument("policy: pack_threshold: expected 0 or more, found %g", options.pack_threshold);
  }
  if (!(options.foreground_bound >= 1)) {  // infinity is legal
    return InvalidArgument("policy: foreground_bound: expected 1 or more, found %g", options.foreground_bound);
  }
  if (options.profiling_label.empty() || options.profiling_label.size() > kMaxNameBytes) {
    return InvalidArgument("policy: profiling_label: expected 1 to %d bytes, found %d", kMaxNameBytes,
                           options.profiling_label.size());
  }
  if (!(options.synergy_tolerance >= 0 && options.synergy_tolerance < 1)) {
    return InvalidArgument("policy: synergy_tolerance: expected 0 to below 1, found %g", options.synergy_tolerance);
  }
  return absl::OkStatus();
}

}  // namespace horus
