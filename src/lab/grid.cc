// SPDX-License-Identifier: Apache-2.0
// Makes trace, truth, cluster, queue and placer of a run, simulates, and counts.
#include "lab/grid.h"

#include <cmath>
#include <set>

#include "base/draws.h"
#include "base/format.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "interference/registry.h"
#include "lab/bound/potential.h"
#include "lab/run/use_meter.h"

namespace horus {
namespace {

// Raised when equal contents come to mean other results or other metrics.
constexpr int kResultSchema = 2;

absl::StatusOr<std::unique_ptr<Truth>> SpeedsOf(const Grid& grid, const Trace& trace) {
  const GridTruth& truth = grid.truth;
  if (truth.speeds) {
    return TableTruth::Create(*truth.speeds, truth.types, RowsOfProfiles(trace, *truth.speeds), truth.reference,
                              truth.many);
  }
  for (const std::string& profile : trace.profiles) {
    if (grid.beliefs.contains(profile)) continue;
    return InvalidArgument("profile '%s': expected one that the truth knows, found none such", profile);
  }
  return ModelTruth::Create(truth.model, ByProfile(trace, grid.beliefs));
}

absl::StatusOr<std::unique_ptr<Truth>> TruthOf(const Grid& grid, const Trace& trace) {
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Truth> truth, SpeedsOf(grid, trace));
  if (grid.truth.sensitivities.empty()) return truth;
  return std::make_unique<SensitiveTruth>(std::move(truth), ByProfile(trace, grid.truth.sensitivities));
}

absl::StatusOr<Cluster> ClusterOf(const Grid& grid, const GridPolicy& policy) {
  Cluster cluster(grid.catalogue);
  const size_t first = grid.nodes.size() - std::min(grid.nodes.size(), static_cast<size_t>(policy.profiling_nodes));
  for (size_t i = 0; i < grid.nodes.size(); ++i) {
    NodeSpec node = grid.nodes[i];
    if (i >= first) node.labels.emplace_back(LabOf(policy.policy_options).profiling_label, "");
    HORUS_RETURN_IF_ERROR(cluster.AddNode(std::move(node)));
  }
  return cluster;
}

QueueResources CapacityOf(const Grid& grid) {
  QueueResources capacity;
  for (const NodeSpec& node : grid.nodes) {
    capacity.gpu_milli += static_cast<int64_t>(node.devices.size()) * kMilliPerGpu;
    capacity.cpu_milli += node.cpu_milli;
    capacity.mem_mib += node.mem_mib;
  }
  return capacity;
}

absl::StatusOr<Trace> TraceOf(const Grid& grid, const GridRun& run) {
  const GridWorkload& workload = grid.workloads[run.workload];
  Trace trace;
  if (workload.trace != nullptr) {
    trace = *workload.trace;
  } else {
    SyntheticOptions options = workload.synthetic;
    options.seed = CombineHash(options.seed, run.seed);
    HORUS_ASSIGN_OR_RETURN(trace, MakeSynthetic(options));
    HORUS_ASSIGN_OR_RETURN(trace, PrepareTrace(grid, std::move(trace), workload.edits));
  }
  const GridEdits& edits = workload.edits;
  if (edits.sample > 0) HORUS_SET_OR_RETURN(trace, TakeSample(trace, edits.sample, run.seed));
  if (edits.backlog) return Backlog(std::move(trace));
  if (edits.load_milli > 0) return ScaleArrivals(std::move(trace), CapacityOf(grid).gpu_milli, edits.load_milli);
  return trace;
}

// On the trace's clock; `none` where nothing is stated.
int64_t TimeOf(const Trace& trace, const GridTime& time, int64_t none) {
  if (time.us == 0 && time.span_milli == 0) return none;
  const int64_t first = trace.jobs.front().submit_us;
  if (time.us > 0) return first + time.us;
  const absl::int128 span = trace.jobs.back().submit_us - first;
  return first + static_cast<int64_t>(span * time.span_milli / kGridWhole);
}

// The bound on the rate of the work that was done while jobs waited.
absl::Status CompareWithBound(const Grid& grid, const Trace& trace, GridOutcome& outcome) {
  const SpeedTable& table = *grid.truth.speeds;
  const std::vector<uint32_t> rows = RowsOfProfiles(trace, table);
  const std::vector<double> done = BacklogWork(trace, outcome.result);
  std::vector<double> work(table.profiles.size(), 0), gpus(table.gpus.size(), 0);
  double sum = 0, devices = 0;
  for (size_t profile = 0; profile < done.size(); ++profile) {
    if (rows[profile] != kNotStated) work[rows[profile]] += done[profile];
    sum += done[profile];
  }
  if (sum == 0) return absl::OkStatus();
  for (const NodeSpec& node : grid.nodes) {
    for (const DeviceSpec& device : node.devices) {
      const auto type = std::ranges::find(grid.truth.types, device.type);
      if (type != grid.truth.types.end()) gpus[static_cast<size_t>(type - grid.truth.types.begin())] += 1;
      ++devices;
    }
  }
  HORUS_ASSIGN_OR_RETURN(const WorkRate rate, WorkRateBound(MakeWorkProblem(table, work, gpus, grid.truth.reference)));
  SimMetrics& metrics = outcome.metrics;
  metrics.bound_rate = rate.bound / devices;
  metrics.gap_closed = ShareOfGapClosed(metrics.backlog_rate * devices, rate);
  return absl::OkStatus();
}

absl::StatusOr<SimOptions> OptionsOf(const Grid& grid, const GridRun& run, const Trace& trace) {
  const GridPolicy& policy = grid.policies[run.policy];
  SimOptions options = policy.sim_options;
  if (policy.learns >= Learns::kPairs && options.observe_us == 0) options.observe_us = kLearnFromUs;
  options.horizon_us = TimeOf(trace, grid.workloads[run.workload].horizon, 0);
  if (options.restart_us > 0) options.rebalance.downtime_s = static_cast<double>(options.restart_us) / kUsPerS;
  if (grid.mean_up_us == 0) return options;
  if (options.horizon_us == 0) return InvalidArgument("expected a horizon, for nodes fail for ever, found none");
  std::vector<NodeId> nodes;
  for (const NodeSpec& node : grid.nodes) nodes.push_back(node.id);
  HORUS_ASSIGN_OR_RETURN(options.outages,
                         DrawOutages(nodes, {grid.mean_up_us, grid.mean_down_us, options.horizon_us, run.seed}));
  return options;
}

absl::StatusOr<GridOutcome> RunNamed(const Grid& grid, const GridRun& run, const GridObserver& observer) {
  const GridPolicy& policy = grid.policies[run.policy];
  GridOutcome outcome;
  HORUS_ASSIGN_OR_RETURN(outcome.trace, TraceOf(grid, run));
  const Trace& trace = outcome.trace;
  if (trace.jobs.empty()) return InvalidArgument("expected jobs, found none that can run");
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Truth> truth, TruthOf(grid, trace));
  const std::vector<ProfileDemands> beliefs = ByProfile(trace, grid.beliefs);
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, ClusterOf(grid, policy));
  QueueOptions queue_options = policy.queue_options;
  queue_options.capacity = CapacityOf(grid);
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, MakeQueue(policy.queue, queue_options));
  PolicyOptions policy_options = policy.policy_options;
  PlacerOptions placer_options = policy.placer_options;
  policy_options.seed = placer_options.seed = run.seed;
  placer_options.terse = true;  // nobody reads why jobs wait
  const bool all_bounded = policy.bounded_milli == kGridWhole;
  if (!all_bounded) placer_options.slowdown_bound = PlacerOptions().slowdown_bound;
  if (policy_options.workload == nullptr) policy_options.workload = WorkloadOf(trace, *grid.catalogue);
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Policy> chosen, MakePolicy(policy.policy, policy_options));
  PairLearner learner(policy.model, grid.catalogue, policy.learns);
  const bool learns = policy.learns != Learns::kNothing;
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Placer> placer,
                         Placer::Create(learns ? learner.model() : policy.model, std::move(chosen), placer_options));
  HORUS_ASSIGN_OR_RETURN(SimOptions options, OptionsOf(grid, run, trace));
  if (!all_bounded) {
    options.bounded_milli = policy.bounded_milli;
    options.job_bound = policy.placer_options.slowdown_bound;
  }
  if (learns) options.learner = &learner;
  const std::vector<SharedSensitivity> sensitivities = ByProfile(trace, grid.sensitivities);
  if (!grid.sensitivities.empty()) options.sensitivities = &sensitivities;
  SimObserver told;
  if (observer != nullptr) told = [&](const SimEvent& event) { return observer(trace, event); };
  HORUS_ASSIGN_OR_RETURN(outcome.result, Simulate(trace, beliefs, *truth, cluster, *queue, *placer, options, told));
  MetricsOptions counted{.bounded_milli = policy.bounded_milli};
  counted.from_us = TimeOf(trace, grid.workloads[run.workload].warm_up, counted.from_us);
  if (grid.slowdown_bound > 0) {
    counted.slowdown_bound = grid.slowdown_bound;
  } else if (policy.placer_options.slowdown_bound > 0) {
    counted.slowdown_bound = policy.placer_options.slowdown_bound;
  }
  outcome.metrics = MetricsOf(trace, outcome.result, counted);
  if (grid.lp_bound) HORUS_RETURN_IF_ERROR(CompareWithBound(grid, trace, outcome));
  return outcome;
}

