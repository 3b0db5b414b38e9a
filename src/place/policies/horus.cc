// SPDX-License-Identifier: Apache-2.0
// horus: most expected useful work, so that sharing happens where it pays and nowhere else.
#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "place/policies/policies.h"
#include "place/policies/workload.h"
#include "place/search/gang.h"
#include "place/state/communication.h"
#include "place/state/fit.h"

namespace horus {
namespace {

// ---- What a placement takes from later tasks beyond its own GPUs: free GPU that typical tasks can no longer use.
// Cost: two sums over the classes of the workload.

// Differences below this are not told apart: what comes next is not known better. Equal nodes then go to the lowest id,
// which fills nodes one after another and keeps others whole. Chosen from 0.1 to 0.16 on the nine pod lists of openb:
// the last is at worst 0.09 points below fgd (bench allocation).
constexpr double kFragmentStepGpus = 0.16;

constexpr size_t kUsualDevices = 16;
constexpr double kStepRounding = 1e-3;  // of a step: sums that differ by rounding alone are the same step

// Workload::Usable before - after - the task's own GPUs, rounded down to whole steps; may be negative.
double FragmentationCost(const NodeCandidate& candidate, std::span<const int32_t> devices, const Workload& workload) {
  absl::InlinedVector<FreeGpu, kUsualDevices> gpus;
  for (const NodeDevice& device : candidate.devices) gpus.push_back({device.type, device.free_milli});
  const double before = workload.Usable(candidate.cpu_free_milli, gpus);
  double taken = 0;
  for (const int32_t device : devices) {
    gpus[static_cast<size_t>(device)].free_milli -= candidate.gpu_milli;
    taken += candidate.gpu_milli;
  }
  const double after = workload.Usable(candidate.cpu_free_milli - candidate.job->cpu_milli, gpus);
  const double lost_gpus = (before - after - taken) / kMilliPerGpu;
  return std::floor(lost_gpus / kFragmentStepGpus + kStepRounding) * kFragmentStepGpus;
}

// One unit of cost is one job alone on its fastest GPU. These weights only order places of (nearly) equal
// gain: together they stay below half a per cent of a job, less than predictions can tell apart.
constexpr double kMemoryLeftWeight = 1e-3;  // prefer the device whose memory the job fills best
constexpr double kOpensIdleWeight = 1e-3;   // keep idle devices for those who need them whole
constexpr double kIdleNodeWeight = 5e-4;    // keep idle nodes for gangs
// Larger GPUs are for those who need them, by the logarithm of their memory. Between a T4 and an H100 this is more than
// nodes differ by.
constexpr double kLargeGpuWeight = 2e-3;
constexpr double kSmallGpuMib = 8 * 1024;
constexpr double kPerLogMib = 0.2790553;  // 1 / ln 36: 288 GiB are 36 times as much

// Users of services wait longer beside others, though no work is lost: this prefers an idle device where they would be
// slowed 1.2 times (0.02 x (1 - 1 / 1.2) is above what opening a device and a node costs), and counts little beside
// work.
constexpr double kServicesSlowedWeight = 2e-2;

// One GPU that typical tasks can no longer use is one GPU's work lost: for jobs with hard requests, and for those
// without GPUs, this stands where the three terms above stand for sharers. Where nobody said what tasks are typical,
// it orders places of equal gain and no more.
constexpr double kFragmentWeight = 1;
constexpr double kUnknownWorkloadWeight = kOpensIdleWeight;

// A share that gains no more than this in all is declined: waiting costs nobody anything. More was tried: 0.02 and 0.05
// make mean JCT on K80 5 and 16 % longer and change nothing on V100 (`scripts/bench policies --table open --seeds 3`,
// fifo, load 1).
constexpr double kMinGain = 0.0;

struct Gain {
  double newcomer = 0;
  double neighbours = 0;      // <= 0: what they lose
  double wait_elsewhere = 0;  // GPUs of gangs
};

// How many GPUs wait for each that the newcomer shares with `resident`: a gang is as fast as its slowest device, and a
// newcomer of one GPU slows it on all. At least 1; exact where the newcomer shares as many of its GPUs as it can.
double GpusThatWait(const TenantClass& newcomer, const TenantClass& resident) {
  return static_cast<double>(resident.gpus) / std::min(std::max(newcomer.gpus, 1), resident.gpus);
}

// Normalised throughput that the device wins and loses, by the estimates. Both sides are relative to the fastest types
// of each job; neighbours count as their weight is to the newcomer's, so that a unit is one of the newcomer's.
Gain GainOf(const DeviceCandidate& candidate) {
  Gain gain;
  const TenantClass& newcomer = *candidate.tenants.back();
  for (size_t i = 0; i < candidate.residents(); ++i) {
    const TenantClass& resident = *candidate.tenants[i];
    const double wait = GpusThatWait(newcomer, resident);
    gain.wait_elsewhere += wait - 1;
    gain.neighbours += static_cast<double>(resident.worth) / static_cast<double>(newcomer.weight) * wait *
                       (1.0 / static_cast<double>(candidate.after[i].estimate) -
                        1.0 / static_cast<double>(candidate.before[i].estimate));
  }
  gain.newcomer = static_cast<double>(newcomer.work_alone) * candidate.relative_speed /
                  WorkSlowdown(newcomer.demand, candidate.after.back().estimate);
  return gain;
}

// What all services there lose of their speed, in units of one; none of it is work.
double ServicesSlowed(const DeviceCandidate& candidate) {
  double slowed = 0;
  for (size_t i = 0; i < candidate.tenants.size(); ++i) {
    if (!KeepsWork(candidate.tenants[i]->demand)) continue;
    const double before = i < candidate.residents() ? static_cast<double>(candidate.before[i].estimate) : 1;
    slowed += 1 / before - 1 / static_cast<double>(candidate.after[i].estimate);
  }
  return std::max(0.0, slowed);
}

// Whether a device does less with all of them than with one who is there alone: taking turns does more. By weight, but
// not by how fast each is elsewhere.
bool LosesTogether(const DeviceCandidate& candidate) {
  double together = 0, alone = 0;
  for (size_t i = 0; i < candidate.tenants.size(); ++i) {
    const auto weight = static_cast<double>(candidate.tenants[i]->weight * candidate.tenants[i]->work_alone);
    together += weight / WorkSlowdown(candidate.tenants[i]->demand, candidate.after[i].estimate);
    if (i < candidate.residents()) alone = std::max(alone, weight);
  }
  return together < alone;
}

// Whether the newcomer makes somebody slower than the guard who asked for no bound of its own.
bool BreaksGuard(const DeviceCandidate& candidate) {
  for (size_t i = 0; i < candidate.tenants.size(); ++i) {
    if (candidate.tenants[i]->promise.bound > 0) continue;
    const auto after = static_cast<double>(candidate.after[i].estimate);
    const double before = i < candidate.residents() ? static_cast<double>(candidate.before[i].estimate) : 1;
    if (IsBeyond(after, GuardOf(candidate.tenants[i]->kind)) && IsBeyond(after, before)) return true;
  }
  return false;
}

double MemoryLeft(const DeviceCandidate& candidate) {
  const int64_t left = candidate.MemoryLeftMib();
  return static_cast<double>(std::max(left, int64_t{0})) / static_cast<double>(std::max(candidate.mem_mib, int64_t{1}));
}

double Largeness(const DeviceCandidate& candidate) {
  return kPerLogMib * std::log(std::max(1.0, static_cast<double>(candidate.mem_mib) / kSmallGpuMib));
}

// Of nodes that are as idle the smaller comes first: it has less that a gang could want.
double IdleShare(const PlaceCandidate& place) {
  return static_cast<double>(place.node_idle_devices) / static_cast<double>(place.node_devices + 1);
}

class HorusPolicy final : public Policy {
 public:
  HorusPolicy(std::string_view name, std::shared_ptr<const Workload> workload, bool links)
      : name_(name),
        links_(links),
        weight_(workload != nullptr ? kFragmentWeight : kUnknownWorkloadWeight),
        workload_(workload != nullptr ? std::move(workload) : Workload::WholeGpus()) {}
  std::string_view name() const override { return name_; }
  bool uses_place() const override { return true; }
  bool maximises_work() const override { return true; }
  bool grants_host() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    const Gain gain = GainOf(candidate);
    const double total = gain.newcomer + gain.neighbours;
    const double least = gain.wait_elsewhere > 0 ? kLeastGainPerGpu * (1 + gain.wait_elsewhere) : kMinGain;
    score.declined = total <= least || LosesTogether(candidate) || BreaksGuard(candidate);
    score.own_work = gain.newcomer;
    score.cost = -total;
    if (PricesNodeFor(candidate.gpu_milli)) return absl::OkStatus();  // see ScoreNode
    score.cost += kMemoryLeftWeight * MemoryLeft(candidate) + kLargeGpuWeight * Largeness(candidate) +
                  (candidate.residents() == 0 ? kOpensIdleWeight : 0) +
                  kServicesSlowedWeight * ServicesSlowed(candidate);
    return absl::OkStatus();
  }

