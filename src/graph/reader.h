// SPDX-License-Identifier: Apache-2.0
// Reader: ONNX bytes or a file to a Graph, without loading weights.
//
// Enters:  one serialised ModelProto (IR 3 and later, default opset 7 and later).
// Leaves:  an immutable Graph, or an error that names graph, node, field and byte offset.
// Cost:    linear in names, nodes and held elements; payloads are skipped (a file is seeked over), external data is
//          never opened.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "graph/graph.h"

namespace horus {

// ONNX numbers this reader was written for. Older files are refused; newer ones are read by the same rules, and
// operators that changed since are treated as in kNewestOpset.
inline constexpr int64_t kOldestIrVersion = 3;
inline constexpr int64_t kNewestIrVersion = 11;
inline constexpr int64_t kOldestOpset = 7;
inline constexpr int64_t kNewestOpset = 22;

inline constexpr int64_t kMostNesting = 32;  // more is refused whatever the limits: reading recurses

struct ReadLimits {
  int64_t max_nodes = 1'000'000;              // all scopes together
  int64_t max_bytes_held = int64_t{1} << 30;  // approximate heap of the Graph
  int64_t max_nesting = kMostNesting;         // subgraphs inside each other
  int64_t max_name_bytes = 16 * 1024;         // one name, operator type or text attribute
  int64_t max_rank = 64;                      // dimensions of one tensor
  int64_t max_literal_elements = 4096;        // larger tensors keep type and dims only; of floats at most max_rank
};

[[nodiscard]] absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnx(std::span<const uint8_t> bytes,
                                                                    const ReadLimits& limits = {});

// kUnavailable when the file cannot be opened or read.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnxFile(const std::string& path,
                                                                        const ReadLimits& limits = {});

}  // namespace horus
