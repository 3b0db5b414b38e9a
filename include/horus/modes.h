/* SPDX-License-Identifier: Apache-2.0 */
/* More ways to plan: batches, rebalancing, what-ifs, preemption. Each answers with a plan; none changes a cluster.
 * Placers with a synergy policy, which decides whole rounds, are refused (UNSUPPORTED).
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_MODES_H_
#define HORUS_MODES_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/place.h"

#ifdef __cplusplus
extern "C" {
#endif

/* These modes count useful work. 1 is one job of priority 0 on one GPU, alone on the fastest type that it lists.
 * Sharing lowers it; every GPU of a gang counts as its slowest one. A job of priority p >= 0 counts 1 + p times, else 1
 * / (1 - p) times; best-effort work a tenth; a job that keeps its GPU busy for less than 10 % of the time so much less.
 */

typedef struct horus_batch_options {
  uint32_t struct_size;
  uint32_t max_rounds;      /* of the local search; 0 = 8 */
  uint32_t restarts;        /* of batches of at most 64 jobs; 0 = 12 */
  uint32_t window;          /* of the jobs that fit, in planning order, so many are compared; 0 = 50 */
  uint64_t max_evaluations; /* places priced in all: bounds the time of small batches; 0 = 800,000 */
  int64_t now_us;           /* on the clock of horus_job.submit_us and in its range */
  int64_t patience_us;      /* nobody who wants such GPUs passes a job that waits for so long; 0 = no limit */
  int32_t prices;           /* 0 = weigh jobs by what their kind of work is worth while others wait, -1 = do not */
  int32_t reserved;
} horus_batch_options;
#define HORUS_BATCH_OPTIONS_INIT HORUS_INIT(horus_batch_options)

/* As horus_placer_plan, but the jobs are weighed together, as a scheduler's queue wants it. Where there is not room for
 * all, the job whose place is worth most goes next, within a priority; those left answer HORUS_DEFER with
 * HORUS_REASON_PASSED_OVER if there was room for them. Where there is room, or prices and patience are off, the plan is
 * never worse than one by one (docs/modes.md says by what): horus_plan_get_info gives the work that one by one would
 * have added on the jobs' devices, and what this plan adds. `options` and `progress` may be NULL. Errors: as
 * horus_placer_plan. */
HORUS_API horus_status horus_placer_plan_batch(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                                               const horus_job* const* jobs, size_t node_count,
                                               const uint64_t* node_ids, const horus_batch_options* options,
                                               horus_progress progress, void* user, horus_plan** out,
                                               horus_error* error);

typedef struct horus_rebalance_options {
  uint32_t struct_size;
  uint32_t max_migrations; /* 0 = 16 */
  double downtime_s;       /* of the job in a migration; 0 = 30, -1 = none */
  double horizon_s;        /* for which the gain lasts; 0 = 3,600 */
  double min_gain;         /* beyond the cost, in units of work */
  uint64_t max_searches;   /* bounds the time; 0 = 10,000 */
  size_t job_count;        /* of job_ids */
  const uint64_t* job_ids; /* the only jobs that may move; NULL with 0 = all */
  horus_progress progress; /* by migrations found; may be NULL */
  void* user;              /* of progress */
} horus_rebalance_options;
#define HORUS_REBALANCE_OPTIONS_INIT HORUS_INIT(horus_rebalance_options)

/* Migrations of residents that gain more work than they cost, chosen greedily; a decision and a move for each. An empty
 * plan means that no migration gains. `options` may be NULL. Errors: INVALID_ARGUMENT, INVALID_STRUCT, NOT_FOUND (a
 * job), CALLBACK, CANCELLED, BUSY. */
HORUS_API horus_status horus_placer_rebalance(horus_placer* placer, const horus_cluster* cluster,
                                              const horus_rebalance_options* options, horus_plan** out,
                                              horus_error* error);

/* Moves everything off the nodes, in one plan: a decision for each job with a task there, in planning order, and a move
 * if another place takes it. A job without another place stays, and its decision says why. A gang moves as a whole.
 * Drain the nodes first (horus_cluster_set_state), so that nothing new comes. `progress` may be NULL. Errors: NOT_FOUND
 * (a node), CALLBACK, CANCELLED, BUSY. */
