// SPDX-License-Identifier: Apache-2.0
// topology: time of a gang's all-reduce, and the work it leaves, by policy in a cluster in use; the gap of spread
// gangs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/must.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/state/cluster.h"
#include "place/state/communication.h"

namespace horus::bench {
namespace {

// 8 V100 a node in two NVLink quads, one a socket, each of two switches; or 8 A100 in one island over both sockets.
constexpr int32_t kGpusPerNode = 8;
constexpr uint64_t kNodesPerRack = 8;
constexpr double kFill = 0.5;                // of the GPUs have a tenant
constexpr double kRackOversubscription = 2;  // a choice: links between racks carry half
constexpr float kBound = 4;                  // of slowdowns, so that every policy finds places

struct GangSize {
  int32_t gpus;
  int32_t tasks;
};
constexpr GangSize kSizes[] = {{4, 1}, {8, 2}, {16, 4}, {64, 16}};  // 4 GPUs a task

struct Entrant {
  const char* metric;
  const char* policy;
  bool links;
};
constexpr Entrant kEntrants[] = {
    {"horus", "horus", true},          {"horus_without", "horus", false},          {"clwp_nlwp", "clwp-nlwp", true},
    {"clwp_only", "clwp-nlwp", false}, {"first_fit", "first-fit", true},           {"best_fit", "best-fit", true},
    {"random", "random", true},        {"least_utilised", "least-utilised", true}, {"exclusive", "exclusive", true}};

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(Mix64(seed)) {}
  uint64_t Below(uint64_t limit) { return (state_ = Mix64(state_)) % limit; }

 private:
  uint64_t state_;
};

NodeSpec MakeNode(NodeId id, int32_t gpus, bool quads) {
  NodeSpec node;
  node.id = id;
  node.cpu_milli = 96'000;
  node.mem_mib = 768 * 1024;
  node.rack = id / kNodesPerRack;
  const GpuTypeId type = Must(Catalogue::Default()->Find(quads ? "v100-sxm2-32gb" : "a100-40gb"));
  for (int32_t i = 0; i < gpus; ++i) {
    DeviceSpec device{.type = type};
    device.socket = static_cast<int16_t>(2 * i / gpus);
    device.pcie_switch = static_cast<int16_t>(i / 2);
    device.island = quads ? device.socket : int16_t{0};
    node.devices.push_back(device);
  }
  return node;
}

// Utilisation 20-90 %, 2-6 GiB, steps of 50-500 ms, gradients of 100-2,000 MiB (25 to 500 million parameters in fp32).
JobSpec MakeJob(Draws& draws, JobId id, int32_t tasks, int32_t gpus_per_task) {
  JobSpec job;
  job.id = id;
  job.tasks = tasks;
  job.gpus_per_task = gpus_per_task;
  Demand demand;
  const auto util = static_cast<float>(20 + draws.Below(70));
  demand.gpu_util_pct = {util, util};
  demand.mem_bw_util_pct = {util / 2, util / 2};
  demand.mem_mib = {static_cast<int64_t>(2048 + draws.Below(4096)), 0};
  demand.mem_mib.upper = demand.mem_mib.estimate;
  const auto step = static_cast<int64_t>(50'000 + draws.Below(450'000));
  demand.step_time_us = {step, step};
  demand.gradient_mib = static_cast<int64_t>(100 + draws.Below(1900));
  job.demands = {{GpuTypeId::Invalid(), demand}};
  return job;
}

std::unique_ptr<Placer> MakePlacer(const Entrant& entrant) {
  return Must(Placer::Create(Must(MakeInterferenceModel("horus")),
                             Must(MakePolicy(entrant.policy, {.seed = 1, .links = entrant.links})),
                             {.slowdown_bound = kBound, .rack_oversubscription = kRackOversubscription}));
}

