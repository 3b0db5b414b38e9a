// SPDX-License-Identifier: Apache-2.0
// Grid: workloads x policies x seeds on one cluster under one truth, and one run of them.
//
// Enters:  a Grid, made once and shared by all runs; which run.
// Leaves:  its metrics. A pure function but for the times of decisions: threads, order and machines change nothing.
// Units:   microseconds; loads and shares in thousandths.
// Cost:    that of Simulate; a run copies the trace and the cluster.
// Thread class: a Grid is immutable once made, share freely; RunOne may be called from many threads.
#pragma once

#include "lab/metrics.h"
#include "lab/trace/synthetic.h"
#include "place/modes/batch.h"

namespace horus {

inline constexpr int32_t kGridWhole = 1000;  // thousandths

// What is made of a trace, in this order.
struct GridEdits {
  bool single_gpu = false;          // only jobs on one GPU
  bool known_only = false;          // only jobs of profiles with a truth and a belief
  int32_t clip_milli = kGridWhole;  // longer jobs than this quantile are cut to it; all of them = none is
  size_t sample = 0;                // so many jobs, drawn by the run's seed; 0 = all
  bool backlog = false;             // all at once, or
  int32_t load_milli = 0;           // arrivals scaled to it; 0 = as they are
};

// From the first submission: a time, or thousandths of the time from the first to the last; 0 and 0 = not stated.
struct GridTime {
  int64_t us = 0;
  int32_t span_milli = 0;
};

struct GridWorkload {
  std::string name;
  std::shared_ptr<const Trace> trace;  // null: `synthetic`, drawn by the run's seed
  SyntheticOptions synthetic;
  GridEdits edits;
  GridTime horizon;     // where the simulation stops
  GridTime warm_up;     // jobs that are submitted before it do not count
  std::string content;  // that differs where anything but the name and the seed does
};

struct GridPolicy {
  std::string name;
  std::string policy = "horus";
  std::string queue = "fifo";
  std::shared_ptr<const InterferenceModel> model;
  PolicyOptions policy_options;  // its seed is the run's; without a workload it gets the trace's tasks
  PlacerOptions placer_options;  // likewise
  QueueOptions queue_options;    // its capacity is the cluster's
  // Its horizon is the workload's. Whom grids compare all look as far ahead, where nothing else is stated.
  SimOptions sim_options{.look_ahead = BatchOptions{}.window};
  Learns learns = Learns::kNothing;  // the model, while the run goes on
  int32_t bounded_milli = 1000;      // of the jobs state the placer's slowdown_bound, the others none
  int32_t profiling_nodes = 0;       // of the last nodes, so many are set apart for profiling
  std::string content;
};

// One of the two.
struct GridTruth {
  std::optional<SpeedTable> speeds;  // measured
  std::vector<GpuTypeId> types;      // by GPU of the table
  uint32_t reference = 0;            // GPU of the table: a duration is one on it
  ManyTenants many = ManyTenants::kAdds;
  // Jobs on several GPUs run profiles of their own (NameGangs), and what nobody measured beside others on a GPU type is
  // believed to fill its memory at most: no policy puts a neighbour there.
  bool unmeasured_alone = false;
  std::shared_ptr<const InterferenceModel> model;  // predicted: the demands that are believed, and this model
  SensitivitiesByName sensitivities;               // to cores and host memory; profiles that lack one do not care
};

// What a grid's file states as it is used.
struct GridFrame {
  std::shared_ptr<const Catalogue> catalogue;
  std::vector<NodeSpec> nodes;
  int64_t mean_up_us = 0;  // of a node, between failures, drawn by the run's seed; 0 = none fails. Workloads then have
                           // horizons
  int64_t mean_down_us = 0;  // of a repair
  std::vector<uint64_t> seeds;
  bool lp_bound = false;      // measured speeds: whether work rates are compared with the bound of a linear program
  double slowdown_bound = 0;  // that SimMetrics::above_bound counts; 0 = each policy's own, or none
};

struct Grid : GridFrame {
  GridTruth truth;
  DemandsByName beliefs;
  SensitivitiesByName sensitivities;  // that policies are told
  std::vector<GridWorkload> workloads;
  std::vector<GridPolicy> policies;
  std::string content;  // of all but workloads, policies and seeds
};

struct GridRun {
  uint32_t workload = 0, policy = 0;
  uint64_t seed = 0;
  friend bool operator==(const GridRun&, const GridRun&) = default;
};

// By workload, then policy, then seed.
[[nodiscard]] std::vector<GridRun> RunsOf(const Grid& grid);

// Everything that decides the result of a run, as text: equal texts, equal results. And 16 hexadecimal digits of it.
[[nodiscard]] std::string ContentOf(const Grid& grid, const GridRun& run);
[[nodiscard]] std::string KeyOf(const std::string& content);

// Of the nodes' devices, ascending.
[[nodiscard]] std::vector<GpuTypeId> TypesOf(std::span<const NodeSpec> nodes);

// Demands of the types that the profile runs on in truth; each with a profile id. `any` becomes those of the nodes.
// Memory is cut to what a GPU of the type has beside the headroom, where the profile was measured alone on it.
[[nodiscard]] DemandsByName CompleteBeliefs(const Grid& grid, const DemandsByName& beliefs);
// Jobs that can run, in run times, clipped: what the seed does not change of a workload that is a trace.
[[nodiscard]] absl::StatusOr<Trace> PrepareTrace(const Grid& grid, Trace trace, const GridEdits& edits);
// Of a trace as it is read: jobs that no GPU type of the truth runs alone. 0 where the truth is a model.
[[nodiscard]] size_t CountWithoutSpeed(const Grid& grid, const Trace& trace);
struct OutageOptions {
  int64_t mean_up_us = 0;    // from a repair, or from 0, to the next failure; exponential; above 0
  int64_t mean_down_us = 0;  // of a repair; exponential, at least 1 us; above 0
  int64_t until_us = 0;      // nothing fails at or after it
  uint64_t seed = 0;         // each node has its own draws, so that one more node changes no other's
};

// By begin, then node; those of one node do not overlap. About 100 ns an outage. RESOURCE_EXHAUSTED: more than
// kMostOutages.
[[nodiscard]] absl::StatusOr<std::vector<NodeOutage>> DrawOutages(std::span<const NodeId> nodes,
                                                                  const OutageOptions& options);

// A model that knows the truth, for GridPolicy::model.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> OracleOf(const Grid& grid);

struct GridOutcome {
  Trace trace;
  SimResult result;
  SimMetrics metrics;
};

// Called for each event, with the trace that it is of; false cancels.
using GridObserver = std::function<bool(const Trace&, const SimEvent&)>;

// Errors: of the trace's edits, of Simulate and what it calls, with the run named.
[[nodiscard]] absl::StatusOr<GridOutcome> RunOne(const Grid& grid, const GridRun& run,
                                                 const GridObserver& observer = nullptr);

// ---- The columns that a comparison reports of each run, and what they come to over seeds.

enum class Better : uint8_t { kLower, kHigher, kNeither };

struct GridMetric {
  std::string_view name;
  Better better = Better::kNeither;
  double (*get)(const SimMetrics& metrics) = nullptr;
  bool of_finished = false;  // of the jobs that finished: says nothing of two policies where those are not the same
};

// In a fixed order; names are only added.
[[nodiscard]] std::span<const GridMetric> GridMetrics();
[[nodiscard]] std::optional<size_t> FindGridMetric(std::string_view name);

// A mean over seeds, that of another policy on the same seeds, and the mean of the differences between them with its 95
// % interval (Student's t); the interval is NaN of fewer than two seeds.
struct PairedMean {
  double mean = 0;
  double baseline = 0;
  double difference = 0;
  double half_width = 0;

  // `amount` as a share of the baseline's size; none where that is 0, but for rounding, or nothing.
  [[nodiscard]] std::optional<double> OfBaseline(double amount) const;
};

// Both of one size, at least 1, in the order of the seeds.
[[nodiscard]] PairedMean ComparePaired(std::span<const double> values, std::span<const double> baseline);

// The quantile of Student's t distribution that 97.5 % do not exceed.
[[nodiscard]] double StudentT975(size_t degrees_of_freedom);

}  // namespace horus
