// SPDX-License-Identifier: Apache-2.0
// ShapedGraph: the operators that one step runs, flattened, with every tensor's type and shape for a batch size.
//
// Enters:  a Graph and the sizes of its named dimensions.
// Leaves:  operators in execution order over one table of tensors; what stayed unknown is counted, never guessed.
// Units:   elements and bytes.
// Cost:    linear in operators; limits in ShapeLimits.
#pragma once

#include <deque>
#include <memory>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace horus {

using TensorId = DenseId<struct TensorTag>;  // position in ShapedGraph::tensors

enum class TensorRole : uint8_t {
  kInput,       // fed at each step
  kParameter,   // initialiser with floating elements that training would update
  kBuffer,      // initialiser that training does not update (running statistics, indices, shape constants)
  kConstant,    // computed from constants alone (plumbing): costs nothing
  kActivation,  // computed at each step
};

struct Tensor {
  std::string name;
  DType dtype = DType::kUndefined;
  TensorRole role = TensorRole::kActivation;
  bool known = false;         // dtype's size and all dims are known
  TensorId alias_of;          // the tensor this one is another form of: shared storage (Identity, Reshape, ...),
                              // or, when role is kParameter, the initialiser it is made from (Transpose,
                              // Cast, ...): count parameters where alias_of is invalid
  std::vector<int64_t> dims;  // valid when known; kUnknownDim marks single unknown dims when not

  [[nodiscard]] int64_t elements() const;  // 0 when not known
  [[nodiscard]] int64_t bytes() const;     // 0 when not known
};

struct Op {
  const Node* node = nullptr;    // operator, attributes; owned by ShapedGraph::graph or ::bound_nodes
  std::vector<TensorId> inputs;  // invalid id = optional input left out
  std::vector<TensorId> outputs;
  int64_t repeat = 1;     // executions per step (Loop and Scan bodies); >= 1
  bool plumbing = false;  // folded away or a view: no kernel, no cost
  bool supported = true;  // its shape rule is known
};

// How much of the graph is understood.
struct ShapeCoverage {
  int64_t ops = 0;                                           // all operators, plumbing included
  int64_t ops_with_known_shapes = 0;                         // all outputs known
  std::vector<std::pair<std::string, int64_t>> unsupported;  // operator ("domain::type") and count, by name
  int64_t loops_of_unknown_length = 0;                       // Loop and Scan nodes whose bodies are counted once
  int64_t sizes_at_most = 0;                                 // sizes that the data decides, taken at their most
  int64_t branches_unknown = 0;  // If nodes whose condition is computed: the larger branch is taken
};

// An input of the graph that is no weight in disguise.
struct ShapedInput {
  ValueId value;  // of the main graph
  TensorId tensor;
};

struct ShapedGraph {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const std::deque<Node>> bound_nodes;  // nodes of functions with the call's attributes filled in
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // execution order
  std::vector<ShapedInput> inputs;
  std::vector<TensorId> outputs;
  int64_t batch = 1;
  ShapeCoverage coverage;
};

struct DimBindings {
  int64_t batch = 0;                                  // > 0: size of the batch dimension; 0 = as the file says, else 1
  std::vector<std::pair<std::string, int64_t>> dims;  // named dimensions ("seq", 512)
  friend bool operator==(const DimBindings&, const DimBindings&) = default;
};

struct ShapeLimits {
  int64_t max_ops = 2'000'000;  // after functions and branches are expanded
  int64_t max_nesting = 32;     // subgraphs and functions inside each other
  int64_t max_tensor_elements = int64_t{1} << 48;
};

// Batch rule: `batch` binds the symbol "batch" (or "batch_size", "N", "n", "bs"); without such a symbol the
// leading dimension of every graph input that shares the first input's leading symbol or fixed size is set
// to it, and constant Reshape targets that carry the old size are scaled.
// Errors: unknown or contradictory binding, sizes < 1, overflow, contradictory shapes (node and operator named).
[[nodiscard]] absl::StatusOr<ShapedGraph> BindShapes(std::shared_ptr<const Graph> graph, const DimBindings& bindings,
                                                     const ShapeLimits& limits = {});

// Names of the dimensions of the graph's inputs, each once, in order of appearance; borrowed from the graph.
[[nodiscard]] std::vector<std::string_view> InputDims(const Graph& graph);

// INVALID_ARGUMENT where an input declares a dimension that neither the file nor the bindings give a size: what follows
// from it would count nothing. Names all open dimensions, and how to give them a size.
[[nodiscard]] absl::Status CheckInputSizes(const ShapedGraph& shaped);

// That of its graph and every bound shape, in whatever words it was bound.
[[nodiscard]] uint64_t FingerprintOf(const ShapedGraph& shaped);

}  // namespace horus