constexpr std::array kOracleModes = {SharingMode::kTimeSlice, SharingMode::kMps};

// How many entries AddEntries adds for all pairs: names and types are people's, so that they are counted before.
size_t CountEntries(std::span<const ProfileDemands* const> believed) {
  std::map<GpuTypeId, size_t> profiles;
  for (const ProfileDemands* demands : believed) {
    for (const TypeDemand& one : *demands) ++profiles[one.type];
  }
  size_t entries = 0;
  for (const auto& [type, count] : profiles) entries += count * count * kOracleModes.size();
  return entries;
}

// What the profile at `victim` loses beside that at `other`, wherever both run.
absl::Status AddEntries(const Truth& truth, std::span<const ProfileDemands* const> believed, uint32_t victim,
                        uint32_t other, std::vector<TableEntry>& entries) {
  for (const auto& [type, demand] : *believed[victim]) {
    const Demand* neighbour = FindDemand(*believed[other], type);
    if (neighbour == nullptr) continue;
    std::array<double, 2> shares = {};
    HORUS_RETURN_IF_ERROR(truth.Shares({.type = type}, std::array<uint32_t, 2>{victim, other}, shares));
    const double slowdown = 1 / std::clamp(shares[0], 1 / kMostMeasuredSlowdown, 1.0);
    for (const SharingMode mode : kOracleModes)
      entries.push_back({type, mode, demand.profile_id, neighbour->profile_id, slowdown});
  }
  return absl::OkStatus();
}

