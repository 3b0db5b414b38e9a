/* SPDX-License-Identifier: Apache-2.0 */
/* Potential: what sharing could give a cluster before any policy is chosen, from speeds alone and in pairs.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_POTENTIAL_H_
#define HORUS_LAB_POTENTIAL_H_

#include "horus/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How fast profiles (kinds of job) run on GPU types, measured or predicted. Positions count from 0. At most 64 GPU
 * types, 2,048 profiles and 4,000,000 pairs. */
typedef struct horus_speeds {
  uint32_t struct_size;
  uint32_t reference; /* position of the GPU type whose time counts as work; for a profile that does not run there, the
                         first type that runs it */
  size_t gpu_count;
  const char* const* gpu_types; /* names or aliases of a catalogue; NULL where the function says so */
  size_t profile_count;
  const char* const* profiles; /* names, each once; NULL where the function says so */
  const double* alone; /* [gpu_count x profile_count] progress a second, in a unit of each profile's own (steps),
                          0 to 1e9; 0 = does not run there */
  size_t pair_count;   /* length of the next six columns; each unordered pair once a GPU type */
  const uint32_t* pair_gpus;
  const uint32_t* pairs_a;
  const uint32_t* pairs_b; /* may equal a: two copies */
  const double* speeds_a;  /* of a beside b, as a share of its speed alone there, above 0 to 2; both 0 = they do not run
                              together */
  const double* speeds_b;
  const double* slowdowns; /* of the slower side, as bounds count it, >= 1; 0 or NULL = as the speeds say */
} horus_speeds;
#define HORUS_SPEEDS_INIT HORUS_INIT(horus_speeds)

typedef struct horus_potential_options {
  uint32_t struct_size;
  uint32_t reserved;
  size_t bound_count;            /* 0 = the five bounds 1.25, 1.5, 2, 2.5 and none */
  const double* slowdown_bounds; /* that nobody may exceed, >= 1; infinity = none */
  double least_gain;             /* least gain at which sharing pays; 0 = 0.05, -1 = any */
  const char* library_path;      /* of libhorus_lp.so; NULL = beside libhorus, then where the loader looks */
} horus_potential_options;
#define HORUS_POTENTIAL_OPTIONS_INIT HORUS_INIT(horus_potential_options)

/* The same for all bounds. Rates count GPUs of the reference type that work alone. */
typedef struct horus_potential {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t pairs;   /* of profiles with work, two copies of one included, on each type with GPUs */
  uint64_t run;     /* that are known to run together */
  uint64_t apart;   /* that are known not to; unknown pairs count like these */
  double exclusive; /* the best rate without sharing */
  double left_out;  /* share of the work that is left out, of profiles that no GPU here runs */
} horus_potential;
#define HORUS_POTENTIAL_INIT HORUS_INIT(horus_potential)

/* One row a bound, in their order. Columns hold `capacity` elements; NULL columns are skipped. */
typedef struct horus_potential_rows {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  double* slowdown_bounds;
  double* gains;           /* best rate with sharing / without - 1 */
  double* makespan_cuts;   /* 1 - without / with: of a backlog that drains evenly */
  double* rates;           /* the best rate: no policy passes it */
  uint64_t* admitted;      /* pairs, of those that run */
  double* admitted_of_mix; /* chance that two jobs, drawn by their work for a GPU drawn at random, may share it */
  int32_t* pays;           /* 1 = the gain is at least least_gain */
} horus_potential_rows;
#define HORUS_POTENTIAL_ROWS_INIT HORUS_INIT(horus_potential_rows)

/* The bound on the work rate of this mix on these GPUs (docs/shadow.md). `work`: by profile, seconds alone on the
 * reference type, in any common unit, some above 0. `gpus`: by GPU type, how many. Names of `speeds` are not read.
 * `options` and `potential` may be NULL, so may `rows` and `count` where rows are not wanted; `progress` is called
 * before each bound. Errors: INVALID_ARGUMENT (column, position, expected, found), INVALID_STRUCT, BUFFER_TOO_SMALL,
 * LIMIT, IO (no libhorus_lp.so), CANCELLED. Any thread. */
HORUS_API horus_status horus_potential_compute(const horus_speeds* speeds, const double* work, const double* gpus,
                                               const horus_potential_options* options, horus_progress progress,
                                               void* user, horus_potential* potential, const horus_potential_rows* rows,
                                               size_t* count, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_POTENTIAL_H_ */
