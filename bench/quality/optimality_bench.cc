// SPDX-License-Identifier: Apache-2.0
// optimality: one by one, batch, rebalance and gangs over nodes, beside the best of all assignments on small instances.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/must.h"
#include "bench/quality/pair_slowdowns.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "interference/registry.h"
#include "interference/table_model.h"
#include "place/modes/batch.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "place/state/cluster.h"

namespace horus::bench {
namespace {

constexpr size_t kMostTenants = 3;                                            // the placer's default
constexpr double kBounds[] = {1.5, std::numeric_limits<double>::infinity()};  // on slowdowns: of policy horus; none
constexpr size_t kMostJobs = 7;
constexpr size_t kMostDevices = 4;
constexpr size_t kMostNodes = 6;  // of gangs
constexpr double kAimGapPct = 2;
constexpr double kNone = -std::numeric_limits<double>::infinity();  // work where no way is

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(Mix64(seed)) {}
  uint64_t Below(uint64_t limit) { return (state_ = Mix64(state_)) % limit; }
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }

 private:
  uint64_t state_;
};

GpuTypeId Type() { return *Catalogue::Default()->Find("k80"); }  // any: devices are told apart by the table

// The jobs' work on one device by the additive rule; -1 where they must not share it. Written from the rule alone.
double WorkTogether(const PairSlowdowns& table, double bound, const std::vector<size_t>& jobs) {
  if (jobs.size() > kMostTenants) return -1;
  double work = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    double slowdown = 1;
    for (size_t j = 0; j < jobs.size(); ++j) {
      if (i != j) slowdown += std::max(1.0, table.slowdown[jobs[i]][jobs[j]]) - 1;
    }
    if (slowdown > bound * (1 + 1e-6)) return -1;
    work += 1 / slowdown;
  }
  return work;
}

// The most work of all ways to put each job on one of `devices` alike devices or to leave it out: set by set.
double Optimum(const PairSlowdowns& table, double bound, const std::vector<size_t>& jobs, size_t devices) {
  const uint32_t sets = 1u << jobs.size();
  std::vector<double> alone(sets);
  for (uint32_t set = 0; set < sets; ++set) {
    std::vector<size_t> members;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if ((set >> i & 1u) != 0) members.push_back(jobs[i]);
    }
    alone[set] = WorkTogether(table, bound, members);
  }
  std::vector<double> best(sets, 0);  // of the jobs of a set on the devices so far
  for (size_t device = 0; device < devices; ++device) {
    std::vector<double> next = best;
    for (uint32_t set = 0; set < sets; ++set) {
      for (uint32_t here = set; here != 0; here = (here - 1) & set) {
        if (alone[here] >= 0) next[set] = std::max(next[set], alone[here] + best[set & ~here]);
      }
    }
    best = std::move(next);
  }
  return *std::max_element(best.begin(), best.end());
}

std::shared_ptr<const InterferenceModel> ModelOf(const PairSlowdowns& table) {
  std::vector<TableEntry> entries;
  for (size_t i = 0; i < table.jobs.size(); ++i) {
    for (size_t j = 0; j < table.jobs.size(); ++j) {
      entries.push_back({Type(), SharingMode::kTimeSlice, i + 1, j + 1, table.slowdown[i][j]});
    }
  }
  return Must(TableModel::Create(entries, std::make_shared<UtilisationModel>(), /*noise=*/0));
}

JobSpec JobOf(JobId id, size_t row) {
  JobSpec job;
  job.id = id;
  Demand demand;
  demand.profile_id = row + 1;
  demand.gpu_util_pct = {50, 50};  // busy; the table says what sharing costs
  demand.mem_mib = {1, 1};
  job.demands = {{GpuTypeId::Invalid(), demand}};
  return job;
}

NodeSpec NodeOf(NodeId id, size_t devices, uint64_t rack) {
  NodeSpec node;
  node.id = id;
  node.cpu_milli = node.mem_mib = 1;
  node.rack = rack;
  node.devices.assign(devices, DeviceSpec{.type = Type()});
  return node;
}

// By the cluster as it is, from the rule alone. Jobs' ids are 1 + their position in `rows`.
double WorkOf(const Cluster& cluster, const PairSlowdowns& table, double bound, const std::vector<size_t>& rows) {
  double work = 0;
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo node = Must(cluster.Node(id));
    for (size_t d = 0; d < node.spec.devices.size(); ++d) {
      std::vector<size_t> jobs;
      const DeviceInfo device = Must(cluster.Device(id, static_cast<int32_t>(d)));
      for (const Resident& resident : device.residents) jobs.push_back(rows[resident.job - 1]);
      const double here = WorkTogether(table, bound, jobs);
      if (here < 0) Must(absl::InternalError("a device that must not be"));
      work += here;
    }
  }
  return work;
}

