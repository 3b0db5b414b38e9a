/* SPDX-License-Identifier: Apache-2.0 */
/* horus/interference.h: the latency of requests to a job that shares its device, and the slowdown that it can bear. */
#include <math.h>

#include "fixture.h"

/* Every request takes 1 ms alone, and 500 arrive a second: the device serves half of the time. */
static horus_request_load half_load(void) {
  horus_request_load load = HORUS_REQUEST_LOAD_INIT;
  load.requests_per_s = 500;
  load.service_us = 1000;
  return load;
}

static void LatencyFollowsTheQueueingFormulas(void) {
  horus_request_load load = half_load();
  horus_latency latency = HORUS_LATENCY_INIT;
  load.service_cv = 1; /* M/M/1: the latency is exponential with mean service / (1 - utilisation) */
  CHECK_OK(horus_latency_predict(&load, &latency, &error));
  CHECK(fabs(latency.utilisation - 0.5) < 1e-12 && fabs(latency.mean_us - 2000) < 1e-6);
  CHECK(fabs(latency.p99_us / (2000 * log(100)) - 1) < 1e-6);
  load.service_cv = 0; /* M/D/1: mean wait = utilisation / (2 (1 - utilisation)) services */
  CHECK(horus_latency_predict(&load, &latency, NULL) == HORUS_OK);
  CHECK(fabs(latency.mean_us - 1500) < 1e-6 && latency.p99_us > 1000 && latency.p99_us < 2000 * log(100));
}

static void AnOverloadedQueueGrowsWithoutEnd(void) {
  horus_request_load load = half_load();
  horus_latency latency = HORUS_LATENCY_INIT;
  load.slowdown = 2;
  CHECK_OK(horus_latency_predict(&load, &latency, &error));
  CHECK(latency.utilisation == 1 && isinf(latency.mean_us) && isinf(latency.p99_us));
}

static void TheLargestSlowdownKeepsTheBound(void) {
  horus_request_load load = half_load();
  horus_latency latency = HORUS_LATENCY_INIT;
  const double bound_us = 10000;
  double largest = 0;
  load.slowdown = NAN; /* not read */
  CHECK_OK(horus_latency_largest_slowdown(&load, bound_us, &largest, &error));
  CHECK(largest > 1 && largest < 2);
  load.slowdown = largest;
  CHECK_OK(horus_latency_predict(&load, &latency, &error));
  CHECK(latency.p99_us <= bound_us);
  load.slowdown = largest * 1.001;
  CHECK_OK(horus_latency_predict(&load, &latency, &error));
  CHECK(latency.p99_us > bound_us);
  CHECK(horus_latency_largest_slowdown(&load, 999, &largest, NULL) == HORUS_OK);
  CHECK(largest == 0); /* a request alone takes longer */
}

typedef struct bad_field {
  const char* name;
  size_t offset;
  double value;
} bad_field;

static void WrongLoadsAreRefusedAndLeaveOutputsAlone(void) {
  static const bad_field wrong[] = {
      {"requests_per_s", offsetof(horus_request_load, requests_per_s), -1},
      {"requests_per_s", offsetof(horus_request_load, requests_per_s), NAN},
      {"requests_per_s", offsetof(horus_request_load, requests_per_s), INFINITY},
      {"service_us", offsetof(horus_request_load, service_us), 0},
      {"service_us", offsetof(horus_request_load, service_us), -1000},
      {"service_us", offsetof(horus_request_load, service_us), NAN},
      {"service_cv", offsetof(horus_request_load, service_cv), 1.5},
      {"service_cv", offsetof(horus_request_load, service_cv), -0.1},
      {"service_cv", offsetof(horus_request_load, service_cv), NAN},
      {"slowdown", offsetof(horus_request_load, slowdown), 0.5},
      {"slowdown", offsetof(horus_request_load, slowdown), 2e9},
      {"slowdown", offsetof(horus_request_load, slowdown), NAN},
  };
  horus_latency latency = {sizeof(horus_latency), 0, 7, 7, 7};
  double slowdown = 7;
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    horus_request_load load = half_load();
    memcpy((char*)&load + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, wrong[i].name, horus_latency_predict(&load, &latency, &error));
    CHECK(horus_latency_predict(&load, &latency, NULL) == HORUS_ERR_INVALID_ARGUMENT);
    if (wrong[i].offset == offsetof(horus_request_load, slowdown)) continue;
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, wrong[i].name,
                  horus_latency_largest_slowdown(&load, 5000, &slowdown, &error));
  }
  CHECK(latency.utilisation == 7 && latency.mean_us == 7 && latency.p99_us == 7 && slowdown == 7);
}

static void WrongBoundsAndPointersAreRefused(void) {
  const double wrong[] = {0, -1, NAN, INFINITY};
  horus_request_load load = half_load();
  horus_latency latency = {sizeof(horus_latency), 0, 7, 7, 7};
  double slowdown = 7;
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "p99_bound_us",
                  horus_latency_largest_slowdown(&load, wrong[i], &slowdown, &error));
  }
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_latency_predict(NULL, &latency, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_latency_predict(&load, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_latency_largest_slowdown(NULL, 5000, &slowdown, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown", horus_latency_largest_slowdown(&load, 5000, NULL, &error));
  CHECK(horus_latency_largest_slowdown(NULL, 5000, NULL, NULL) == HORUS_ERR_INVALID_ARGUMENT);
  load.struct_size = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_request_load", horus_latency_predict(&load, &latency, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_request_load",
                horus_latency_largest_slowdown(&load, 5000, &slowdown, &error));
  load = half_load();
  latency.struct_size = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_latency", horus_latency_predict(&load, &latency, &error));
  CHECK(latency.utilisation == 7 && latency.mean_us == 7 && latency.p99_us == 7 && slowdown == 7);
}

int main(void) {
  LatencyFollowsTheQueueingFormulas();
  AnOverloadedQueueGrowsWithoutEnd();
  TheLargestSlowdownKeepsTheBound();
  WrongLoadsAreRefusedAndLeaveOutputsAlone();
  WrongBoundsAndPointersAreRefused();
  return report();
}
