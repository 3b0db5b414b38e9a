// SPDX-License-Identifier: Apache-2.0
// Walks bodies and functions, applying shape rules.
#include "graph/binder.h"

#include <initializer_list>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "graph/roles.h"
#include "graph/scope.h"

namespace horus {
namespace {

// Bytes of names and attributes copied, and names compared, at each call of a function that weigh as much as one
// operator in the same limit.
constexpr int64_t kBytesPerWork = 256;

// Tensors that an operator may have on average: its own and a weight. Loops and calls make some without operators.
constexpr int64_t kTensorsPerOperator = 2;

int64_t BytesOf(const Attribute& attribute) {
  size_t bytes = sizeof(Attribute) + attribute.name.size() + attribute.ref.size();
  if (const auto* text = std::get_if<std::string>(&attribute.value)) bytes += text->size();
  if (const auto* tensor = std::get_if<Literal>(&attribute.value))
    bytes += (tensor->dims.size() + tensor->ints.size()) * sizeof(int64_t) + tensor->floats.size() * sizeof(float);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value)) bytes += list->size() * sizeof(int64_t);
  if (const auto* list = std::get_if<std::vector<float>>(&attribute.value)) bytes += list->size() * sizeof(float);
  if (const auto* list = std::get_if<std::vector<BodyId>>(&attribute.value)) bytes += list->size() * sizeof(BodyId);
  if (const auto* list = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& text : *list) bytes += sizeof(std::string) + text.size();
  }
  return static_cast<int64_t>(bytes);
}

// ---- Operators that onnxruntime's tools write, as those that they stand for, so that no rule needs to know them.

struct Stand {
  std::string_view op_type;
  std::string_view becomes;
  std::string_view domain;
  std::initializer_list<size_t> inputs;
};

// Of the default domain or com.microsoft alike: onnxruntime has had some of them in both.
const Stand kStands[] = {
    {"BiasAdd", "Sum", "", {0, 1, 2}},
    {"BiasSoftmax", "Softmax", "", {0}},
    {"CausalConvWithState", "CausalConvWithState", "", {0, 1, 2, 3}},
    {"ComplexMul", "Mul", "", {0, 1}},
    {"GroupNorm", "GroupNormalization", "", {0, 1, 2}},
    {"LinearAttention", "LinearAttention", "", {0, 1, 2, 3, 4, 5}},
    {"QAttention", "Attention", kMicrosoftDomain, {0, 1, 2, 5, 8}},
    {"QGemm", "Gemm", "", {0, 3, 6}},
    {"QLinearAdd", "Add", "", {0, 3}},
    {"QLinearAveragePool", "AveragePool", "", {0}},
    {"QLinearConcat", "Concat", "", {}},  // any number, from the third on: each with scale and zero point
    {"QLinearConv", "Conv", "", {0, 3, 8}},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", "", {0}},
    {"QLinearLeakyRelu", "LeakyRelu", "", {0}},
    {"QLinearMatMul", "MatMul", "", {0, 3}},
    {"QLinearMul", "Mul", "", {0, 3}},
    {"QLinearReduceMean", "ReduceMean", "", {0}},
    {"QLinearSigmoid", "Sigmoid", "", {0}},
    {"QLinearSoftmax", "Softmax", "", {0}},
    {"QLinearWhere", "Where", "", {0, 1, 4}},
};

// The operator without what only it has, scales and zero points for most; nothing where the node is not of this kind.
std::optional<Node> Unquantised(const Node& node) {
  const auto* stand = std::ranges::find(kStands, node.op_type, &Stand::op_type);
  if (stand == std::end(kStands) || (!node.domain.empty() && node.domain != kMicrosoftDomain)) return std::nullopt;
  Node plain = node;
  plain.op_type = stand->becomes;
  plain.domain = stand->domain;
  plain.inputs.clear();
  for (const size_t i : stand->inputs) plain.inputs.push_back(i < node.inputs.size() ? node.inputs[i] : ValueId());
  for (size_t i = 2; stand->becomes == "Concat" && i < node.inputs.size(); i += 3)
    plain.inputs.push_back(node.inputs[i]);
  return plain;
}

