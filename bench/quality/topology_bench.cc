// SPDX-License-Identifier: Apache-2.0
// topology: time of a gang's all-reduce, and the work it leaves, by policy in a cluster in use; the gap of spread
// gangs; steps of gangs by placement against measured ones (--data).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/statistics.h"
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

// ---- Steps of data-parallel training on T4 nodes of four GPUs, from one GPU's step and the gradients' size.

// MiB in fp32, by the nets' code (petuum/adaptdl, benchmark/models) and the sizes it defaults to.
const std::map<std::string, int64_t> kGradientMib = {{"bert", 415},    {"cifar10", 43}, {"deepspeech2", 157},
                                                     {"imagenet", 98}, {"ncf", 6},      {"yolov3", 235}};

struct GangStep {
  std::string net;
  std::vector<int> gpus;  // of each node
  double alone_s = 0, measured_s = 0;
};

// Medians of the rows of one net, placement and batch that have a step of one GPU beside them.
std::vector<GangStep> ReadSteps(const std::string& path) {
  constexpr size_t kColumns = 7;
  std::map<std::pair<std::string, std::string>, std::map<std::vector<int>, std::vector<double>>> measured;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> f = absl::StrSplit(line, ',');
    double step_s = 0;
    if (f.size() != kColumns || !kGradientMib.contains(f[0]) || !absl::SimpleAtod(f[5], &step_s)) continue;
    std::vector<int> gpus;
    double nodes = 0, all = 0;
    if (absl::SimpleAtod(f[2], &nodes) && absl::SimpleAtod(f[3], &all)) {
      for (double i = 0; i < nodes; ++i) gpus.push_back(static_cast<int>((all + i) / nodes));
    } else {
      for (const char digit : f[1]) gpus.push_back(digit - '0');
    }
    measured[{f[0], f[4]}][gpus].push_back(step_s);
  }
  std::vector<GangStep> steps;
  for (const auto& [key, by_gpus] : measured) {
    const auto alone = by_gpus.find({1});
    if (alone == by_gpus.end()) continue;
    for (const auto& [gpus, times] : by_gpus) {
      if (gpus != alone->first) steps.push_back({key.first, gpus, Median(alone->second), Median(times)});
    }
  }
  return steps;
}

// What a network of that speed makes of the steps: relative errors by net.
std::map<std::string, std::vector<double>> ErrorsOf(const std::vector<GangStep>& steps, int64_t network_mb_s) {
  constexpr size_t kNodes = 16;
  std::vector<NodeSpec> nodes(kNodes);
  for (NodeSpec& node : nodes) {
    node.cpu_milli = 48'000, node.mem_mib = 192 * 1024, node.network_mb_s = network_mb_s;
    for (int16_t i = 0; i < 4; ++i) {
      node.devices.push_back({.type = Must(Catalogue::Default()->Find("t4")), .pcie_switch = i});
    }
    Must(ResolveNode(*Catalogue::Default(), node));
  }
  std::map<std::string, std::vector<double>> errors;
  for (const GangStep& step : steps) {
    Demand demand;
    demand.step_time_us.estimate = static_cast<int64_t>(step.alone_s * 1e6);
    demand.gradient_mib = kGradientMib.at(step.net);
    std::vector<GangSlot> slots;
    for (size_t node = 0; node < step.gpus.size(); ++node) {
      for (int32_t i = 0; i < step.gpus[node]; ++i) slots.push_back({&nodes.at(node), i});
    }
    const double us = GangAllReduceUs(static_cast<double>(demand.gradient_mib), slots, 1);
    const double told_s = step.alone_s * (1 + CommunicationShare(demand, us));
    errors[step.net].push_back(std::abs(told_s / step.measured_s - 1));
  }
  return errors;
}

void Steps(const Options& options, std::vector<Row>* rows) {
  if (options.data.empty())
    return void(std::fprintf(stderr, "bench topology: no --data DIR: steps are not measured\n"));
  const std::string path = options.data + "/scaling/pollux_t4.csv";
  const std::vector<GangStep> steps = ReadSteps(path);
  if (steps.empty()) return void(std::fprintf(stderr, "bench topology: no rows in %s: left out\n", path.c_str()));
  std::map<int64_t, std::map<std::string, std::vector<double>>> by_speed;
  for (const int64_t mb_s : {283, 400, 476, 566, 673, 800, 951, 1131, 1600}) {
    by_speed[mb_s] = ErrorsOf(steps, mb_s);
  }
  std::vector<double> errors, alone;
  for (const GangStep& step : steps) alone.push_back(1 - step.alone_s / step.measured_s);
  // The network's speed from the other nets, then the one left out.
  for (const auto& [net, mib] : kGradientMib) {
    int64_t speed = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [mb_s, nets] : by_speed) {
      double sum = 0;
      for (const auto& [other, of_net] : nets) sum += other == net ? 0 : Median(of_net);
      if (sum < least) least = sum, speed = mb_s;
    }
    const std::vector<double>& of_net = by_speed[speed][net];
    errors.insert(errors.end(), of_net.begin(), of_net.end());
    rows->push_back({"gang_step_" + net, 100 * Median(of_net), "%", 0, true, absl::StrFormat("network %d MB/s", speed),
                     absl::StrFormat("%d steps, median", of_net.size())});
  }
  rows->push_back({"gang_step_net_unseen_median", 100 * Median(errors), "%", 12, true,
                   absl::StrFormat("as if nothing were sent %.3g %%", 100 * Median(alone)),
                   absl::StrFormat("%d steps by net, placement and batch; the network's speed from the other nets",
                                   errors.size())});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Steps(options, rows);
  if (options.only == "steps") return;
  Compare(options, rows);
  Gap(options, rows);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
