/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: plans, their decisions and reasons, verdicts per node. Planning never changes a cluster.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_PLACE_H_
#define HORUS_PLACE_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/interference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Places jobs by one policy and one interference model. One thread at a time. */
typedef struct horus_placer horus_placer;

/* A device that can take a job, as if the job ran there. The columns hold `count` rows: the present tenants in
 * arbitrary order, and the job last. Everything is borrowed until the callback returns. */
typedef struct horus_policy_candidate {
  uint32_t struct_size;
  int32_t gpu_milli_used; /* hard requests of the tenants; one without a request counts 1 */
  const horus_device* device;
  int64_t mem_mib;            /* of the device */
  int64_t mem_used_mib;       /* by the tenants' estimates */
  int64_t mem_used_mib_upper; /* by the tenants' requests */
  double relative_speed;      /* of the job alone here, over that on its fastest listed type; 0 to 1 */
  size_t count;               /* >= 1 */
  const horus_demand* const* demands;
  const int32_t* kinds; /* HORUS_JOB_* */
  const int32_t* priorities;
  const int32_t* gpu_milli;     /* hard request; 0 = shares */
  const float* slowdown_bounds; /* as stated; 0 = none */
  const float* slowdown_before; /* without the job; 1 for itself */
  const float* slowdown_before_upper;
  const float* slowdown_after;
  const float* slowdown_after_upper;
} horus_policy_candidate;

/* The caller's own policy: prices one device that passed every constraint. Set `*cost` to a finite number, in any unit,
 * lower is better; or set `*declined` to 1: the job fits but should not go there (HORUS_REASON_POLICY). They come in as
 * NaN and 0. The callback must be a pure function of the candidate, because its answer is reused for jobs and devices
 * that are alike. Equal costs go to the lowest node, then the lowest device; the costs of a gang add up. It runs on the
 * planning thread and must not throw or jump out; calls into the placer or cluster in use answer BUSY. Return 0, or
 * non-zero for failure. A failure, a cost that is not finite, and a *declined other than 0 and 1 end the plan with
 * CALLBACK. */
typedef int32_t (*horus_policy_callback)(void* user, const horus_policy_candidate* candidate, double* cost,
                                         int32_t* declined);

/* What a cluster typically runs: typical tasks with their shares, or jobs that were seen. Policies such as "fgd"
 * measure fragments by it. At most 4,096 different tasks that name at most 63 types. */
typedef struct horus_workload {
  uint32_t struct_size;
  uint32_t reserved;
  size_t task_count;            /* length of the next five columns; 0 where jobs are given */
  const int64_t* cpu_milli;     /* NULL = 0 */
  const int32_t* gpus;          /* 0 = none */
  const int32_t* gpu_milli;     /* per GPU, 1 to 1,000; NULL = whole GPUs */
  const char* const* gpu_types; /* required type; NULL column or entry = any */
  const double* shares;         /* of all tasks, above 0; they sum to 1 */
  size_t job_count; /* jobs that were seen, each counted once a task; a job that shares without a request counts with
                       its predicted utilisation */
  const horus_job* const* jobs;
  const horus_catalogue* catalogue; /* of the types; NULL = the built-in one; a cluster must use the same types */
} horus_workload;
#define HORUS_WORKLOAD_INIT HORUS_INIT(horus_workload)

/* A job with a sensitivity holds at least the cores and memory that it states. A decision says what it gets: */
#define HORUS_HOST_GRANTS_RESIZE                                                                                     \
  0                                   /* what it does most work with, beside the others of its node, who are resized \
                                         (HORUS_MOVE_RESIZE) where that gains work. Since 0.2. */
#define HORUS_HOST_GRANTS_PLACEMENT 1 /* the same of what is free; nobody is resized. Since 0.2. */
#define HORUS_HOST_GRANTS_STATED 2    /* what it states. Since 0.2. */

