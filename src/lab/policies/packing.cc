// SPDX-License-Identifier: Apache-2.0
// Rules of thumb, the systems of the papers, and policies that pack requests: best-fit, random, least-utilised;
// horus-paper, horus-as-coded, clwp-nlwp; fgd, dotprod, gpu-packing, gpu-clustering.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "absl/container/inlined_vector.h"
#include "base/draws.h"
#include "base/hash.h"
#include "base/units.h"
#include "interference/laws.h"
#include "lab/policies/rivals.h"
#include "place/policies/workload.h"
#include "place/state/communication.h"
#include "place/state/fit.h"

namespace horus {
namespace {

// ---- What the policies that price nodes have in common: kinds of requests, sums over devices, devices inside a node.

// The fixed maxima of the FGD simulator (ATC 2023), not the node's own size.
constexpr double kMaxNodeCpuMilli = 128'000;
constexpr int32_t kMaxNodeGpuMilli = 8000;

// Part of one GPU; otherwise whole GPUs, or none.
bool IsShare(const NodeCandidate& candidate) {
  return candidate.job->gpus_per_task == 1 && candidate.gpu_milli < kMilliPerGpu;
}

// GPU milli of the task, and free on the node.
int32_t RequestMilli(const NodeCandidate& candidate) { return candidate.job->gpus_per_task * candidate.gpu_milli; }

int32_t FreeMilli(const NodeCandidate& candidate) {
  int32_t free = 0;
  for (const NodeDevice& device : candidate.devices) free += device.free_milli;
  return free;
}

// The fitting device with the least left, the first of equals; requires one.
int32_t TightestDevice(const NodeCandidate& candidate) {
  size_t best = candidate.devices.size();
  for (size_t i = 0; i < candidate.devices.size(); ++i) {
    const NodeDevice& device = candidate.devices[i];
    if (!device.fits) continue;
    if (best == candidate.devices.size() || device.free_milli < candidate.devices[best].free_milli) best = i;
  }
  return static_cast<int32_t>(best);
}

// The lowest fitting ones of one group, as many as a task takes.
void TakeFirst(const NodeCandidate& candidate, std::vector<int32_t>& devices) {
  devices.clear();
  const auto wanted = static_cast<size_t>(candidate.job->gpus_per_task);
  uint32_t group = 0;
  for (size_t i = 0; i < candidate.devices.size() && devices.size() < wanted; ++i) {
    const NodeDevice& device = candidate.devices[i];
    if (!device.fits) continue;  // a device that fits has enough others in its group
    if (devices.empty()) group = device.group;
    if (device.group == group) devices.push_back(static_cast<int32_t>(i));
  }
}

// A share takes the tightest device, whole GPUs the first; none without GPUs.
void ChooseDevices(const NodeCandidate& candidate, std::vector<int32_t>& devices) {
  if (!IsShare(candidate)) return TakeFirst(candidate, devices);
  devices.assign(1, TightestDevice(candidate));
}

// A policy that gives each node points, the more the better; its devices as ChooseDevices.
class PointsPolicy : public RivalPolicy {
 public:
  bool PricesNode(const JobSpec& /*job*/) const final { return true; }
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const final {
    ChooseDevices(candidate, score.devices);
    score.cost = -Points(candidate);
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] virtual double Points(const NodeCandidate& candidate) const = 0;
};

// best-fit: the place that keeps least free. Sharers: memory of the device; hard requests: CPU and GPUs of the node.
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

// horus-paper: the published cost (Horus, TPDS 2022), as intended: over-commit penalised, never forbidden.
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

class HorusAsCodedPolicy final : public HorusPaperPolicy {
 public:
  explicit HorusAsCodedPolicy(const PolicyOptions& options) : seed_(options.seed) {}
  std::string_view name() const override { return "horus-as-coded"; }
  bool PricesNode(const JobSpec& job) const override { return job.gpus_per_task > 0; }
  bool node_uses_devices() const override { return true; }

  // Scores order nodes only; the devices inside are the first that fit.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    score.cost = kNodeScoreStart;
    for (const NodeDevice& device : candidate.devices) {
      if (device.fits) score.cost = std::min(score.cost, device.cost);
    }
    TakeFirst(candidate, score.devices);
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
    return std::clamp(mean + spread * NormalOf(lot, Mix64(lot)), 0.0, kFullPct);
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

// fgd: fragmentation gradient descent (ATC 2023): the node whose free GPUs stay most useful for typical tasks.
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

constexpr PolicyEntry kPacking[] = {{"best-fit", PolicyOf<BestFitPolicy>},
                                    {"random", PolicyOf<RandomPolicy>},
                                    {"least-utilised", PolicyOf<LeastUtilisedPolicy>},
                                    {"horus-paper", PolicyOf<HorusPaperPolicy>},
                                    {"horus-as-coded", PolicyOf<HorusAsCodedPolicy>},
                                    {"clwp-nlwp", PolicyOf<ClwpNlwpPolicy>},
                                    {"fgd", PolicyOf<FgdPolicy>},
                                    {"dotprod", PolicyOf<DotProdPolicy>},
                                    {"gpu-packing", PolicyOf<GpuPackingPolicy>},
                                    {"gpu-clustering", PolicyOf<GpuClusteringPolicy>}};

}  // namespace

std::unique_ptr<RivalPolicy> MakeHorusPaperPolicy() { return std::make_unique<HorusPaperPolicy>(); }

std::span<const PolicyEntry> PackingPolicies() { return kPacking; }

}  // namespace horus
