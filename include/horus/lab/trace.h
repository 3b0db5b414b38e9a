/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what jobs came, when, what they asked for and how much work they brought.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_TRACE_H_
#define HORUS_LAB_TRACE_H_

#include "horus/base.h"
#include "horus/cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Jobs, when they came and how much work they brought. Immutable: share freely. */
typedef struct horus_trace horus_trace;

#define HORUS_NOT_STATED UINT32_MAX /* in a column of positions */

/* One row a job, in any order; at most 4,000,000 jobs. Times are of the trace's own clock, 0 to 2^55 us. Work is stated
 * in one way, by duration or steps, unless the job is endless. */
typedef struct horus_trace_columns {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const uint64_t* ids;          /* the caller's, each once; NULL = 0, 1, 2, ... */
  const int64_t* submit_us;     /* NULL = 0 */
  const int64_t* duration_us;   /* run time alone at speed 1 (horus_truth); of an endless job, how long it was seen */
  const int64_t* steps;         /* 0 = not stated; for truths made of speeds */
  const uint8_t* endless;       /* 1 = runs until the simulation ends */
  const int64_t* deadline_us;   /* above submit_us; 0 = none */
  const int32_t* tasks;         /* a gang; 0 = 1 */
  const int32_t* gpus_per_task; /* 0 = 1; HORUS_JOB_NO_GPUS = the host alone */
  const int32_t* gpu_milli;     /* per GPU, as that of horus_job; 0 = shares as its demand allows */
  const int64_t* cpu_milli;     /* per task, as the next */
  const int64_t* mem_mib;       /* host memory */
  const int32_t* kinds;         /* HORUS_JOB_* */
  const int32_t* priorities;    /* higher first */
  size_t profile_count;
  const char* const* profile_names; /* what jobs run, e.g. "ResNet-50 (batch size 64)"; beliefs and truths know it */
  const uint32_t* profiles;         /* positions in it; required of jobs with GPUs by horus_sim_run */
  size_t owner_count;
  const char* const* owner_names;
  const uint32_t* owners; /* positions in it; read by the queue "drf" */
  size_t type_list_count;
  const char* const* type_lists; /* names of GPU types with '|' between them: "v100-sxm2-16gb|a100-40gb" */
  const uint32_t* gpu_types;     /* positions in it; not stated = any */
  const int64_t* step_us;        /* one step alone; 0 = not stated, then the next three are not read */
  const int64_t* host_us;        /* what a step takes of the host, its GPU and the network, which overlap */
  const int64_t* gpu_us;
  const int64_t* network_us;
} horus_trace_columns;
#define HORUS_TRACE_COLUMNS_INIT HORUS_INIT(horus_trace_columns)

/* The columns are copied. Errors: INVALID_ARGUMENT (row, field, expected, found; an id twice), INVALID_STRUCT, LIMIT.
 * Any thread. */
HORUS_API horus_status horus_trace_create(const horus_trace_columns* columns, horus_trace** out, horus_error* error);

#define HORUS_ARRIVALS_PRESET 0  /* as the preset has them */
#define HORUS_ARRIVALS_BACKLOG 1 /* all jobs at 0 */
#define HORUS_ARRIVALS_POISSON 2
#define HORUS_ARRIVALS_BURSTY 3 /* hyper-exponential gaps */

/* A synthetic trace (docs/simulate.md): a preset and changes to it. Fields that are 0 and lists without entries keep
 * the preset's values. */
typedef struct horus_synthetic_options {
  uint32_t struct_size;
  int32_t arrivals;    /* HORUS_ARRIVALS_* */
  const char* preset;  /* "philly" or "horus2020"; NULL = "philly" */
  uint64_t seed;       /* any value; the command's default is 1 */
  int64_t jobs;        /* up to 4,000,000; a longer trace begins with the shorter one */
  int64_t mean_gap_us; /* between arrivals; 0 = chosen to give `load_milli` on `capacity_gpu_milli`, in expectation */
  int64_t capacity_gpu_milli; /* of the cluster, in thousandths of a GPU */
  int32_t load_milli;         /* thousandths */
  int32_t gap_scv_milli;      /* of bursty gaps: squared coefficient of variation, 1,000 to 1,000,000 thousandths */
  size_t size_count;
  const int32_t* size_gpus;             /* tasks of one GPU each */
  const uint32_t* size_weights;         /* NULL = 1, as of profiles */
  size_t duration_count;                /* points of the cumulative distribution, linear between them */
  const int32_t* duration_shares_milli; /* of jobs that take at most duration_us: ascending from 0 to 1,000 */
  const int64_t* duration_us;           /* ascending */
  size_t profile_count;
  const char* const* profile_names;
  const uint32_t* profile_weights;
  const int64_t* profile_cpu_milli; /* per task, as the next; NULL = 0 */
  const int64_t* profile_mem_mib;
  int32_t owners; /* number of owners, equally likely */
  uint32_t reserved0;
} horus_synthetic_options;
#define HORUS_SYNTHETIC_OPTIONS_INIT HORUS_INIT(horus_synthetic_options)

