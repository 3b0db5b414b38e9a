/* SPDX-License-Identifier: Apache-2.0 */
/* Simulation: a trace of jobs on a cluster, under a queue and a placer, which believe, while time passes by the truth.
 * docs/sim.md says what is simulated and how metrics are defined.
 * Since 0.1 where nothing else is said. */
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

/* What jobs of profiles demand of GPU types: a row a profile and type. Rows of profiles that a trace lacks are not
 * read.
 */
typedef struct horus_profile_demands {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const char* const* profiles;
  const char* const* gpu_types; /* NULL column or entry = any type, then the profile's only row */
  const horus_demand* const* demands;
} horus_profile_demands;
#define HORUS_PROFILE_DEMANDS_INIT HORUS_INIT(horus_profile_demands)

/* How fast jobs really run, alone and beside others. Only the simulation asks it, no queue and no placer. Immutable:
 * share freely (with a callback model: as its callback allows). */
typedef struct horus_truth horus_truth;

/* An interference model (NULL = "horus") and demands taken for the truth. Speed 1 is the type on which the profile's
 * step is shortest; profiles state step times on all of their types or on none. Memory that is short kills the job that
 * comes. Errors: INVALID_ARGUMENT (row, field, expected, found; another catalogue than the model's), NOT_FOUND (type),
 * INVALID_STRUCT, LIMIT. Any thread. */
HORUS_API horus_status horus_truth_from_model(const horus_catalogue* catalogue, const horus_interference* model,
                                              const horus_profile_demands* demands, horus_truth** out,
                                              horus_error* error);

/* What a tenant keeps beside several others, of whom only pairs were measured; s is the slowdown beside each. */
#define HORUS_TENANTS_ADD 0      /* 1 / (1 + sum of (s - 1)) */
#define HORUS_TENANTS_MULTIPLY 1 /* 1 / product of s */

/* Measured speeds. Speed 1 is the reference type; steps of a trace become run times there. Pairs that are missing
 * cannot run together, nor does anything run on a type or profile that is missing, or on a slice of a GPU. Errors: as
 * horus_truth_from_model. Any thread. */
HORUS_API horus_status horus_truth_from_speeds(const horus_catalogue* catalogue, const horus_speeds* speeds,
                                               int32_t many, horus_truth** out, horus_error* error);
/* What cores and host memory do to the speed of profiles: a row a profile, each once. */
typedef struct horus_profile_sensitivities {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const char* const* profiles;
  const horus_sensitivity* const* sensitivities;
} horus_profile_sensitivities;
#define HORUS_PROFILE_SENSITIVITIES_INIT HORUS_INIT(horus_profile_sensitivities)

/* `truth`, and speeds that follow cores and host memory: those that a job was granted, else asks for, else its part of
 * its GPU's fair share of the node. They multiply with what neighbours leave, which nobody measured. Profiles without a
 * row do not care. `truth` may be freed. Errors: INVALID_ARGUMENT (row, field, expected, found), INVALID_STRUCT. Any
 * thread. */
HORUS_API horus_status horus_truth_with_sensitivities(const horus_truth* truth,
                                                      const horus_profile_sensitivities* sensitivities,
                                                      horus_truth** out, horus_error* error);
/* Accepts NULL. */
HORUS_API void horus_truth_free(horus_truth* truth);
/* Without that of a model; 0 for NULL. Any thread. */
HORUS_API uint64_t horus_truth_bytes_held(const horus_truth* truth);

/* What a job's work counts beside that of others, for policies that weigh it. */
#define HORUS_SIM_WEIGHTS_ALIKE 0
#define HORUS_SIM_WEIGHTS_SHORTEST 1 /* 1 / run time: for short completion times */
#define HORUS_SIM_WEIGHTS_PRICES 2   /* by profile, as its work is worth to the work rate; needs libhorus_lp.so */

/* What is learned while jobs run: the placer plans by its model and, on top of it, by what was learned. Devices of
 * two tenants teach, whose demands have profile_ids. */
#define HORUS_SIM_LEARNS_NOTHING 0  /* who failed beside others runs alone */
#define HORUS_SIM_LEARNS_FAILURES 1 /* pairs of profiles that could not run together are not tried again */
#define HORUS_SIM_LEARNS_PAIRS 2    /* and what was seen of a pair for observe_us (0 = 60 s) is believed from then on */
#define HORUS_SIM_LEARNS_CORRECTS 3 /* and corrects what is predicted of others, as horus_interference_commit does */

