// SPDX-License-Identifier: Apache-2.0
// Builds ShapedGraph values by hand, so that costs are tested without the reader and the shape rules.
//
// Enters:  tensors with role and dims, operators over them.   Leaves: a ShapedGraph.
// Units:   elements.                     Cost: none to speak of.
// Thread class: one thread at a time.
#ifndef HORUS_TESTS_UNIT_FEATURES_GRAPH_BUILDER_H_
#define HORUS_TESTS_UNIT_FEATURES_GRAPH_BUILDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/shaped.h"

namespace horus {

class GraphBuilder {
 public:
  using Dims = std::vector<int64_t>;

  TensorId Input(Dims dims, DType dtype = DType::kFloat32) {
    const TensorId id = Add(TensorRole::kInput, std::move(dims), dtype);
    shaped_.inputs.push_back({{}, id});
    return id;
  }
  TensorId Parameter(Dims dims, DType dtype = DType::kFloat32) {
    return Add(TensorRole::kParameter, std::move(dims), dtype);
  }
  TensorId Buffer(Dims dims, DType dtype = DType::kFloat32) { return Add(TensorRole::kBuffer, std::move(dims), dtype); }
  TensorId Unknown() {
    const TensorId id = Add(TensorRole::kActivation, {kUnknownDim}, DType::kFloat32);
    shaped_.tensors[id.value()].known = false;
    return id;
  }
  TensorId Activation(Dims dims, DType dtype = DType::kFloat32) {
    return Add(TensorRole::kActivation, std::move(dims), dtype);
  }

  // One operator; op_type may be "domain::type".
  void Op(const std::string& op_type, std::vector<TensorId> inputs, std::vector<TensorId> outputs,
          std::vector<Attribute> attributes = {}) {
    auto node = std::make_unique<Node>();
    const size_t colon = op_type.find("::");
    node->op_type = colon == std::string::npos ? op_type : op_type.substr(colon + 2);
    node->domain = colon == std::string::npos ? "" : op_type.substr(0, colon);
    node->attributes = std::move(attributes);
    horus::Op op;
    op.node = node.get();
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    nodes_.push_back(std::move(node));
    shaped_.ops.push_back(std::move(op));
  }
  // The same with one new activation as output.
  TensorId Make(const std::string& op_type, std::vector<TensorId> inputs, Dims dims,
                std::vector<Attribute> attributes = {}) {
    const TensorId out = Activation(std::move(dims));
    Op(op_type, std::move(inputs), {out}, std::move(attributes));
    return out;
  }

  void Name(const std::string& last_node) { nodes_.back()->name = last_node; }
  horus::Op& last_op() { return shaped_.ops.back(); }
  Tensor& tensor(TensorId id) { return shaped_.tensors[id.value()]; }
  void Output(TensorId id) { shaped_.outputs.push_back(id); }
  ShapedGraph& shaped() { return shaped_; }

 private:
  TensorId Add(TensorRole role, Dims dims, DType dtype) {
    Tensor tensor;
    tensor.name = "t" + std::to_string(shaped_.tensors.size());
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.known = true;
    tensor.dims = std::move(dims);
    shaped_.tensors.push_back(std::move(tensor));
    return TensorId(static_cast<uint32_t>(shaped_.tensors.size() - 1));
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  ShapedGraph shaped_;
};

inline Attribute IntAttribute(std::string name, int64_t value) { return {.name = std::move(name), .value = value}; }
inline Attribute TextAttribute(std::string name, std::string value) {
  return {.name = std::move(name), .value = std::move(value)};
}

// A perceptron: input [batch, width], `layers` weights [width, width], Relu after each.
inline void BuildPerceptron(GraphBuilder& b, int64_t batch, int64_t width, int layers) {
  TensorId x = b.Input({batch, width});
  for (int i = 0; i < layers; ++i) {
    const TensorId w = b.Parameter({width, width});
    x = b.Make("Relu", {b.Make("MatMul", {x, w}, {batch, width})}, {batch, width});
  }
  b.Output(x);
  b.shaped().batch = batch;
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_FEATURES_GRAPH_BUILDER_H_