  bool prices_links() const override { return links_; }

  const LeastCost* least_cost() const override {
    static constexpr LeastCost kLeast{
        .own_work = -1, .lost_work = 1, .memory_left = kMemoryLeftWeight, .idle = kOpensIdleWeight};
    return &kLeast;
  }

  double ScorePlace(const PlaceCandidate& place) const override { return kIdleNodeWeight * IdleShare(place); }

  bool PricesNode(const JobSpec& job) const override {
    return PricesNodeFor(job.gpu_milli) || (IsCpuOnly(job) && knows_workload());  // else CPU is in nobody's way
  }
  bool node_uses_devices() const override { return true; }

  // The devices' gains, and what the task takes from later ones. A share tries every device, the GPUs of a larger task
  // are the cheapest of a type, or of a part of the node that has faster links.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    score.devices.clear();
    score.cost = std::numeric_limits<double>::infinity();
    if (IsCpuOnly(*candidate.job)) Offer(candidate, {}, score);
    std::vector<int32_t> chosen;
    for (size_t i = 0; i < candidate.devices.size(); ++i) {
      const NodeDevice& device = candidate.devices[i];
      if (!device.fits) continue;
      const bool share = candidate.job->gpus_per_task == 1;
      const auto alike = [&](const NodeDevice& before) {  // was tried before
        return before.fits && before.group == device.group &&
               (!share || (before.free_milli == device.free_milli && before.cost == device.cost));
      };
      if (std::any_of(candidate.devices.begin(), candidate.devices.begin() + static_cast<ptrdiff_t>(i), alike))
        continue;
      chosen.assign(1, static_cast<int32_t>(i));
      if (!share) Cheapest(candidate, device.group, chosen);
      Offer(candidate, chosen, score);
    }
    if (GangHere(candidate)) {
      for (const Reach reach : {Reach::kSocket, Reach::kSwitch, Reach::kIsland}) OfferParts(candidate, reach, score);
    }
    return absl::OkStatus();
  }

