/* SPDX-License-Identifier: Apache-2.0 */
/* Demand: the GPU catalogue, and what a graph will ask of each GPU type. */
#ifndef HORUS_DEMAND_H_
#define HORUS_DEMAND_H_

#include "horus/base.h"
#include "horus/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The known GPU types. Immutable: share freely. */
typedef struct horus_catalogue horus_catalogue;

/* One GPU type. Text that the library fills in is borrowed from the catalogue. */
typedef struct horus_gpu {
  uint32_t struct_size;
  int32_t sm_count;
  const char* name;         /* e.g. "a100-40gb" */
  const char* display_name; /* e.g. "NVIDIA A100 40GB" */
  double fp32_gflops;       /* dense peak rates; 0 = not supported */
  double tf32_gflops;
  double fp16_gflops;       /* tensor cores where the type has them */
  double bf16_gflops;
  int64_t mem_mib;
  int64_t mem_bandwidth_mb_s;
  int64_t l2_kib;
  int64_t pcie_mb_s;        /* one direction */
  int64_t nvlink_mb_s;      /* both directions together; 0 = none */
  int64_t context_mib;      /* memory that a CUDA context takes in each process */
} horus_gpu;
#define HORUS_GPU_INIT {sizeof(horus_gpu), 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* The built-in catalogue. Errors: INVALID_ARGUMENT, NO_MEMORY. Any thread. Since 0.1. */
HORUS_API horus_status horus_catalogue_default(horus_catalogue** out, horus_error* error);

/* A new catalogue: `base` and `count` further types. Errors: INVALID_ARGUMENT (type, field, expected, found),
 * EXISTS. Any thread. Since 0.1. */
HORUS_API horus_status horus_catalogue_extend(const horus_catalogue* base, size_t count, const horus_gpu* const* gpus,
                                              horus_catalogue** out, horus_error* error);

HORUS_API void horus_catalogue_free(horus_catalogue* catalogue);

/* Number of types; 0 for NULL. Any thread. Since 0.1. */
HORUS_API size_t horus_catalogue_count(const horus_catalogue* catalogue);

/* The type at `index`. Errors: NOT_FOUND, INVALID_STRUCT. Any thread. Since 0.1. */
HORUS_API horus_status horus_catalogue_get(const horus_catalogue* catalogue, size_t index, horus_gpu* gpu,
                                           horus_error* error);

/* Position of the type called `name` (name or alias, case ignored). Errors: NOT_FOUND. Any thread. Since 0.1. */
HORUS_API horus_status horus_catalogue_find(const horus_catalogue* catalogue, const char* name, size_t* index,
                                            horus_error* error);

#define HORUS_DEMAND_GIVEN 1u    /* stated by the caller */
#define HORUS_DEMAND_MEASURED 2u /* rests on observations of this very profile */
#define HORUS_DEMAND_OUTSIDE 4u  /* the job lies outside what the predictor was trained on */

#define HORUS_TRAIT_COUNT 8u

/* What a job asks of one GPU of one type. Each pair is an estimate and an upper bound >= it. */
typedef struct horus_demand {
  uint32_t struct_size;
  uint32_t flags;         /* HORUS_DEMAND_* */
  uint64_t profile_id;    /* fingerprint of graph and run; 0 = none */
  float gpu_util_pct;     /* NVML GPU-busy percentage alone on the GPU, mean over the steps, 0-100 */
  float gpu_util_pct_upper;
  float mem_bw_util_pct;  /* share of the memory bandwidth, 0-100 */
  float mem_bw_util_pct_upper;
  int64_t mem_mib;        /* peak, context included */
  int64_t mem_mib_upper;  /* what placement reserves */
  int64_t step_time_us;   /* one step alone; 0 = unknown */
  int64_t step_time_us_upper;
  int64_t gradient_mib;   /* all-reduced per step by a data-parallel gang */
  float traits[HORUS_TRAIT_COUNT]; /* columns of learned interference models; all zero = unknown */
} horus_demand;
#define HORUS_DEMAND_INIT {sizeof(horus_demand), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}}

/* Predicts demands from graphs. Immutable: share freely. */
typedef struct horus_predictor horus_predictor;

/* The built-in predictor. Errors: UNSUPPORTED, NO_MEMORY. Any thread. Since 0.1. */
HORUS_API horus_status horus_predictor_default(horus_predictor** out, horus_error* error);

/* A predictor from a trained bundle of `size` bytes, which are not kept.
 * Errors: CORRUPT, VERSION, LIMIT, UNSUPPORTED. Any thread. Since 0.1. */
HORUS_API horus_status horus_predictor_from_bytes(const void* bytes, size_t size, horus_predictor** out,
                                                  horus_error* error);

HORUS_API void horus_predictor_free(horus_predictor* predictor);

/* Memory of the handle in bytes; 0 for NULL. Any thread. Since 0.1. */
HORUS_API uint64_t horus_predictor_bytes_held(const horus_predictor* predictor);

/* Demand of `graph` run as `run` (NULL = defaults) on each of `count` GPU types, named by `gpu_types`, into
 * the structs that `demands` points to. All or nothing. The graph is analysed once, whatever the count.
 * Errors: NOT_FOUND (type), as horus_graph_cost. Any thread. Since 0.1. */
HORUS_API horus_status horus_predictor_demand(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                              const horus_graph* graph, const horus_run_spec* run, size_t count,
                                              const char* const* gpu_types, horus_demand* const* demands,
                                              horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_DEMAND_H_ */
