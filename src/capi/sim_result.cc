// SPDX-License-Identifier: Apache-2.0
// horus/sim.h, what is told of results: metrics, jobs, work of the backlog, times of decisions.
#include <algorithm>
#include <limits>
#include <vector>

#include "capi/args.h"
#include "capi/columns.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/sim_handles.h"
#include "capi/structs.h"
#include "sim/metrics.h"

namespace horus::capi {
namespace {

static_assert(HORUS_SIM_END_WAITING == static_cast<int>(SimEnd::kWaiting) &&
              HORUS_SIM_END_RUNNING == static_cast<int>(SimEnd::kRunning) &&
              HORUS_SIM_END_FINISHED == static_cast<int>(SimEnd::kFinished) &&
              HORUS_SIM_END_REJECTED == static_cast<int>(SimEnd::kRejected));

absl::StatusOr<MetricsOptions> WindowFromC(const horus_sim_window* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_sim_window c, ReadOptionalStruct(given));
  if (!(c.slowdown_bound == 0 || c.slowdown_bound >= 1)) {
    return InvalidArgument("slowdown_bound: expected at least 1, or 0 (none), found %g", c.slowdown_bound);
  }
  MetricsOptions options;
  options.from_us = c.from_us;
  SetUnlessZero(options.to_us, c.to_us);
  SetUnlessZero(options.slowdown_bound, c.slowdown_bound);
  return options;
}

void PutSpread(const Spread& spread, double* values) {
  values[HORUS_SPREAD_MEAN] = spread.mean;
  values[HORUS_SPREAD_P50] = spread.p50;
  values[HORUS_SPREAD_P95] = spread.p95;
  values[HORUS_SPREAD_P99] = spread.p99;
}

horus_sim_metrics ToC(const SimMetrics& metrics, const SimResult& result) {
  horus_sim_metrics c = HORUS_SIM_METRICS_INIT;
  c.jobs = metrics.jobs;
  c.finished = metrics.finished;
  c.running = metrics.running;
  c.waiting = metrics.waiting;
  c.rejected = metrics.rejected;
  c.failures = metrics.failures;
  c.makespan_us = metrics.makespan_us;
  PutSpread(metrics.jct_us, c.jct_us);
  PutSpread(metrics.jct_to_horizon_us, c.jct_to_horizon_us);
  PutSpread(metrics.wait_us, c.wait_us);
  PutSpread(metrics.slowdown, c.slowdown);
  c.above_bound = metrics.above_bound;
  c.allocation = metrics.allocation;
  c.useful = metrics.useful;
  c.work_rate = metrics.work_rate;
  c.backlog_rate = metrics.backlog_rate;
  c.backlog_us = metrics.backlog_us;
  c.most_done_us = metrics.most_done_us;
  c.preemptions = metrics.preemptions;
  c.restarts = metrics.restarts;
  c.out_of_memory = metrics.out_of_memory;
  c.migrations = metrics.migrations;
  c.interruptions = metrics.interruptions;
  PutSpread(metrics.finish_time_fairness, c.finish_time_fairness);
  c.jain = metrics.jain;
  c.fragmentation = metrics.fragmentation;
  c.belief_error = metrics.belief_error;
  c.beliefs = result.beliefs;
  c.devices = result.devices;
  c.decisions = result.decisions;
  c.end_us = result.end_us;
  return c;
}

double MicrosecondsOf(Work work) { return static_cast<double>(work) / static_cast<double>(kFullRate); }

void PutJob(const TraceJob& asked, const SimJob& job, size_t row, const horus_sim_jobs& columns) {
  Put(columns.job_ids, row, asked.id);
  Put(columns.ends, row, job.end);
  Put(columns.start_us, row, job.start_us);
  Put(columns.end_us, row, job.end_us);
  Put(columns.ran_us, row, job.ran_us);
  Put(columns.work_us, row, MicrosecondsOf(job.sums.done));
  Put(columns.undisturbed_us, row, MicrosecondsOf(job.sums.undisturbed));
  Put(columns.backlog_us, row, MicrosecondsOf(job.sums.backlogged));
  Put(columns.lost_us, row, MicrosecondsOf(job.lost));
  Put(columns.failures, row, job.failures);
  Put(columns.out_of_memory, row, job.out_of_memory);
  Put(columns.preemptions, row, job.preemptions);
  Put(columns.migrations, row, job.migrations);
  Put(columns.interruptions, row, job.interruptions);
  Put(columns.restarts, row, job.restarts);
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

uint64_t horus_sim_result_bytes_held(const horus_sim_result* result) {
  if (result == nullptr) return 0;
  const horus::SimResult& value = result->value;
  return sizeof *result + BytesOf(*result->trace) + value.jobs.capacity() * sizeof(horus::SimJob) +
         value.took_us.capacity() * sizeof(float);
}

horus_status horus_sim_result_get_metrics(const horus_sim_result* result, const horus_sim_window* window,
                                          horus_sim_metrics* metrics, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{result, "result"}}));
    HORUS_RETURN_IF_ERROR(CheckOutput(metrics));
    HORUS_ASSIGN_OR_RETURN(const horus::MetricsOptions options, WindowFromC(window));
    WriteStruct(ToC(horus::MetricsOf(*result->trace, result->value, options), result->value), metrics);
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_get_model(const horus_sim_result* result, horus_interference** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{result, "result"}, {out, "out"}}));
    if (result->learned == nullptr) {
      return horus::InvalidArgument("result: expected one of a simulation that learned, found learns of 0");
    }
    *out = new horus_interference{result->learned, result->catalogue, {}};
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_jobs(const horus_sim_result* result, const horus_sim_jobs* jobs, size_t* count,
                                   horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{result, "result"}, {count, "count"}}));
    HORUS_ASSIGN_OR_RETURN(const horus_sim_jobs columns, ReadStruct(jobs));
    const std::vector<horus::SimJob>& all = result->value.jobs;
    HORUS_RETURN_IF_ERROR(CheckCapacity(all.size(), columns.capacity, count));
    for (size_t i = 0; i < all.size(); ++i) PutJob(result->trace->jobs[i], all[i], i, columns);
    *count = all.size();
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_backlog_work(const horus_sim_result* result, size_t capacity, double* gpu_s,
                                           size_t* count, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{result, "result"}, {count, "count"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(gpu_s, "gpu_s", capacity));
    const std::vector<double> work = horus::BacklogWork(*result->trace, result->value);
    HORUS_RETURN_IF_ERROR(CheckCapacity(work.size(), capacity, count));
    std::copy(work.begin(), work.end(), gpu_s);
    *count = work.size();
    return absl::OkStatus();
  });
}

horus_status horus_sim_result_decision_times(const horus_sim_result* result, size_t capacity, float* took_us,
                                             size_t* count, double* spread, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{result, "result"}, {count, "count"}}));
    const std::vector<float>& all = result->value.took_us;
    if (took_us != nullptr) HORUS_RETURN_IF_ERROR(CheckCapacity(all.size(), capacity, count));
    const horus::Spread times = horus::DecisionTimes(result->value);
    if (took_us != nullptr) std::copy(all.begin(), all.end(), took_us);
    if (spread != nullptr) PutSpread(times, spread);
    *count = all.size();
    return absl::OkStatus();
  });
}
