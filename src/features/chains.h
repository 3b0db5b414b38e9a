// SPDX-License-Identifier: Apache-2.0
// Chains: what a compiler (torch.compile) saves by running pointwise operators, normalisations and reductions that
// follow each other as one kernel.
//
// Enters:  a ShapedGraph, and the costs of its operators one by one.
// Leaves:  the same costs without what lies between fused operators: neither written nor read, nor a kernel of its own.
#pragma once

#include "features/cost.h"
#include "graph/shaped.h"

namespace horus {

// Totals are not touched: sum them up afterwards.
void FuseChains(const ShapedGraph& shaped, StepCost& step);

}  // namespace horus
