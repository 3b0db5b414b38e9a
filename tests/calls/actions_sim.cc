// SPDX-License-Identifier: Apache-2.0
// Actions of traces, truths and whole simulations, small ones; and of the bound on what sharing could give.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "base/hash.h"
#include "calls/arguments.h"
#include "calls/corrupt.h"
#include "calls/harness.h"
#include "calls/plans.h"

namespace horus::calls {
namespace {

using TraceHandle = Handle<horus_trace, horus_trace_free>;
using TruthHandle = Handle<horus_truth, horus_truth_free>;
using ResultHandle = Handle<horus_sim_result, horus_sim_result_free>;

constexpr size_t kRows = 6;
constexpr int64_t kMinuteUs = 60'000'000;
constexpr std::array<const char*, 2> kProfiles = {"one", "two"};
const horus_catalogue* const kBuiltIn = nullptr;

struct TraceArgument {
  Roomy<horus_trace_columns> columns{HORUS_TRACE_COLUMNS_INIT};
  std::array<uint64_t, kRows> ids = {};
  std::array<int64_t, kRows> submit_us = {}, duration_us = {};
  std::array<int32_t, kRows> tasks = {};
  std::array<uint32_t, kRows> profiles = {};
};

void MakeTrace(Harness& harness, TraceArgument& out) {
  for (size_t i = 0; i < kRows; ++i) {
    out.ids[i] = i + 1;
    out.submit_us[i] = static_cast<int64_t>(harness.choices.Below(8)) * kMinuteUs;
    out.duration_us[i] = static_cast<int64_t>(1 + harness.choices.Below(16)) * kMinuteUs;
    out.tasks[i] = static_cast<int32_t>(harness.choices.Below(3));
    out.profiles[i] = static_cast<uint32_t>(harness.choices.Below(kProfiles.size()));
  }
  if (harness.choices.OneIn(8)) out.ids[0] = harness.choices.HostileBits();
  if (harness.choices.OneIn(8)) out.submit_us[1] = static_cast<int64_t>(harness.choices.HostileBits());
  if (harness.choices.OneIn(8)) out.tasks[2] = static_cast<int32_t>(harness.choices.HostileBits());
  if (harness.choices.OneIn(8)) out.profiles[3] = static_cast<uint32_t>(harness.choices.HostileBits());
  horus_trace_columns& columns = out.columns.value;
  columns.count = harness.choices.Below(kRows + 1);
  columns.ids = out.ids.data();
  columns.submit_us = out.submit_us.data();
  columns.duration_us = out.duration_us.data();
  columns.tasks = out.tasks.data();
  columns.profile_count = kProfiles.size();
  columns.profile_names = kProfiles.data();
  columns.profiles = out.profiles.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, out.columns);
}

TraceHandle SomeTrace(Harness& harness) {
  horus_trace* trace = nullptr;
  horus_status status = HORUS_OK;
  if (harness.choices.OneIn(4)) {
    Roomy<horus_synthetic_options> options{HORUS_SYNTHETIC_OPTIONS_INIT};
    options.value.jobs = static_cast<int64_t>(1 + harness.choices.Below(8));
    options.value.capacity_gpu_milli = 8'000;
    MaybeCorrupt(harness.choices, 4, options);
    status = HORUS_TRY(harness, kNone, horus_trace_create_synthetic, &options.value, &trace);
  } else {
    TraceArgument columns;
    MakeTrace(harness, columns);
    status = HORUS_TRY(harness, kNone, horus_trace_create, &columns.columns.value, &trace);
  }
  harness.Require((status == HORUS_OK) == (trace != nullptr), "a trace comes with success alone");
  if (trace != nullptr) {
    horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
    harness.Require(HORUS_TRY(harness, kNone, horus_trace_get_summary, trace, &summary) == HORUS_OK, "a summary");
    harness.Require(summary.jobs == horus_trace_count(trace), "jobs of a trace", horus_trace_count(trace),
                    summary.jobs);
    (void)horus_trace_profile_name(trace, harness.choices.HostileBits());
    (void)horus_trace_owner_name(trace, harness.choices.HostileBits());
    (void)horus_trace_type_name(trace, 0, harness.choices.HostileBits());
    horus_trace_jobs rows = HORUS_TRACE_JOBS_INIT;
    size_t count = 0;
    HORUS_TRY(harness, kNone, horus_trace_get_jobs, trace, &rows, &count);
  }
  return TraceHandle(trace);
}

struct BeliefsArgument {
  Roomy<horus_profile_demands> rows{HORUS_PROFILE_DEMANDS_INIT};
  std::array<Roomy<horus_demand>, 2> demands;
  std::array<const horus_demand*, 2> pointers = {};
};

void MakeBeliefs(Harness& harness, BeliefsArgument& out) {
  for (size_t i = 0; i < out.demands.size(); ++i) {
    MakeDemand(harness.choices, 8 * harness.options.hostile, out.demands[i]);
    out.demands[i].value.step_time_us = 100'000;
    out.demands[i].value.profile_id = i + 1;
    out.pointers[i] = &out.demands[i].value;
  }
  out.rows.value.count = 2;
  out.rows.value.profiles = kProfiles.data();
  out.rows.value.demands = out.pointers.data();
  MaybeCorrupt(harness.choices, 2 * harness.options.hostile, out.rows);
}

struct SpeedsArgument {
  std::array<const char*, 1> gpu_types = {kGpuTypes[0]};
  std::array<double, 2> alone = {1, 2};
  std::array<uint32_t, 1> pair_gpus = {0}, a = {0}, b = {1};
  std::array<double, 1> of_a = {0.8}, of_b = {0.8};
  Roomy<horus_speeds> speeds{HORUS_SPEEDS_INIT};
};

void MakeSpeeds(Harness& harness, SpeedsArgument& out) {
  horus_speeds& speeds = out.speeds.value;
  speeds.gpu_count = out.gpu_types.size();
  speeds.gpu_types = out.gpu_types.data();
  speeds.profile_count = kProfiles.size();
  speeds.profiles = kProfiles.data();
  speeds.alone = out.alone.data();
  speeds.pair_count = out.a.size();
  speeds.pair_gpus = out.pair_gpus.data();
  speeds.pairs_a = out.a.data();
  speeds.pairs_b = out.b.data();
  speeds.speeds_a = out.of_a.data();
  speeds.speeds_b = out.of_b.data();
  MaybeCorrupt(harness.choices, 4, out.speeds);
}

// Predicted by a model or measured; in one of four cases speeds follow cores and host memory.
TruthHandle SomeTruth(Harness& harness, const horus_profile_demands* beliefs) {
  horus_truth* out = nullptr;
  horus_status status = HORUS_OK;
  if (harness.choices.OneIn(2)) {
    const horus_interference* const model = nullptr;
    status = HORUS_TRY(harness, kNone, horus_truth_from_model, kBuiltIn, model, beliefs, &out);
  } else {
    SpeedsArgument speeds;
    MakeSpeeds(harness, speeds);
    status = HORUS_TRY(harness, kNone, horus_truth_from_speeds, kBuiltIn, &speeds.speeds.value,
                       harness.choices.OneIn(16) ? 2 : static_cast<int32_t>(harness.choices.Below(2)), &out);
  }
  harness.Require((status == HORUS_OK) == (out != nullptr), "a truth comes with success alone");
  TruthHandle truth(out);
  if (!harness.choices.OneIn(4)) return truth;
  const std::array<int64_t, 2> cpu_milli = {1'000, 4'000};
  const std::array<int64_t, 1> mem_mib = {1'024};
  const std::array<float, 2> shares = {0.5f, 1};
  Roomy<horus_sensitivity> sensitivity{HORUS_SENSITIVITY_INIT};
  sensitivity.value.cpu_count = cpu_milli.size();
  sensitivity.value.cpu_milli = cpu_milli.data();
  sensitivity.value.mem_count = mem_mib.size();
  sensitivity.value.mem_mib = mem_mib.data();
  sensitivity.value.speeds = shares.data();
  const std::array<const horus_sensitivity*, 1> pointers = {&sensitivity.value};
  Roomy<horus_profile_sensitivities> rows{HORUS_PROFILE_SENSITIVITIES_INIT};
  rows.value.count = pointers.size();
  rows.value.profiles = kProfiles.data();
  rows.value.sensitivities = pointers.data();
  MaybeCorrupt(harness.choices, 8, rows);
  horus_truth* with = nullptr;
  status = HORUS_TRY(harness, kNone, horus_truth_with_sensitivities, static_cast<const horus_truth*>(truth.get()),
                     &rows.value, &with);
  harness.Require((status == HORUS_OK) == (with != nullptr), "a truth comes with success alone");
  if (with == nullptr) return truth;
  harness.Require(horus_truth_bytes_held(with) > 0, "a truth without size");
  return TruthHandle(with);
}

struct Seen {
  Harness* harness;
  int64_t time_us;
  uint64_t events;
};
constexpr uint64_t kMostEvents = 3'000;

int32_t ObserveEvent(void* user, const horus_sim_event* event) {
  Seen& seen = *static_cast<Seen*>(user);
  seen.harness->Require(event->time_us >= seen.time_us, "events in order of time");
  seen.time_us = event->time_us;
  seen.harness->Note(CombineHash(event->job_id, static_cast<uint64_t>(event->kind)));
  return ++seen.events > kMostEvents ? 1 : 0;
}

// A cluster like none, without jobs.
ClusterHandle EmptyCluster(Harness& harness) {
  horus_cluster* out = nullptr;
  HORUS_TRY(harness, kNone, horus_cluster_create, kBuiltIn, &out);
  for (uint64_t id = 1; id <= 2; ++id) {
    NodeArgument node;
    MakeNode(harness.choices, id, 2, 8 * harness.options.hostile, node);
    HORUS_TRY(harness, kNone, horus_cluster_add_node, out, &node.node.value);
  }
  return ClusterHandle(out);
}

void MakeSimOptions(Harness& harness, Roomy<horus_sim_options>& out) {
  constexpr size_t kDisciplines = 10;
  horus_sim_options& options = out.value;
  options.discipline = Library().disciplines[harness.choices.Below(kDisciplines + 1)];
  options.horizon_us = static_cast<int64_t>(1 + harness.choices.Below(64)) * kMinuteUs;
  options.round_us = harness.choices.OneIn(4) ? kMinuteUs : 0;
  options.preempt = harness.choices.OneIn(4) ? 1 : 0;
  options.rebalance_us = harness.choices.OneIn(4) ? 5 * kMinuteUs : 0;
  options.restart_us = harness.choices.OneIn(4) ? kMinuteUs : 0;
  options.observe_us = harness.choices.OneIn(4) ? kMinuteUs : 0;
  options.learns = static_cast<int32_t>(harness.choices.Below(4));
  static constexpr std::array<uint64_t, 1> kNode = {1};
  static constexpr std::array<int64_t, 1> kFrom = {3 * kMinuteUs}, kUntil = {9 * kMinuteUs};
  if (harness.choices.OneIn(4)) {
    options.outage_count = 1;
    options.outage_nodes = kNode.data();
    options.outage_from_us = kFrom.data();
    options.outage_until_us = kUntil.data();
  }
  MaybeCorrupt(harness.choices, harness.options.hostile, out);
}

void CheckResult(Harness& harness, const horus_trace* trace, const horus_sim_result* result) {
  Roomy<horus_sim_window> window{HORUS_SIM_WINDOW_INIT};
  MaybeCorrupt(harness.choices, 4, window);
  horus_sim_metrics metrics = HORUS_SIM_METRICS_INIT;
  HORUS_TRY(harness, kNone, horus_sim_result_get_metrics, result, &window.value, &metrics);
  const horus_sim_window* const all = nullptr;
  metrics = HORUS_SIM_METRICS_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_sim_result_get_metrics, result, all, &metrics) == HORUS_OK,
                  "metrics");
  harness.Require(metrics.jobs == metrics.finished + metrics.running + metrics.waiting + metrics.rejected,
                  "the jobs of a simulation are all somewhere", metrics.jobs);
  horus_sim_jobs rows = HORUS_SIM_JOBS_INIT;
  size_t count = 0;
  HORUS_TRY(harness, kNone, horus_sim_result_jobs, result, &rows, &count);
  harness.Require(count == horus_trace_count(trace), "a row a job", horus_trace_count(trace), count);
  HORUS_TRY(harness, kNone, horus_sim_result_backlog_work, result, size_t{0}, nullptr, &count);
  std::array<double, HORUS_SPREAD_COUNT> spread = {};
  HORUS_TRY(harness, kNone, horus_sim_result_decision_times, result, size_t{0}, nullptr, &count, spread.data());
  harness.Require(horus_sim_result_bytes_held(result) > 0, "a result without size");
  horus_interference* learnt = nullptr;
  HORUS_TRY(harness, kNone, horus_sim_result_get_model, result, &learnt);
  horus_interference_free(learnt);
}