// What the truth says of profiles by name and of types: looked up once, for both come from files and may be many.
class KnownSpeeds {
 public:
  explicit KnownSpeeds(const GridTruth& truth) : table_(truth.speeds ? &*truth.speeds : nullptr) {
    if (table_ == nullptr) return;
    for (uint32_t row = 0; row < table_->profiles.size(); ++row) rows_.emplace(table_->profiles[row], row);
    for (uint32_t gpu = 0; gpu < truth.types.size(); ++gpu) gpus_.emplace(truth.types[gpu], gpu);
    shares_.resize(table_->alone.size());
    for (const PairSpeed& pair : table_->pairs) {
      if (!pair.Runs()) continue;
      for (const uint32_t row : {pair.a, pair.b}) shares_[pair.gpu * table_->profiles.size() + row] = true;
    }
  }

  // Whether jobs of the profile run alone on that type in truth; a predicted truth says nothing of it.
  [[nodiscard]] bool Runs(std::string_view profile, GpuTypeId type) const {
    if (table_ == nullptr) return true;
    const std::optional<size_t> at = Find(profile, type);
    return at && table_->alone[*at] > 0;
  }
  // Whether a pair of the profile was measured to run together on that type.
  [[nodiscard]] bool Shares(std::string_view profile, GpuTypeId type) const {
    const std::optional<size_t> at = Find(profile, type);
    return at && shares_[*at];
  }