// Names that exporters give the batch dimension, most telling first.
constexpr std::string_view kBatchNames[] = {"batch", "batch_size", "N", "n", "bs"};

}  // namespace

Binder::Binder(std::shared_ptr<const Graph> graph, const DimBindings& bindings, const ShapeLimits& limits)
    : graph_(*graph), bindings_(bindings), limits_(limits) {
  result.graph = std::move(graph);
  state.opset = graph_.opset;
  state.max_tensor_elements = limits.max_tensor_elements;
  for (const Function& function : graph_.functions)
    functions_.emplace(std::pair(function.domain, function.name), &function);
}

absl::Status Binder::Run() {
  CountNodes();
  HORUS_RETURN_IF_ERROR(BindSymbols());
  const GraphBody& main = graph_.main();
  Frame frame{.body = &main};
  frame.tensors.assign(main.values.size(), TensorId());
  state.tensors.reserve(main.values.size());
  state.facts.reserve(main.values.size());
  result.ops.reserve(main.nodes.size());
  HORUS_RETURN_IF_ERROR(MakeInputs(&frame));
  const bool replaced = fixed_batch_replaced_ && ReadWrittenShapes();
  if (absl::Status status = Walk(&frame); !status.ok()) {
    if (!replaced) return status;
    return MakeError(status.code(),
                     "%s; the file's batch of %d is written into its shapes and constants: export the graph with an "
                     "open batch (dynamic axes), or ask for that batch",
                     status.message(), state.old_batch);
  }
  HORUS_ASSIGN_OR_RETURN(result.outputs, ResolveAll(&frame, main.outputs));
  ListUnsupported();
  result.bound_nodes = std::make_shared<const std::deque<Node>>(std::move(bound_nodes_));
  return absl::OkStatus();
}

// What every reshape does at the batch of the file: that tells where the batch goes in a target that is a constant.
// False where the graph is wrong at that batch too.
bool Binder::ReadWrittenShapes() {
  DimBindings bindings = bindings_;
  bindings.batch = 0;
  Binder file(result.graph, bindings, limits_);
  if (!file.Run().ok()) return false;
  for (size_t i = 0; i < file.result.ops.size(); ++i) {
    const Op& op = file.result.ops[i];
    if (op.node->op_type != "Reshape" || op.inputs.empty() || !op.inputs[0].valid() || !op.outputs[0].valid()) continue;
    const Tensor& from = file.state.tensors[op.inputs[0].value()];
    const Tensor& to = file.state.tensors[op.outputs[0].value()];
    if (from.known && to.known) state.written_reshapes.emplace(i, ShapeState::Reshaped{from.dims, to.dims});
  }
  return true;
}

// From what is left after trial walks of loop bodies were forgotten.
void Binder::ListUnsupported() {
  std::map<std::string, int64_t> counts;
  for (const Op& op : result.ops) {
    if (op.supported) continue;
    const std::string& domain = op.node->domain;
    ++counts[absl::StrCat(domain.empty() ? "ai.onnx" : domain, "::", op.node->op_type)];
  }
  result.coverage.unsupported.assign(counts.begin(), counts.end());
}

absl::Status Binder::Count(int64_t work) {
  work_ += work;
  // Bounded: max_ops is far below 2^62.
  const int64_t most_tensors = limits_.max_ops * kTensorsPerOperator;
  if (static_cast<int64_t>(state.tensors.size()) > most_tensors)
    return ResourceExhausted("more than %d tensors after functions and subgraphs are expanded", most_tensors);
  if (work_ <= limits_.max_ops) return absl::OkStatus();
  return ResourceExhausted("more than %d operators after functions and subgraphs are expanded", limits_.max_ops);
}