  void ExplainNode(const NodeCandidate& candidate, const NodeScore& score, CostTerms& terms) const override {
    const double lost = weight_ * FragmentationCost(candidate, score.devices, *workload_);
    const double sent = Communication(candidate, score.devices);
    terms.push_back({"work_gained", score.cost - lost - sent});
    terms.push_back({"fragmentation", lost});
    if (sent > 0) terms.push_back({"communication", sent});
  }

  void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const override {
    const Gain gain = GainOf(candidate);
    terms.push_back({"newcomer_work", -gain.newcomer});
    terms.push_back({"neighbours_loss", -gain.neighbours});
    terms.push_back({"memory_left", kMemoryLeftWeight * MemoryLeft(candidate)});
    terms.push_back({"large_gpu", kLargeGpuWeight * Largeness(candidate)});
    terms.push_back({"opens_idle_device", candidate.residents() == 0 ? kOpensIdleWeight : 0});
    terms.push_back({"idle_node", kIdleNodeWeight * IdleShare(place)});
    if (const double slowed = ServicesSlowed(candidate); slowed > 0)
      terms.push_back({"services_slowed", kServicesSlowedWeight * slowed});
  }

 private:
  [[nodiscard]] bool knows_workload() const { return weight_ == kFragmentWeight; }
  // Parts of GPUs; and whole ones where it is known what comes next, else they are placed as jobs that run alone.
  [[nodiscard]] bool PricesNodeFor(int32_t gpu_milli) const {
    return gpu_milli > 0 && (gpu_milli < kMilliPerGpu || knows_workload());
  }

