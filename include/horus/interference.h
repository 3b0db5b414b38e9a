/* SPDX-License-Identifier: Apache-2.0 */
/* Interference: how much each tenant of one device slows down. */
#ifndef HORUS_INTERFERENCE_H_
#define HORUS_INTERFERENCE_H_

#include "horus/base.h"
#include "horus/demand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How tenants share a device. 0 means the default where a field or column says so. */
#define HORUS_SHARING_EXCLUSIVE 1
#define HORUS_SHARING_TIME_SLICE 2
#define HORUS_SHARING_MPS 3
#define HORUS_SHARING_MIG 4 /* the device is one MIG instance */

/* A device as an interference model sees it. */
typedef struct horus_device {
  uint32_t struct_size;
  int32_t sharing_mode; /* HORUS_SHARING_*; 0 = TIME_SLICE */
  const char* gpu_type; /* name or alias of the catalogue */
  double compute_share; /* of the GPU's compute that a MIG instance has, up to 1; 0 = 1, the whole GPU */
} horus_device;
#define HORUS_DEVICE_INIT {sizeof(horus_device), 0, NULL, 0}

/* An interference model. Immutable: share freely (a callback model: as its callback allows). */
typedef struct horus_interference horus_interference;

/* The model called `name`; NULL = "utilisation". Errors: NOT_FOUND (lists the names). Any thread. Since 0.1. */
HORUS_API horus_status horus_interference_create(const char* name, horus_interference** out, horus_error* error);

/* The caller's own model. Fills slowdown[count] and slowdown_upper[count] for the `count` tenants' demands on one
 * device: 1 <= slowdown <= slowdown_upper <= 1e9, else the call that asked ends with CALLBACK; both come in as
 * NaN, and an upper bound that is left so is taken to be the slowdown. Must be a pure function of its arguments
 * that does not depend on the order of the tenants. Runs on the thread that plans; nothing may be thrown or jumped
 * out of it, and the placer and cluster in use answer BUSY to it. Returns 0, or non-zero for failure. */
typedef int32_t (*horus_interference_callback)(void* user, const horus_device* device, size_t count,
                                               const horus_demand* const* demands, float* slowdown,
                                               float* slowdown_upper);

/* A model that asks `callback`. `epoch` must differ between models that answer differently. `catalogue` gives the
 * type names; it may be freed afterwards, but a cluster must use the same types. `user` must outlive the model and
 * every placer made with it. Errors: INVALID_ARGUMENT. Since 0.1. */
HORUS_API horus_status horus_interference_from_callback(const horus_catalogue* catalogue,
                                                        horus_interference_callback callback, void* user,
                                                        uint64_t epoch, horus_interference** out, horus_error* error);

/* A placer keeps what it needs of the model. Accepts NULL. Since 0.1. */
HORUS_API void horus_interference_free(horus_interference* model);

/* Slowdown of each of `count` tenants of `device`. slowdown and slowdown_upper hold `count` values each; the latter
 * may be NULL. Errors: NOT_FOUND (type), INVALID_ARGUMENT, INVALID_STRUCT, CALLBACK. Any thread. Since 0.1. */
HORUS_API horus_status horus_interference_slowdown(const horus_interference* model, const horus_catalogue* catalogue,
                                                   const horus_device* device, size_t count,
                                                   const horus_demand* const* demands, float* slowdown,
                                                   float* slowdown_upper, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_INTERFERENCE_H_ */
