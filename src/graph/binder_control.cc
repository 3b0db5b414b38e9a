// SPDX-License-Identifier: Apache-2.0
// Expands If, Loop and Scan.
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "graph/binder.h"

namespace horus {
namespace {

// Trip counts beyond this mean "until the condition fails".
constexpr int64_t kUnboundedTrips = int64_t{1} << 40;

// Walks of a loop body until the shapes of its carried values settle: as they start, with changed sizes unknown,
// with changed ranks unknown.
constexpr int kMaxWalks = 3;

// Whether an operator multiplies its first two inputs; of [m, k] and [k, n] the root of the product of all sizes is m k
// n.
bool IsProduct(std::string_view op) {
  return op.find("MatMul") != std::string_view::npos || op.find("Conv") != std::string_view::npos ||
         op.find("Gemm") != std::string_view::npos || op == "Einsum" || op == "LSTM" || op == "GRU" || op == "RNN";
}

}  // namespace

absl::StatusOr<BodyId> Binder::BodyOf(const Node& node, std::string_view name) const {
  const Attribute* attribute = node.FindAttribute(name);
  const BodyId* body = attribute == nullptr ? nullptr : std::get_if<BodyId>(&attribute->value);
  if (body == nullptr) return InvalidArgument("attribute %s is missing or no graph", name);
  return *body;
}

std::optional<int64_t> Binder::ScalarOf(TensorId t) const {
  if (!t.valid()) return std::nullopt;
  const Facts& facts = state.facts[t.value()];
  if (facts.elements < 0 || IsFloating(state.tensors[t.value()].dtype)) return std::nullopt;
  const std::vector<int64_t>& ints = state.elements[static_cast<size_t>(facts.elements)].ints;
  if (ints.size() != 1 || ints[0] == kUnknownElement) return std::nullopt;
  return ints[0];
}

// Nodes of each body, those of its subgraphs included.
void Binder::CountNodes() {
  nodes_in_.resize(graph_.bodies.size());
  for (size_t b = graph_.bodies.size(); b-- > 0;) {  // subgraphs come after the body that holds them
    const GraphBody& body = graph_.bodies[b];
    nodes_in_[b] += static_cast<int64_t>(body.nodes.size());
    if (body.parent.valid()) nodes_in_[body.parent.value()] += nodes_in_[b];
  }
}

// What the operators from position `first` on compute, as far as sizes are known: to compare branches by.
double Binder::WorkSince(size_t first) const {
  const auto elements = [this](const std::vector<TensorId>& ids, size_t i) {
    return i < ids.size() && ids[i].valid() ? static_cast<double>(state.tensors[ids[i].value()].elements()) : 0;
  };
  double work = 0;
  for (size_t o = first; o < result.ops.size(); ++o) {
    const Op& op = result.ops[o];
    double each = elements(op.outputs, 0);
    if (IsProduct(op.node->op_type)) each += std::sqrt(elements(op.inputs, 0) * elements(op.inputs, 1) * each);
    work += each * static_cast<double>(op.repeat);
  }
  return work;
}

// The branch of an If that is taken where its condition is not known: the one that computes more; of equals, the one
// with more nodes. A branch that contradicts itself was written for other sizes.
absl::StatusOr<bool> Binder::TakesThen(Frame* frame, BodyId then_body, BodyId else_body) {
  const bool more_nodes = nodes_in_[then_body.value()] >= nodes_in_[else_body.value()];
  constexpr int kMaxTrials = 4;  // inside each other: each doubles the walks
  if (trials_ == kMaxTrials) return more_nodes;
  ++trials_;
  double work[2] = {};
  for (const BodyId body : {then_body, else_body}) {
    HORUS_ASSIGN_OR_RETURN(Frame inner, Enter(frame, body));  // resolves captures, so it comes before the mark
    const Mark mark = MarkNow();
    const absl::Status status = Walk(&inner);
    if (status.code() == absl::StatusCode::kResourceExhausted) return status;
    work[body == then_body ? 0 : 1] = status.ok() ? WorkSince(mark.ops) : -1;
    Forget(mark);
  }
  --trials_;
  return work[0] == work[1] ? more_nodes : work[0] > work[1];
}

absl::Status Binder::ExpandIf(Frame* frame, const Node& node) {
  HORUS_ASSIGN_OR_RETURN(const BodyId then_body, BodyOf(node, "then_branch"));
  HORUS_ASSIGN_OR_RETURN(const BodyId else_body, BodyOf(node, "else_branch"));
  TensorId condition;
  if (!node.inputs.empty()) HORUS_SET_OR_RETURN(condition, Resolve(frame, node.inputs[0]));
  const std::optional<int64_t> known = ScalarOf(condition);
  bool take_then = known.value_or(0) != 0;
  if (!known.has_value()) {
    ++result.coverage.branches_unknown;
    HORUS_ASSIGN_OR_RETURN(take_then, TakesThen(frame, then_body, else_body));
  }
  HORUS_ASSIGN_OR_RETURN(Frame inner, Enter(frame, take_then ? then_body : else_body));
  HORUS_RETURN_IF_ERROR(Walk(&inner));
  if (node.outputs.size() > inner.body->outputs.size())
    return InvalidArgument("%d outputs, the branch has %d", node.outputs.size(), inner.body->outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].valid()) continue;
    HORUS_ASSIGN_OR_RETURN(frame->tensors[node.outputs[i].value()], Resolve(&inner, inner.body->outputs[i]));
  }
  return absl::OkStatus();
}

