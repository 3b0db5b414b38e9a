// SPDX-License-Identifier: Apache-2.0
// ReplayStep: what is live and what the caching allocator holds while PyTorch runs a step operator by operator.
//
// Enters:  a ShapedGraph, its StepCost and the RunSpec.   Leaves: bytes held all along, bytes live at the peak, bytes
//          reserved from the device.
// Cost:    n log n in operators and steps, about 1 us each.
#pragma once

#include "features/cost.h"
#include "features/run_spec.h"
#include "graph/shaped.h"

namespace horus {

struct ReplayedStep {
  // Held over the whole step.
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double master_weights = 0;
  double buckets = 0;
  double inputs = 0;
  double matmul_workspace = 0;
  // Live besides these when their sum is largest.
  double saved = 0;
  double transient = 0;
  double saved_total = 0;  // kept for backward when forward ends
  double reserved = 0;     // by the allocator, at the end
};

// Training replays two steps: the first makes gradients and the optimiser's state where PyTorch makes them, the second
// runs beside them and the first one's leftovers. The peak is that of the last step.
[[nodiscard]] ReplayedStep ReplayStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run);

}  // namespace horus
