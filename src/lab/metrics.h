// SPDX-License-Identifier: Apache-2.0
// Metrics: what a simulation comes to, by the field's terms.
//
// Enters:  a trace and what became of it.
// Leaves:  counts, times and shares.
// Units:   microseconds; shares from 0 to 1; a slowdown of 1 = undisturbed.
#pragma once

#include "lab/simulator.h"

namespace horus {

// ---- Fairness: how long a job took against what a fair share of the cluster would have given it.
// Cost: a sort of the jobs.

// rho = completion time / time with a fair share (finish-time fairness: Themis, NSDI 2020). The fair share of a job is
// 1/n of all devices, where n is the mean number of jobs in the system, itself included, from its submission to its
// finish; a job of g devices and run time d that has C/n of C devices takes d * max(1, g * n / C). 0 for jobs that did
// not finish. Rejected jobs were never in the system; devices that were down count.
[[nodiscard]] std::vector<double> FinishTimeFairness(const Trace& trace, const SimResult& result);

// (sum of x)^2 / (n * sum of x^2), from 1/n (one has all) to 1 (all alike); NaN of nothing. (Jain, Chiu and Hawe,
// 1984.)
[[nodiscard]] double JainIndex(std::span<const double> values);

struct MetricsOptions {
  // Jobs that are submitted in [from_us, to_us): the rest warms up or has no time to finish.
  int64_t from_us = std::numeric_limits<int64_t>::min();
  int64_t to_us = std::numeric_limits<int64_t>::max();
  double slowdown_bound = std::numeric_limits<double>::infinity();  // of a job's mean slowdown
  int32_t bounded_milli = 1000;                                     // who states it: StatesBound
};

inline constexpr double kNoMetric = std::numeric_limits<double>::quiet_NaN();  // a metric that has no value

// Mean and quantiles: a quantile is the least value that so large a share of the values does not exceed; NaN of none.
struct Spread {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

struct SimMetrics {
  uint64_t jobs = 0;  // all that count; the next four sum to it
  uint64_t finished = 0;
  uint64_t running = 0;
  uint64_t waiting = 0;
  uint64_t rejected = 0;
  uint64_t failures = 0;     // starts beside neighbours with whom a job cannot run
  int64_t makespan_us = -1;  // first submission to last finish; -1 = no job finished
  Spread jct_us;             // job completion time: submission to finish
  // The same with the end of the simulation instead of the finish of jobs that did not: the restricted mean. Of all
  // jobs that came before it and are not endless; of one horizon it compares policies that finish different jobs.
  Spread jct_to_horizon_us;
  Spread wait_us;          // submission to first start
  Spread slowdown;         // of each job, mean over the time that it ran
  double above_bound = 0;  // share of the finished jobs that state the bound whose slowdown exceeds it; NaN of none
  double allocation = 0;   // share of the device time that jobs held them
  double useful = 0;       // normalised throughput per device: each tenant's speed there / its speed alone there
  double work_rate = 0;    // work per device and time, where 1 is a job alone at speed 1
  // Of WorkRateBound for the work that was done while jobs waited, per device; by whoever asks for it.
  double bound_rate = 0;
  std::optional<double> gap_closed;  // ShareOfGapClosed; none where the gap is too small
  double backlog_rate = 0;    // the same while jobs waited: what WorkRateBound of BacklogWork, per device, bounds
  int64_t backlog_us = 0;     // how long jobs waited
  int64_t most_done_us = -1;  // first submission until 99 % (kMostWorkPct) of the work was done; -1 = as SimResult
  uint64_t preemptions = 0;   // of jobs in the window, as those below
  uint64_t restarts = 0;
  uint64_t out_of_memory = 0;
  uint64_t migrations = 0;
  uint64_t interruptions = 0;  // by nodes that failed
  // Of the jobs that finished: rho, as defined above, and Jain's index of 1 / rho.
  Spread finish_time_fairness;
  double jain = 0;
  double fragmentation = 0;  // share of the free GPU time that a typical task could not use (SimUse::fragment_us)
  double belief_error = 0;   // mean |ln(believed slowdown / true one)| of tenants when a job came to share their device
  uint64_t beliefs = 0;      // how many of them
  uint64_t devices = 0;
  uint64_t decisions = 0;  // jobs that the placer was asked about
  int64_t end_us = 0;      // of the last event
  friend bool operator==(const SimMetrics&, const SimMetrics&) = default;
};

// From `allocation` to `most_done_us`, and from `fragmentation` on: of all jobs and all of the time.
[[nodiscard]] SimMetrics MetricsOf(const Trace& trace, const SimResult& result, const MetricsOptions& options = {});

// Of SimResult::took_us, in microseconds of the clock: differs from run to run, so it is no part of the metrics.
[[nodiscard]] Spread DecisionTimes(const SimResult& result);

// Work in GPU x seconds at speed 1 that was done while jobs waited, by profile: the mix whose bound (WorkProblem::mix)
// a policy is measured by.
[[nodiscard]] std::vector<double> BacklogWork(const Trace& trace, const SimResult& result);

}  // namespace horus
