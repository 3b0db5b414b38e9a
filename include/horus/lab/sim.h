/* SPDX-License-Identifier: Apache-2.0 */
/* Simulation: a trace of jobs on a cluster, under a queue and a placer. They decide by beliefs; time passes by the
 * truth. docs/simulate.md says what is simulated and defines the metrics. Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_SIM_H_
#define HORUS_LAB_SIM_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/interference.h"
#include "horus/lab/potential.h"
#include "horus/lab/trace.h"
#include "horus/modes.h"
#include "horus/place.h"
#include "horus/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Demands by profile and GPU type, one row each. Rows of profiles that the trace lacks are ignored. */
typedef struct horus_profile_demands {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const char* const* profiles;
  const char* const* gpu_types; /* NULL column or entry = any type, then the profile's only row */
  const horus_demand* const* demands;
} horus_profile_demands;
#define HORUS_PROFILE_DEMANDS_INIT HORUS_INIT(horus_profile_demands)

/* How fast jobs really run, alone and beside others. Only the simulation reads it, never queue or placer. Immutable:
 * share freely (with a callback model: as its callback allows). */
typedef struct horus_truth horus_truth;

/* Takes an interference model (NULL = "horus") and demands for the truth. Speed 1 is the type on which the profile's
 * step is shortest; a profile states step times on all of its types or on none. A job that exceeds a device's memory
 * dies. Errors: INVALID_ARGUMENT (row, field, expected, found; another catalogue than the model's), NOT_FOUND (type),
 * INVALID_STRUCT, LIMIT. Any thread. */
HORUS_API horus_status horus_truth_from_model(const horus_catalogue* catalogue, const horus_interference* model,
                                              const horus_profile_demands* demands, horus_truth** out,
                                              horus_error* error);

/* Share of its speed that a tenant keeps beside several others, from measured pairs; s is the slowdown beside each. */
#define HORUS_TENANTS_ADD 0      /* 1 / (1 + sum of (s - 1)) */
#define HORUS_TENANTS_MULTIPLY 1 /* 1 / product of s */

/* Measured speeds. Speed 1 is the reference type; steps of a trace become run times there. Pairs that are missing
 * cannot run together. Nothing runs on a missing type or profile, or on a slice of a GPU. Errors: as
 * horus_truth_from_model. Any thread. */
HORUS_API horus_status horus_truth_from_speeds(const horus_catalogue* catalogue, const horus_speeds* speeds,
                                               int32_t many, horus_truth** out, horus_error* error);
/* Speed of profiles by cores and host memory: one row a profile. */
typedef struct horus_profile_sensitivities {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const char* const* profiles;
  const horus_sensitivity* const* sensitivities;
} horus_profile_sensitivities;
#define HORUS_PROFILE_SENSITIVITIES_INIT HORUS_INIT(horus_profile_sensitivities)

/* `truth` with speeds that also depend on cores and host memory: those granted to a job, else those it asks for, else
 * its part of its GPU's fair share of the node. The factors are multiplied, which is assumed and not measured. Profiles
 * without a row do not depend on them. `truth` may be freed. Errors: INVALID_ARGUMENT (row, field, expected, found),
 * INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_truth_with_sensitivities(const horus_truth* truth,
                                                      const horus_profile_sensitivities* sensitivities,
                                                      horus_truth** out, horus_error* error);
/* Accepts NULL. */
HORUS_API void horus_truth_free(horus_truth* truth);
/* Memory in bytes, without its model's; 0 for NULL. Any thread. */
HORUS_API uint64_t horus_truth_bytes_held(const horus_truth* truth);

/* Weight of a job's work, for policies that weigh work. */
#define HORUS_SIM_WEIGHTS_QUEUE 0    /* SHORTEST where the discipline is sjf or srtf and told run times, else PRICES */
#define HORUS_SIM_WEIGHTS_SHORTEST 1 /* 1 / run time: lowers mean completion time */
#define HORUS_SIM_WEIGHTS_PRICES 2   /* where jobs are chosen, what their kind of work is worth meanwhile; else alike */
#define HORUS_SIM_WEIGHTS_ALIKE 3

/* What is learned while jobs run. The placer plans by its model, corrected by what was learned. Only devices of two
 * tenants whose demands have profile_ids teach. */