TensorId Binder::NewTensor(const std::string& name) {
  const TensorId id(static_cast<uint32_t>(state.tensors.size()));
  work_ += static_cast<int64_t>(name.size()) / kBytesPerWork;  // checked at the next operator
  state.tensors.push_back(Tensor{.name = name});
  state.facts.emplace_back();
  return id;
}

absl::StatusOr<std::vector<TensorId>> Binder::ResolveAll(Frame* frame, std::span<const ValueId> ids) {
  std::vector<TensorId> tensors(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) HORUS_SET_OR_RETURN(tensors[i], Resolve(frame, ids[i]));
  return tensors;
}

absl::StatusOr<TensorId> Binder::Resolve(Frame* frame, ValueId id) {
  if (!id.valid()) return TensorId();
  TensorId& known = frame->tensors[id.value()];
  const Value& value = frame->body->values[id.value()];
  if (known.valid() || value.literal < 0) return known;
  const Literal& literal = frame->body->literals[static_cast<size_t>(value.literal)];
  known = NewTensor(value.name);
  state.facts[known.value()].source = Source::kInitialiser;
  HORUS_RETURN_IF_ERROR(SetDims(&state, known, literal.dtype, literal.dims));
  if (literal.has_data) SetElements(&state, known, Elements{.ints = literal.ints, .floats = literal.floats});
  return known;
}