Binder::Mark Binder::MarkNow() const {
  return Mark{.tensors = state.tensors.size(),
              .ops = result.ops.size(),
              .nodes = bound_nodes_.size(),
              .coverage = result.coverage};
}

void Binder::Forget(const Mark& mark) {
  state.tensors.resize(mark.tensors);
  state.facts.resize(mark.tensors);
  result.ops.resize(mark.ops);
  bound_nodes_.resize(mark.nodes);
  result.coverage = mark.coverage;
}

// A new tensor with the type and dims of `t`, without its elements.
TensorId Binder::CopyOf(TensorId t, const std::string& name) {
  const TensorId copy = NewTensor(name);
  if (!t.valid()) return copy;
  Tensor& mine = state.tensors[copy.value()];
  const Tensor& from = state.tensors[t.value()];
  mine.dtype = from.dtype;
  mine.dims = from.dims;
  work_ += static_cast<int64_t>(from.dims.size()) / kValuesPerWork;  // checked at the next operator
  mine.known = from.known;
  state.facts[copy.value()].ranked = state.facts[t.value()].ranked;
  state.facts[copy.value()].sequence = state.facts[t.value()].sequence;
  return copy;
}

// Forgets of `carried` what one step of the loop changes; true when there was such a thing.
bool Binder::Widen(TensorId carried, TensorId after) {
  if (!after.valid() || !state.facts[carried.value()].ranked) return false;
  Tensor& mine = state.tensors[carried.value()];
  const Tensor& later = state.tensors[after.value()];
  bool changed = false;
  const bool sequence = state.facts[carried.value()].sequence && state.facts[after.value()].ranked;
  if (sequence && !mine.dims.empty() && mine.dims[0] == 0 && !later.dims.empty() && later.dims[0] != 0) {
    mine.dims = later.dims;  // an empty sequence contradicts no tensor
    mine.dims[0] = kUnknownDim;
    changed = true;
  } else if (!state.facts[after.value()].ranked || later.dims.size() != mine.dims.size()) {
    mine.dims.clear();
    state.facts[carried.value()].ranked = false;
    changed = true;
  } else {
    for (size_t i = 0; i < mine.dims.size(); ++i) {
      if (mine.dims[i] == kUnknownDim || mine.dims[i] == later.dims[i]) continue;
      mine.dims[i] = kUnknownDim;
      changed = true;
    }
  }
  if (changed) mine.known = false;
  return changed;
}

// Tensors that a step adds to a sequence; nothing where it is no sequence or a length is unknown.
std::optional<int64_t> Binder::Grown(TensorId before, TensorId after) const {
  if (!before.valid() || !after.valid()) return std::nullopt;
  const auto length = [this](TensorId t) {
    const Facts& facts = state.facts[t.value()];
    const Dims& dims = state.tensors[t.value()].dims;
    return facts.sequence && facts.ranked && !dims.empty() ? dims[0] : kUnknownDim;
  };
  if (length(before) == kUnknownDim || length(after) == kUnknownDim) return std::nullopt;
  return length(after) - length(before);
}

// Operators from position `first` on whose outputs are all known.
int64_t Binder::KnownSince(size_t first) const {
  const auto known = [this](TensorId t) { return !t.valid() || state.tensors[t.value()].known; };
  return std::count_if(result.ops.begin() + static_cast<std::ptrdiff_t>(first), result.ops.end(),
                       [&](const Op& op) { return std::ranges::all_of(op.outputs, known); });
}

// Gives a carried sequence that a step changes the length after all steps. Of one that depends on no earlier step the
// walk found the length already.
absl::Status Binder::SetLength(TensorId sequence, TensorId start, std::optional<int64_t> trips,
                               std::optional<int64_t> grown) {
  Dims dims = state.tensors[sequence.value()].dims;
  if (!state.facts[sequence.value()].ranked || dims.empty() || dims[0] != kUnknownDim) return absl::OkStatus();
  if (!trips.has_value() || !grown.has_value()) return absl::OkStatus();
  const Wide length = static_cast<Wide>(state.tensors[start.value()].dims[0]) + static_cast<Wide>(*trips) * *grown;
  // Beyond the limit no tensor is allowed either; a loop that takes more than there is fails.
  if (length < 0 || length > limits_.max_tensor_elements) return absl::OkStatus();
  dims[0] = static_cast<int64_t>(length);
  return SetDims(&state, sequence, state.tensors[sequence.value()].dtype, std::move(dims));
}

