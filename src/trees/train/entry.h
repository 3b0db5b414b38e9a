/* SPDX-License-Identifier: Apache-2.0
 * The one door into libhorus_train.so: trains one forest of regression trees with XGBoost.
 *
 * Enters:  a request: rows, targets, parameters; all memory is the caller's.
 * Leaves:  the forest, handed once to the caller's sink; a status and a text for people.
 * Units:   rows row-major float32, NaN = missing; errors are sums of squares in the target's unit.
 * Cost:    rounds x rows x features, on the calling thread alone.   Thread class: re-entrant, no state.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HORUS_TRAIN_OK 0
#define HORUS_TRAIN_CANCELLED 1 /* a callback returned non-zero */
#define HORUS_TRAIN_REFUSED 2   /* the request is of another version or incomplete */
#define HORUS_TRAIN_FAILED 3    /* XGBoost said no; the text says why */
#define HORUS_TRAIN_NO_MEMORY 4 /* an allocation failed */

#define HORUS_TRAIN_METHOD_EXACT 0
#define HORUS_TRAIN_METHOD_HIST 1

#define HORUS_TRAIN_TEXT_BYTES 512

/* One set of rows; `margins` may be NULL. */
typedef struct horus_train_rows {
  const float* features; /* [count x num_features] */
  const float* targets;  /* [count] */
  const float* weights;  /* [count] or NULL = all 1 */
  const float* margins;  /* [count] or NULL = base_score for all */
  uint64_t count;
} horus_train_rows;

/* A node in pre-order; the left child is the next node. */
typedef struct horus_train_node {
  uint32_t split; /* 2 * feature + (1 when missing goes left); 0xFFFFFFFF for a leaf */
  uint32_t right; /* position in the tree; 0 for a leaf */
  float value;    /* threshold or leaf value */
  float cover;    /* sum of Hessians */
} horus_train_node;

typedef struct horus_train_forest {
  const horus_train_node* nodes;
  const uint32_t* tree_sizes;
  uint64_t node_count;
  uint64_t tree_count;
  float base_score;
  uint32_t reserved;
} horus_train_forest;

typedef struct horus_train_request {
  uint32_t struct_size; /* sizeof(horus_train_request) of the caller: any other size is refused */
  uint32_t num_features;
  horus_train_rows train;
  horus_train_rows valid;  /* count 0 = none: no error is reported */
  const int32_t* monotone; /* [num_features] of -1, 0, 1; or NULL */
  int32_t rounds;          /* trees to grow */
  int32_t max_depth;
  int32_t method;  /* HORUS_TRAIN_METHOD_* */
  int32_t max_bin; /* of METHOD_HIST */
  float learning_rate;
  float lambda;
  float min_child_weight;
  float subsample;
  float colsample_bytree;
  float base_score;
  uint32_t seed;
  int32_t reserved;
  void* user;
  /* After a round: how many are done and the sum of weighted squared errors of `valid` (0 without).
   * Non-zero stops: with HORUS_TRAIN_CANCELLED, nothing handed out. */
  int32_t (*progress)(void* user, int32_t rounds_done, double valid_error);
  /* Called once at the end; the forest is valid during the call. May be NULL. Non-zero cancels. */
  int32_t (*sink)(void* user, const horus_train_forest* forest);
} horus_train_request;

typedef int32_t (*horus_train_entry_fn)(const horus_train_request* request, char* text);

/* `text` has HORUS_TRAIN_TEXT_BYTES and is always terminated. */
__attribute__((visibility("default"))) int32_t horus_train_entry_v1(const horus_train_request* request, char* text);

#ifdef __cplusplus
}
#endif