/* Times in microseconds, 0 to 2^55. */
typedef struct horus_sim_options {
  uint32_t struct_size;
  int32_t hide_run_times;           /* 1 = the queue is not told how long jobs run alone */
  const char* discipline;           /* of the queue; NULL = "fifo"; see horus_queue_discipline_name */
  const horus_queue_options* queue; /* NULL = defaults; without any capacity that of the cluster */
  int64_t horizon_us;             /* nothing happens at or after it; 0 = until all is done; required by endless jobs */
  uint64_t look_ahead;            /* waiting jobs that are tried until one fits; 0 = as the discipline says */
  int64_t round_us;               /* decisions at its multiples alone; 0 = whenever a job comes or leaves */
  int32_t preempt;                /* 1 = jobs that wait take the places of such as rank behind them; synergy policies:
                                     every round decides those that run too */
  int32_t best_of_window;         /* 1 = of the look-ahead the job goes that its place suits best; not beside preempt */
  int32_t weights;                /* HORUS_SIM_WEIGHTS_* */
  int32_t profile_each_job;       /* 1 = no job speaks for others of its profile; see profiling_us */
  int64_t restart_us;             /* that a job which worked before holds its places before it works there */
  int64_t checkpoint_us;          /* running time between two checkpoints; 0 = failures lose nothing */
  int64_t latency_us;             /* from a decision until the job works */
  const char* lp_library_path;    /* as that of horus_potential_options; read with HORUS_SIM_WEIGHTS_PRICES */
  const horus_workload* workload; /* what fragments are measured against; NULL = the trace's own tasks */
  size_t outage_count;            /* of the next three columns, at most 1,000,000: nodes that fail, those of one node
                                     apart */
  const uint64_t* outage_nodes;
  const int64_t* outage_from_us;
  const int64_t* outage_until_us;           /* up again; above outage_from_us */
  int64_t rebalance_us;                     /* at its multiples jobs that run may move; 0 = never */
  const horus_rebalance_options* rebalance; /* without job_ids and progress; NULL = defaults */
  int64_t observe_us;                    /* tenants who shared a device for so long are seen: policies revise what they
                                            believe; 0 = never */
  int64_t profiling_us;                  /* that a job of a new profile runs on a profiling node first; 0 = none does */
  const char* profiling_label;           /* of such nodes; NULL = "horus-profiling" */
  const horus_profile_demands* measured; /* what profiling finds; NULL = what was believed */
  int32_t weigh_waiting; /* 1 = a job that would share waits where that delays everybody less, by the run times; for
                            disciplines that serve the shortest first; not beside preempt or hide_run_times */
  uint32_t reserved0;
  const horus_profile_sensitivities* sensitivities; /* what synergy policies are told; NULL = nothing */
  int32_t learns;                                   /* HORUS_SIM_LEARNS_* */
  uint32_t reserved1;
} horus_sim_options;
#define HORUS_SIM_OPTIONS_INIT HORUS_INIT(horus_sim_options)

#define HORUS_SIM_ARRIVE 0
#define HORUS_SIM_START 1
#define HORUS_SIM_FAIL 2 /* it cannot run beside its neighbours, and waits to be alone */
#define HORUS_SIM_FINISH 3
#define HORUS_SIM_REJECT 4 /* it never fits */
#define HORUS_SIM_PREEMPT 5
#define HORUS_SIM_OUT_OF_MEMORY 6
#define HORUS_SIM_MIGRATE 7   /* it holds other places */
#define HORUS_SIM_INTERRUPT 8 /* its node failed */
#define HORUS_SIM_PROFILED 9  /* it was put back */
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

/* What became of the jobs. Immutable: share freely. */
typedef struct horus_sim_result horus_sim_result;

/* Plays `trace` on a copy of `cluster`, which must hold no jobs; it may change meanwhile. The placer plans by `beliefs`
 * (a belief on any type is one on each type of the cluster), time passes by `truth`; both must know the profiles of
 * jobs with GPUs. Equal arguments give equal results, but for decision times. `options`, `observer` and `progress` may
 * be NULL; both callbacks get `user`, and the placer and cluster in use answer BUSY to them. Errors: INVALID_ARGUMENT
 * (options; jobs, profiles and demands that do not fit each other; a cluster with jobs, or of other GPU types than
 * truth or placer), NOT_FOUND (discipline, GPU type), INVALID_STRUCT, IO (no libhorus_lp.so), LIMIT (2^25
 * rounds), CALLBACK, CANCELLED, BUSY. Thread class: that of the placer. */
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
  int64_t from_us;       /* jobs that are submitted from here on */
  int64_t to_us;         /* and before it; 0 = all */
  double slowdown_bound; /* of a job's mean slowdown; 0 = none */
} horus_sim_window;
#define HORUS_SIM_WINDOW_INIT HORUS_INIT(horus_sim_window)