typedef struct horus_placer_options {
  uint32_t struct_size;
  int32_t max_tenants; /* per device that states none, light jobs counting less; 0 = 3, 1 = none shares */
  const char* policy;  /* NULL = "horus"; see horus_library_info. Options of those of libhorus_lab: lab/policies.h */
  const horus_interference* interference; /* NULL = "horus"; kept alive by the placer */
  uint64_t seed;                          /* of random policies */
  float slowdown_bound;                   /* for jobs without their own; 0 = the policy's default, infinity = none */
  int32_t probe_outside;    /* 1 = a job whose demand is HORUS_DEMAND_OUTSIDE and not _MEASURED runs alone first, as a
                               probe that no job joins; after observing it, release it and plan it again */
  int64_t mem_headroom_mib; /* device memory to keep free; 0 = 500, -1 = none */
  uint64_t max_jobs;        /* of one plan; 0 = 1,048,576 */
  uint64_t cache_bytes;     /* most memory for cached scores; 0 = 256 MiB */
  /* Instead of `policy`, which must then be NULL: */
  horus_policy_callback policy_callback;   /* NULL = none */
  void* policy_user;                       /* comes back untouched; must outlive the placer */
  const char* policy_callback_name;        /* for messages; NULL = "callback"; copied */
  const horus_catalogue* policy_catalogue; /* of the type names that it gets; NULL = that of a callback model, else
                                              the built-in one; may be freed; a cluster must use the same types */
  double rack_oversubscription; /* what nodes can send over what links between racks carry, at least 1; 0 = 1 */
  double mem_overcommit;        /* limits and headroom on a device may sum to this many times its memory, 1 to 1,000;
                                   requests never exceed the memory; 0 = 1: no over-commitment */
  double gpu_price; /* of jobs with alternatives: work that each GPU must bring, as a share of what a GPU brings in
                            the most efficient way, 0 to 1; 0 = 0.5, -1 = no price */
  const horus_workload* workload; /* "horus", of libhorus_lab "fgd"; NULL = every task wants one whole GPU */
  uint32_t max_candidates; /* for jobs of one GPU when all nodes are considered: price at most so many devices, drawn by
                              seed and job, and all devices only if none of those fits. Saves time when every job is
                              different. 0 = always all */
  int32_t terse; /* 1 = deferrals give no reason (HORUS_REASON_NONE, no device counted), which is faster if much is
                    deferred. Rejections always give one */
  float sharing_quota; /* share of the cluster's GPUs that may have several tenants, above 0 to 1; 0 = all; -1 = none.
                          Plans of this placer keep it; horus_cluster_adopt and other placers may exceed it */
  int32_t host_grants; /* HORUS_HOST_GRANTS_*: cores and host memory of jobs with a sensitivity, by "horus" and
                          "oracle". Since 0.2. */
  int32_t sm_caps;     /* 1 = under MPS, a job that its neighbours' bounds refuse may go beside them with a
                          cap on its SMs (horus_decision.sm_cap_pct), which whoever starts it sets: 70, 50, 30, 20 or
                          10 %, the largest that they bear and that leaves it the speed that its kind keeps. By
                          horus_placer_plan, _plan_batch, _what_if and _preempt, by the library's learned models. In the
                          cluster the job keeps that cap (horus_job_info.sm_cap_pct). 0 = none. Since 0.2. */
  uint32_t reserved;   /* Since 0.2. */
} horus_placer_options;
#define HORUS_PLACER_OPTIONS_INIT HORUS_INIT(horus_placer_options)

/* `options` may be NULL. Errors: NOT_FOUND (policy; the names are listed), INVALID_ARGUMENT. */
HORUS_API horus_status horus_placer_create(const horus_placer_options* options, horus_placer** out, horus_error* error);
/* Accepts NULL. Plans made by it stay valid. */
HORUS_API void horus_placer_free(horus_placer* placer);

/* A plan: decisions for some jobs, to be applied all or nothing. Immutable: share freely. */
typedef struct horus_plan horus_plan;

/* Plans `job_count` jobs in the order (priority descending, submission time, id). Each sees those before it. A synergy
 * policy decides all in one round and may resize residents (horus_plan_get_move). Only the node_count nodes of node_ids
 * are considered; NULL with 0 = all. A job that does not fit is no error: its decision says DEFER or REJECT. `progress`
 * may be NULL; it gets `user`.
 * Errors: INVALID_ARGUMENT (job and field named), INVALID_STRUCT, EXISTS (a job id is resident or given twice),
 * NOT_FOUND (node, GPU type), UNSUPPORTED ("synergy-opt" without libhorus_lp.so), LIMIT, CALLBACK, CANCELLED, BUSY. */
HORUS_API horus_status horus_placer_plan(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                         const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                                         horus_progress progress, void* user, horus_plan** out, horus_error* error);
/* Accepts NULL. */
HORUS_API void horus_plan_free(horus_plan* plan);

/* Carries out every placement, migration, resize and preemption of `plan` (modes.h), or none. Errors: CONFLICT (a node
 * of the plan changed since), EXISTS (a job of the plan is already resident, so applying twice is harmless), NOT_FOUND
 * (a job to be moved is gone), STATE (the plan answers a what-if), INVALID_ARGUMENT (the plan is for other GPU types).
 * Internally synchronised. */
HORUS_API horus_status horus_cluster_apply(horus_cluster* cluster, const horus_plan* plan, horus_error* error);

#define HORUS_VERDICT_PLACE 0
#define HORUS_VERDICT_DEFER 1  /* does not fit now; would fit the same cluster empty and up (see predicted_never) */
#define HORUS_VERDICT_REJECT 2 /* never fits this cluster, by figures that are stated, measured or beyond doubt */

