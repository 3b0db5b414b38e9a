// SPDX-License-Identifier: Apache-2.0
// What the tests of language models' graphs ask of a config.json: the graph with its sizes bound, and its parameters.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "graph/bind_model.h"
#include "graph/from_config.h"

namespace horus {

inline ShapedGraph Bound(std::string_view text, const ConfigOptions& options = {}, int64_t seq = 1, int64_t past = 0) {
  const auto graph = GraphFromConfig(text, options);
  if (!graph.ok()) {
    ADD_FAILURE() << text << ": " << graph.status();
    return {};
  }
  DimBindings dims{.batch = 1, .dims = {{"seq", seq}}};
  if (past > 0) dims.dims.emplace_back("past", past);
  auto shaped = BindShapes(*graph, dims);
  EXPECT_TRUE(shaped.ok()) << text << ": " << shaped.status();
  return shaped.ok() ? *std::move(shaped) : ShapedGraph();
}

inline int64_t Parameters(const ShapedGraph& graph) {
  int64_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == TensorRole::kParameter && !tensor.alias_of.valid()) count += tensor.elements();
  }
  return count;
}

}  // namespace horus