// Jobs of one and two GPUs come at random places and half as many leave again, until the fill is reached: what is idle
// lies scattered.
Cluster MakeCluster(uint64_t seed, uint64_t nodes) {
  Draws draws(seed);
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 0; id < nodes; ++id) Must(cluster.AddNode(MakeNode(id, kGpusPerNode, id / kNodesPerRack % 2 == 0)));
  const auto placer = MakePlacer({"", "exclusive", true});
  const auto drawn = MakePlacer({"", "random", true});
  std::vector<JobId> residents;
  const auto used = [&] { return static_cast<double>(cluster.Totals().devices_used); };
  for (JobId id = 1; used() < kFill * static_cast<double>(cluster.device_count()); ++id) {
    const JobSpec job = MakeJob(draws, id, 1, 1 + static_cast<int32_t>(draws.Below(2)));
    const Plan plan = Must((draws.Below(8) == 0 ? placer : drawn)->MakePlan(cluster, {&job, 1}));
    if (plan.actions.empty()) continue;
    Must(cluster.Apply(plan));
    residents.push_back(id);
    if (id % 2 == 0) continue;
    const size_t victim = draws.Below(residents.size());
    Must(cluster.Release(residents[victim]));
    residents.erase(residents.begin() + static_cast<ptrdiff_t>(victim));
  }
  return cluster;
}

struct Outcome {
  bool placed = false;
  double all_reduce_ms = 0;
  double work = 0;  // of gang and neighbours, per GPU of the gang; 1 = as if it were alone and sent nothing
};

Outcome Try(Placer& placer, const Cluster& cluster, const JobSpec& job) {
  const Plan plan = Must(placer.MakePlan(cluster, {&job, 1}));
  const Decision& decision = plan.decisions.front();
  if (decision.verdict != Verdict::kPlace) return {};
  std::vector<GangSlot> slots;
  for (const Slot& slot : decision.slots) {
    slots.push_back({cluster.rows().nodes[*cluster.rows().node_of.Find(slot.node)].spec.get(), slot.device});
  }
  const Demand& demand = job.demands.front().demand;
  const double us = GangAllReduceUs(static_cast<double>(demand.gradient_mib), slots, kRackOversubscription);
  const double gpus = GpuCount(job);
  double work = gpus / (static_cast<double>(decision.own.estimate) + CommunicationShare(demand, us));
  for (const TenantEffect& effect : decision.effects) {
    if (!effect.is_new)
      work += 1.0 / static_cast<double>(effect.after.estimate) - 1.0 / static_cast<double>(effect.before.estimate);
  }
  return {true, us / 1000, work / gpus};
}

struct Sample {
  std::vector<double> by_seed;
  [[nodiscard]] double Mean() const {
    double sum = 0;
    for (const double value : by_seed) sum += value;
    return sum / static_cast<double>(by_seed.size());
  }
  // Half the width of the 95 % interval.
  [[nodiscard]] double Interval() const {
    double square = 0;
    for (const double value : by_seed) square += (value - Mean()) * (value - Mean());
    const auto n = static_cast<double>(by_seed.size());
    return n < 2 ? 0 : 1.96 * std::sqrt(square / (n - 1) / n);
  }
};

void Compare(const Options& options, std::vector<Row>* rows) {
  const uint64_t nodes = options.smoke ? 16 : 64;
  const uint64_t seeds = options.smoke ? 2 : 10;
  const uint64_t gangs = options.smoke ? 3 : 20;
  constexpr size_t kCount = std::size(kEntrants);
  for (const GangSize& size : kSizes) {
    std::vector<Sample> time(kCount), work(kCount);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const Cluster cluster = MakeCluster(seed, nodes);
      Draws draws(1000 + seed);
      std::vector<double> times(kCount), works(kCount);
      double counted = 0;
      std::vector<std::unique_ptr<Placer>> placers;
      for (const Entrant& entrant : kEntrants) placers.push_back(MakePlacer(entrant));
      for (uint64_t i = 0; i < gangs; ++i) {
        const JobSpec job = MakeJob(draws, 1'000'000 + i, size.tasks, size.gpus / size.tasks);
        std::vector<Outcome> outcomes;
        for (const auto& placer : placers) outcomes.push_back(Try(*placer, cluster, job));
        if (!std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& one) { return one.placed; })) continue;
        ++counted;
        for (size_t e = 0; e < kCount; ++e) {
          times[e] += outcomes[e].all_reduce_ms;
          works[e] += outcomes[e].work;
        }
      }
      for (size_t e = 0; e < kCount && counted > 0; ++e) {
        time[e].by_seed.push_back(times[e] / counted);
        work[e].by_seed.push_back(works[e] / counted);
      }
    }
    if (time[0].by_seed.empty()) continue;  // nobody had room
    const std::string protocol = absl::StrFormat(
        "%d nodes of 8 GPUs, half of them V100 in two NVLink quads, half A100 in one island, 8 a rack, network 12,000 "
        "MB/s, half of it between racks; half of the GPUs taken at random, %d seeds x %d gangs of %d GPUs, 4 a task; "
        "gangs that every policy places; model horus",
        nodes, time[0].by_seed.size(), gangs, size.gpus);
    const size_t base = 6;  // random
    for (size_t e = 0; e < kCount; ++e) {
      rows->push_back({absl::StrFormat("all_reduce_ms_%s_%d", kEntrants[e].metric, size.gpus), time[e].Mean(), "ms", 0,
                       true, absl::StrFormat("+- %.3g; random %.4g", time[e].Interval(), time[base].Mean()), protocol});
      rows->push_back({absl::StrFormat("gang_work_%s_%d", kEntrants[e].metric, size.gpus), work[e].Mean(), "ratio", 0,
                       false, absl::StrFormat("+- %.3g; random %.4g", work[e].Interval(), work[base].Mean()),
                       protocol});
    }
  }
}

