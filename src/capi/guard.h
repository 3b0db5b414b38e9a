// SPDX-License-Identifier: Apache-2.0
// Guard: the one place where exceptions end, and the host's settings of floating point. Every fallible exported
// function is one call of it.
//
// Enters:  the caller's horus_error (or null) and a body that returns absl::Status.
// Leaves:  a horus_status; the error filled unless it is OK.
// Units:   none.
// Cost:    none on success.               Thread class: pure functions.
#ifndef HORUS_CAPI_GUARD_H_
#define HORUS_CAPI_GUARD_H_

#include "capi/default_floats.h"
#include "capi/error.h"

namespace horus::capi {

// To be called in a catch block: maps the exception in flight. A thread's forced unwind (pthread_cancel,
// pthread_exit) is no exception of ours and goes on.
horus_status FailOnException(horus_error* error);

template <typename Body>
[[nodiscard]] horus_status Guard(horus_error* error, const Body& body) {
  const DefaultFloats floats;
  try {
    const absl::Status status = body();
    if (status.ok()) return HORUS_OK;
    return Fail(error, CodeOf(status), std::string_view(status.message().data(), status.message().size()));
  } catch (...) {
    return FailOnException(error);
  }
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_GUARD_H_
