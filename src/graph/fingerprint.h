// SPDX-License-Identifier: Apache-2.0
// Fingerprint: 64 bits that name a computation.
//
// Enters:  a linked Graph.
// Leaves:  a hash of operators, wiring, attributes, declared input types, and of the integer constants that steer
//          shapes; names, texts of documentation and weights do not count.
// Units:   none.
// Cost:    linear.                       Thread class: pure function.
#ifndef HORUS_GRAPH_FINGERPRINT_H_
#define HORUS_GRAPH_FINGERPRINT_H_

#include <cstdint>

#include "graph/graph.h"

namespace horus {

[[nodiscard]] uint64_t FingerprintOf(const Graph& graph);

}  // namespace horus

#endif  // HORUS_GRAPH_FINGERPRINT_H_