struct Gaps {
  double greedy = 0, batch = 0, rebalance = 0, careless = 0;  // summed, per cent
  double worst_batch = 0;
  size_t instances = 0;

  void Add(const Gaps& other) {
    greedy += other.greedy;
    batch += other.batch;
    rebalance += other.rebalance;
    careless += other.careless;
    worst_batch = std::max(worst_batch, other.worst_batch);
    instances += other.instances;
  }
};

void AddInstance(const PairSlowdowns& table, double bound, Placer& placer, Placer& careless, uint64_t seed,
                 Gaps& gaps) {
  Draws draws(seed);
  const size_t devices = draws.Between(2, kMostDevices);
  const size_t count = draws.Between(devices + 1, kMostJobs);
  std::vector<size_t> rows(count);
  std::vector<JobSpec> jobs;
  for (size_t i = 0; i < count; ++i) {
    rows[i] = draws.Below(table.jobs.size());
    jobs.push_back(JobOf(i + 1, rows[i]));
  }
  Cluster empty(Catalogue::Default());
  Must(empty.AddNode(NodeOf(1, devices / 2, 0)));
  Must(empty.AddNode(NodeOf(2, devices - devices / 2, 0)));
  const double best = Optimum(table, bound, rows, devices);
  const auto gap = [&](const Cluster& cluster) { return 100 * (1 - WorkOf(cluster, table, bound, rows) / best); };
  const RebalanceOptions free = {.max_migrations = kMostJobs, .downtime_s = 0};
  Cluster greedy = empty;
  Must(greedy.Apply(Must(placer.MakePlan(empty, jobs))));
  gaps.greedy += gap(greedy);
  Cluster batch = empty;
  Must(batch.Apply(Must(PlanBatch(placer, empty, jobs))));
  gaps.batch += gap(batch);
  gaps.worst_batch = std::max(gaps.worst_batch, gap(batch));
  Must(greedy.Apply(Must(Rebalance(placer, greedy, free))));
  gaps.rebalance += gap(greedy);
  Cluster packed = empty;  // first come, first served on the first device that takes it
  Must(packed.Apply(Must(careless.MakePlan(empty, jobs))));
  Must(packed.Apply(Must(Rebalance(placer, packed, free))));
  gaps.careless += gap(packed);
  ++gaps.instances;
}

void AddGapRows(const std::string& suffix, const Gaps& gaps, const std::string& protocol, std::vector<Row>* rows) {
  const auto n = static_cast<double>(gaps.instances);
  const std::string beside = absl::StrFormat("greedy %.3g %%", gaps.greedy / n);
  rows->push_back({"greedy_gap_pct" + suffix, gaps.greedy / n, "%", 0, true, "exhaustive optimum", protocol});
  rows->push_back({"batch_gap_pct" + suffix, gaps.batch / n, "%", kAimGapPct, true,
                   absl::StrFormat("%s; worst instance %.3g %%", beside, gaps.worst_batch), protocol});
  rows->push_back({"rebalance_gap_pct" + suffix, gaps.rebalance / n, "%", 0, true, beside + ", from which it starts",
                   protocol + "; as many free migrations as jobs"});
  rows->push_back({"rebalance_first_fit_gap_pct" + suffix, gaps.careless / n, "%", 0, true,
                   beside + "; starts from first-fit", protocol + "; as many free migrations as jobs"});
}

struct GangGaps {
  double same_shape = 0;  // per cent of the work lost beside the best on as few nodes and racks, where so few were used
  double any_shape = 0;   // beside the best on any nodes
  double more_nodes = 0;  // instances on more nodes than needed, per cent
  size_t instances = 0;
  size_t of_same_shape = 0;
};

// A device with one GPU of a gang beside those who are there, from the rule alone.
struct GangDevice {
  double own = 0;     // work of the gang's GPU, if it waited for no other
  double change = 0;  // of the others' work
};

// Of all ways to spread a job over devices where it may be: the least (nodes, racks), the most work of it and of all.
struct BestSpread {
  std::pair<size_t, size_t> shape = {SIZE_MAX, SIZE_MAX};
  double of_shape = 0, of_all = kNone;
};

