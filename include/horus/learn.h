/* SPDX-License-Identifier: Apache-2.0 */
/* Learning: what running jobs were seen to take, and predictors that answer with it. Training is in lab/train.h.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LEARN_H_
#define HORUS_LEARN_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bundle of a predictor, as horus_predictor_from_bytes takes it. Measured demands are not part of it: keep
 * horus_observations_snapshot too, and commit again. `capacity` bytes fit into `bytes`; *count is the number needed.
 * Errors: BUFFER_TOO_SMALL, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_to_bytes(const horus_predictor* predictor, size_t capacity, void* bytes,
                                                size_t* count, horus_error* error);

/* What running jobs were seen to take, by profile and GPU type. One thread at a time. */
typedef struct horus_observations horus_observations;

#define HORUS_OBSERVED_GPU_UTIL 1u
#define HORUS_OBSERVED_MEM_BW_UTIL 2u
#define HORUS_OBSERVED_MEMORY 4u
#define HORUS_OBSERVED_STEP_TIME 8u

typedef struct horus_demand_observation {
  uint32_t struct_size;
  uint32_t measured;            /* sum of HORUS_OBSERVED_*: which of the values below count */
  uint64_t profile_id;          /* of the job's horus_demand; not 0 */
  const char* gpu_type;         /* name or alias of the catalogue */
  double gpu_util_pct;          /* 0-100, mean over the steps, alone on the GPU */
  double mem_bw_util_pct;       /* 0-100, likewise */
  double mem_mib;               /* peak */
  double step_time_us;          /* alone on the GPU */
  const horus_cluster* cluster; /* NULL = as stated above. Else the resident job_id on that device was seen: leave
                                   profile_id 0 and gpu_type NULL, and the types are the cluster's. Since 0.2. */
  uint64_t job_id;              /* Since 0.2. */
  uint64_t node_id;             /* Since 0.2. */
  uint32_t device;              /* index within the node. Since 0.2. */
  uint32_t reserved;            /* Since 0.2. */
} horus_demand_observation;
#define HORUS_DEMAND_OBSERVATION_INIT HORUS_INIT(horus_demand_observation)

/* Room for `capacity` pairs of profile and GPU type (0 = 65,536, at most 1,048,576); beyond that the pair not seen for
 * longest is dropped. Errors: INVALID_ARGUMENT, NO_MEMORY. */
HORUS_API horus_status horus_observations_create(size_t capacity, horus_observations** out, horus_error* error);

/* Accepts NULL. */
HORUS_API void horus_observations_free(horus_observations* observations);

/* Collects one observation in constant time. It becomes visible by horus_predictor_commit. Beyond a hundred, old ones
 * fade. Errors: INVALID_ARGUMENT (field, expected, found), NOT_FOUND (GPU type; no such resident there), BUSY,
 * INVALID_STRUCT. */
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