  // The cheapest devices of the group, as many as a task has GPUs; ties to the lowest.
  static void Cheapest(const NodeCandidate& candidate, uint32_t group, std::vector<int32_t>& chosen) {
    chosen.clear();
    for (size_t i = 0; i < candidate.devices.size(); ++i) {
      if (candidate.devices[i].fits && candidate.devices[i].group == group) chosen.push_back(static_cast<int32_t>(i));
    }
    std::ranges::stable_sort(chosen, [&](int32_t a, int32_t b) {
      return candidate.devices[static_cast<size_t>(a)].cost < candidate.devices[static_cast<size_t>(b)].cost;
    });
    chosen.resize(static_cast<size_t>(candidate.job->gpus_per_task));
    std::ranges::sort(chosen);
  }

  // A task of several GPUs that is the whole gang. Its GPUs are whole, so nobody slows them and each gains its speed.
  [[nodiscard]] bool GangHere(const NodeCandidate& candidate) const {
    return links_ && candidate.spec != nullptr && candidate.job->tasks == 1 && candidate.job->gpus_per_task > 1;
  }
  [[nodiscard]] double Communication(const NodeCandidate& candidate, std::span<const int32_t> devices) const {
    if (!GangHere(candidate)) return 0;
    const NodeDevice& first = candidate.devices[static_cast<size_t>(devices.front())];
    const Demand* demand = FindDemand(*candidate.job, first.type);
    if (demand == nullptr || !Communicates(*demand)) return 0;
    const double share = CommunicationShare(*demand, RingUs(static_cast<double>(demand->gradient_mib), devices.size(),
                                                            LinkAmong(*candidate.spec, devices)));
    double lost = 0;
    for (const int32_t device : devices) {
      const double alone = -candidate.devices[static_cast<size_t>(device)].cost;
      lost += alone - WorkWhileSending(alone, {.speed = alone, .communication = share});
    }
    return lost;
  }

  // The cheapest devices of each part that has enough.
  void OfferParts(const NodeCandidate& candidate, Reach reach, NodeScore& score) const {
    const auto wanted = static_cast<size_t>(candidate.job->gpus_per_task);
    std::vector<int32_t> order;
    const auto at = [&](int32_t i) -> const NodeDevice& { return candidate.devices[static_cast<size_t>(i)]; };
    const auto part = [&](int32_t i) {
      return std::pair(at(i).group, PartOf(candidate.spec->devices[static_cast<size_t>(i)], reach));
    };
    for (size_t i = 0; i < candidate.devices.size(); ++i) {
      if (candidate.devices[i].fits && part(static_cast<int32_t>(i)).second >= 0)
        order.push_back(static_cast<int32_t>(i));
    }
    std::ranges::stable_sort(
        order, [&](int32_t a, int32_t b) { return std::tuple(part(a), at(a).cost) < std::tuple(part(b), at(b).cost); });
    std::vector<int32_t> chosen;
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && part(order[end]) == part(order[begin])) ++end;
      if (end - begin < wanted) continue;
      const auto first = order.begin() + static_cast<ptrdiff_t>(begin);
      chosen.assign(first, first + static_cast<ptrdiff_t>(wanted));
      std::ranges::sort(chosen);
      Offer(candidate, chosen, score);
    }
  }

  void Offer(const NodeCandidate& candidate, std::span<const int32_t> devices, NodeScore& score) const {
    double cost = weight_ * FragmentationCost(candidate, devices, *workload_);
    if (!devices.empty()) cost += Communication(candidate, devices);
    for (const int32_t device : devices) cost += candidate.devices[static_cast<size_t>(device)].cost;
    if (cost >= score.cost) return;
    score.cost = cost;
    score.devices.assign(devices.begin(), devices.end());
  }

  std::string_view name_;
  bool links_;
  double weight_;
  std::shared_ptr<const Workload> workload_;
};

}  // namespace

std::unique_ptr<Policy> MakeHorusPolicy(const PolicyOptions& options, std::string_view name) {
  return std::make_unique<HorusPolicy>(name, options.workload, options.links);
}

}  // namespace horus
