// SPDX-License-Identifier: Apache-2.0
// horus/lab/latency.h: the latency of requests to a job that runs slowed down, and the slowdown that it can bear.
#include "horus/lab/latency.h"

#include "capi/args.h"
#include "capi/error.h"
#include "capi/structs.h"
#include "interference/laws.h"

namespace horus::capi {
namespace {

absl::StatusOr<RequestLoad> LoadFromC(const horus_request_load* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_request_load c, ReadStruct(given));
  RequestLoad load{.requests_per_s = c.requests_per_s, .service_us = c.service_us, .service_cv = c.service_cv};
  if (c.slowdown != 0) load.slowdown = c.slowdown;
  return load;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_latency_predict(const horus_request_load* load, horus_latency* latency, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(CheckOutput(latency));
    HORUS_ASSIGN_OR_RETURN(const horus::RequestLoad given, LoadFromC(load));
    HORUS_ASSIGN_OR_RETURN(const horus::Latency found, horus::PredictLatency(given));
    horus_latency c = HORUS_LATENCY_INIT;
    c.utilisation = found.utilisation;
    c.mean_us = found.mean_us;
    c.p99_us = found.p99_us;
    WriteStruct(c, latency);
    return absl::OkStatus();
  });
}

horus_status horus_latency_largest_slowdown(const horus_request_load* load, double p99_bound_us, double* slowdown,
                                            horus_error* error) {
  return Guard(error, {{slowdown, "slowdown"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::RequestLoad given, LoadFromC(load));
    HORUS_ASSIGN_OR_RETURN(*slowdown, horus::LargestSlowdown(given, p99_bound_us));
    return absl::OkStatus();
  });
}
