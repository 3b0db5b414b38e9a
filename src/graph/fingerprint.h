// SPDX-License-Identifier: Apache-2.0
// Fingerprint: 64 bits that name a computation.
//
// Enters:  a linked Graph, or one with shapes.
// Leaves:  a hash of what is computed; names of values, texts of documentation and weights do not count.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "graph/shaped.h"

namespace horus {

// Operators, wiring, attributes, declared input types with the names of their dimensions, and the constants that steer
// shapes: integers, and the floats that are scales, limits or depths.
[[nodiscard]] uint64_t FingerprintOf(const Graph& graph);

// That and every bound shape, in whatever words it was bound.
[[nodiscard]] uint64_t FingerprintOf(const ShapedGraph& shaped);

}  // namespace horus