 private:
  [[nodiscard]] std::optional<size_t> Find(std::string_view profile, GpuTypeId type) const {
    const auto row = rows_.find(profile);
    const auto gpu = gpus_.find(type);
    if (row == rows_.end() || gpu == gpus_.end()) return std::nullopt;
    return gpu->second * table_->profiles.size() + row->second;
  }

  const SpeedTable* table_;  // nullptr = predicted
  SeededMap<std::string_view, uint32_t> rows_;
  std::map<GpuTypeId, uint32_t> gpus_;
  std::vector<bool> shares_;  // as the table's `alone`
};

// By type of the nodes' devices: the memory of the least of them.
std::map<GpuTypeId, int64_t> LeastMemory(const Grid& grid) {
  std::map<GpuTypeId, int64_t> least;
  for (const NodeSpec& node : grid.nodes) {
    for (const DeviceSpec& device : node.devices) {
      const int64_t usual = grid.catalogue->at(device.type).mem_mib;
      const int64_t mem_mib = device.mem_mib > 0 ? std::min(usual, device.mem_mib) : usual;
      const auto [at, is_new] = least.emplace(device.type, mem_mib);
      if (!is_new) at->second = std::min(at->second, mem_mib);
    }
  }
  return least;
}

// What was measured alone on a type has room there, whatever is predicted of its memory. Where nobody is to come beside
// it, it `fills` the GPU by its upper bound, which fit counts; policies that weigh estimates see what is predicted.
void FitMemory(int64_t mem_mib, bool fills, BoundedInt& predicted) {
  const int64_t room_mib = mem_mib - PlacerOptions().mem_headroom_mib;
  predicted.upper = fills ? room_mib : std::min(predicted.upper, room_mib);
  predicted.estimate = std::min(predicted.estimate, predicted.upper);
}

// And of those who run on several GPUs what is believed of one of them.
DemandsByName WithGangs(const GridTruth& truth, DemandsByName beliefs) {
  if (!truth.unmeasured_alone) return beliefs;
  for (const GangProfile& gang : truth.speeds->gangs) {
    const auto of = beliefs.find(truth.speeds->profiles[gang.of]);
    if (of == beliefs.end()) continue;
    ProfileDemands demands = of->second;
    for (TypeDemand& one : demands) one.demand.profile_id = 0;
    beliefs.insert_or_assign(truth.speeds->profiles[gang.profile], std::move(demands));
  }
  return beliefs;
}

// ---- The table of metrics, and Student's intervals.

constexpr double kLeastBaseline = 1e-9;  // of a difference from it: below is what rounding leaves of 0; chosen

using M = SimMetrics;
constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kNeither = Better::kNeither;

double Count(uint64_t count) { return static_cast<double>(count); }
double Seconds(int64_t us) { return us < 0 ? kNoMetric : static_cast<double>(us) / kUsPerS; }

