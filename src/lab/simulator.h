// SPDX-License-Identifier: Apache-2.0
// Simulator: a trace on a cluster under a queue and a placer, which believe, while time passes by the truth.
//
// Enters:  a trace; what the placer is told of its profiles; the truth; a cluster, a queue and a placer.
// Leaves:  what became of every job, and the sums over time from which metrics follow (metrics.h).
// Units:   microseconds of the trace's clock.
// Cost:    one decision per job, more while jobs wait (look-ahead); memory about 350 bytes a job.
// Thread class: one thread at a time; equal arguments give equal results on every machine.
#ifndef HORUS_LAB_SIMULATOR_H_
#define HORUS_LAB_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/hash.h"
#include "lab/run/execution.h"
#include "lab/run/outages.h"
#include "lab/trace/trace.h"
#include "lab/truth/learner.h"
#include "lab/truth/truth.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/policies/workload.h"
#include "place/state/cluster.h"
#include "queue/queue.h"

namespace horus {

// What a job's work counts beside that of others (JobSpec::weight).
enum class SimWeights : uint8_t {
  kAlike = 0,
  kShortest = 1,  // 1 / the time that it takes alone, rounded to a power of two: for short completion times
  kPrices = 2,    // by profile, as its work is worth (potential.h): for a high work rate
};

// A minute or less of them, and 63 years of rounds of a minute: a trace may state jobs of any length.
inline constexpr int64_t kMostSimRounds = int64_t{1} << 25;

struct SimOptions {
  int64_t horizon_us = 0;  // nothing happens at or after it; 0 = until all is done, which a trace with endless jobs
                           // never is
  size_t look_ahead = 0;   // waiting jobs that are tried until one fits, in the queue's order; 0 = as the queue says
  int64_t round_us = 0;    // decisions at its multiples alone; 0 = whenever a job comes or leaves
  int64_t most_rounds = kMostSimRounds;  // multiples of round_us and rebalance_us at which something is asked
  bool know_run_times = true;            // whether the queue is told how long jobs run alone
  // Jobs that wait take the places of jobs that run and rank behind them, the last first. Ranks are the queue's, by
  // service so far and work left; with round_us they are asked again every round while somebody waits.
  bool preempt = false;
  int64_t restart_us = 0;     // a job that worked before holds its places so long before it works there
  int64_t checkpoint_us = 0;  // running time between two checkpoints, which a failure goes back to; 0 = nothing is
                              // lost. Who is preempted or moved writes one first
  int64_t latency_us = 0;     // from a decision until the job works; its places are held meanwhile
  // Of the look-ahead the job that its place suits best goes first, by the policy's cost times what the job's work
  // counts; else the first that fits. Of equal priority, that is: those of higher priority go first.
  bool best_of_window = false;
  // A job that would share waits where that delays everybody less than sharing does (waiting.h), by the run times; for
  // queues that serve the shortest first. Not beside preempt.
  bool weigh_waiting = false;
  // Jobs that state a bound on their slowdown, and which: of so many thousandths of the trace's ids, drawn by hash.
  int32_t bounded_milli = 0;
  double job_bound = 0;
  SimWeights weights = SimWeights::kAlike;
  std::string lp_library;                    // for prices: file of libhorus_lp.so; empty = looked for
  std::shared_ptr<const Workload> workload;  // what fragments are measured against; null = the trace's own tasks
  // Nodes that fail; in any order, those of one node do not overlap. Their jobs wait again, as of their last
  // checkpoints.
  std::vector<NodeOutage> outages;
  // At its multiples jobs that run may move (place/modes/rebalance.h), to work again after restart_us; 0 = never.
  int64_t rebalance_us = 0;
  RebalanceOptions rebalance;
  // Who shared a device for so long, nobody coming or leaving, is seen once: the policy's Revise is told (its pack is
  // undone where it says so: who came last waits again) and the learner. 0 = never.
  int64_t observe_us = 0;
  SimLearner* learner = nullptr;
  // A job that starts on a node with the label and was not profiled runs there for so long, then waits again with its
  // demand measured, as `reactive` has it: `measured` by profile, null = as believed. 0 = nothing is profiled.
  int64_t profiling_us = 0;
  std::string profiling_label = kProfilingLabel;
  bool profile_each_job = false;  // else one job speaks for all of its profile
  const std::vector<ProfileDemands>* measured = nullptr;
  // By profile, what synergy-* policies are told; null = nothing. What is so says Truth::HostSpeed: of the cores and
  // host memory that a job was granted, else asked for, and where it states none of them of its GPU's fair share of the
  // node.
  const std::vector<SharedSensitivity>* sensitivities = nullptr;
};

enum class SimEnd : uint8_t {
  kWaiting = 0,  // at the horizon, or because nothing that could come would have made room
  kRunning = 1,  // at the horizon, or it holds places and was to start
  kFinished = 2,
  kRejected = 3,  // the placer said that it fits this cluster never
};

// Whether a job of the trace is one of so many thousandths that state a bound.
[[nodiscard]] inline bool StatesBound(uint64_t job_id, int32_t bounded_milli) {
  return static_cast<int32_t>(Mix64(job_id) % 1000) < bounded_milli;
}

struct SimJob {
  int64_t start_us = -1;      // the first; -1 = never
  int64_t end_us = -1;        // of a job that finished
  RunSums sums;               // as far as it ran
  Work lost = 0;              // of what was done: since the last checkpoints before failures
  int64_t ran_us = 0;         // all its runs together, without what starting took
  int32_t failures = 0;       // starts beside neighbours with whom it cannot run
  int32_t out_of_memory = 0;  // starts that its memory ended
  int32_t preemptions = 0;    // by those who rank before it, or because its pack was undone
  int32_t migrations = 0;
  int32_t interruptions = 0;  // by nodes that failed
  int32_t restarts = 0;       // that it worked again after it had stopped
  SimEnd end = SimEnd::kWaiting;
};

// Integrals over the time from the first arrival to the end, of all devices together.
struct SimUse {
  absl::int128 device_us = 0;    // that were up
  absl::int128 used_us = 0;      // held by at least one job
  absl::int128 free_us = 0;      // millionths of a device that nobody asked for; 0 where the workload is too large
  absl::int128 fragment_us = 0;  // of them those that a task of the workload cannot use there (FGD, ATC 2023)
  absl::int128 backlog_device_us = 0;  // that were up while a job waited
};

inline constexpr int32_t kMostWorkPct = 99;

struct SimResult {
  std::vector<SimJob> jobs;  // in the order of Trace::jobs
  SimUse use;
  size_t devices = 0;
  int64_t end_us = 0;  // of the last event
  // Over tenants of devices that a job came to share: the sum of |ln(believed slowdown / true one)|, and their number.
  double belief_error = 0;
  uint64_t beliefs = 0;
  int64_t backlog_us = 0;      // how long a job waited
  int64_t most_done_us = -1;   // when kMostWorkPct of the work of all jobs, counted by GPUs, was done; -1 = not, or
                               // there are endless jobs
  uint64_t decisions = 0;      // jobs that the placer was asked about
  std::vector<float> took_us;  // time of each; differs from run to run, unlike all else
};

enum class SimEventKind : uint8_t {
  kArrive,
  kStart,
  kFail,  // it cannot run beside its neighbours
  kFinish,
  kReject,
  kPreempt,
  kOutOfMemory,
  kMigrate,    // it holds other places
  kInterrupt,  // its node failed
  kProfiled,   // it was put back
  kNodeDown,   // of no job (kNotStated); the slot tells the node
  kNodeUp,     // likewise
};

struct SimEvent {
  SimEventKind kind = SimEventKind::kArrive;
  int64_t time_us = 0;
  uint32_t job = 0;             // position in Trace::jobs
  std::span<const Slot> slots;  // where it is or was; of this call alone
};

// Called for each event in order; false cancels the simulation.
using SimObserver = std::function<bool(const SimEvent&)>;

// `beliefs`: what the placer is told, by profile. `cluster` without jobs, `queue` empty.
// INVALID_ARGUMENT: options; a job without a profile or work, or whose profile has no belief; endless jobs without a
// horizon; a cluster that holds jobs. CANCELLED. And what placer, truth and queue return.
[[nodiscard]] absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs,
                                                 const Truth& truth, Cluster& cluster, Queue& queue, Placer& placer,
                                                 const SimOptions& options, const SimObserver& observer = nullptr);

}  // namespace horus

#endif  // HORUS_LAB_SIMULATOR_H_
