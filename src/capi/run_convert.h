// SPDX-License-Identifier: Apache-2.0
// Run specifications and step costs between the C ABI and the features room.
//
// Enters:  horus_run_spec (null = defaults); cost and memory of a step.
// Leaves:  RunSpec; horus_step_cost.
// Units:   as in features/cost.h and memory.h; counts are rounded from the doubles that the room keeps.
// Cost:    a copy.                        Thread class: pure functions.
#ifndef HORUS_CAPI_RUN_CONVERT_H_
#define HORUS_CAPI_RUN_CONVERT_H_

#include "base/status.h"
#include "features/run_spec.h"
#include "horus/graph.h"
#include "predict/predictor.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<RunSpec> RunFromC(const horus_run_spec* given);
[[nodiscard]] horus_step_cost CostToC(const JobProfile& profile);

}  // namespace horus::capi

#endif  // HORUS_CAPI_RUN_CONVERT_H_
