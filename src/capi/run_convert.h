// SPDX-License-Identifier: Apache-2.0
// Run specifications of the C ABI as the features room takes them.
//
// Enters:  horus_run_spec (null = defaults).
// Leaves:  RunSpec.
// Units:   none.
// Cost:    a copy.                        Thread class: pure functions.
#ifndef HORUS_CAPI_RUN_CONVERT_H_
#define HORUS_CAPI_RUN_CONVERT_H_

#include "base/status.h"
#include "features/run_spec.h"
#include "horus/graph.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<RunSpec> RunFromC(const horus_run_spec* given);

}  // namespace horus::capi

#endif  // HORUS_CAPI_RUN_CONVERT_H_
