/* SPDX-License-Identifier: Apache-2.0 */
/* Latency of an inference job: what requests take where it runs slowed down.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_LATENCY_H_
#define HORUS_LAB_LATENCY_H_

#include "horus/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Requests to an inference job: they arrive at random (Poisson) and are served one at a time, first come first served.
 */
typedef struct horus_request_load {
  uint32_t struct_size;
  uint32_t reserved;
  double requests_per_s; /* 0 or more */
  double service_us;     /* mean time of one request, alone on the device, > 0 */
  double slowdown;       /* where the job runs, 1 to 1e9; 0 = 1 */
  double service_cv;     /* standard deviation / mean of that time, 0 (always the same) to 1 */
} horus_request_load;
#define HORUS_REQUEST_LOAD_INIT HORUS_INIT(horus_request_load)

/* Time from arrival to answer. */
typedef struct horus_latency {
  uint32_t struct_size;
  uint32_t reserved;
  double utilisation; /* share of the time in which a request is served; 1 and above = the queue grows without end */
  double mean_us;     /* infinity then */
  double p99_us;      /* 99th percentile; infinity then */
} horus_latency;
#define HORUS_LATENCY_INIT HORUS_INIT(horus_latency)

/* What requests take at that load and slowdown. Errors: INVALID_ARGUMENT (field, expected, found), INVALID_STRUCT. Any
 * thread. */
HORUS_API horus_status horus_latency_predict(const horus_request_load* load, horus_latency* latency,
                                             horus_error* error);

/* The largest slowdown, up to 1e9, at which the 99th percentile is at most `p99_bound_us` (> 0): a slowdown_bound for
 * such a job. load->slowdown is not read. *slowdown becomes 0 where not even 1 is within the bound.
 * Errors: INVALID_ARGUMENT (field, expected, found), INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_latency_largest_slowdown(const horus_request_load* load, double p99_bound_us,
                                                      double* slowdown, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_LATENCY_H_ */
