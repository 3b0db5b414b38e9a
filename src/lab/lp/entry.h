/* SPDX-License-Identifier: Apache-2.0
 * The one door into libhorus_lp.so: solves one linear program with COIN-OR Clp.
 *
 * Enters:  maximise objective.x subject to row and column bounds; the matrix by columns. All memory is the caller's.
 * Leaves:  the values of a vertex, the prices of the rows and the objective; a status and a text for people.
 * Units:   the caller's; infinite bounds are +-INFINITY.
 * Cost:    the simplex method, on the calling thread alone.   Thread class: re-entrant, no state.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HORUS_LP_OK 0
#define HORUS_LP_INFEASIBLE 1 /* no x satisfies all bounds */
#define HORUS_LP_REFUSED 2    /* the request is of another version or incomplete */
#define HORUS_LP_FAILED 3     /* Clp gave up, or the program is unbounded; the text says why */
#define HORUS_LP_NO_MEMORY 4  /* an allocation failed */

#define HORUS_LP_TEXT_BYTES 256

typedef struct horus_lp_request {
  uint32_t struct_size; /* sizeof(horus_lp_request) of the caller: any other size is refused */
  int32_t columns;
  int32_t rows;
  int32_t max_iterations;     /* of the simplex method, so that it ends */
  const int32_t* starts;      /* [columns + 1] where each column's elements begin */
  const int32_t* indices;     /* [elements] row of each element */
  const double* elements;     /* [elements] */
  const double* objective;    /* [columns] */
  const double* column_lower; /* [columns] */
  const double* column_upper; /* [columns] */
  const double* row_lower;    /* [rows] */
  const double* row_upper;    /* [rows] */
  double* values;             /* [columns], written when OK */
  double* prices;             /* [rows], written when OK: by how much the objective grows with the row's bound */
  double* objective_value;    /* written when OK */
} horus_lp_request;

typedef int32_t (*horus_lp_entry_fn)(const horus_lp_request* request, char* text);

/* `text` has HORUS_LP_TEXT_BYTES and is always terminated. */
__attribute__((visibility("default"))) int32_t horus_lp_entry_v1(const horus_lp_request* request, char* text);

#ifdef __cplusplus
}
#endif