HORUS_API horus_status horus_placer_evacuate(horus_placer* placer, const horus_cluster* cluster, size_t node_count,
                                             const uint64_t* node_ids, horus_progress progress, void* user,
                                             horus_plan** out, horus_error* error);

/* The effect of placing a job somewhere, whoever chose the place. Since 0.2. */
typedef struct horus_appraisal {
  uint32_t struct_size;
  int32_t reason; /* HORUS_REASON_*: the first constraint that the job would break there; 0 = none */
  double work;    /* useful work that the cluster gains: the job's, less what co-tenants lose */
  float slowdown; /* predicted for the job, worst over its devices, without communication */
  float slowdown_upper;
  uint32_t tenants;      /* on its devices; the job counts once for each device */
  uint32_t shared;       /* of its devices, those that already have tenants */
  uint32_t beyond_bound; /* of the tenants, those whose bound would be broken, the job included */
  uint32_t reserved;
} horus_appraisal;
#define HORUS_APPRAISAL_INIT HORUS_INIT(horus_appraisal)

/* Appraises a place for a job that is not resident: slot_count rows as horus_cluster_adopt takes them. The regret of
 * another scheduler's choice is the work of the slots that horus_placer_plan chooses, less the work of the other's.
 * Errors: EXISTS, NOT_FOUND, INVALID_ARGUMENT (alternatives too), INVALID_STRUCT, CALLBACK, BUSY. Since 0.2. */
HORUS_API horus_status horus_placer_appraise(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                             size_t slot_count, const uint64_t* node_ids, const uint32_t* devices,
                                             const uint32_t* tasks, horus_appraisal* appraisal, horus_error* error);

/* What to do about a job that shares. */
#define HORUS_ADVICE_STAY 0
#define HORUS_ADVICE_MOVE 1      /* the plan moves it */
#define HORUS_ADVICE_RUN_ALONE 2 /* no place is better: it or a co-tenant has to leave */

/* A job that shares, on the device where it is slowest. */
typedef struct horus_tenant_review {
  uint32_t struct_size;
  int32_t advice; /* HORUS_ADVICE_* */
  uint64_t job_id;
  uint64_t node_id;
  uint32_t device;
  int32_t broken; /* 1 = `held` is beyond `bound` */
  float slowdown; /* expected */
  float slowdown_upper;
  double held;      /* the slowdown not exceeded with the job's slowdown_confidence */
  double bound;     /* its own or the placer's; infinity = none */
  double pack_work; /* of all tenants of the device, 1 = one of them alone; below 1 taking turns does more */
  int32_t trial;    /* 1 = by the upper bounds pack_work is below 1 */
  uint32_t reserved0;
} horus_tenant_review;
#define HORUS_TENANT_REVIEW_INIT HORUS_INIT(horus_tenant_review)

/* Reviews the jobs that share, by the placer's present model: whose bound is broken, whose device does less work than
 * one job alone, and what to do. The plan moves the jobs with ADVICE_MOVE: for a broken bound to any place that keeps
 * all bounds, else where the move gains more than its downtime costs. Call it after horus_interference_commit, with a
 * placer of the new model. `options` as for horus_placer_rebalance, without job_ids; may be NULL. Errors: as there. */
HORUS_API horus_status horus_placer_review(horus_placer* placer, const horus_cluster* cluster,
                                           const horus_rebalance_options* options, horus_plan** out,
                                           horus_error* error);
/* Rows are sorted: broken bounds first, the most exceeded before others, then by pack_work. Errors: NOT_FOUND,
 * INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_plan_get_review(const horus_plan* plan, size_t index, horus_tenant_review* review,
                                             horus_error* error);

#define HORUS_CHANGE_RELEASE 0      /* job_id leaves */
#define HORUS_CHANGE_NODE_STATE 1   /* node_id becomes `state` */
#define HORUS_CHANGE_DEVICE_STATE 2 /* the device of node_id becomes `state` */
#define HORUS_CHANGE_PLACE 3        /* `job` runs on the slots, even if it does not fit */
#define HORUS_CHANGE_MIGRATE 4      /* job_id moves to the slots */

