// SPDX-License-Identifier: Apache-2.0
// Fusions: groups of operators that an exporter wrote for what is one kernel when the job runs.
//
// Enters:  a ShapedGraph.                Leaves: per operator, whether it is absorbed, or stands for a group.
// Units:   none.
// Cost:    linear in operators.          Thread class: pure function.
#ifndef HORUS_FEATURES_FUSIONS_H_
#define HORUS_FEATURES_FUSIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/shaped.h"

namespace horus {

struct Fusion {
  bool absorbed = false;        // no kernel of its own; its output is never materialised
  std::string_view stands_for;  // the rule that the last operator of a group costs by ("Gelu"), else empty
  TensorId source;              // what the group reads; valid when absorbed or standing for a group
};

// Finds x * sigmoid(x), x * hard-sigmoid(x) and the erf form of GELU, in any order of operands, and padding before
// average pooling, where nobody else reads what lies between. One entry an operator.
[[nodiscard]] std::vector<Fusion> FindFusions(const ShapedGraph& shaped);

}  // namespace horus

#endif  // HORUS_FEATURES_FUSIONS_H_
