// SPDX-License-Identifier: Apache-2.0
// GraphWriter: builds a Graph operator by operator.
//
// Enters:  values, weights and operators, in the order in which they run.
// Leaves:  an immutable Graph.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace horus {

// As the reader would have it from a file: one body, nodes in the order of the
// calls.
class GraphWriter {
 public:
  GraphWriter() { graph_.bodies.emplace_back(); }

  using Attributes = std::vector<Attribute>;

  // A named dimension; what nobody binds has the size `unless_bound`.
  DeclaredDim Symbol(std::string name, int64_t unless_bound = kUnknownDim) {
    graph_.symbols.push_back(std::move(name));
    graph_.unless_bound.push_back(unless_bound);
    return {.symbol = SymbolId(static_cast<uint32_t>(graph_.symbols.size() - 1))};
  }

  ValueId Input(std::string name, DType dtype, std::vector<DeclaredDim> dims) {
    const ValueId id = Add({.name = std::move(name), .dtype = dtype, .dims = std::move(dims)});
    body().inputs.push_back(id);
    return id;
  }

  ValueId Weight(std::string name, DType dtype, std::vector<int64_t> dims, std::vector<int64_t> ints = {}) {
    Value value{.name = std::move(name), .dtype = dtype, .dims = std::vector<DeclaredDim>()};
    for (const int64_t size : dims) value.dims->push_back({.size = size});
    value.literal = static_cast<int32_t>(body().literals.size());
    const bool has_data = !ints.empty();
    body().literals.push_back({.dtype = dtype, .dims = std::move(dims), .ints = std::move(ints), .has_data = has_data});
    return Add(std::move(value));
  }

  // The first of `outputs` values that the operator makes; the others follow it.
  ValueId Op(std::string_view domain, std::string_view type, std::string name, std::vector<ValueId> inputs,
             Attributes attributes = {}, uint32_t outputs = 1) {
    Node node{.name = std::move(name), .domain = std::string(domain), .op_type = std::string(type)};
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (uint32_t i = 0; i < outputs; ++i)
      node.outputs.push_back(Add({.name = node.name + "/" + node.op_type + "_" + std::to_string(i)}));
    body().nodes.push_back(std::move(node));
    return body().nodes.back().outputs.front();
  }

  void Output(ValueId id) { body().outputs.push_back(id); }
  void Say(std::string key, std::string value) { graph_.metadata.emplace_back(std::move(key), std::move(value)); }

  std::shared_ptr<const Graph> Finish(std::string name) && {
    constexpr int64_t kIr = 11, kOpset = 22;
    graph_.ir_version = kIr;
    graph_.opset = kOpset;
    graph_.producer = "horus";
    graph_.name = std::move(name);
    graph_.bytes_held = static_cast<int64_t>(sizeof(Graph));
    for (const Value& value : body().values)
      graph_.bytes_held += static_cast<int64_t>(sizeof(Value) + sizeof(Literal) + value.name.capacity());
    for (const Node& node : body().nodes) {
      graph_.bytes_held += static_cast<int64_t>(sizeof(Node) + node.attributes.size() * sizeof(Attribute) +
                                                node.inputs.size() * sizeof(ValueId) + node.name.capacity());
    }
    graph_.fingerprint = FingerprintOf(graph_);
    return std::make_shared<const Graph>(std::move(graph_));
  }

 private:
  GraphBody& body() { return graph_.bodies.front(); }
  ValueId Add(Value value) {
    body().values.push_back(std::move(value));
    return ValueId(static_cast<uint32_t>(body().values.size() - 1));
  }

  Graph graph_;
};

}  // namespace horus