absl::Status Binder::Iterate(Frame* frame, const std::function<absl::Status(Frame*)>& bind_rest, Iteration* it) {
  std::vector<TensorId> carried;
  for (const TensorId start : it->start)
    carried.push_back(CopyOf(start, start.valid() ? std::string(state.tensors[start.value()].name) : ""));
  for (int walk = 1;; ++walk) {
    HORUS_ASSIGN_OR_RETURN(Frame inner, Enter(frame, it->body));  // resolves captures, so it comes before the mark
    const GraphBody& body = *inner.body;
    // Bounded: first_input and first_output are 0 to 2.
    if (body.inputs.size() < it->first_input + carried.size() ||
        body.outputs.size() < it->first_output + carried.size()) {
      return InvalidArgument("the body has %d inputs and %d outputs, too few for %d carried values", body.inputs.size(),
                             body.outputs.size(), carried.size());
    }
    const Mark mark = MarkNow();
    it->first_op = mark.ops;
    HORUS_RETURN_IF_ERROR(bind_rest(&inner));
    for (size_t i = 0; i < carried.size(); ++i) inner.tensors[body.inputs[it->first_input + i].value()] = carried[i];
    HORUS_RETURN_IF_ERROR(Walk(&inner));
    HORUS_ASSIGN_OR_RETURN(it->outputs, ResolveAll(&inner, body.outputs));
    bool changed = false;
    for (size_t i = 0; i < carried.size(); ++i) {
      if (walk == 1) it->grown.push_back(Grown(carried[i], it->outputs[it->first_output + i]));
      changed = Widen(carried[i], it->outputs[it->first_output + i]) || changed;
    }
    if (!changed || walk == kMaxWalks) {
      it->carried = std::move(carried);
      return absl::OkStatus();
    }
    Forget(mark);
  }
}

// Counts the body's operators `trips` times and makes the node's outputs.
absl::Status Binder::CloseLoop(Frame* frame, const Node& node, const Iteration& it, std::optional<int64_t> trips,
                               const std::vector<int64_t>* stack_axes) {
  if (!trips.has_value()) ++result.coverage.loops_of_unknown_length;
  for (size_t o = it.first_op; o < result.ops.size(); ++o) {
    int64_t& repeat = result.ops[o].repeat;
    const std::optional<int64_t> all = CheckedMul(repeat, std::max<int64_t>(trips.value_or(1), 1));
    if (!all.has_value()) return InvalidArgument("the number of executions overflows 64 bits");
    repeat = *all;
  }
  Op op{.node = &node, .plumbing = true};
  op.inputs = it.start;
  const size_t carried = it.start.size();
  // Bounded: first_input and first_output are 0 to 2.
  if (node.outputs.size() + it.first_output > it.outputs.size())
    return InvalidArgument("%d outputs, the body gives %d", node.outputs.size(), it.outputs.size() - it.first_output);
  bool known = true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].valid()) {
      op.outputs.emplace_back();
      continue;
    }
    const TensorId from = it.outputs[it.first_output + i];
    const TensorId made = CopyOf(from, frame->body->values[node.outputs[i].value()].name);
    if (i >= carried && state.facts[made.value()].ranked) {
      Dims dims = state.tensors[made.value()].dims;
      const auto rank = static_cast<int64_t>(dims.size()) + 1;
      int64_t axis = stack_axes != nullptr && i - carried < stack_axes->size() ? (*stack_axes)[i - carried] : 0;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return InvalidArgument("output axis %d is outside rank %d", axis, rank);
      dims.insert(dims.begin() + axis, trips.value_or(kUnknownDim));
      HORUS_RETURN_IF_ERROR(SetDims(&state, made, state.tensors[made.value()].dtype, std::move(dims)));
    } else if (i < carried && state.facts[made.value()].sequence && trips.value_or(0) > 0) {
      // Inside the body too: as long as it is at the end.
      const int64_t known_before = KnownSince(it.first_op);
      for (const TensorId t : {made, from, it.carried[i]})
        HORUS_RETURN_IF_ERROR(SetLength(t, it.start[i], trips, it.grown[i]));
      result.coverage.ops_with_known_shapes += KnownSince(it.first_op) - known_before;
    } else if (i < carried) {
      Widen(made, it.start[i]);  // a loop may run zero times
    }
    frame->tensors[node.outputs[i].value()] = made;
    op.outputs.push_back(made);
    op.inputs.push_back(from);  // what the body makes is constant only if all that it reads is
    Declare(made, frame->body->values[node.outputs[i].value()]);
    known = known && state.tensors[made.value()].known;
  }
  result.coverage.ops += 1;
  result.coverage.ops_with_known_shapes += known ? 1 : 0;
  result.ops.push_back(std::move(op));
  return absl::OkStatus();
}