// The price of exactly those devices: all others are drained.
double PriceOf(Placer& placer, const Cluster& cluster, const JobSpec& job, uint32_t devices, int32_t per_node) {
  Cluster copy = cluster;
  for (int32_t i = 0; i < static_cast<int32_t>(cluster.device_count()); ++i) {
    if ((devices >> i & 1) != 0) continue;
    Must(copy.SetDeviceState(static_cast<NodeId>(i / per_node), i % per_node, AdminState::kDrained).status());
  }
  const Plan plan = Must(placer.MakePlan(copy, {&job, 1}));
  const Decision& decision = plan.decisions.front();
  return decision.verdict == Verdict::kPlace ? decision.winner.cost : std::numeric_limits<double>::infinity();
}

// Gangs that span nodes against the cheapest of all subsets, on 6 nodes of 2 GPUs.
void Gap(const Options& options, std::vector<Row>* rows) {
  constexpr int32_t kPerNode = 2;
  constexpr uint64_t kNodes = 6;
  const uint64_t instances = options.smoke ? 2 : 100;
  std::vector<double> gaps;
  for (uint64_t seed = 0; seed < instances; ++seed) {
    Draws draws(5000 + seed);
    Cluster cluster(Catalogue::Default());
    for (NodeId id = 0; id < kNodes; ++id) {
      NodeSpec node = MakeNode(id, kPerNode, false);
      node.rack = id / 3;
      Must(cluster.AddNode(node));
    }
    const auto drawn = MakePlacer({"", "random", true});
    for (JobId id = 1; id <= 5; ++id) {
      const JobSpec job = MakeJob(draws, id, 1, 1);
      Must(cluster.Apply(Must(drawn->MakePlan(cluster, {&job, 1}))));
    }
    const JobSpec job = MakeJob(draws, 100, 3 + static_cast<int32_t>(draws.Below(3)), 1);
    const auto placer = MakePlacer(kEntrants[0]);
    const Plan plan = Must(placer->MakePlan(cluster, {&job, 1}));
    if (plan.decisions.front().verdict != Verdict::kPlace) continue;
    double best = std::numeric_limits<double>::infinity();
    for (uint32_t subset = 0; subset < 1u << cluster.device_count(); ++subset) {
      if (__builtin_popcount(subset) == job.tasks)
        best = std::min(best, PriceOf(*placer, cluster, job, subset, kPerNode));
    }
    gaps.push_back(100 * (plan.decisions.front().winner.cost - best) / std::abs(best));
  }
  if (gaps.empty()) return;
  double sum = 0;
  for (const double gap : gaps) sum += gap;
  const std::string protocol = absl::StrFormat(
      "policy horus, gangs of 3 to 5 tasks x 1 GPU over 6 nodes of 2 A100 in 2 racks, 5 residents at random, %d "
      "instances; cost above the cheapest of all subsets, of its size",
      gaps.size());
  rows->push_back({"gang_span_gap_pct", sum / static_cast<double>(gaps.size()), "%", 0, true,
                   absl::StrFormat("worst %.3g", *std::max_element(gaps.begin(), gaps.end())), protocol});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Compare(options, rows);
  Gap(options, rows);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