// The most work on so many devices of each node: for each speed of the gang, those no slower that cost others least.
double MostWork(const std::vector<std::vector<GangDevice>>& devices, const std::vector<size_t>& wanted) {
  double most = kNone;
  for (const std::vector<GangDevice>& of_node : devices) {
    for (const GangDevice& slowest : of_node) {
      double work = 0;
      for (size_t n = 0; n < devices.size(); ++n) {
        std::vector<double> changes(wanted[n], kNone);  // where there are too few
        for (const GangDevice& device : devices[n]) {
          if (device.own >= slowest.own) changes.push_back(device.change);
        }
        std::sort(changes.rbegin(), changes.rend());
        for (size_t i = 0; i < wanted[n]; ++i) work += slowest.own + changes[i];
      }
      most = std::max(most, work);
    }
  }
  return most;
}

BestSpread TrySpreads(const std::vector<std::vector<GangDevice>>& devices, const std::vector<uint64_t>& racks,
                      size_t tasks, size_t per_task) {
  BestSpread best;
  std::vector<size_t> take(devices.size(), 0);
  for (;;) {
    size_t sum = 0, nodes = 0;
    uint64_t used = 0;
    bool can = true;
    std::vector<size_t> wanted;
    for (size_t n = 0; n < devices.size(); ++n) {
      sum += take[n];
      nodes += take[n] > 0 ? 1 : 0;
      wanted.push_back(take[n] * per_task);
      can = can && wanted[n] <= devices[n].size();
      if (take[n] > 0) used |= uint64_t{1} << racks[n];
    }
    if (can && sum == tasks) {
      const double work = MostWork(devices, wanted);
      const std::pair<size_t, size_t> shape = {nodes, static_cast<size_t>(__builtin_popcountll(used))};
      if (shape < best.shape || (shape == best.shape && work > best.of_shape)) {
        best.shape = shape;
        best.of_shape = work;
      }
      best.of_all = std::max(best.of_all, work);
    }
    size_t n = 0;
    while (n < take.size() && ++take[n] > tasks) take[n++] = 0;
    if (n == take.size()) return best;
  }
}

// What a job does beside those of `with`, and what it takes from them.
GangDevice Beside(const PairSlowdowns& table, double bound, std::vector<size_t> with, size_t row) {
  const double before = WorkTogether(table, bound, with);
  GangDevice device;
  double slowdown = 1;
  for (const size_t other : with) slowdown += std::max(1.0, table.slowdown[row][other]) - 1;
  device.own = 1 / slowdown;
  with.push_back(row);
  const double after = WorkTogether(table, bound, with);
  device.change = (after < 0 ? 0 : after - before) - device.own;  // no gain where it must not be
  return device;
}

void AddGang(const PairSlowdowns& table, double bound, Placer& placer, uint64_t seed, GangGaps& gaps) {
  Draws draws(seed);
  Cluster cluster(Catalogue::Default());
  const size_t nodes = draws.Between(2, kMostNodes);
  std::vector<uint64_t> racks;
  std::vector<std::vector<std::vector<size_t>>> on(nodes);  // rows of the table by node and device
  std::vector<size_t> rows;
  for (size_t n = 0; n < nodes; ++n) {
    racks.push_back(draws.Below(2));
    on[n].resize(draws.Between(1, 4));
    Must(cluster.AddNode(NodeOf(n + 1, on[n].size(), racks.back())));
    for (size_t d = 0; d < on[n].size(); ++d) {
      for (uint64_t tries = draws.Below(3); tries > 0; --tries) {
        const size_t row = draws.Below(table.jobs.size());
        std::vector<size_t> with = on[n][d];
        with.push_back(row);
        if (WorkTogether(table, bound, with) < 0) continue;
        on[n][d] = with;
        rows.push_back(row);
        const Slot slot{n + 1, static_cast<int32_t>(d), 0};
        Must(cluster.Adopt(JobOf(rows.size(), row), {&slot, 1}).status());
      }
    }
  }
  rows.push_back(draws.Below(table.jobs.size()));
  JobSpec gang = JobOf(rows.size(), rows.back());
  gang.gpus_per_task = static_cast<int32_t>(draws.Between(1, 2));
  gang.tasks = static_cast<int32_t>(draws.Between(2, 5));
  std::vector<std::vector<GangDevice>> devices(nodes);
  for (size_t n = 0; n < nodes; ++n) {
    for (const std::vector<size_t>& with : on[n]) {
      const GangDevice device = Beside(table, bound, with, rows.back());
      if (device.own + device.change > 0) devices[n].push_back(device);
    }
  }
  const BestSpread best =
      TrySpreads(devices, racks, static_cast<size_t>(gang.tasks), static_cast<size_t>(gang.gpus_per_task));
  const Plan plan = Must(placer.MakePlan(cluster, {&gang, 1}));
  const Decision& decision = plan.decisions.front();
  if ((decision.verdict == Verdict::kPlace) != (best.of_all > kNone))
    Must(absl::InternalError(
        absl::StrFormat("gang %d: expected %s, found %s: %s", seed, best.of_all > kNone ? "a place" : "none",
                        decision.verdict == Verdict::kPlace ? "one" : "none", DescribeDecision(decision))));
  if (decision.verdict != Verdict::kPlace || best.shape.first < 2) return;  // inside a node the search is exact
  double slowest = 1, work = 0;
  std::map<NodeId, uint64_t> used;
  for (const Slot& slot : decision.slots) {
    used[slot.node] = racks[slot.node - 1];
    const GangDevice device = Beside(table, bound, on[slot.node - 1][static_cast<size_t>(slot.device)], rows.back());
    slowest = std::min(slowest, device.own);
    work += device.change;
  }
  work += static_cast<double>(decision.slots.size()) * slowest;
  std::set<uint64_t> used_racks;
  for (const auto& [node, rack] : used) used_racks.insert(rack);
  gaps.more_nodes += used.size() > best.shape.first ? 100 : 0;
  if (std::pair(used.size(), used_racks.size()) == best.shape) {
    gaps.same_shape += 100 * (1 - work / best.of_shape);
    ++gaps.of_same_shape;
  }
  gaps.any_shape += 100 * (1 - work / best.of_all);
  ++gaps.instances;
}