absl::Status Binder::ExpandLoop(Frame* frame, const Node& node) {
  Iteration it{.first_input = 2, .first_output = 1};
  HORUS_ASSIGN_OR_RETURN(it.body, BodyOf(node, "body"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<TensorId> inputs, ResolveAll(frame, node.inputs));
  if (inputs.size() < 2) return InvalidArgument("%d inputs, expected a trip count and a condition", inputs.size());
  it.start.assign(inputs.begin() + 2, inputs.end());
  const std::optional<int64_t> limit = ScalarOf(inputs[0]);
  const std::optional<int64_t> first_condition = inputs[1].valid() ? ScalarOf(inputs[1]) : 1;
  const auto bind_rest = [&](Frame* inner) -> absl::Status {
    const GraphBody& body = *inner->body;
    const TensorId step = NewTensor(body.values[body.inputs[0].value()].name);
    HORUS_RETURN_IF_ERROR(SetDims(&state, step, DType::kInt64, {}));
    const TensorId condition = NewTensor(body.values[body.inputs[1].value()].name);
    HORUS_RETURN_IF_ERROR(SetDims(&state, condition, DType::kBool, {}));
    if (first_condition == 1) SetElements(&state, condition, Elements{.ints = {1}});
    inner->tensors[body.inputs[0].value()] = step;
    inner->tensors[body.inputs[1].value()] = condition;
    return absl::OkStatus();
  };
  if (graph_.bodies[it.body.value()].inputs.size() < 2) return InvalidArgument("the body has fewer than 2 inputs");
  HORUS_RETURN_IF_ERROR(Iterate(frame, bind_rest, &it));
  // If the condition stays true given that it was true, only the trip count ends the loop.
  const bool counted =
      limit.has_value() && *limit < kUnboundedTrips && first_condition == 1 && ScalarOf(it.outputs[0]) == 1;
  return CloseLoop(frame, node, it, counted ? std::optional<int64_t>(std::max<int64_t>(*limit, 0)) : std::nullopt,
                   nullptr);
}

absl::Status Binder::ExpandScan(Frame* frame, const Node& node) {
  if (state.opset < 9) return Apply(frame, node);  // the batched form of opset 8: known by name only
  Iteration it;
  HORUS_ASSIGN_OR_RETURN(it.body, BodyOf(node, "body"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<TensorId> inputs, ResolveAll(frame, node.inputs));
  const int64_t scanned = node.IntOr("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs.size()))
    return InvalidArgument("attribute num_scan_inputs is %d, expected 1 to %d", scanned, inputs.size());
  const size_t carried = inputs.size() - static_cast<size_t>(scanned);
  it.start.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(carried));
  const std::vector<int64_t>* axes = node.Ints("scan_input_axes");
  std::optional<int64_t> trips;
  const auto bind_rest = [&](Frame* inner) -> absl::Status {
    const GraphBody& body = *inner->body;
    if (body.inputs.size() < inputs.size())
      return InvalidArgument("the body has %d inputs, expected %d", body.inputs.size(), inputs.size());
    for (size_t i = carried; i < inputs.size(); ++i) {
      const ValueId id = body.inputs[i];
      const TensorId slice = CopyOf(inputs[i], body.values[id.value()].name);
      inner->tensors[id.value()] = slice;
      if (!state.facts[slice.value()].ranked) continue;
      Dims dims = state.tensors[slice.value()].dims;
      const auto rank = static_cast<int64_t>(dims.size());
      int64_t axis = axes != nullptr && i - carried < axes->size() ? (*axes)[i - carried] : 0;
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return InvalidArgument("input axis %d is outside rank %d", axis, rank);
      const int64_t length = dims[static_cast<size_t>(axis)];
      if (trips.has_value() && length != kUnknownDim && *trips != length)
        return InvalidArgument("scanned inputs have lengths %d and %d", *trips, length);
      if (length != kUnknownDim) trips = length;
      dims.erase(dims.begin() + axis);
      HORUS_RETURN_IF_ERROR(SetDims(&state, slice, state.tensors[slice.value()].dtype, std::move(dims)));
    }
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(Iterate(frame, bind_rest, &it));
  return CloseLoop(frame, node, it, trips, node.Ints("scan_output_axes"));
}

}  // namespace horus