constexpr auto kMetrics = std::to_array<GridMetric>({
    {"jobs", kNeither, [](const M& m) { return Count(m.jobs); }},
    {"finished", kHigher, [](const M& m) { return Count(m.finished); }},
    {"running", kNeither, [](const M& m) { return Count(m.running); }},
    {"waiting", kLower, [](const M& m) { return Count(m.waiting); }},
    {"rejected", kLower, [](const M& m) { return Count(m.rejected); }},
    {"failures", kLower, [](const M& m) { return Count(m.failures); }},
    {"makespan_s", kLower, [](const M& m) { return Seconds(m.makespan_us); }, true},
    {"jct_mean_s", kLower, [](const M& m) { return m.jct_us.mean / kUsPerS; }, true},
    {"jct_p50_s", kLower, [](const M& m) { return m.jct_us.p50 / kUsPerS; }, true},
    {"jct_p95_s", kLower, [](const M& m) { return m.jct_us.p95 / kUsPerS; }, true},
    {"jct_p99_s", kLower, [](const M& m) { return m.jct_us.p99 / kUsPerS; }, true},
    {"jct_to_horizon_mean_s", kLower, [](const M& m) { return m.jct_to_horizon_us.mean / kUsPerS; }},
    {"jct_to_horizon_p95_s", kLower, [](const M& m) { return m.jct_to_horizon_us.p95 / kUsPerS; }},
    {"wait_mean_s", kLower, [](const M& m) { return m.wait_us.mean / kUsPerS; }, true},
    {"wait_p50_s", kLower, [](const M& m) { return m.wait_us.p50 / kUsPerS; }, true},
    {"wait_p95_s", kLower, [](const M& m) { return m.wait_us.p95 / kUsPerS; }, true},
    {"wait_p99_s", kLower, [](const M& m) { return m.wait_us.p99 / kUsPerS; }, true},
    {"slowdown_mean", kLower, [](const M& m) { return m.slowdown.mean; }, true},
    {"slowdown_p50", kLower, [](const M& m) { return m.slowdown.p50; }, true},
    {"slowdown_p95", kLower, [](const M& m) { return m.slowdown.p95; }, true},
    {"slowdown_p99", kLower, [](const M& m) { return m.slowdown.p99; }, true},
    {"above_bound_pct", kLower, [](const M& m) { return m.above_bound * kPct; }, true},
    {"allocation_pct", kHigher, [](const M& m) { return m.allocation * kPct; }},
    {"useful_pct", kHigher, [](const M& m) { return m.useful * kPct; }},
    {"work_rate", kHigher, [](const M& m) { return m.work_rate; }},
    {"backlog_rate", kHigher, [](const M& m) { return m.backlog_rate; }},
    {"bound_rate", kNeither, [](const M& m) { return m.bound_rate > 0 ? m.bound_rate : kNoMetric; }},
    {"gap_closed", kHigher, [](const M& m) { return m.gap_closed.value_or(kNoMetric); }},
    {"backlog_s", kLower, [](const M& m) { return Seconds(m.backlog_us); }},
    {"most_done_s", kLower, [](const M& m) { return Seconds(m.most_done_us); }},
    {"preemptions", kNeither, [](const M& m) { return Count(m.preemptions); }},
    {"migrations", kNeither, [](const M& m) { return Count(m.migrations); }},
    {"interruptions", kLower, [](const M& m) { return Count(m.interruptions); }},
    {"restarts", kNeither, [](const M& m) { return Count(m.restarts); }},
    {"out_of_memory", kLower, [](const M& m) { return Count(m.out_of_memory); }},
    {"fairness_rho_mean", kLower, [](const M& m) { return m.finish_time_fairness.mean; }, true},
    {"fairness_rho_p99", kLower, [](const M& m) { return m.finish_time_fairness.p99; }, true},
    {"jain", kHigher, [](const M& m) { return m.jain; }, true},
    {"fragmentation_pct", kLower, [](const M& m) { return m.fragmentation * kPct; }},
    {"belief_error", kLower, [](const M& m) { return m.belief_error; }},
});

// To two and a half digits beyond what is printed; Abramowitz and Stegun, Handbook of Mathematical Functions, table
// 26.10.
constexpr std::array<double, 10> kT975 = {12.7062, 4.30265, 3.18245, 2.77645, 2.57058,
                                          2.44691, 2.36462, 2.30600, 2.26216, 2.22814};
