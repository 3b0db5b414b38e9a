/* SPDX-License-Identifier: Apache-2.0 */
/* Interference: how much each tenant of one device slows down.
 * Since 0.1 where nothing else is said. */
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
/* Of a cluster's device alone, which can change between the two while it is empty: horus_decision.sharing_mode says
 * which. Since 0.2. */
#define HORUS_SHARING_TIME_SLICE_OR_MPS 5

/* A device as an interference model sees it. */
typedef struct horus_device {
  uint32_t struct_size;
  int32_t sharing_mode; /* HORUS_SHARING_*; 0 = TIME_SLICE */
  const char* gpu_type; /* name or alias of the catalogue */
  double compute_share; /* of the GPU's compute that a MIG instance has, up to 1; 0 = 1, the whole GPU */
} horus_device;
#define HORUS_DEVICE_INIT HORUS_INIT(horus_device)

/* An interference model. Immutable: share freely (a callback model: as its callback allows). */
typedef struct horus_interference horus_interference;

/* The built-in model called `name` ("horus", "utilisation"; of libhorus_lab also "boosted", "iasp", "iapp"); NULL =
 * "horus". GPU types of catalogues that extend the built-in one keep their meaning. Errors: NOT_FOUND (lists the
 * names). Any thread. */
HORUS_API horus_status horus_interference_create(const char* name, horus_interference** out, horus_error* error);

/* The model called `name` (NULL = "horus") of a trained bundle of `size` bytes, which are not kept; it knows GPU types
 * by the catalogue's names. Errors: INVALID_ARGUMENT, NOT_FOUND (name), CORRUPT, VERSION (of the format), STATE (no
 * bundle of interference models, or of another schema: train again), LIMIT. Any thread. */
HORUS_API horus_status horus_interference_from_bytes(const horus_catalogue* catalogue, const void* bytes, size_t size,
                                                     const char* name, horus_interference** out, horus_error* error);

/* Measured pairs, columns of `count` values. Jobs are known by the profile_id of their demands. */
typedef struct horus_pair_table {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const char* const* gpu_types;
  const int32_t* sharing_modes; /* HORUS_SHARING_*; NULL = TIME_SLICE */
  const uint64_t* profiles_a;   /* not 0 */
  const uint64_t* profiles_b;   /* not 0; may equal a: two copies of a job */
  const double* slowdown_a;     /* of a beside b, 0.5 to 1,000; NaN = not measured */
  const double* slowdown_b;
  double noise; /* share by which bounds lie above measurements; 0 = 0.05, up to 10 */
} horus_pair_table;
#define HORUS_PAIR_TABLE_INIT HORUS_INIT(horus_pair_table)

/* A model that answers with what was measured, and with `fallback` (NULL = the built-in "horus") where nothing was.
 * With three and more tenants the excesses of pairs add up: nobody has published a measurement of triples. Over another
 * table it is one of both, its own rows first; over committed models it rests on at most two tables (LIMIT). Errors:
 * INVALID_ARGUMENT (row, column, expected, found; entries that contradict each other), NOT_FOUND (type),
 * INVALID_STRUCT, LIMIT. Any thread. */
HORUS_API horus_status horus_interference_from_table(const horus_catalogue* catalogue, const horus_pair_table* table,
                                                     const horus_interference* fallback, horus_interference** out,
                                                     horus_error* error);

/* The caller's own model. Fills slowdown[count] and slowdown_upper[count] for the `count` tenants' demands on one
 * device: 1 <= slowdown <= slowdown_upper <= 1e9, else the call that asked ends with CALLBACK; both come in as
 * NaN, and an upper bound left as NaN becomes the slowdown. The callback must be a pure function of its arguments and
 * must not depend on the order of the tenants. It runs on the planning thread and must not throw or jump out; calls
 * from it into the placer or cluster in use answer BUSY. Return 0, or non-zero for failure. */
typedef int32_t (*horus_interference_callback)(void* user, const horus_device* device, size_t count,
                                               const horus_demand* const* demands, float* slowdown,
                                               float* slowdown_upper);

/* A model that asks `callback`. `epoch` must differ between models that answer differently. `catalogue` gives the
 * type names; it may be freed afterwards, but a cluster must use the same types. `user` must outlive the model and
 * every placer made with it. slowdown_upper is not exceeded with `upper_probability`: 0.5 to 0.999, 0 = 0.9; no
 * other probability can be asked of the model. Errors: INVALID_ARGUMENT. */
HORUS_API horus_status horus_interference_from_callback(const horus_catalogue* catalogue,
                                                        horus_interference_callback callback, void* user,
                                                        uint64_t epoch, double upper_probability,
                                                        horus_interference** out, horus_error* error);

/* Which model it is. Since 0.2. */
typedef struct horus_interference_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t epoch;   /* differs between models that answer differently */
  const char* name; /* "horus", "table", "callback", ...; lives as long as the model */
} horus_interference_info;
#define HORUS_INTERFERENCE_INFO_INIT HORUS_INIT(horus_interference_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. Since 0.2. */
HORUS_API horus_status horus_interference_get_info(const horus_interference* model, horus_interference_info* info,
                                                   horus_error* error);

/* A placer keeps what it needs of the model. Accepts NULL. */
HORUS_API void horus_interference_free(horus_interference* model);

/* What a model says of the tenants of a device: columns of a value per tenant; NULL columns are skipped. Since 0.2. */
typedef struct horus_slowdowns {
  uint32_t struct_size;
  uint32_t reserved;
  float* slowdown;       /* expected */
  float* slowdown_upper; /* not exceeded with the probability asked for */
  uint8_t* calibrated;   /* 1 = left-out jobs support so high a probability, 0 = it is extrapolated */
  uint8_t* measured;     /* a value per pair: at i * count + j 1 where the slowdown of tenant i beside tenant j was
                            measured (horus_interference_from_table), and for i = j; 0 where it is predicted */
} horus_slowdowns;
#define HORUS_SLOWDOWNS_INIT HORUS_INIT(horus_slowdowns)

/* Slowdowns of the `count` tenants of `device`. `probability` of the upper bounds: 0.5 to 0.999; 0 = the model's own,
 * 0.9 unless a callback model states another. Other probabilities take ln(slowdown - 0.9) as normal; 0.5 gives the
 * expected slowdown. Errors: NOT_FOUND (type), INVALID_ARGUMENT, INVALID_STRUCT, CALLBACK, UNSUPPORTED (a callback
 * model knows one probability). Any thread. */
HORUS_API horus_status horus_interference_slowdown(const horus_interference* model, const horus_catalogue* catalogue,
                                                   const horus_device* device, size_t count,
                                                   const horus_demand* const* demands, double probability,
                                                   const horus_slowdowns* slowdowns, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_INTERFERENCE_H_ */
