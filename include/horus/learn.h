/* SPDX-License-Identifier: Apache-2.0 */
/* Learning: a predictor trained on measured runs, and what running jobs were seen to take.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LEARN_H_
#define HORUS_LEARN_H_

#include "horus/base.h"
#include "horus/demand.h"
#include "horus/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measured runs, one a row: every column holds `count` values. A measured column that is NULL was not measured; NaN in
 * a row was not measured there. Jobs must have been alone on their GPU. */
typedef struct horus_training_data {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const horus_graph* const* graphs;
  const horus_run_spec* const* runs; /* NULL, or NULL in a row = defaults */
  const char* const* gpu_types;      /* names of the catalogue, or "opaque:NAME" for a GPU that nothing is known of */
  const char* const* families;       /* rows of a family are never split between training and calibration */
  const char* const* nets;           /* NULL = the families */
  const double* gpu_util_pct;        /* NVML's GPU-busy percentage, mean over the steps, 0-100 */
  const double* gpu_util_max_pct;    /* its maximum */
  const double* mem_bw_util_pct;     /* share of the memory bandwidth, mean over the steps, 0-100 */
  const double* mem_mib;             /* peak device memory, context included, > 0 */
  const double* step_time_us;        /* one step, > 0 */
  const double* power_w;             /* board power, mean over the steps, > 0 */
} horus_training_data;
#define HORUS_TRAINING_DATA_INIT HORUS_INIT(horus_training_data)

typedef struct horus_training_options {
  uint32_t struct_size;
  int32_t rounds; /* trees a quantity at most, up to 2,000; 0 = 100, -1 = none */
  double promise; /* coverage of the bounds on families that were not seen, 0.5 to 0.99; 0 = 0.9 */
  uint32_t seed;
  uint32_t reserved;
  const char* library_path;    /* of libhorus_train.so; NULL = beside libhorus, then where the loader looks */
  const horus_predictor* base; /* its models of the other quantities are kept; NULL = the built-in predictor */
} horus_training_options;
#define HORUS_TRAINING_OPTIONS_INIT HORUS_INIT(horus_training_options)

/* A predictor trained on the rows: every quantity that at least 8 of them measure, and the others as `base` has them.
 * Equal rows give equal predictors with the same XGBoost on the same architecture. Loads libhorus_train.so at the first
 * call, for good. `options` may be NULL; `progress` (NULL = none) is called on this thread, non-zero cancels. Errors:
 * INVALID_ARGUMENT (row, column, expected and found), NOT_FOUND (GPU type), INVALID_STRUCT, CANCELLED, IO (the library
 * cannot be loaded), UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_fit(const horus_catalogue* catalogue, const horus_training_data* data,
                                           const horus_training_options* options, horus_progress progress, void* user,
                                           horus_predictor** out, horus_error* error);

/* The bundle of a predictor, as horus_predictor_from_bytes takes it; measured demands are not part of it. `capacity`
 * bytes fit into `bytes`; *count becomes the number written or, with BUFFER_TOO_SMALL, needed.
 * Errors: BUFFER_TOO_SMALL, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_to_bytes(const horus_predictor* predictor, size_t capacity, void* bytes,
                                                size_t* count, horus_error* error);

/* What stands behind the predictions of one quantity. */
typedef struct horus_prediction_quality {
  uint32_t struct_size;
  uint32_t reserved;
  double promised; /* coverage of the upper bound on families not seen, 0-1; 0 = no promise */
  double observed; /* of the training rows, each bounded without its own family, 0-1 */
  int64_t rows;    /* trained on */
  int64_t families;
  int64_t gpu_types;
  int64_t trees;
} horus_prediction_quality;
#define HORUS_PREDICTION_QUALITY_INIT HORUS_INIT(horus_prediction_quality)

/* Of `quantity`: "gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct", "mem_mib", "step_time_us" or "power_w".
 * Errors: NOT_FOUND (the roofline alone predicts it), INVALID_ARGUMENT, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_get_quality(const horus_predictor* predictor, const char* quantity,
                                                   horus_prediction_quality* quality, horus_error* error);

/* What running jobs were seen to take, by profile and GPU type. One thread at a time. */
typedef struct horus_observations horus_observations;

#define HORUS_OBSERVED_GPU_UTIL 1u
#define HORUS_OBSERVED_MEM_BW_UTIL 2u
#define HORUS_OBSERVED_MEMORY 4u
#define HORUS_OBSERVED_STEP_TIME 8u

typedef struct horus_demand_observation {
  uint32_t struct_size;
  uint32_t measured;      /* sum of HORUS_OBSERVED_*: which of the values below count */
  uint64_t profile_id;    /* of the job's horus_demand; not 0 */
  const char* gpu_type;   /* name or alias of the catalogue */
  double gpu_util_pct;    /* 0-100, mean over the steps, alone on the GPU */
  double mem_bw_util_pct; /* 0-100, likewise */
  double mem_mib;         /* peak */
  double step_time_us;    /* alone on the GPU */
} horus_demand_observation;
#define HORUS_DEMAND_OBSERVATION_INIT HORUS_INIT(horus_demand_observation)

/* Room for `capacity` pairs of profile and GPU type (0 = 65,536, at most 1,048,576); beyond it the longest unseen is
 * forgotten. Errors: INVALID_ARGUMENT, NO_MEMORY. */
HORUS_API horus_status horus_observations_create(size_t capacity, horus_observations** out, horus_error* error);

/* Accepts NULL. */
HORUS_API void horus_observations_free(horus_observations* observations);

/* Memory of the handle in bytes; 0 for NULL. */
HORUS_API uint64_t horus_observations_bytes_held(const horus_observations* observations);

/* Collects one observation in constant time. It becomes visible by horus_predictor_commit. Old ones fade once there are
 * a hundred. Errors: INVALID_ARGUMENT (field, expected, found), NOT_FOUND (GPU type), INVALID_STRUCT. */
HORUS_API horus_status horus_observations_add_demand(horus_observations* observations, const horus_catalogue* catalogue,
                                                     const horus_demand_observation* observation, horus_error* error);

/* All that was collected, for a snapshot; little-endian with a checksum. `capacity` and *count as in
 * horus_predictor_to_bytes. Errors: BUFFER_TOO_SMALL. */
HORUS_API horus_status horus_observations_snapshot(const horus_observations* observations, size_t capacity, void* bytes,
                                                   size_t* count, horus_error* error);

/* Errors: CORRUPT, VERSION, INVALID_ARGUMENT. */
HORUS_API horus_status horus_observations_restore(const void* bytes, size_t size, horus_observations** out,
                                                  horus_error* error);

/* A new predictor with a new epoch that answers with what was measured where it was (flag MEASURED): utilisation,
 * bandwidth and step time become the mean, memory the largest seen, each with a bound that tightens as observations
 * come in. `predictor` stays as it is. Errors: UNSUPPORTED, NO_MEMORY. Any thread. */
HORUS_API horus_status horus_predictor_commit(const horus_predictor* predictor, const horus_observations* observations,
                                              horus_predictor** out, horus_error* error);

/* Observations that the predictor has taken in; 0 for one without, and for NULL. Any thread. */
HORUS_API uint64_t horus_predictor_epoch(const horus_predictor* predictor);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LEARN_H_ */
