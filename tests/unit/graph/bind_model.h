// SPDX-License-Identifier: Apache-2.0
// Helpers of tests that bind shapes: small models and look-up of their tensors.
//
// Enters:  bytes of a model, bindings.
// Leaves:  a ShapedGraph, the message of its refusal, or one tensor by name.
// Units:   elements.
// Cost:    as BindShapes.                Thread class: one thread.
#ifndef HORUS_TESTS_UNIT_GRAPH_BIND_MODEL_H_
#define HORUS_TESTS_UNIT_GRAPH_BIND_MODEL_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx_writer.h"
#include "graph/reader.h"
#include "graph/shaped.h"

namespace horus {

namespace w = onnx_writer;

inline absl::StatusOr<ShapedGraph> Bind(const w::Bytes& model, const DimBindings& bindings = {},
                                        const ShapeLimits& limits = {}) {
  auto graph = ReadOnnx(w::Span(model));
  if (!graph.ok()) return graph.status();
  return BindShapes(*graph, bindings, limits);
}

inline std::string ErrorOf(const w::Bytes& model, const DimBindings& bindings = {}, const ShapeLimits& limits = {}) {
  return std::string(Bind(model, bindings, limits).status().message());
}

inline const Tensor& Named(const ShapedGraph& graph, std::string_view name) {
  static const Tensor kMissing;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return kMissing;
}

// One node between input x and output y, with integer constants as further inputs.
inline w::GraphParts OneNode(const w::Bytes& node, const std::vector<w::Dim>& x,
                             const std::vector<w::Bytes>& constants = {}) {
  return {.nodes = {node},
          .initialisers = constants,
          .inputs = {w::Value("x", w::kFloat, x)},
          .outputs = {w::UntypedValue("y")}};
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_GRAPH_BIND_MODEL_H_
