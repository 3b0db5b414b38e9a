// SPDX-License-Identifier: Apache-2.0
// Binder: walks a Graph once, expands functions and subgraphs, and applies a shape rule to every operator.
//
// Enters:  a Graph, sizes of its named dimensions, limits.
// Leaves:  a ShapedGraph without roles (roles.h adds them).
// Cost:    linear in expanded operators; call depth is bounded by ShapeLimits::max_nesting.
#pragma once

#include <functional>

#include "graph/shape_rule.h"

namespace horus {

// Values of an expanded body or of one operator, elements that it reads and dimensions that a loop copies, that weigh
// as much as one operator in the limit on work.
inline constexpr int64_t kValuesPerWork = 16;

class Binder {
 public:
  Binder(std::shared_ptr<const Graph> graph, const DimBindings& bindings, const ShapeLimits& limits);

  [[nodiscard]] absl::Status Run();

  ShapedGraph result;  // tensors are still in `state`
  ShapeState state;

 private:
  // One instance of a body: which tensor each of its values is.
  struct Frame {
    const GraphBody* body = nullptr;
    const Node* call = nullptr;  // node that gives referred attributes their values
    const Function* function = nullptr;
    int64_t depth = 0;
    std::vector<TensorId> tensors;
  };
  struct Mark {  // to forget a body that was walked on trial
    size_t tensors, ops, nodes;
    ShapeCoverage coverage;  // counts; names of operators are listed after the walk
  };
  struct Iteration {  // the body of a Loop or Scan
    BodyId body;
    size_t first_input = 0;                     // position of the first carried value among the body's inputs
    size_t first_output = 0;                    // and among its outputs
    std::vector<TensorId> start;                // carried values before the first step
    std::vector<TensorId> carried;              // the same inside the body
    std::vector<std::optional<int64_t>> grown;  // tensors that one step adds to each carried sequence
    std::vector<TensorId> outputs;              // of the body, after the walk
    size_t first_op = 0;                        // operators of the body begin here
  };

  // binder.cc
  [[nodiscard]] absl::Status BindSymbols();
  [[nodiscard]] absl::Status BindNamed();
  [[nodiscard]] absl::Status BindBatch();
  [[nodiscard]] absl::Status MakeInputs(Frame* frame);
  [[nodiscard]] bool ReadWrittenShapes();

  // binder.cc
  [[nodiscard]] absl::Status Walk(Frame* frame);
  [[nodiscard]] absl::Status Visit(Frame* frame, const Node& node);
  [[nodiscard]] absl::Status Apply(Frame* frame, const Node& node);
  [[nodiscard]] absl::Status Count(int64_t work);
  void ListUnsupported();
  [[nodiscard]] absl::StatusOr<TensorId> Resolve(Frame* frame, ValueId id);
  [[nodiscard]] absl::StatusOr<std::vector<TensorId>> ResolveAll(Frame* frame, std::span<const ValueId> ids);
  [[nodiscard]] absl::StatusOr<Frame> Enter(Frame* outer, BodyId body);
  [[nodiscard]] absl::Status CallFunction(Frame* frame, const Node& node, const Function& function);
  [[nodiscard]] absl::StatusOr<const Node*> WithAttributes(const Frame& frame, const Node& node);
  TensorId NewTensor(const std::string& name);
  void Declare(TensorId t, const Value& value);  // fills in what the file says and no rule found

  // binder_control.cc
  [[nodiscard]] absl::Status ExpandIf(Frame* frame, const Node& node);
  [[nodiscard]] absl::Status ExpandLoop(Frame* frame, const Node& node);
  [[nodiscard]] absl::Status ExpandScan(Frame* frame, const Node& node);
  [[nodiscard]] absl::Status Iterate(Frame* frame, const std::function<absl::Status(Frame*)>& bind_rest, Iteration* it);
  [[nodiscard]] absl::Status CloseLoop(Frame* frame, const Node& node, const Iteration& it,
                                       std::optional<int64_t> trips, const std::vector<int64_t>* stack_axes);
  [[nodiscard]] absl::StatusOr<BodyId> BodyOf(const Node& node, std::string_view attribute) const;
  TensorId CopyOf(TensorId t, const std::string& name);
  bool Widen(TensorId carried, TensorId after);
  [[nodiscard]] std::optional<int64_t> Grown(TensorId before, TensorId after) const;
  [[nodiscard]] int64_t KnownSince(size_t first) const;
  [[nodiscard]] absl::Status SetLength(TensorId sequence, TensorId start, std::optional<int64_t> trips,
                                       std::optional<int64_t> grown);
  void CountNodes();
  [[nodiscard]] double WorkSince(size_t first) const;
  [[nodiscard]] absl::StatusOr<bool> TakesThen(Frame* frame, BodyId then_body, BodyId else_body);
  [[nodiscard]] std::optional<int64_t> ScalarOf(TensorId t) const;
  Mark MarkNow() const;
  void Forget(const Mark& mark);

  const Graph& graph_;
  const DimBindings& bindings_;
  const ShapeLimits limits_;
  RuleTable rules_;
  std::map<std::pair<std::string, std::string>, const Function*> functions_;
  std::vector<int64_t> nodes_in_;      // per body
  std::vector<int64_t> symbol_sizes_;  // kUnknownDim = not bound
  std::vector<bool> weight_inputs_;    // per main input
  std::deque<Node> bound_nodes_;
  int64_t work_ = 0;
  int trials_ = 0;  // branches that are walked on trial, inside each other
  bool fixed_batch_replaced_ = false;
  bool unnamed_leading_is_batch_ = false;
};

}  // namespace horus
