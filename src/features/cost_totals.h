// SPDX-License-Identifier: Apache-2.0
// Totals of a step over its operators' costs: sums, classes, depth, loss, optimiser and coverage.
//
// Enters:  a StepCost whose `ops`, `storage` and `stored_bytes` are filled.   Leaves: its other fields.
#pragma once

#include "features/cost.h"

namespace horus {

void AddTotals(const ShapedGraph& shaped, const RunSpec& run, StepCost& step);

// Bytes of the optimiser's state for one parameter.
[[nodiscard]] double OptimizerStateBytes(const Tensor& parameter, Optimizer optimizer);

}  // namespace horus
