/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph says of a run before any GPU is known: the cost of a step, and the row of features.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_FEATURES_H_
#define HORUS_LAB_FEATURES_H_

#include "horus/base.h"
#include "horus/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one step costs. FLOPs count a multiply-add as 2. */
typedef struct horus_step_cost {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t parameters;         /* trainable elements */
  double forward_flops;       /* convolution, matrix, recurrent and attention products */
  double forward_flops_other; /* everything else */
  double training_flops;      /* forward and backward, products only; = forward_flops for inference */
  double horus_flops;         /* the Horus author's own count */
  double step_bytes;          /* read and written by one step */
  int64_t kernels;            /* launched by one step */
  int64_t operators;          /* of the flattened graph, plumbing included */
  int64_t operators_unknown;  /* of them, those whose shape or cost rule is missing: the sums are lower bounds */
  int64_t weights_bytes;      /* this and the next four sum to the memory peak without context */
  int64_t gradients_bytes;
  int64_t optimizer_bytes;    /* optimiser state and float32 master weights */
  int64_t activations_bytes;  /* kept for the backward pass */
  int64_t workspace_bytes;    /* all else at the peak: the batch, temporaries, library scratch, allocator slack */
  int64_t horus_memory_bytes; /* the Horus memory formula, as a baseline */
} horus_step_cost;
#define HORUS_STEP_COST_INIT HORUS_INIT(horus_step_cost)

/* Cost of one step. `run` may be NULL (training, float32, SGD, batch of the file).
 * Errors: INVALID_ARGUMENT (unknown dimension, contradictory shapes: node and operator are named),
 * INVALID_STRUCT, LIMIT, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_graph_cost(const horus_graph* graph, const horus_run_spec* run, horus_step_cost* cost,
                                        horus_error* error);

/* The feature row of a graph and run: horus_feature_count() float32 values in schema order; the columns that
 * depend on the GPU type are not part of it.
 * `capacity` values fit into `values`; *count becomes the number written or, with BUFFER_TOO_SMALL, needed.
 * Errors: as horus_graph_cost, BUFFER_TOO_SMALL. Any thread. */
HORUS_API horus_status horus_graph_features(const horus_graph* graph, const horus_run_spec* run, size_t capacity,
                                            float* values, size_t* count, horus_error* error);

/* The schema of the feature row: columns, and per column name, unit ("" = none) and definition. Text is static;
 * NULL past the end. The hash changes when any column changes. A build without ONNX has no columns and
 * hash 0. Any thread. */
HORUS_API size_t horus_feature_count(void);
HORUS_API const char* horus_feature_name(size_t index);
HORUS_API const char* horus_feature_unit(size_t index);
HORUS_API const char* horus_feature_definition(size_t index);
HORUS_API uint64_t horus_feature_schema_hash(void);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_FEATURES_H_ */