/* Positions in a spread: a quantile is the least value that so large a share of the values does not exceed. */
#define HORUS_SPREAD_MEAN 0
#define HORUS_SPREAD_P50 1
#define HORUS_SPREAD_P95 2
#define HORUS_SPREAD_P99 3
#define HORUS_SPREAD_COUNT 4

/* Shares are 0 to 1, spreads of nothing 0. From `allocation` to `most_done_us`, and from `fragmentation` on, of all
 * jobs and all of the time; the rest of the jobs in the window. */
typedef struct horus_sim_metrics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t jobs; /* the next four sum to it */
  uint64_t finished;
  uint64_t running;
  uint64_t waiting;
  uint64_t rejected;
  uint64_t failures;                            /* starts beside neighbours with whom a job cannot run */
  int64_t makespan_us;                          /* first submission to last finish */
  double jct_us[HORUS_SPREAD_COUNT];            /* submission to finish */
  double jct_to_horizon_us[HORUS_SPREAD_COUNT]; /* with the end of the simulation for jobs that did not finish */
  double wait_us[HORUS_SPREAD_COUNT];           /* submission to first start */
  double slowdown[HORUS_SPREAD_COUNT];          /* of each job, mean over the time that it ran */
  double above_bound;                           /* share of the finished jobs whose slowdown exceeds the bound */
  double allocation;                            /* share of the device time that jobs held them */
  double useful;                                /* normalised throughput per device */
  double work_rate;                             /* work per device and time; 1 = a job alone at speed 1 */
  double backlog_rate;                          /* the same while jobs waited */
  int64_t backlog_us;                           /* how long jobs waited */
  int64_t most_done_us; /* first submission until 99 % of the work was done; -1 = it was not, or jobs are endless */
  uint64_t preemptions;
  uint64_t restarts;
  uint64_t out_of_memory;
  uint64_t migrations;
  uint64_t interruptions;                          /* by nodes that failed */
  double finish_time_fairness[HORUS_SPREAD_COUNT]; /* rho of finished jobs; 1 = as alone on its share */
  double jain;                                     /* Jain's index of 1 / rho */
  double fragmentation;                            /* share of the free GPU time that a typical task could not use */
  double belief_error; /* mean |ln(believed slowdown / true one)| when jobs came to share a device */
  uint64_t beliefs;    /* how many of them */
  uint64_t devices;
  uint64_t decisions; /* jobs that the placer was asked about */
  int64_t end_us;     /* of the last event */
} horus_sim_metrics;
#define HORUS_SIM_METRICS_INIT HORUS_INIT(horus_sim_metrics)
/* X(field) for each of them from `jobs` on, for programs that tell them all by name. Since 0.2. */
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

/* A row a job, by (submit_us, id); columns hold `capacity` elements, NULL columns are skipped. Work is in microseconds
 * alone at speed 1, of one GPU. */
typedef struct horus_sim_jobs {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  uint64_t* job_ids;
  int32_t* ends;          /* HORUS_SIM_END_* */
  int64_t* start_us;      /* the first; -1 = never */
  int64_t* end_us;        /* -1 = it did not finish */
  int64_t* ran_us;        /* all its runs together */
  double* work_us;        /* done, that lost by failures included */
  double* undisturbed_us; /* the same where each type's own speed alone counts as 1: ran_us / it = mean slowdown */
  double* backlog_us;     /* of the work that done while others waited */
  double* lost_us;        /* since the last checkpoints before failures */
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

/* Work in GPU x seconds at speed 1 that was done while jobs waited, by profile as horus_trace_profile_name counts them:
 * the mix by whose bound (horus_potential_compute) backlog_rate is measured. Errors: BUFFER_TOO_SMALL,
 * INVALID_ARGUMENT. Any thread. */
HORUS_API horus_status horus_sim_result_backlog_work(const horus_sim_result* result, size_t capacity, double* gpu_s,
                                                     size_t* count, horus_error* error);

/* What the placer believed at the end of a simulation that learned: a model of its own, immutable, for other placers
 * and simulations, on the GPU types of the cluster. Errors: INVALID_ARGUMENT (nothing was to be learned). Any thread.
 */
HORUS_API horus_status horus_sim_result_get_model(const horus_sim_result* result, horus_interference** out,
                                                  horus_error* error);

/* What each decision took, in microseconds of this machine's clock, in their order: took_us[] holds `capacity`
 * elements, `spread` HORUS_SPREAD_COUNT; either may be NULL. The one thing that differs from run to run. Errors:
 * BUFFER_TOO_SMALL, INVALID_ARGUMENT. Any thread. */
HORUS_API horus_status horus_sim_result_decision_times(const horus_sim_result* result, size_t capacity, float* took_us,
                                                       size_t* count, double* spread, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_SIM_H_ */
