// SPDX-License-Identifier: Apache-2.0
// Simulator: plays a trace on a cluster. Queue and placer decide by beliefs; time passes by the truth.
//
// Enters:  a trace; beliefs about its profiles; the truth; a cluster, a queue and a placer.
// Leaves:  the outcome of every job, and the integrals over time from which metrics.h computes metrics.
// Units:   microseconds of the trace's clock.
// Cost:    one decision per job, more while jobs wait (look-ahead); memory about 350 bytes a job.
// Thread class: one thread at a time; equal arguments give equal results on every machine.
#pragma once

#include "base/hash.h"
#include "lab/policies/rivals.h"
#include "lab/run/execution.h"
#include "lab/truth/learner.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/policies/workload.h"
#include "queue/queue.h"

namespace horus {

// How a job's weight (JobSpec::weight) is chosen.
enum class SimWeights : uint8_t {
  kQueue = 0,     // kShortest where the queue serves the shortest first and is told run times, else kPrices
  kShortest = 1,  // 1 / run time alone, rounded to a power of two: lowers mean completion time
  kPrices = 2,    // where jobs are chosen, by what their kind of work is worth (place/search/prices.h); else alike
  kAlike = 3,
};

// A limit is needed because a trace may state jobs of any length. This many rounds take at most a minute to run; with
// rounds of a minute they cover 63 years.
inline constexpr int64_t kMostSimRounds = int64_t{1} << 25;

// When a node is down, on the trace's clock.
struct NodeOutage {
  NodeId node = 0;
  int64_t from_us = 0;
  int64_t until_us = 0;  // it is up again; above from_us
  friend bool operator==(const NodeOutage&, const NodeOutage&) = default;
};
inline constexpr size_t kMostOutages = 1'000'000;  // of a simulation

struct SimOptions {
  int64_t horizon_us = 0;  // nothing happens at or after it; 0 = until all is done; required by endless jobs
  size_t look_ahead = 0;   // waiting jobs tried, in the queue's order, until one fits, or compared; 0 = the queue's
                           // number, or where one_by_one matters BatchOptions::window
  int64_t round_us = 0;    // decisions only at its multiples; 0 = whenever a job comes or leaves
  int64_t most_rounds = kMostSimRounds;  // limit on multiples of round_us and rebalance_us with a decision
  bool know_run_times = true;            // the queue is told how long jobs run alone
  // Waiting jobs may take the places of running jobs that rank behind them, the last of these first. The queue ranks
  // by service so far and work left; with round_us, in every round while a job waits.
  bool preempt = false;
  int64_t restart_us = 0;     // time on its places before a restarted job works
  int64_t checkpoint_us = 0;  // running time between checkpoints, to which failures go back; 0 = failures lose
                              // nothing. Preempted and moved jobs write a checkpoint first
  int64_t latency_us = 0;     // from a decision until the job works; it holds its places meanwhile
  // Of policies that maximise work, without preempt: where the queue serves in order of arrival (fifo, las), who of the
  // look-ahead goes is chosen as PlanBatch does; where it serves the shortest first (sjf, srtf) and weights are
  // kShortest, a job that would share waits instead if that delays all jobs less (beliefs.h). true, and everywhere
  // else: the first of the look-ahead that fits goes. Where the queue serves the shortest first and is told run times,
  // nobody goes who delays the first gang that was refused.
  bool one_by_one = false;
  int32_t bounded_milli = 0;  // thousandths of the jobs, drawn by hash of the id, that state job_bound
  double job_bound = 0;       // slowdown bound
  SimWeights weights = SimWeights::kQueue;
  std::shared_ptr<const Workload> workload;  // tasks by which fragments are measured; null = the trace's own
  // In any order; outages of one node must not overlap. The node's jobs go back to their last checkpoint and wait.
  std::vector<NodeOutage> outages;
  // Running jobs may move at its multiples (place/modes/rebalance.h); each move costs restart_us. 0 = never.
  int64_t rebalance_us = 0;
  RebalanceOptions rebalance;
  // Tenants that shared a device unchanged for so long are observed once, by Policy::Revise and the learner. If Revise
  // undoes the pack, the job that came last waits again. 0 = never.
  int64_t observe_us = 0;
  PairLearner* learner = nullptr;
  // An unprofiled job that starts on a node with the label runs there for so long, then waits again with its demand
  // measured. 0 = nothing is profiled.
  int64_t profiling_us = 0;
  std::string profiling_label = kProfilingLabel;
  bool profile_each_job = false;                          // false = one job is profiled for all of its profile
  const std::vector<ProfileDemands>* measured = nullptr;  // what profiling finds, by profile; null = the beliefs
  // By profile, known to synergy-* policies; null = none. The true speeds are Truth::HostSpeed of the cores and host
  // memory granted, else requested, else the GPU's fair share of the node.
  const std::vector<SharedSensitivity>* sensitivities = nullptr;
};

enum class SimEnd : uint8_t {
  kWaiting = 0,  // at the horizon, or because no later event could make room
  kRunning = 1,  // at the horizon; also if it holds places and was about to start
  kFinished = 2,
  kRejected = 3,  // the placer said that it never fits this cluster
};

// Whether the job is one of the `bounded_milli` thousandths that state a bound.
[[nodiscard]] inline bool StatesBound(uint64_t job_id, int32_t bounded_milli) {
  return static_cast<int32_t>(Mix64(job_id) % 1000) < bounded_milli;
}

struct SimJob {
  int64_t start_us = -1;      // the first; -1 = never
  int64_t end_us = -1;        // -1 = it did not finish
  RunSums sums;               // over the time that it ran
  Work lost = 0;              // work done since the last checkpoints before failures
  int64_t ran_us = 0;         // all its runs together, without starting
  int32_t failures = 0;       // starts beside co-tenants with which it cannot run
  int32_t out_of_memory = 0;  // starts ended by lack of device memory
  int32_t preemptions = 0;    // by jobs that rank before it, or because its pack was undone
  int32_t migrations = 0;
  int32_t interruptions = 0;  // by failed nodes
  int32_t restarts = 0;       // times that it worked again after a stop
  SimEnd end = SimEnd::kWaiting;
};

// Device time from the first arrival to the end, summed over all devices.
struct SimUse {
  absl::int128 device_us = 0;          // devices that were up
  absl::int128 used_us = 0;            // devices held by at least one job
  absl::int128 free_us = 0;            // not requested, in millionths of a device; 0 if the workload is too large
  absl::int128 fragment_us = 0;        // part of free_us that a task of the workload cannot use (FGD, ATC 2023)
  absl::int128 backlog_device_us = 0;  // devices that were up while a job waited
};

inline constexpr int32_t kMostWorkPct = 99;

struct SimResult {
  std::vector<SimJob> jobs;  // in the order of Trace::jobs
  SimUse use;
  size_t devices = 0;
  int64_t end_us = 0;  // of the last event
  // Sum of |ln(believed slowdown / true one)| over the tenants of a device each time that a job comes to share it.
  double belief_error = 0;
  uint64_t beliefs = 0;        // terms of that sum
  int64_t backlog_us = 0;      // time in which at least one job waited
  int64_t most_done_us = -1;   // when kMostWorkPct of the work of all jobs, counted by GPUs, was done; -1 = never, or
                               // jobs are endless
  uint64_t decisions = 0;      // jobs that the placer was asked about
  std::vector<float> took_us;  // time of each decision; only this differs from run to run
};

enum class SimEventKind : uint8_t {
  kArrive,
  kStart,
  kFail,  // the job cannot run beside its co-tenants
  kFinish,
  kReject,
  kPreempt,
  kOutOfMemory,
  kMigrate,    // it moved to other slots
  kInterrupt,  // its node failed
  kProfiled,   // it left the profiling node and waits
  kNodeDown,   // no job (kNotStated); the slot names the node
  kNodeUp,     // the same
};

struct SimEvent {
  SimEventKind kind = SimEventKind::kArrive;
  int64_t time_us = 0;
  uint32_t job = 0;             // position in Trace::jobs
  std::span<const Slot> slots;  // where it is or was; valid during the call
};

// Called for each event in order; false cancels the simulation.
using SimObserver = std::function<bool(const SimEvent&)>;

// `beliefs`: by profile, told to the placer. `cluster` must hold no jobs and `queue` must be empty. Errors:
// INVALID_ARGUMENT (options; a job without profile, work or belief; endless jobs without a horizon; a cluster with
// jobs), CANCELLED, and those of placer, truth and queue.
[[nodiscard]] absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs,
                                                 const Truth& truth, Cluster& cluster, Queue& queue, Placer& placer,
                                                 const SimOptions& options, const SimObserver& observer = nullptr);

}  // namespace horus