void AddGangRows(const GangGaps& gaps, const std::string& source, std::vector<Row>* rows) {
  const auto n = static_cast<double>(std::max<size_t>(gaps.instances, 1));
  const std::string protocol = absl::StrFormat(
      "%d gangs of 2-5 tasks of 1-2 GPUs that need several of 2-6 nodes of 1-4 GPUs in two racks, 0-2 "
      "residents a GPU; %s",
      gaps.instances, source);
  rows->push_back({"gang_gap_pct", gaps.same_shape / static_cast<double>(std::max<size_t>(gaps.of_same_shape, 1)), "%",
                   0, true, "most work of all ways that use fewest nodes, then fewest racks, where it found so few",
                   protocol});
  rows->push_back({"gang_any_nodes_gap_pct", gaps.any_shape / n, "%", 0, true, "most work of all ways", protocol});
  rows->push_back({"gang_more_nodes_pct", gaps.more_nodes / n, "%", 0, true, "fewest nodes of all ways", protocol});
}

std::unique_ptr<Placer> PlacerOf(const PairSlowdowns& table, double bound, const char* policy) {
  return Must(Placer::Create(ModelOf(table), Must(MakePolicy(policy)), {.slowdown_bound = bound}));
}

void Measure(const Options& options, std::vector<Row>* rows) {
  std::vector<PairSlowdowns> tables;
  if (!options.data.empty()) tables = ReadPairSlowdowns(options.data);
  std::string source = "measured pairs";
  if (tables.empty()) {
    std::fprintf(stderr, "optimality: no table of pairs under --data: made-up pairs instead\n");
    tables.push_back(MadeUpPairSlowdowns());
    source = "made-up pairs (no table under --data)";
  }
  const size_t instances = options.smoke ? 30 : 1000;
  const size_t gangs = options.smoke ? 60 : 2000;
  Gaps all;
  GangGaps gang;
  std::map<std::string, Gaps> parts;  // by row suffix
  for (size_t t = 0; t < tables.size(); ++t) {
    for (size_t b = 0; b < std::size(kBounds); ++b) {
      const auto placer = PlacerOf(tables[t], kBounds[b], "horus");
      const auto careless = PlacerOf(tables[t], kBounds[b], "first-fit");
      const size_t settings = tables.size() * std::size(kBounds);
      for (size_t i = t * std::size(kBounds) + b; i < instances; i += settings) {
        Gaps one;
        AddInstance(tables[t], kBounds[b], *placer, *careless, i, one);
        for (Gaps* sum : {&all, &parts["_" + tables[t].gpu], &parts[b == 0 ? "_bounded" : "_unbounded"]}) sum->Add(one);
      }
      for (size_t i = t * std::size(kBounds) + b; i < gangs; i += settings) {
        AddGang(tables[t], kBounds[b], *placer, i, gang);
      }
    }
  }
  const auto protocol = [&](const Gaps& gaps) {
    return absl::StrFormat(
        "%d instances of 3-7 jobs on 2-4 GPUs, at most 3 a GPU, slowdowns at most 1.5 in one half and "
        "unbounded in the other, policy horus with the table as model; %s",
        gaps.instances, source);
  };
  AddGapRows("", all, protocol(all), rows);
  for (const auto& [suffix, gaps] : parts) AddGapRows(suffix, gaps, protocol(gaps), rows);
  AddGangRows(gang, source, rows);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