#define HORUS_SIM_LEARNS_NOTHING 0  /* a job that failed beside others runs alone */
#define HORUS_SIM_LEARNS_FAILURES 1 /* pairs of profiles that could not run together are not tried again */
#define HORUS_SIM_LEARNS_PAIRS 2    /* also, what was seen of a pair for observe_us (0 = 60 s) is believed */
#define HORUS_SIM_LEARNS_CORRECTS 3 /* also, it corrects predictions for others, as horus_interference_commit does */

/* Times in microseconds, 0 to 2^55. */
typedef struct horus_sim_options {
  uint32_t struct_size;
  int32_t hide_run_times;           /* 1 = the queue is not told how long jobs run alone */
  const char* discipline;           /* of the queue; NULL = "fifo"; see horus_library_info */
  const horus_queue_options* queue; /* NULL = defaults; if no capacity is set, the cluster's counts */
  int64_t horizon_us;       /* nothing happens at or after it; 0 = until all is done; required by endless jobs */
  uint64_t look_ahead;      /* waiting jobs that are tried until one fits, or compared; 0 = as the discipline says, or
                               where one_by_one matters 50. State it to compare policies fairly */
  int64_t round_us;         /* decisions only at its multiples; 0 = whenever a job comes or leaves */
  int32_t preempt;          /* 1 = waiting jobs may take the places of jobs that rank behind them; synergy policies:
                               each round also decides running jobs */
  int32_t one_by_one;       /* Of policies that maximise work, without preempt. 0 = fifo, las: who of the look-ahead
                               goes is chosen, as horus_placer_plan_batch does; sjf, srtf with weights SHORTEST: a job
                               that would share waits instead if that delays all jobs less. 1, and everywhere else =
                               the first of the look-ahead that fits goes */
  int32_t weights;          /* HORUS_SIM_WEIGHTS_* */
  int32_t profile_each_job; /* 1 = each job is profiled, not each profile once; see profiling_us */
  int64_t restart_us;       /* after a restart, time on its places before the job works */
  int64_t checkpoint_us;    /* running time between two checkpoints; 0 = failures lose nothing */
  int64_t latency_us;       /* from a decision until the job works */
  const horus_workload* workload; /* tasks by which fragments are measured; NULL = the trace's own */
  size_t outage_count;            /* length of the next three columns, at most 1,000,000: outages of nodes; those of one
                                     node must not overlap */
  const uint64_t* outage_nodes;
  const int64_t* outage_from_us;
  const int64_t* outage_until_us;           /* up again; above outage_from_us */
  int64_t rebalance_us;                     /* running jobs may move at its multiples; 0 = never */
  const horus_rebalance_options* rebalance; /* without job_ids and progress; NULL = defaults */
  int64_t observe_us;          /* tenants that shared a device for so long are observed, and policies revise their
                                  beliefs; 0 = never */
  int64_t profiling_us;        /* time that a job of a new profile first runs on a profiling node; 0 = none */
  const char* profiling_label; /* of such nodes; NULL = "horus-profiling" */
  const horus_profile_demands* measured;            /* demands that profiling finds; NULL = the beliefs */
  const horus_profile_sensitivities* sensitivities; /* known to synergy policies; NULL = none */
  int32_t learns;                                   /* HORUS_SIM_LEARNS_* */
  uint32_t reserved0;
} horus_sim_options;
#define HORUS_SIM_OPTIONS_INIT HORUS_INIT(horus_sim_options)

#define HORUS_SIM_ARRIVE 0
#define HORUS_SIM_START 1
#define HORUS_SIM_FAIL 2 /* it cannot run beside its co-tenants; it will run alone */
#define HORUS_SIM_FINISH 3
#define HORUS_SIM_REJECT 4 /* it never fits */
#define HORUS_SIM_PREEMPT 5
#define HORUS_SIM_OUT_OF_MEMORY 6
#define HORUS_SIM_MIGRATE 7   /* it moved to other slots */
#define HORUS_SIM_INTERRUPT 8 /* its node failed */
#define HORUS_SIM_PROFILED 9  /* it left the profiling node and waits */
#define HORUS_SIM_NODE_DOWN 10
#define HORUS_SIM_NODE_UP 11

/* What happened, borrowed until the callback returns. */
typedef struct horus_sim_event {
  uint32_t struct_size;
  int32_t kind; /* HORUS_SIM_*; later releases may have more */
  int64_t time_us;
  uint64_t job_id;          /* 0 of nodes */
  size_t slot_count;        /* where the job is or was; of nodes one row */
  const uint64_t* node_ids; /* slots as horus_slots has them */
  const uint32_t* devices;
  const uint32_t* tasks;
} horus_sim_event;