/* A supposed change. Fields that its kind does not name are not read. */
typedef struct horus_change {
  uint32_t struct_size;
  int32_t kind; /* HORUS_CHANGE_* */
  uint64_t job_id;
  uint64_t node_id;
  uint32_t device;
  int32_t state; /* HORUS_STATE_* */
  const horus_job* job;
  size_t slot_count;
  const uint64_t* node_ids; /* slots, as horus_cluster_adopt takes them */
  const uint32_t* devices;
  const uint32_t* tasks;
} horus_change;
#define HORUS_CHANGE_INIT HORUS_INIT(horus_change)

/* Decides the jobs as horus_placer_plan would after the changes, in their order. Nothing happens: the plan has
 * decisions and work, and horus_cluster_apply refuses it (STATE). A job that leaves may be decided anew. Errors
 * name the change; as horus_placer_plan. */
HORUS_API horus_status horus_placer_what_if(horus_placer* placer, const horus_cluster* cluster, size_t change_count,
                                            const horus_change* const* changes, size_t job_count,
                                            const horus_job* const* jobs, horus_progress progress, void* user,
                                            horus_plan** out, horus_error* error);

typedef struct horus_preempt_options {
  uint32_t struct_size;
  uint32_t max_candidates; /* places returned; 0 = 8 */
  uint64_t max_checks;     /* sets of victims tried: bounds the time; 0 = 500,000 */
  horus_progress progress; /* asked whether to go on; its share is always 0. May be NULL */
  void* user;              /* of progress */
} horus_preempt_options;
#define HORUS_PREEMPT_OPTIONS_INIT HORUS_INIT(horus_preempt_options)

/* Which jobs of lower priority would have to leave for `job`: candidates by ascending loss of work. The plan preempts
 * the victims of the first candidate and places the job. If the job already fits, the plan just places it; if nobody
 * can make room, it has a refusal. `options` may be NULL. Errors: as horus_placer_plan. */
HORUS_API horus_status horus_placer_preempt(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                            size_t node_count, const uint64_t* node_ids,
                                            const horus_preempt_options* options, horus_plan** out, horus_error* error);

#define HORUS_MOVE_RESIZE 1 /* stays, with other CPU and host memory */
#define HORUS_MOVE_MIGRATE 2
#define HORUS_MOVE_PREEMPT 3

/* What a plan does to a resident. */
typedef struct horus_move {
  uint32_t struct_size;
  int32_t kind; /* HORUS_MOVE_* */
  uint64_t job_id;
  double gain; /* work that the cluster gains by this move, after those before it. Of a victim: minus its work. Of
                  a resize: change of the job's speed by its sensitivity, 1 = speed at its fair share */
  double cost; /* of a migration: its downtime's work, spread over the horizon */
  uint32_t from_slots; /* rows of horus_plan_slots */
  uint32_t to_slots;
  int64_t cpu_milli_before; /* of a resize, per task: what it holds before and after the plan is applied; else 0 */
  int64_t cpu_milli;
  int64_t mem_mib_before;
  int64_t mem_mib;
} horus_move;
#define HORUS_MOVE_INIT HORUS_INIT(horus_move)

/* Errors: NOT_FOUND, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_plan_get_move(const horus_plan* plan, size_t index, horus_move* move, horus_error* error);

/* A place where a job would fit once its victims are gone. */
typedef struct horus_preemption {
  uint32_t struct_size;
  int32_t exact;           /* 1 = no cheaper set of victims makes room on this node */
  uint64_t node_id;        /* of the first slot */
  double loss;             /* of work, of all victims */
  const uint64_t* victims; /* job ids, ascending; borrowed from the plan, like the next */
  const double* losses;    /* of work, of each victim. Since 0.2. */
  uint32_t victim_count;   /* length of both. Since 0.2. */
  uint32_t slots;          /* rows of horus_plan_slots */
} horus_preemption;
#define HORUS_PREEMPTION_INIT HORUS_INIT(horus_preemption)

/* By ascending loss. Errors: NOT_FOUND, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_plan_get_preemption(const horus_plan* plan, size_t index, horus_preemption* preemption,
                                                 horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_MODES_H_ */