absl::Status Binder::Walk(Frame* frame) {
  const std::vector<Node>& nodes = frame->body->nodes;
  for (size_t n = 0; n < nodes.size(); ++n) {
    absl::Status status = Visit(frame, nodes[n]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(DescribeNode(nodes[n], n), ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status Binder::Visit(Frame* frame, const Node& written) {
  HORUS_RETURN_IF_ERROR(
      Count(1 + static_cast<int64_t>(written.inputs.size() + written.outputs.size()) / kValuesPerWork));
  HORUS_ASSIGN_OR_RETURN(const Node* bound, WithAttributes(*frame, written));
  const Node& node = *bound;
  if (!functions_.empty()) {
    const auto function = functions_.find(std::pair(node.domain, node.op_type));
    if (function != functions_.end()) return CallFunction(frame, node, *function->second);
  }
  if (node.domain.empty()) {
    if (node.op_type == "If") return ExpandIf(frame, node);
    if (node.op_type == "Loop") return ExpandLoop(frame, node);
    if (node.op_type == "Scan") return ExpandScan(frame, node);
  }
  std::optional<Node> plain = Unquantised(node);
  if (!plain.has_value()) return Apply(frame, node);
  int64_t bytes = 0;
  for (const Attribute& attribute : plain->attributes) bytes += BytesOf(attribute);
  HORUS_RETURN_IF_ERROR(Count(bytes / kBytesPerWork));
  return Apply(frame, bound_nodes_.emplace_back(*std::move(plain)));
}

absl::Status Binder::Apply(Frame* frame, const Node& node) {
  Op op{.node = &node};
  op.inputs.reserve(node.inputs.size());
  op.outputs.reserve(node.outputs.size());
  for (const ValueId id : node.inputs) {
    HORUS_ASSIGN_OR_RETURN(const TensorId t, Resolve(frame, id));
    op.inputs.push_back(t);
    if (t.valid()) work_ += state.HeldBy(t) / kValuesPerWork;  // checked at the next operator
  }
  for (const ValueId id : node.outputs) {
    op.outputs.push_back(id.valid() ? NewTensor(frame->body->values[id.value()].name) : TensorId());
    if (id.valid()) frame->tensors[id.value()] = op.outputs.back();
  }
  const RuleEntry* entry = rules_.Find(node);
  op.supported = entry != nullptr;
  if (entry != nullptr) {
    state.op = result.ops.size();
    RuleContext context(&state, &node, op.inputs, op.outputs);
    HORUS_RETURN_IF_ERROR(entry->Apply(context));
    const bool linked = entry->view && context.has(0) && context.wants(0);
    const bool same_cast = node.op_type == "Cast" && context.has(0) && context.wants(0) &&
                           context.dtype(0) == state.tensors[op.outputs[0].value()].dtype;
    if (linked || same_cast) {
      const TensorId origin = state.tensors[op.inputs[0].value()].alias_of;
      state.tensors[op.outputs[0].value()].alias_of = origin.valid() ? origin : op.inputs[0];
    }
  }
  bool known = true;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (!op.outputs[i].valid()) continue;
    Declare(op.outputs[i], frame->body->values[node.outputs[i].value()]);
    known = known && state.tensors[op.outputs[i].value()].known;
  }
  result.coverage.ops += 1;
  result.coverage.ops_with_known_shapes += known ? 1 : 0;
  result.ops.push_back(std::move(op));
  return absl::OkStatus();
}

// A declaration never overrides a rule: exporters leave stale sizes behind.
void Binder::Declare(TensorId t, const Value& value) {
  Tensor& tensor = state.tensors[t.value()];
  if (tensor.known || fixed_batch_replaced_) return;
  const DType dtype = tensor.dtype == DType::kUndefined ? value.dtype : tensor.dtype;
  if (!value.dims.has_value()) {
    tensor.dtype = dtype;
    return;
  }
  Dims dims = tensor.dims;
  if (!state.facts[t.value()].ranked) dims.assign(value.dims->size(), kUnknownDim);
  if (dims.size() != value.dims->size()) return;
  for (size_t i = 0; i < dims.size(); ++i) {
    const DeclaredDim& declared = (*value.dims)[i];
    const int64_t size = declared.symbol.valid() ? symbol_sizes_[declared.symbol.value()] : declared.size;
    dims[i] = Known(dims[i], size);
  }
  // A declaration beyond the limits stays a declaration.
  if (!SetDims(&state, t, dtype, std::move(dims)).ok()) tensor.dtype = dtype;
}

absl::StatusOr<const Node*> Binder::WithAttributes(const Frame& frame, const Node& node) {
  const auto given = [&frame](const Attribute& attribute) -> const Attribute* {
    const Attribute* found = frame.call == nullptr ? nullptr : frame.call->FindAttribute(attribute.ref);
    if (found != nullptr || frame.function == nullptr) return found;
    for (const Attribute& fallback : frame.function->attribute_defaults) {
      if (fallback.name == attribute.ref) found = &fallback;
    }
    return found;
  };
  const auto refers = [](const Attribute& attribute) { return !attribute.ref.empty(); };
  if (std::ranges::none_of(node.attributes, refers)) return &node;
  // Before the names are compared: a file writes an operator with many attributes once, and calls it often.
  const size_t names = (frame.call == nullptr ? 0 : frame.call->attributes.size()) +
                       (frame.function == nullptr ? 0 : frame.function->attribute_defaults.size());
  // Bounded: both were read from one file, each of more than a byte; twice, for they are looked up twice.
  HORUS_RETURN_IF_ERROR(Count(static_cast<int64_t>(2 * node.attributes.size() * names) / kBytesPerWork));
  int64_t bytes = 0;
  for (const Attribute& attribute : node.attributes) {
    bytes += BytesOf(attribute);
    const Attribute* source = attribute.ref.empty() ? nullptr : given(attribute);
    if (source != nullptr) bytes += BytesOf(*source);
  }
  HORUS_RETURN_IF_ERROR(Count(bytes / kBytesPerWork));  // before the copy: a file repeats long lists at little cost
  Node& bound = bound_nodes_.emplace_back(node);
  std::erase_if(bound.attributes, [&given](Attribute& attribute) {
    if (attribute.ref.empty()) return false;
    const Attribute* source = given(attribute);
    if (source == nullptr) return true;  // an optional attribute that the call leaves out
    attribute.value = source->value;
    attribute.ref.clear();
    return false;
  });
  return &bound;
}

absl::StatusOr<Binder::Frame> Binder::Enter(Frame* outer, BodyId body) {
  Frame frame{.body = &graph_.bodies[body.value()],
              .call = outer->call,
              .function = outer->function,
              .depth = outer->depth + 1};
  if (frame.depth > limits_.max_nesting)
    return ResourceExhausted("functions and subgraphs are nested deeper than %d", limits_.max_nesting);
  const size_t values = frame.body->values.size() + frame.body->inputs.size() + frame.body->outputs.size();
  HORUS_RETURN_IF_ERROR(Count(static_cast<int64_t>(values) / kValuesPerWork));
  frame.tensors.assign(frame.body->values.size(), TensorId());
  for (const auto& [inner, from] : frame.body->captures)
    HORUS_SET_OR_RETURN(frame.tensors[inner.value()], Resolve(outer, from));
  return frame;
}

absl::Status Binder::CallFunction(Frame* frame, const Node& node, const Function& function) {
  HORUS_ASSIGN_OR_RETURN(Frame inner, Enter(frame, function.body));
  inner.call = &node;
  inner.function = &function;
  const GraphBody& body = *inner.body;
  if (node.inputs.size() > body.inputs.size() || node.outputs.size() > body.outputs.size()) {
    return InvalidArgument("%d inputs and %d outputs, the function has %d and %d", node.inputs.size(),
                           node.outputs.size(), body.inputs.size(), body.outputs.size());
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    HORUS_SET_OR_RETURN(inner.tensors[body.inputs[i].value()], Resolve(frame, node.inputs[i]));
  HORUS_RETURN_IF_ERROR(Walk(&inner));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].valid()) continue;
    HORUS_ASSIGN_OR_RETURN(frame->tensors[node.outputs[i].value()], Resolve(&inner, body.outputs[i]));
  }
  return absl::OkStatus();
}

// ---- Sizes of named dimensions and of the batch; tensors of the graph inputs.

absl::Status Binder::BindSymbols() {
  symbol_sizes_.assign(graph_.symbols.size(), kUnknownDim);
  weight_inputs_ = FindWeightInputs(graph_.main());
  if (bindings_.batch < 0) return InvalidArgument("batch is %d, expected at least 1", bindings_.batch);
  HORUS_RETURN_IF_ERROR(BindNamed());
  for (size_t i = 0; i < graph_.unless_bound.size(); ++i) {
    if (symbol_sizes_[i] == kUnknownDim) symbol_sizes_[i] = graph_.unless_bound[i];
  }
  return BindBatch();
}

absl::Status Binder::BindNamed() {
  if (bindings_.dims.empty()) return absl::OkStatus();
  std::map<std::string_view, size_t> positions;
  for (size_t i = 0; i < graph_.symbols.size(); ++i) positions.emplace(graph_.symbols[i], i);
  for (const auto& [name, size] : bindings_.dims) {
    if (size < 1) return InvalidArgument("dimension %s is %d, expected at least 1", Quoted(name), size);
    const auto found = positions.find(name);
    if (found == positions.end()) {
      const std::vector<std::string_view> names(graph_.symbols.begin(), graph_.symbols.end());
      const std::string near = Nearest(name, names);
      if (!near.empty()) return InvalidArgument("the graph has no dimension %s, did you mean: %s", Quoted(name), near);
      const std::vector<std::string_view> inputs = InputDims(graph_);
      return InvalidArgument("the graph has no dimension %s; %s", Quoted(name),
                             inputs.empty() ? "its inputs name none" : "its inputs name " + QuotedSome(inputs));
    }
    int64_t& bound = symbol_sizes_[found->second];
    if (bound != kUnknownDim && bound != size)
      return InvalidArgument("dimension %s is bound to %d and to %d", Quoted(name), bound, size);
    bound = size;
  }
  return absl::OkStatus();
}

absl::Status Binder::BindBatch() {
  const GraphBody& main = graph_.main();
  const DeclaredDim* leading = nullptr;
  int64_t* symbol = nullptr;
  size_t best = std::size(kBatchNames);
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = main.values[main.inputs[i].value()];
    if (weight_inputs_[i] || !value.dims.has_value() || value.dims->empty()) continue;
    if (leading == nullptr) leading = &value.dims->front();
    for (const DeclaredDim& dim : *value.dims) {
      if (!dim.symbol.valid()) continue;
      const auto* name = std::find(std::begin(kBatchNames), std::end(kBatchNames), graph_.symbols[dim.symbol.value()]);
      const auto rank = static_cast<size_t>(name - std::begin(kBatchNames));
      if (rank >= best) continue;
      best = rank;
      symbol = &symbol_sizes_[dim.symbol.value()];
    }
  }
  if (symbol == nullptr && leading != nullptr && leading->symbol.valid())
    symbol = &symbol_sizes_[leading->symbol.value()];
  const int64_t wished = bindings_.batch;
  if (symbol != nullptr) {
    if (*symbol != kUnknownDim && wished > 0 && *symbol != wished)
      return InvalidArgument("the batch dimension is bound to %d and to %d", *symbol, wished);
    if (*symbol == kUnknownDim) *symbol = wished > 0 ? wished : 1;
    result.batch = *symbol;
    unnamed_leading_is_batch_ = false;
    return absl::OkStatus();
  }
  if (leading == nullptr) {
    if (wished > 0) return InvalidArgument("batch is %d, but no graph input has a leading dimension", wished);
    return absl::OkStatus();
  }
  if (leading->size == kUnknownDim) {
    unnamed_leading_is_batch_ = true;
    result.batch = wished > 0 ? wished : 1;
    return absl::OkStatus();
  }
  result.batch = wished > 0 ? wished : std::max<int64_t>(leading->size, 1);
  if (wished > 0 && leading->size != wished) {
    if (leading->size < 1) return InvalidArgument("the batch dimension has size %d in the file", leading->size);
    state.old_batch = leading->size;
    state.new_batch = wished;
    fixed_batch_replaced_ = true;
  }
  return absl::OkStatus();
}