/* One decision. Text is borrowed from the plan. */
typedef struct horus_decision {
  uint32_t struct_size;
  int32_t verdict; /* HORUS_VERDICT_* */
  uint64_t job_id;
  int32_t reason;   /* HORUS_REASON_*: the constraint that refused most devices; 0 when placed */
  uint32_t slots;   /* rows of horus_plan_slots */
  uint32_t effects; /* rows of horus_plan_effects */
  float slowdown;   /* predicted for the job itself, worst over its devices; 0 when not placed */
  float slowdown_upper;
  uint32_t terms;        /* rows of horus_plan_terms */
  double cost;           /* of the place chosen, in the policy's unit, lower is better */
  double runner_up_cost; /* of the next best place; NaN when there is none; below cost: a batch left that to others */
  int32_t miss_reason;   /* nearest miss of a refusal: HORUS_REASON_*, 0 = none known */
  uint32_t miss_device;  /* index within the node; UINT32_MAX = the node as a whole */
  uint64_t miss_node;    /* node id */
  double miss_needed;    /* in miss_unit; for slowdowns this is the bound, and miss_available the prediction */
  double miss_available;
  const char* miss_unit; /* static text, e.g. "MiB" */
  const char* text;      /* one sentence for people */
  int32_t probe;         /* 1 = placed as a probe: by probe_outside, or alone on what its memory is expected to take, as
                            the bound, which is only predicted, fits no device */
  int32_t alternative;   /* position of the way to run that was chosen; -1 = the job states no alternatives */
  int64_t cpu_milli;     /* when placed: what each task holds, its request or what a synergy policy grants; else 0 */
  int64_t mem_mib;
  double miss_estimate;    /* the expected amount, where the miss states an upper bound; else 0 */
  int32_t predicted_never; /* 1 = DEFER, although even the empty cluster would refuse it: by a prediction alone */
  int32_t trial;           /* 1 = it shares where that pays by expectation but not by the upper bounds; observe it */
  int32_t sm_cap_pct;      /* when placed: most of a GPU's SMs that the job may use there, stated or chosen (sm_caps):
                              CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of its processes, set before they start. 0 = no cap. Since
                              0.2. */
  uint32_t reserved;       /* Since 0.2. */
  int64_t gpu_mem_request_mib; /* when placed: device memory per GPU that it is granted there, the most over its
                                  devices. Since 0.2. */
  int64_t gpu_mem_limit_mib;   /* and that it may ever hold, which its runtime is told; 2^32 = nobody knows a limit: it
                                  has its GPUs alone. Since 0.2. */
  float sm_cap_slowdown;       /* how many times as long a step takes under the cap alone, which the slowdowns, over the
                                  job under its cap, do not count; 1 = no cap, or not placed. Since 0.2. */
  uint32_t reserved0;          /* Since 0.2. */
  float slowdown_in_plan;      /* `slowdown` once the whole plan is applied: other jobs of it may come beside it; their
                                  effects name it. 0 when not placed. Since 0.2. */
  float slowdown_in_plan_upper; /* Since 0.2. */
  uint64_t passed_by;           /* of HORUS_REASON_PASSED_OVER: the job that took the place that suited it best; 0 =
                                   nobody who can be named. Since 0.2. */
  int32_t sharing_mode; /* when placed: HORUS_SHARING_* in which its devices are, or, of TIME_SLICE_OR_MPS, which must
                           be set before it starts; `text` says why. 0 = not placed, or no GPU. Since 0.2. */
  uint32_t reserved1;   /* Since 0.2. */
} horus_decision;
#define HORUS_DECISION_INIT HORUS_INIT(horus_decision)

/* A plan as a whole. Useful work (modes.h) is that of the whole cluster unless the mode says otherwise. Since 0.2. */
typedef struct horus_plan_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t decisions;   /* rows of horus_plan_get, one per job in planning order */
  uint64_t moves;       /* rows of horus_plan_get_move */
  uint64_t reviews;     /* rows of horus_plan_get_review */
  uint64_t preemptions; /* rows of horus_plan_get_preemption */
  double work_before;   /* useful work without the plan, of a batch one by one; NaN where the mode does not compute it:
                           horus_placer_plan, and a batch whose prices or patience let somebody wait */
  double work_after;    /* and with it */
} horus_plan_info;
#define HORUS_PLAN_INFO_INIT HORUS_INIT(horus_plan_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. Since 0.2. */
HORUS_API horus_status horus_plan_get_info(const horus_plan* plan, horus_plan_info* info, horus_error* error);

