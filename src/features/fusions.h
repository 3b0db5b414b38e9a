// SPDX-License-Identifier: Apache-2.0
// Fusions: groups of operators that an exporter wrote for what is one kernel when the job runs.
//
// Enters:  a ShapedGraph and its run.   Leaves: per operator, whether it is absorbed, or stands for a group.
#pragma once

#include <string_view>
#include <vector>

#include "features/run_spec.h"
#include "graph/shaped.h"

namespace horus {

struct Fusion {
  bool absorbed = false;             // no kernel of its own; its output is never materialised
  std::string_view stands_for;       // the rule that the last operator of a group, or a view, costs by ("Gelu")
  TensorId source;                   // its storage stands for all that lies between; valid in every operator of a group
  std::vector<TensorId> reads = {};  // by the operator that stands for the group; empty of a view
};
// What attention costs by where its operators are one kernel.
inline constexpr std::string_view kFusedAttentionRule = "horus::FusedAttention";
// And a Transpose that is a view, of whose result the parts are read: their gradients are joined, and then turned back.
inline constexpr std::string_view kTurnedBackRule = "horus::TurnedBack";

// Finds x * sigmoid(x), x * hard-sigmoid(x), Mish, the erf form of GELU and layer normalisation, in any order of
// operands, and padding before average pooling, where nobody else reads what lies between. Under PyTorch 2 attention
// too: two products of activations around a softmax, masks and casts between them. Not where scores are scaled after
// their product: models that call the fused kernel scale queries or leave it to the kernel, and export accordingly.
// Transposes and x[i] that PyTorch does not copy cost by the rule of a view. One entry an operator.
[[nodiscard]] std::vector<Fusion> FindFusions(const ShapedGraph& shaped, const RunSpec& run);

}  // namespace horus