/* Called for each event in order, on the calling thread; non-zero cancels the simulation. */
typedef int32_t (*horus_sim_observer)(void* user, const horus_sim_event* event);

/* The outcome of a simulation. Immutable: share freely. */
typedef struct horus_sim_result horus_sim_result;

/* Plays `trace` on a copy of `cluster`, which must hold no jobs and may change meanwhile. The placer plans by `beliefs`
 * (a belief on any type counts on each type of the cluster); time passes by `truth`. Both must know the profiles of
 * jobs with GPUs. Equal arguments give equal results, except for decision times. `options`, `observer` and `progress`
 * may be NULL. Both callbacks get `user`; calls from them into the placer or cluster in use answer BUSY. Errors:
 * INVALID_ARGUMENT (options; jobs, profiles and demands that do not fit each other; a cluster with jobs, or of other
 * GPU types than truth or placer), NOT_FOUND (discipline, GPU type), INVALID_STRUCT, IO (no libhorus_lp.so), LIMIT
 * (2^25 rounds), CALLBACK, CANCELLED, BUSY. Thread class: that of the placer. */
HORUS_API horus_status horus_sim_run(const horus_trace* trace, const horus_profile_demands* beliefs,
                                     const horus_truth* truth, const horus_cluster* cluster, horus_placer* placer,
                                     const horus_sim_options* options, horus_sim_observer observer,
                                     horus_progress progress, void* user, horus_sim_result** out, horus_error* error);
/* Accepts NULL. */
HORUS_API void horus_sim_result_free(horus_sim_result* result);
/* 0 for NULL. Any thread. */
HORUS_API uint64_t horus_sim_result_bytes_held(const horus_sim_result* result);

/* Which jobs metrics count, and by what. */
typedef struct horus_sim_window {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t from_us;       /* jobs submitted at or after it */
  int64_t to_us;         /* and before this; 0 = no end */
  double slowdown_bound; /* of a job's mean slowdown; 0 = none */
} horus_sim_window;
#define HORUS_SIM_WINDOW_INIT HORUS_INIT(horus_sim_window)

/* Positions in a spread. A quantile is the least value that at least this share of the values does not exceed. */
#define HORUS_SPREAD_MEAN 0
#define HORUS_SPREAD_P50 1
#define HORUS_SPREAD_P95 2
#define HORUS_SPREAD_P99 3
#define HORUS_SPREAD_COUNT 4

/* Shares are 0 to 1; a spread of no values is NaN, and so are above_bound and jain where no job finished. The fields
 * from `allocation` to `most_done_us`, and from `fragmentation` on, cover all jobs and all of the time; the others
 * cover the jobs of the window. */
typedef struct horus_sim_metrics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t jobs; /* sum of the next four */
  uint64_t finished;
  uint64_t running;
  uint64_t waiting;
  uint64_t rejected;
  uint64_t failures;                            /* starts beside co-tenants with which a job cannot run */
  int64_t makespan_us;                          /* first submission to last finish; -1 = no job finished */
  double jct_us[HORUS_SPREAD_COUNT];            /* submission to finish */
  double jct_to_horizon_us[HORUS_SPREAD_COUNT]; /* the same; unfinished jobs count to the end of the simulation */
  double wait_us[HORUS_SPREAD_COUNT];           /* submission to first start */
  double slowdown[HORUS_SPREAD_COUNT];          /* of each job, mean over the time that it ran */
  double above_bound;                           /* share of the finished jobs whose slowdown exceeds the bound */
  double allocation;                            /* share of the device time in which a job held the device */
  double useful;                                /* normalised throughput per device */
  double work_rate;                             /* work per device and time; 1 = a job alone at speed 1 */
  double backlog_rate;                          /* the same while jobs waited */
  int64_t backlog_us;                           /* how long jobs waited */
  int64_t most_done_us; /* first submission until 99 % of the work was done; -1 = never, or jobs are endless */
  uint64_t preemptions;
  uint64_t restarts;
  uint64_t out_of_memory;
  uint64_t migrations;
  uint64_t interruptions;                          /* by failed nodes */
  double finish_time_fairness[HORUS_SPREAD_COUNT]; /* rho of finished jobs; 1 = as alone on its share */
  double jain;                                     /* Jain's index of 1 / rho */
  double fragmentation;                            /* share of the free GPU time that a typical task could not use */
  double belief_error; /* mean |ln(believed slowdown / true one)| when jobs came to share a device */
  uint64_t beliefs;    /* number of such beliefs */
  uint64_t devices;
  uint64_t decisions; /* jobs that the placer was asked about */
  int64_t end_us;     /* of the last event */
} horus_sim_metrics;
#define HORUS_SIM_METRICS_INIT HORUS_INIT(horus_sim_metrics)
/* X(field) for each field from `jobs` on, for programs that print all by name. Since 0.2. */
#define HORUS_SIM_METRICS_FIELDS(X) \
  X(jobs)                           \
  X(finished)                       \
  X(running)                        \
  X(waiting)                        \
  X(rejected)                       \
  X(failures)                       \
  X(makespan_us)                    \
  X(jct_us)                         \
  X(jct_to_horizon_us)              \
  X(wait_us)                        \
  X(slowdown)                       \
  X(above_bound)                    \
  X(allocation)                     \
  X(useful)                         \
  X(work_rate)                      \
  X(backlog_rate)                   \
  X(backlog_us)                     \
  X(most_done_us)                   \
  X(preemptions)                    \
  X(restarts)                       \
  X(out_of_memory)                  \
  X(migrations)                     \
  X(interruptions)                  \
  X(finish_time_fairness)           \
  X(jain)                           \
  X(fragmentation)                  \
  X(belief_error)                   \
  X(beliefs)                        \
  X(devices)                        \
  X(decisions)                      \
  X(end_us)

