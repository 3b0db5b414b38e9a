/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: counters, as columns or as text for Prometheus, and a log through a callback. Nothing is counted until a
 * horus_metrics is made and set on a handle.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_METRICS_H_
#define HORUS_METRICS_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/place.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HORUS_LOG_ERROR 1   /* INTERNAL and NO_MEMORY */
#define HORUS_LOG_WARNING 2 /* other failures of a call */
#define HORUS_LOG_INFO 3    /* everyday answers: CONFLICT, CANCELLED, BUFFER_TOO_SMALL */
#define HORUS_LOG_DEBUG 4   /* calls that succeeded, and each decision */

/* `text` is one line such as "apply: CONFLICT: node 5: ...", valid during the call. Runs on the thread of the
 * call that it reports, after the call's work and without a lock: it may call any function. It must not throw. */
typedef void (*horus_log)(void* user, int32_t level, const char* text);

/* Nanoseconds since any beginning, never falling. The library has no clock of its own. */
typedef uint64_t (*horus_clock)(void* user);

typedef struct horus_metrics_options {
  uint32_t struct_size;
  int32_t log_level; /* the most detailed HORUS_LOG_* to report; 0 = HORUS_LOG_WARNING */
  horus_log log;     /* NULL = no log */
  void* log_user;
  horus_clock clock; /* NULL = no times */
  void* clock_user;
} horus_metrics_options;
#define HORUS_METRICS_OPTIONS_INIT HORUS_INIT(horus_metrics_options)

/* Counts what its handles do, together. Internally synchronised. */
typedef struct horus_metrics horus_metrics;

/* `options` may be NULL: counters alone. Errors: INVALID_ARGUMENT (log_level), INVALID_STRUCT. */
HORUS_API horus_status horus_metrics_create(const horus_metrics_options* options, horus_metrics** out,
                                            horus_error* error);
/* Accepts NULL. Its handles go on without metrics. The callbacks and their user data must live until each handle was
 * freed or got other metrics. */
HORUS_API void horus_metrics_free(horus_metrics* metrics);

/* Sets the metrics of a handle; NULL = none. To be called before other threads use the handle. Errors: BUSY (cluster
 * and placer: from a callback of a call on the handle). */
HORUS_API horus_status horus_cluster_set_metrics(horus_cluster* cluster, const horus_metrics* metrics,
                                                 horus_error* error);
HORUS_API horus_status horus_placer_set_metrics(horus_placer* placer, const horus_metrics* metrics, horus_error* error);
HORUS_API horus_status horus_predictor_set_metrics(horus_predictor* predictor, const horus_metrics* metrics,
                                                   horus_error* error);

#define HORUS_METRIC_COUNTER 0   /* only grows */
#define HORUS_METRIC_GAUGE 1     /* as it is now */
#define HORUS_METRIC_HISTOGRAM 2 /* rows _bucket, which count all up to label le, _sum and _count */

/* Columns, one row a metric; docs/embed.md lists them. Text is borrowed from the metrics. */
typedef struct horus_metric_columns {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;     /* rows of each column */
  const char** names;  /* "horus_calls_total" */
  const char** labels; /* call="apply",status="OK"; "" without */
  int32_t* kinds;      /* HORUS_METRIC_* */
  double* values;      /* counts, bytes, seconds */
} horus_metric_columns;
#define HORUS_METRIC_COLUMNS_INIT HORUS_INIT(horus_metric_columns)

/* Everything that was counted so far. Rows with labels appear with their first count, so their number may grow from one
 * call to the next. Errors: BUFFER_TOO_SMALL, INVALID_STRUCT, INVALID_ARGUMENT. Any
 * thread. */
HORUS_API horus_status horus_metrics_get(const horus_metrics* metrics, const horus_metric_columns* columns,
                                         size_t* count, horus_error* error);
/* The same as Prometheus text (exposition format 0.0.4), ended by NUL; `capacity` and *count are bytes, the NUL
 * included. Errors and threads as horus_metrics_get. */
HORUS_API horus_status horus_metrics_text(const horus_metrics* metrics, size_t capacity, char* text, size_t* count,
                                          horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_METRICS_H_ */