absl::Status Binder::MakeInputs(Frame* frame) {
  const GraphBody& main = graph_.main();
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = main.values[main.inputs[i].value()];
    const TensorId t = NewTensor(value.name);
    frame->tensors[main.inputs[i].value()] = t;
    const bool weight = weight_inputs_[i];
    state.facts[t.value()].source = weight ? Source::kWeightInput : Source::kInput;
    if (!weight) result.inputs.push_back({main.inputs[i], t});
    state.tensors[t.value()].dtype = value.dtype;
    if (!value.dims.has_value()) continue;
    Dims dims;
    for (const DeclaredDim& dim : *value.dims)
      dims.push_back(dim.symbol.valid() ? symbol_sizes_[dim.symbol.value()] : dim.size);
    if (!weight && !dims.empty()) {
      const bool unnamed = !value.dims->front().symbol.valid() && dims[0] == kUnknownDim;
      if (unnamed && unnamed_leading_is_batch_) dims[0] = result.batch;
      if (fixed_batch_replaced_ && dims[0] == state.old_batch) dims[0] = state.new_batch;
    }
    if (absl::Status status = SetDims(&state, t, value.dtype, std::move(dims)); !status.ok())
      return MakeError(status.code(), "graph input %d: %s", i, status.message());
  }
  return absl::OkStatus();
}

absl::StatusOr<ShapedGraph> BindShapes(std::shared_ptr<const Graph> graph, const DimBindings& bindings,
                                       const ShapeLimits& limits) {
  if (graph == nullptr || graph->bodies.empty()) return InvalidArgument("no graph to bind shapes to");
  // Sizes at their most may contradict others that the data decides too: then they are unknown.
  for (bool bounds = true;; bounds = false) {
    Binder binder(graph, bindings, limits);
    binder.state.bounds_sizes = bounds;
    if (absl::Status status = binder.Run(); !status.ok()) {
      if (binder.state.bounded == 0) return status;
      continue;
    }
    ShapedGraph result = std::move(binder.result);
    result.tensors = std::move(binder.state.tensors);
    result.coverage.sizes_at_most = binder.state.bounded;
    AssignRoles(binder.state, &result);
    return result;
  }
}

}  // namespace horus