/* `window` may be NULL: all jobs. Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_sim_result_get_metrics(const horus_sim_result* result, const horus_sim_window* window,
                                                    horus_sim_metrics* metrics, horus_error* error);

#define HORUS_SIM_END_WAITING 0 /* at the end, or because nothing could make room */
#define HORUS_SIM_END_RUNNING 1 /* at the horizon */
#define HORUS_SIM_END_FINISHED 2
#define HORUS_SIM_END_REJECTED 3

/* One row a job, by (submit_us, id). Columns hold `capacity` elements; NULL columns are skipped. Work is in
 * microseconds of one GPU, alone at speed 1. */
typedef struct horus_sim_jobs {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  uint64_t* job_ids;
  int32_t* ends;          /* HORUS_SIM_END_* */
  int64_t* start_us;      /* the first; -1 = never */
  int64_t* end_us;        /* -1 = it did not finish */
  int64_t* ran_us;        /* all its runs together */
  double* work_us;        /* work done, including work lost by failures */
  double* undisturbed_us; /* the same with the speed alone on each type as 1: ran_us / undisturbed_us = mean slowdown */
  double* backlog_us;     /* work done while other jobs waited */
  double* lost_us;        /* work since the last checkpoints before failures */
  int32_t* failures;
  int32_t* out_of_memory;
  int32_t* preemptions;
  int32_t* migrations;
  int32_t* interruptions;
  int32_t* restarts;
} horus_sim_jobs;
#define HORUS_SIM_JOBS_INIT HORUS_INIT(horus_sim_jobs)

/* Errors: BUFFER_TOO_SMALL, INVALID_ARGUMENT, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_sim_result_jobs(const horus_sim_result* result, const horus_sim_jobs* jobs, size_t* count,
                                             horus_error* error);

/* Work in GPU x seconds at speed 1 that was done while jobs waited, by profile in the order of
 * horus_trace_profile_name. horus_potential_compute of this mix bounds backlog_rate. Errors: BUFFER_TOO_SMALL,
 * INVALID_ARGUMENT. Any thread. */
HORUS_API horus_status horus_sim_result_backlog_work(const horus_sim_result* result, size_t capacity, double* gpu_s,
                                                     size_t* count, horus_error* error);

/* The placer's model at the end of a simulation that learned; for other placers and simulations, on the GPU types of
 * the cluster. Errors: INVALID_ARGUMENT (learning was off). Any thread. */
HORUS_API horus_status horus_sim_result_get_model(const horus_sim_result* result, horus_interference** out,
                                                  horus_error* error);

/* Time of each decision, in microseconds of this machine's clock and in their order: took_us[] holds `capacity`
 * elements, `spread` HORUS_SPREAD_COUNT; either may be NULL. Only this differs from run to run. Errors:
 * BUFFER_TOO_SMALL, INVALID_ARGUMENT. Any thread. */
HORUS_API horus_status horus_sim_result_decision_times(const horus_sim_result* result, size_t capacity, float* took_us,
                                                       size_t* count, double* spread, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_SIM_H_ */
