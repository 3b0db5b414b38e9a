/* SPDX-License-Identifier: Apache-2.0 */
/* Training: predictors from measured runs, interference models from measured pairs.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_TRAIN_H_
#define HORUS_LAB_TRAIN_H_

#include "horus/base.h"
#include "horus/demand.h"
#include "horus/graph.h"
#include "horus/interference.h"

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
  const char* const* gpu_types;      /* names of the catalogue, or "opaque:NAME" for an unknown GPU */
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
  int32_t rounds; /* most trees of a quantity, up to 2,000; 0 = 100, -1 = none */
  double promise; /* coverage of the bounds on unseen families, 0.5 to 0.99; 0 = 0.9 */
  uint32_t seed;
  uint32_t reserved;
  const char* library_path;    /* of libhorus_train.so; NULL = beside libhorus, then where the loader looks */
  const horus_predictor* base; /* its models of quantities that the rows lack are kept; NULL = built-in */
} horus_training_options;
#define HORUS_TRAINING_OPTIONS_INIT HORUS_INIT(horus_training_options)

/* A predictor trained on the rows: every quantity that at least 8 rows measure; the others come from `base`. Equal rows
 * give equal predictors with the same XGBoost on the same architecture. The first call loads libhorus_train.so, which
 * stays loaded. `options` may be NULL; `progress` (NULL = none) is called on this thread, non-zero cancels. Errors:
 * INVALID_ARGUMENT (row, column, expected and found), NOT_FOUND (GPU type), INVALID_STRUCT, CANCELLED, IO (the library
 * cannot be loaded), UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_fit(const horus_catalogue* catalogue, const horus_training_data* data,
                                           const horus_training_options* options, horus_progress progress, void* user,
                                           horus_predictor** out, horus_error* error);

/* Quality of the predictions of one quantity. */
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

/* Runs of two jobs side by side, columns of `count` values (at most 200,000), on `device_count` kinds of device (64),
 * of `job_count` jobs (2,048). */
typedef struct horus_pair_data {
  uint32_t struct_size;
  uint32_t reserved;
  size_t device_count;
  const char* const* gpu_types; /* [device_count] names of the catalogue */
  const int32_t* sharing_modes; /* [device_count] HORUS_SHARING_*; NULL = TIME_SLICE */
  size_t job_count;
  const char* const* families;        /* [job_count] jobs of one family are left out together by the calibration */
  const horus_demand* const* demands; /* [job_count x device_count], job major; one profile_id a job */
  size_t count;
  const uint32_t* devices; /* [count] positions */
  const uint32_t* jobs_a;
  const uint32_t* jobs_b;       /* may equal jobs_a: two copies */
  const char* const* campaigns; /* runs of one site and time; NULL = one campaign */
  const double* slowdown_a;     /* of job a beside job b, 0.5 to 1,000; NaN = not measured */
  const double* slowdown_b;
} horus_pair_data;
#define HORUS_PAIR_DATA_INIT HORUS_INIT(horus_pair_data)

typedef struct horus_pair_options {
  uint32_t struct_size;
  uint32_t seed;
  const char* model;        /* "horus", "boosted", "iasp" or "iapp"; NULL = "horus" */
  double promise;           /* coverage of the bounds, 0.5 to 0.99; 0 = 0.9. n groups support at most n / (n + 1) */
  const char* library_path; /* of libhorus_train.so, for "boosted"; NULL = as in horus_training_options */
} horus_pair_options;
#define HORUS_PAIR_OPTIONS_INIT HORUS_INIT(horus_pair_options)

/* A model trained on the runs. Equal runs give equal models. `options` may be NULL; `progress` (NULL = none) is called
 * on this thread, non-zero cancels. Errors: INVALID_ARGUMENT (row, column, expected, found), NOT_FOUND (type, model),
 * INVALID_STRUCT, LIMIT, CANCELLED, IO (the library), UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_interference_fit(const horus_catalogue* catalogue, const horus_pair_data* data,
                                              const horus_pair_options* options, horus_progress progress, void* user,
                                              horus_interference** out, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_TRAIN_H_ */
