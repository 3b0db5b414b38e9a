/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: the order of waiting jobs, by a discipline chosen by name. Usable with a placer or alone.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_QUEUE_H_
#define HORUS_QUEUE_H_

#include "horus/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waiting jobs in the order of one discipline. One thread at a time, queries included. Priority comes before
 * every discipline; ties go to the earlier submission, then to the lower id. */
typedef struct horus_queue horus_queue;

typedef struct horus_queue_options {
  uint32_t struct_size;
  int32_t clusters;  /* horus-plus: 3 to 5; 0 = 4 */
  int64_t gpu_milli; /* drf, tetris: the cluster, in thousandths of a GPU; one of the three above 0 is required, and */
  int64_t cpu_milli; /* a resource that is 0 does not count. Thousandths of a core */
  int64_t mem_mib;   /* host memory */
  size_t las_threshold_count;           /* las: at most 64; 0 = one threshold of 3,250 s */
  const int64_t* las_thresholds_gpu_us; /* attained service that ends each queue: above 0, ascending */
  int32_t las_continuous;               /* 1 = by attained service itself */
  int32_t reserved;
  int64_t aging_us_per_pct; /* horus, horus-plus: waiting that outweighs one per cent of utilisation; 0 = the
                               discipline's default (horus: none, horus-plus: 6 min), -1 = none */
  double recluster_share;   /* horus-plus: changes, as a share of the queue, that make it cluster anew; 0 = 0.25 */
  int64_t patience_us; /* any discipline: a job that has waited so long goes first within its priority; 0 = never */
} horus_queue_options;
#define HORUS_QUEUE_OPTIONS_INIT HORUS_INIT(horus_queue_options)

/* `discipline`: "fifo", "sjf", "srtf", "las", "ftf", "drf", "tetris", "edf", "horus" or "horus-plus". `options` may be
 * NULL. Errors: NOT_FOUND (discipline; the names are listed), INVALID_ARGUMENT (option, expected, found),
 * INVALID_STRUCT. */
HORUS_API horus_status horus_queue_create(const char* discipline, const horus_queue_options* options, horus_queue** out,
                                          horus_error* error);
/* Accepts NULL. */
HORUS_API void horus_queue_free(horus_queue* queue);

/* A queue as it stands. Since 0.2. */
typedef struct horus_queue_info {
  uint32_t struct_size;
  uint32_t
      look_ahead; /* so many of the first jobs should be tried until one fits: 5 for horus and horus-plus, else 1 */
  uint64_t jobs;
} horus_queue_info;
#define HORUS_QUEUE_INFO_INIT HORUS_INIT(horus_queue_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Since 0.2. */
HORUS_API horus_status horus_queue_get_info(const horus_queue* queue, horus_queue_info* info, horus_error* error);

/* One job. Times are the caller's clock, at most 2^60 us either side of 0; run times are predictions for the job alone
 * on its GPUs. */
typedef struct horus_queued_job {
  uint32_t struct_size;
  int32_t priority;  /* higher first */
  uint64_t id;       /* the caller's; unique in the queue */
  uint64_t owner;    /* the caller's number of the owner; read by drf */
  int64_t submit_us; /* waits since then */
  int32_t tasks;     /* 0 = 1 */
  int32_t gpus;      /* of all tasks together; 0 = one a task, HORUS_JOB_NO_GPUS = the host alone */
  int32_t gpu_milli; /* of each of them, 1-1000; 0 = 1000 */
  int32_t reserved;
  int64_t cpu_milli;         /* of all tasks together */
  int64_t mem_mib;           /* host memory of all tasks together */
  float gpu_util_pct;        /* predicted mean per GPU, 0-100; read by horus, horus-plus */
  float gpu_util_pct_upper;  /* its bound; 0 = the mean */
  int64_t gpu_mem_mib;       /* predicted mean per GPU; read by horus-plus */
  int64_t gpu_mem_mib_upper; /* its bound; 0 = the mean */
  int64_t total_us;          /* from start to end; 0 = unknown: last by sjf, srtf, ftf, tetris */
  int64_t remaining_us;      /* of total_us. Input: 0 and -1 = total_us. Output: -1 = total_us, 0 = nothing left */
  int64_t attained_gpu_us;   /* service so far: GPUs x time; read by las */
  int64_t deadline_us;       /* 0 = none: last by edf */
  int64_t ideal_us;          /* submission to end with its fair share of the cluster; 0 = total_us; read by ftf */
} horus_queued_job;
#define HORUS_QUEUED_JOB_INIT HORUS_INIT(horus_queued_job)

/* Errors: EXISTS (id), INVALID_ARGUMENT (field, expected, found), INVALID_STRUCT, LIMIT (67,108,864 jobs). */
HORUS_API horus_status horus_queue_push(horus_queue* queue, const horus_queued_job* job, horus_error* error);

/* Removes a job without service; nobody is charged. Errors: NOT_FOUND. */
HORUS_API horus_status horus_queue_remove(horus_queue* queue, uint64_t id, horus_error* error);

/* The job starts at now_us and leaves: drf charges its owner, horus-plus its cluster. Errors: NOT_FOUND,
 * INVALID_ARGUMENT (now_us). */
HORUS_API horus_status horus_queue_serve(horus_queue* queue, uint64_t id, int64_t now_us, horus_error* error);

/* New attained service and remaining time; -1 = as it was. Any other change is remove and push. Errors: NOT_FOUND,
 * INVALID_ARGUMENT. */
HORUS_API horus_status horus_queue_update(horus_queue* queue, uint64_t id, int64_t attained_gpu_us,
                                          int64_t remaining_us, horus_error* error);

/* The job as it stands. Errors: NOT_FOUND, INVALID_STRUCT. */
HORUS_API horus_status horus_queue_get_job(const horus_queue* queue, uint64_t id, horus_queued_job* job,
                                           horus_error* error);

/* ids[] becomes the first `capacity` jobs in the order in which horus_queue_pop would serve them at now_us; *count the
 * number written, less than capacity when there are no more; with capacity 0 that of all jobs. Nothing leaves. Errors:
 * INVALID_ARGUMENT. */
HORUS_API horus_status horus_queue_window(horus_queue* queue, int64_t now_us, size_t capacity, uint64_t* ids,
                                          size_t* count, horus_error* error);

/* Serves the first job: *id is its id and *count 1. An empty queue gives *count 0 and leaves *id alone. Errors:
 * INVALID_ARGUMENT. */
HORUS_API horus_status horus_queue_pop(horus_queue* queue, int64_t now_us, uint64_t* id, size_t* count,
                                       horus_error* error);

/* drf, tetris: the cluster grew or shrank; linear in the owners or jobs. Other disciplines only check the
 * arguments. Errors: INVALID_ARGUMENT. */
HORUS_API horus_status horus_queue_set_capacity(horus_queue* queue, int64_t gpu_milli, int64_t cpu_milli,
                                                int64_t mem_mib, horus_error* error);

/* drf: what the owner's running jobs hold; replaces what was charged to it. Other disciplines only check the
 * arguments. Errors: INVALID_ARGUMENT. */
HORUS_API horus_status horus_queue_set_owner_usage(horus_queue* queue, uint64_t owner, int64_t gpu_milli,
                                                   int64_t cpu_milli, int64_t mem_mib, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_QUEUE_H_ */