void Simulate(Harness& harness) {
  const TraceHandle trace = SomeTrace(harness);
  BeliefsArgument beliefs;
  MakeBeliefs(harness, beliefs);
  const TruthHandle truth = SomeTruth(harness, &beliefs.rows.value);
  const ClusterHandle cluster = EmptyCluster(harness);
  Roomy<horus_sim_options> options{HORUS_SIM_OPTIONS_INIT};
  MakeSimOptions(harness, options);
  Seen seen{&harness, std::numeric_limits<int64_t>::min(), 0};
  horus_sim_result* out = nullptr;
  harness.simulating = true;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_sim_run, trace.get(), &beliefs.rows.value, truth.get(),
                harness.choices.OneIn(16) ? harness.cluster.get() : cluster.get(), SomePlacer(harness), &options.value,
                ObserveEvent, static_cast<horus_progress>(nullptr), &seen, &out);
  harness.simulating = false;
  const ResultHandle result(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a result comes with success alone");
  if (out != nullptr) CheckResult(harness, trace.get(), out);
}

void Potential(Harness& harness) {
  const std::array<double, 2> work = {1, 3}, gpus = {2, 0};
  SpeedsArgument given;
  MakeSpeeds(harness, given);
  horus_potential potential = HORUS_POTENTIAL_INIT;
  HORUS_TRY(harness, kNone, horus_potential_compute, &given.speeds.value, work.data(), gpus.data(),
            static_cast<const horus_potential_options*>(nullptr), StopNow, &harness, &potential,
            static_cast<const horus_potential_rows*>(nullptr), static_cast<size_t*>(nullptr));
}

}  // namespace

std::vector<Action> SimActions() { return {{Simulate, 1}, {Potential, 1}}; }

}  // namespace horus::calls
