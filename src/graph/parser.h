// SPDX-License-Identifier: Apache-2.0
// ParseModel: walks an ONNX file once, without loading weights.
//
// Enters:  a WireReader at the start of a ModelProto.
// Leaves:  scopes with raw order, functions and the header fields of a Graph.
// Units:   bytes, counts.
// Cost:    linear; call depth is bounded by ReadLimits::max_nesting.     Thread class: one thread at a time.
#pragma once

#include "base/status.h"
#include "graph/graph.h"
#include "graph/reader.h"
#include "graph/scope.h"
#include "graph/wire.h"

namespace horus {

struct ParsedModel {
  Graph graph;  // without bodies
  Scopes scopes;
};
[[nodiscard]] absl::StatusOr<ParsedModel> ParseModel(WireReader* in, const ReadLimits& limits);

}  // namespace horus