/* Decision `index`. Errors: NOT_FOUND, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_plan_get(const horus_plan* plan, size_t index, horus_decision* decision,
                                      horus_error* error);

/* Whose slots horus_plan_slots returns. */
#define HORUS_SLOTS_DECISION 0   /* of the job of decision `index`. Since 0.2. */
#define HORUS_SLOTS_MOVE_FROM 1  /* of the job of move `index`, before. Since 0.2. */
#define HORUS_SLOTS_MOVE_TO 2    /* and after. Since 0.2. */
#define HORUS_SLOTS_PREEMPTION 3 /* of preemption `index`, for the new job. Since 0.2. */
/* `of`: HORUS_SLOTS_*. Errors: NOT_FOUND, INVALID_ARGUMENT, BUFFER_TOO_SMALL. Any thread. */
HORUS_API horus_status horus_plan_slots(const horus_plan* plan, int32_t of, size_t index, const horus_slots* slots,
                                        size_t* count, horus_error* error);

/* What a decision does to everyone on the devices it uses, the job itself included: one row per tenant and
 * device. NULL columns are skipped. */
typedef struct horus_effects {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  uint64_t* job_ids;
  uint64_t* node_ids;
  uint32_t* devices;
  float* slowdown_before; /* 1 for the job itself */
  float* slowdown_after;
  float* slowdown_after_upper;
  float* calibrated_up_to; /* highest probability for which left-out data support that bound; 1 = alone */
} horus_effects;
#define HORUS_EFFECTS_INIT HORUS_INIT(horus_effects)
/* Errors: NOT_FOUND, BUFFER_TOO_SMALL, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_plan_effects(const horus_plan* plan, size_t index, const horus_effects* effects,
                                          size_t* count, horus_error* error);

/* The parts of the cost of the place chosen, which sum to it: names[] (static text) and costs[] hold `capacity`
 * elements; either may be NULL. Errors: NOT_FOUND, BUFFER_TOO_SMALL. Any thread. */
HORUS_API horus_status horus_plan_terms(const horus_plan* plan, size_t index, size_t capacity, const char** names,
                                        double* costs, size_t* count, horus_error* error);

/* How many devices (nodes for a job without GPUs) each constraint refused, ascending by reason, without zeros.
 * reasons[] and counts[] hold `capacity` elements; either may be NULL. Errors: NOT_FOUND, BUFFER_TOO_SMALL. Any
 * thread. */
HORUS_API horus_status horus_plan_refusals(const horus_plan* plan, size_t index, size_t capacity, int32_t* reasons,
                                           uint64_t* counts, size_t* count, horus_error* error);

/* One job against node_count nodes, for a scheduler's filter and score steps: per node its verdict
 * (HORUS_VERDICT_*), its cost (lower is better; NaN unless PLACE) and its reason (HORUS_REASON_*). NULL
 * columns are skipped. For a gang the answer is for one of its tasks. The job may be resident. Errors: as
 * horus_placer_plan. */
HORUS_API horus_status horus_placer_verdicts(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                             size_t node_count, const uint64_t* node_ids, int32_t* verdicts,
                                             double* costs, int32_t* reasons, horus_error* error);

/* Why a device or node cannot take a job. Numbers are stable and only added to. */
#define HORUS_REASON_NONE 0
#define HORUS_REASON_NODE_DOWN 1
#define HORUS_REASON_NODE_DRAINED 2
#define HORUS_REASON_DEVICE_DOWN 3
#define HORUS_REASON_DEVICE_DRAINED 4
#define HORUS_REASON_NOT_IN_SUBSET 5
#define HORUS_REASON_GPU_TYPE 6
#define HORUS_REASON_LABEL 7
#define HORUS_REASON_CPU 8
#define HORUS_REASON_HOST_MEMORY 9
#define HORUS_REASON_STORAGE_BANDWIDTH 10
#define HORUS_REASON_GPU_MEMORY 11
#define HORUS_REASON_GPU_MILLI 12
#define HORUS_REASON_TENANT_LIMIT 13
#define HORUS_REASON_EXCLUSIVE 14
#define HORUS_REASON_SHARING_MODE 15
#define HORUS_REASON_SLOWDOWN_OWN 16
#define HORUS_REASON_SLOWDOWN_NEIGHBOUR 17
#define HORUS_REASON_GANG 18
#define HORUS_REASON_POLICY 19
#define HORUS_REASON_OWNER 20
#define HORUS_REASON_ANTI_AFFINITY 21
#define HORUS_REASON_MEMORY_UNKNOWN 22
#define HORUS_REASON_SHARING_QUOTA 23
#define HORUS_REASON_PASSED_OVER 24 /* horus_placer_plan_batch: others who wait go first */

/* Name ("gpu_memory") and one-sentence meaning; "unknown" for other numbers. Static text. Any thread. */
HORUS_API const char* horus_reason_name(int32_t reason);
HORUS_API const char* horus_reason_text(int32_t reason);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_PLACE_H_ */