constexpr double kZ975 = 1.959963985;  // of the normal distribution

}  // namespace

std::vector<GridRun> RunsOf(const Grid& grid) {
  std::vector<GridRun> runs;
  for (uint32_t workload = 0; workload < grid.workloads.size(); ++workload) {
    for (uint32_t policy = 0; policy < grid.policies.size(); ++policy) {
      for (const uint64_t seed : grid.seeds) runs.push_back({workload, policy, seed});
    }
  }
  return runs;
}

std::string ContentOf(const Grid& grid, const GridRun& run) {
  return Formatted("schema %d\n%sworkload\n%spolicy\n%sseed %d\n", kResultSchema, grid.content,
                   grid.workloads[run.workload].content, grid.policies[run.policy].content, run.seed);
}

std::string KeyOf(const std::string& content) { return Formatted("%016x", Hash64(content)); }

absl::StatusOr<Trace> PrepareTrace(const Grid& grid, Trace trace, const GridEdits& edits) {
  if (edits.single_gpu) trace = FilterTrace(trace, IsSingleGpu());
  if (grid.truth.unmeasured_alone) trace = NameGangs(std::move(trace));
  if (edits.known_only) {
    std::vector<std::string> known;
    for (const auto& [profile, demands] : grid.beliefs) known.push_back(profile);
    trace = FilterTrace(trace, RunsOneOf(std::move(known)));
  }
  if (grid.truth.speeds)
    HORUS_SET_OR_RETURN(trace, StepsToDurations(std::move(trace), *grid.truth.speeds, grid.truth.reference));
  if (edits.clip_milli == kGridWhole) return trace;
  return ClipDurations(std::move(trace), edits.clip_milli);
}

absl::StatusOr<std::vector<NodeOutage>> DrawOutages(std::span<const NodeId> nodes, const OutageOptions& options) {
  std::vector<NodeOutage> outages;
  for (const NodeId node : nodes) {
    Draws draws(CombineHash(Mix64(options.seed), node));
    int64_t up_us = 0;
    while (true) {
      const int64_t from_us =
          up_us + static_cast<int64_t>(draws.Exponential(static_cast<uint64_t>(options.mean_up_us)));
      if (from_us >= options.until_us) break;
      const auto down_us = static_cast<int64_t>(draws.Exponential(static_cast<uint64_t>(options.mean_down_us)));
      up_us = from_us + std::max<int64_t>(1, down_us);
      outages.push_back({node, from_us, up_us});
      if (outages.size() > kMostOutages)
        return ResourceExhausted("outages: expected at most %d, found more", kMostOutages);
    }
  }
  std::ranges::sort(outages, {}, [](const NodeOutage& one) { return std::tie(one.from_us, one.node); });
  return outages;
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> OracleOf(const Grid& grid) {
  if (!grid.truth.speeds) return grid.truth.model;
  Trace all;  // of every profile that is believed, for the truth's positions
  std::vector<const ProfileDemands*> believed;
  for (const auto& [profile, demands] : grid.beliefs) {
    all.profiles.push_back(profile);
    believed.push_back(&demands);
  }
  HORUS_RETURN_IF_ERROR(CheckTableSize(CountEntries(believed)));
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Truth> truth, TruthOf(grid, all));
  std::vector<TableEntry> entries;
  for (uint32_t victim = 0; victim < all.profiles.size(); ++victim) {
    for (uint32_t other = 0; other < all.profiles.size(); ++other)
      HORUS_RETURN_IF_ERROR(AddEntries(*truth, believed, victim, other, entries));
  }
  HORUS_ASSIGN_OR_RETURN(const auto fallback, MakeInterferenceModel(kDefaultInterferenceModel));
  return TableModel::Create(entries, fallback, 0);
}

