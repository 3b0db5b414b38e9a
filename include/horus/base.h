/* SPDX-License-Identifier: Apache-2.0 */
/* Status, errors and versions: the rules that every other header of the C ABI relies on.
 * Since 0.1 where nothing else is said.
 *
 * Conventions of the whole interface
 * - Every function that can fail returns a horus_status; its last argument is a horus_error* owned by
 *   the caller, or NULL. On failure nothing happened: outputs are untouched (except the count that
 *   comes with HORUS_ERR_BUFFER_TOO_SMALL), nothing must be freed, no state changed.
 * - Structs start with struct_size and have an INIT macro. Zero means "default" unless the field says
 *   otherwise. Fields of a newer header that this library does not know must be zero; outputs are written
 *   only up to the struct_size given. Fields named reserved, reserved0, ... must be zero.
 * - Tables cross as columns: arrays of one length. A NULL input column means the default for every row,
 *   a NULL output column is not written. Where a call has a single column, it is required.
 * - A call that fills a buffer or columns takes their capacity and tells the count. Capacity 0 asks for the count
 *   alone: the answer is OK and nothing else is written. Any other capacity that is too small is
 *   BUFFER_TOO_SMALL, with the count needed.
 * - Text is UTF-8, ended by NUL. A const char* that a function returns is borrowed from the handle named.
 * - Handles are opaque. Each says which threads may use it: immutable (share freely), one thread at a
 *   time, or internally synchronised. Where a function says nothing else, it
 *   has the class of its first handle. One that makes a handle may run on any thread. Nobody may use a handle
 *   while _free runs on it; _free accepts NULL.
 * - The library keeps no globals, starts no threads, reads no environment and prints nothing (docs/embed.md: what
 *   XGBoost and Clp bring with them). Only horus_sim_result_decision_times depends on a clock.
 * - Numbers are computed in the default floating-point environment; the thread's own is put back.
 * - A header says since which release its declarations exist. A later declaration says "Since X.Y." in its own
 *   comment; one that will go says "Deprecated since X.Y until Z.W: " and what to use instead (docs/promises.md).
 */
#ifndef HORUS_BASE_H_
#define HORUS_BASE_H_

#include <stddef.h>
#include <stdint.h>

#include "horus/version.h"

/* What every INIT macro is: all zero but struct_size. A function in C++, because -Wmissing-field-initializers warns of
 * {.struct_size = sizeof(type)} there, and of {sizeof(type)} in both languages. */
/* clang-format off */
#ifdef __cplusplus
extern "C++" {
template <typename Struct>
#if __cplusplus >= 201402L
constexpr
#endif
Struct horus_init() {
  Struct value = Struct();
  value.struct_size = sizeof(Struct);
  return value;
}
}
#define HORUS_INIT(type) horus_init<type>()
#else
#define HORUS_INIT(type) {.struct_size = sizeof(type)}
#endif
/* clang-format on */

#if defined(__GNUC__) || defined(__clang__)
#define HORUS_API __attribute__((visibility("default")))
#else
#define HORUS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t horus_status;

#define HORUS_OK 0
#define HORUS_ERR_INVALID_ARGUMENT 1 /* an argument or field is wrong; the message names it, expected and found */
#define HORUS_ERR_INVALID_STRUCT 2   /* struct_size too small, or a field that this library does not know is set */
#define HORUS_ERR_BUFFER_TOO_SMALL 3 /* a capacity above 0 is below the count, which was written */
#define HORUS_ERR_NOT_FOUND 4        /* no such id, name or index */
#define HORUS_ERR_EXISTS 5           /* the id is in use; for apply: the job is placed already */
#define HORUS_ERR_CONFLICT 6         /* a node changed since the plan was made; plan again */
#define HORUS_ERR_BUSY 7             /* a callback, or another thread, called into a handle in use */
#define HORUS_ERR_CALLBACK 8         /* a callback failed or returned a value out of its range */
#define HORUS_ERR_CANCELLED 9        /* the progress callback asked to stop */
#define HORUS_ERR_LIMIT 10           /* a documented limit was exceeded; the message names it */
#define HORUS_ERR_CORRUPT 11         /* bytes are damaged or not of the format expected */
#define HORUS_ERR_VERSION 12         /* bytes or ABI of a version that this library does not read; both are named */
#define HORUS_ERR_STATE 13           /* not possible in the present state */
#define HORUS_ERR_UNSUPPORTED 14     /* not part of this build */
#define HORUS_ERR_IO 15              /* a file cannot be opened, read or written */
#define HORUS_ERR_NO_MEMORY 16       /* an allocation failed */
#define HORUS_ERR_INTERNAL 17        /* a bug of libhorus */

/* What went wrong, filled on failure. Lives where the caller puts it. Start from HORUS_ERROR_INIT: one whose
 * struct_size is 0, as of {0}, is left as it is. */
typedef struct horus_error {
  uint32_t struct_size;
  horus_status status;
  char message[1016]; /* one line, cut to fit, always ended by NUL */
} horus_error;
#define HORUS_ERROR_INIT HORUS_INIT(horus_error)

/* The constant's name without its prefix, e.g. "CONFLICT"; "UNKNOWN" for other numbers. Static text.
 * Any thread. */
HORUS_API const char* horus_status_name(horus_status status);

/* The library at run time: its release, and what it knows by name. Static text; lists end with NULL. Since 0.2. */
typedef struct horus_library_info {
  uint32_t struct_size;
  uint32_t abi_number;             /* its HORUS_ABI_NUMBER */
  const char* version;             /* e.g. "0.2.0" */
  const char* const* policies;     /* for horus_placer_options.policy, "horus" first; libhorus_lab has more */
  const char* const* disciplines;  /* for horus_queue_create, "fifo" first */
  const char* const* interference; /* for horus_interference_create, "horus" first; libhorus_lab has more */
  const char* const* models;       /* language models for horus_graph_from_config; none without ONNX */
} horus_library_info;
#define HORUS_LIBRARY_INFO_INIT HORUS_INIT(horus_library_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. Since 0.2. */
HORUS_API horus_status horus_library_get_info(horus_library_info* info, horus_error* error);

/* OK if a program compiled against `header_abi` (pass HORUS_ABI_NUMBER) may call this library.
 * Errors: VERSION. Any thread. */
HORUS_API horus_status horus_abi_check(uint32_t header_abi, horus_error* error);

/* Called with the share of the work done, 0 to 1, on the calling thread: whenever the share grows notably, and about
 * once a millisecond in calls that plan or simulate. A non-zero answer cancels the call, which then changes nothing. */
typedef int32_t (*horus_progress)(void* user, double done);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_BASE_H_ */
