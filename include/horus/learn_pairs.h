/* SPDX-License-Identifier: Apache-2.0 */
/* Learning interference: models corrected by observed slowdowns of running tenants. Training is in lab/train.h.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LEARN_PAIRS_H_
#define HORUS_LEARN_PAIRS_H_

#include "horus/base.h"
#include "horus/demand.h"
#include "horus/interference.h"
#include "horus/learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bundle of a model that was trained or read from one, for horus_interference_from_bytes. `capacity` and *count as
 * in horus_predictor_to_bytes. Errors: BUFFER_TOO_SMALL, UNSUPPORTED (a model of another origin; of a committed one
 * keep horus_observations_snapshot and what it was committed to, and commit again). Any thread. */
HORUS_API horus_status horus_interference_to_bytes(const horus_interference* model, size_t capacity, void* bytes,
                                                   size_t* count, horus_error* error);

/* An observed slowdown of one tenant of a shared device. */
typedef struct horus_slowdown_observation {
  uint32_t struct_size;
  int32_t sharing_mode;                  /* HORUS_SHARING_*; 0 = TIME_SLICE */
  const char* gpu_type;                  /* name or alias of the catalogue */
  double compute_share;                  /* of a MIG instance, up to 1; 0 = 1 */
  const horus_demand* job;               /* on that type; profile_id not 0 */
  size_t co_tenant_count;                /* 1 to 15 */
  const horus_demand* const* co_tenants; /* likewise, any order */
  double slowdown;                       /* step time shared / step time alone, 0.5 to 1,000 */
  double predicted;                      /* slowdown that the decision predicted; 0 = unknown */
  double predicted_upper;
  uint64_t device_id;           /* the caller's, for horus_observations_get_devices; 0 = none */
  const horus_cluster* cluster; /* NULL = as stated above. Else the resident job_id on that device was seen beside all
                                   others there: leave gpu_type, sharing_mode, compute_share, job and co-tenants unset,
                                   and the types are the cluster's. Since 0.2. */
  uint64_t job_id;              /* Since 0.2. */
  uint64_t node_id;             /* Since 0.2. */
  uint32_t device;              /* index within the node. Since 0.2. */
  uint32_t reserved;            /* Since 0.2. */
} horus_slowdown_observation;
#define HORUS_SLOWDOWN_OBSERVATION_INIT HORUS_INIT(horus_slowdown_observation)

/* Collects one observation in constant time; it becomes visible by horus_interference_commit. At most 16,384 sets of
 * jobs (about 16 MiB) are kept; the one not seen for longest is dropped first. Errors: INVALID_ARGUMENT (field,
 * expected, found), NOT_FOUND (type; no such resident there), BUSY, INVALID_STRUCT. On failure nothing was
 * collected. */
HORUS_API horus_status horus_observations_add_slowdown(horus_observations* observations,
                                                       const horus_catalogue* catalogue,
                                                       const horus_slowdown_observation* observation,
                                                       horus_error* error);

/* A new model: `model`, which stays as it is, corrected by the observations. Its answers move towards the observed
 * slowdowns of the same jobs and of those that met them, and their bounds tighten. Committing to a committed model
 * counts each observation once. `progress` (NULL = none) is called on this thread; non-zero cancels. Observations that
 * a callback adds meanwhile belong to the next commit. Errors: INVALID_ARGUMENT, CALLBACK, NO_MEMORY, CANCELLED. Any
 * thread. */
HORUS_API horus_status horus_interference_commit(const horus_interference* model, const horus_catalogue* catalogue,
                                                 const horus_observations* observations, horus_progress progress,
                                                 void* user, horus_interference** out, horus_error* error);

/* Jobs for which the last commit may have changed answers, their own or their co-tenants': columns of `capacity`
 * values, NULL = not wanted; gpu_types are borrowed from the model. Profile 0 stands for all jobs on a GPU type and
 * sharing mode that the model was not trained on. Errors: BUFFER_TOO_SMALL (*count = needed). Any thread. */
HORUS_API horus_status horus_interference_get_changes(const horus_interference* model, size_t capacity,
                                                      const char** gpu_types, int32_t* sharing_modes,
                                                      uint64_t* profile_ids, size_t* count, horus_error* error);

/* How right predictions were, over the last thousand observations that came with one. */
typedef struct horus_calibration {
  uint32_t struct_size;
  uint32_t reserved;
  double predictions; /* number of observations, up to 1,000 */
  double error;       /* mean of |observed / predicted - 1| */
  double bias;        /* mean of observed / predicted - 1 */
  double bounds;      /* number of those with a bound */
  double covered;     /* share of the bounds that were kept, 0-1 */
} horus_calibration;
#define HORUS_CALIBRATION_INIT HORUS_INIT(horus_calibration)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. */
HORUS_API horus_status horus_observations_get_calibration(const horus_observations* observations,
                                                          horus_calibration* calibration, horus_error* error);

/* The last predicted and observed slowdown of each tenant on each device with an id: columns of `capacity` values, NULL
 * = not wanted; the one not seen for longest comes first. Errors: BUFFER_TOO_SMALL (*count = needed). */
HORUS_API horus_status horus_observations_get_devices(const horus_observations* observations, size_t capacity,
                                                      uint64_t* device_ids, uint64_t* profile_ids, double* observed,
                                                      double* predicted, double* predicted_upper, uint64_t* times,
                                                      size_t* count, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LEARN_PAIRS_H_ */