absl::StatusOr<GridOutcome> RunOne(const Grid& grid, const GridRun& run, const GridObserver& observer) {
  return At(Formatted("workload '%s', policy '%s', seed %d", grid.workloads[run.workload].name,
                      grid.policies[run.policy].name, run.seed),
            RunNamed(grid, run, observer));
}

std::vector<GpuTypeId> TypesOf(std::span<const NodeSpec> nodes) {
  std::set<GpuTypeId> types;
  for (const NodeSpec& node : nodes) {
    for (const DeviceSpec& device : node.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

DemandsByName CompleteBeliefs(const Grid& grid, const DemandsByName& beliefs) {
  const std::vector<GpuTypeId> present = TypesOf(grid.nodes);
  const KnownSpeeds speeds(grid.truth);
  const std::map<GpuTypeId, int64_t> least_mib = LeastMemory(grid);
  DemandsByName complete;
  for (const auto& [profile, demands] : WithGangs(grid.truth, beliefs)) {
    ProfileDemands& kept = complete[profile];
    for (const TypeDemand& one : demands) {
      const std::vector<GpuTypeId> types = one.type == GpuTypeId() ? present : std::vector<GpuTypeId>{one.type};
      for (const GpuTypeId type : types) {
        if (!speeds.Runs(profile, type)) continue;
        Demand& demand = kept.emplace_back(TypeDemand{type, one.demand}).demand;
        if (grid.truth.speeds) {
          const auto least = least_mib.find(type);
          const bool alone = grid.truth.unmeasured_alone && !speeds.Shares(profile, type);
          FitMemory(least == least_mib.end() ? grid.catalogue->at(type).mem_mib : least->second, alone, demand.mem_mib);
        }
        if (one.demand.profile_id == 0) demand.profile_id = Mix64(Hash64(profile));
      }
    }
    if (kept.empty()) complete.erase(profile);
  }
  return complete;
}

size_t CountWithoutSpeed(const Grid& grid, const Trace& trace) {
  if (!grid.truth.speeds) return 0;
  const Trace named = grid.truth.unmeasured_alone ? NameGangs(trace) : trace;
  const std::vector<GpuTypeId> present = TypesOf(grid.nodes);
  const KnownSpeeds speeds(grid.truth);
  std::vector<bool> runs;
  for (const std::string& profile : named.profiles)
    runs.push_back(std::ranges::any_of(present, [&](GpuTypeId type) { return speeds.Runs(profile, type); }));
  return static_cast<size_t>(std::ranges::count_if(
      named.jobs, [&](const TraceJob& job) { return job.profile == kNotStated || !runs[job.profile]; }));
}

std::span<const GridMetric> GridMetrics() { return kMetrics; }

std::optional<size_t> FindGridMetric(std::string_view name) {
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    if (kMetrics[i].name == name) return i;
  }
  return std::nullopt;
}

double StudentT975(size_t degrees_of_freedom) {
  if (degrees_of_freedom == 0) return std::numeric_limits<double>::quiet_NaN();
  if (degrees_of_freedom <= kT975.size()) return kT975[degrees_of_freedom - 1];
  // Cornish and Fisher's expansion (26.7.5 there): within 1e-5 from 10 degrees on.
  const auto n = static_cast<double>(degrees_of_freedom);
  const double z = kZ975, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<double> PairedMean::OfBaseline(double amount) const {
  const double size = std::abs(baseline);
  const bool counts = std::isfinite(size) && size > kLeastBaseline * std::abs(difference);
  return counts ? std::optional(amount / size) : std::nullopt;
}

PairedMean ComparePaired(std::span<const double> values, std::span<const double> baseline) {
  const auto n = static_cast<double>(values.size());
  PairedMean paired;
  for (size_t i = 0; i < values.size(); ++i) {
    paired.mean += values[i] / n;
    paired.baseline += baseline[i] / n;
    paired.difference += (values[i] - baseline[i]) / n;
  }
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - baseline[i] - paired.difference;
    squares += off * off;
  }
  paired.half_width = values.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                                        : StudentT975(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return paired;
}

}  // namespace horus
