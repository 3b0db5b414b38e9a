// SPDX-License-Identifier: Apache-2.0
// Quantised operators as those on floats that they stand for, so that no other rule needs to know them.
//
// Enters:  a node of onnxruntime's quantiser.
// Leaves:  the node that it stands for, without scales and zero points.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace horus {

// Nothing where the node is not of this kind.
[[nodiscard]] std::optional<Node> Unquantised(const Node& node);

}  // namespace horus