/* Draws a trace; the same for equal options on every machine. `options` may be NULL. Errors: INVALID_ARGUMENT (field,
 * expected, found), NOT_FOUND (preset), INVALID_STRUCT, LIMIT. Any thread. */
HORUS_API horus_status horus_trace_create_synthetic(const horus_synthetic_options* options, horus_trace** out,
                                                    horus_error* error);
/* A trace file. `format`: "plain", "openb", "gavel", "chronus", "muri" or "pai"; NULL = by its header. A wrong row
 * ends the reading. Errors: INVALID_ARGUMENT (file, line, column, expected, found), NOT_FOUND (format), IO, LIMIT,
 * UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_trace_from_file(const char* path, const char* format, horus_trace** out,
                                             horus_error* error);

/* Accepts NULL. Results keep what they need of it. */
HORUS_API void horus_trace_free(horus_trace* trace);

/* Number of jobs; number of profiles; memory of the handle in bytes. 0 for NULL. Any thread. */
HORUS_API size_t horus_trace_count(const horus_trace* trace);
HORUS_API size_t horus_trace_profile_count(const horus_trace* trace);
HORUS_API uint64_t horus_trace_bytes_held(const horus_trace* trace);
/* Profile names, in the order of their first job by (submit_us, id); borrowed from the trace; NULL past the end. Any
 * thread. */
HORUS_API const char* horus_trace_profile_name(const horus_trace* trace, size_t index);

/* The same for owners, and for GPU types of a list that jobs refer to. */
HORUS_API const char* horus_trace_owner_name(const horus_trace* trace, size_t index);
HORUS_API const char* horus_trace_type_name(const horus_trace* trace, size_t list, size_t index);

/* One row a job, by (submit_us, id); fields as in horus_trace_columns. Columns hold `capacity` elements; NULL columns
 * are skipped. */
typedef struct horus_trace_jobs {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  uint64_t* ids;
  int64_t* submit_us;
  int64_t* duration_us;
  int64_t* steps;
  uint8_t* endless;
  int64_t* deadline_us;
  int32_t* tasks;
  int32_t* gpus_per_task; /* HORUS_JOB_NO_GPUS = the host alone */
  int32_t* gpu_milli;
  int64_t* cpu_milli;
  int64_t* mem_mib;
  int32_t* kinds;
  int32_t* priorities;
  uint32_t* profiles; /* index for horus_trace_profile_name, or HORUS_NOT_STATED; likewise the next two */
  uint32_t* owners;
  uint32_t* gpu_types; /* lists of horus_trace_type_name */
  int64_t* step_us;
  int64_t* host_us;
  int64_t* gpu_us;
  int64_t* network_us;
} horus_trace_jobs;
#define HORUS_TRACE_JOBS_INIT HORUS_INIT(horus_trace_jobs)

/* Errors: BUFFER_TOO_SMALL, INVALID_ARGUMENT, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_trace_get_jobs(const horus_trace* trace, const horus_trace_jobs* jobs, size_t* count,
                                            horus_error* error);

typedef struct horus_trace_summary {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t jobs;
  uint64_t endless;
  uint64_t by_steps;    /* that state steps */
  uint64_t best_effort; /* of that kind */
  uint64_t deadlines;
  uint64_t gpus;   /* of all jobs together */
  uint64_t gangs;  /* jobs of more than one task */
  uint64_t shares; /* jobs that ask for less than one GPU */
  uint64_t owners; /* that are named */
  uint64_t profiles;
  int64_t first_submit_us;
  int64_t last_submit_us;
  double mean_gap_us; /* between submissions; 0 below two jobs */
  double gap_scv;     /* squared coefficient of variation of the gaps: 1 = as random arrivals */
  double gpu_us;      /* GPU time of the jobs that state a duration and end */
  uint64_t digest;    /* of the content: equal digests, equal workloads */
} horus_trace_summary;
#define HORUS_TRACE_SUMMARY_INIT HORUS_INIT(horus_trace_summary)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_trace_get_summary(const horus_trace* trace, horus_trace_summary* summary,
                                               horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_TRACE_H_ */
