// SPDX-License-Identifier: Apache-2.0
// horus/learn.h, the predictor: saved, and corrected by what was measured.
#include "horus/learn.h"

#include "capi/args.h"
#include "capi/bytes_out.h"
#include "capi/graph_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_predictor_to_bytes(const horus_predictor* predictor, size_t capacity, void* bytes, size_t* count,
                                      horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}}));
    return WriteBytes(predictor->value->bundle(), capacity, bytes, count);
  });
}

horus_status horus_predictor_commit(const horus_predictor* predictor, const horus_observations* observations,
                                    horus_predictor** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}, {observations, "observations"}, {out, "out"}}));
    *out = new horus_predictor(predictor->value->WithMeasured(observations->demands), predictor->cache);
    return absl::OkStatus();
  });
}

uint64_t horus_predictor_epoch(const horus_predictor* predictor) {
  return predictor == nullptr ? 0 : predictor->value->epoch();
}
