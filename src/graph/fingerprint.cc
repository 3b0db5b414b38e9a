// SPDX-License-Identifier: Apache-2.0
// Hashes what a graph computes, whatever its values are called.
#include <bit>
#include <initializer_list>

#include "base/hash.h"
#include "graph/roles.h"

namespace horus {
namespace {

constexpr uint64_t kSeed = 0x686f7275735f6732;  // "horus_g2": the version of this fingerprint
constexpr uint64_t kAbsent = ~uint64_t{0};

// Operators whose floating settings (InputSlot::kSetting) are sizes. Other settings are bounds, masks or statistics:
// they change from one save of a model to the next and leave its work the same.
constexpr std::string_view kSizedByFloats[] = {"OneHot", "Range", "Resize", "Upsample"};

bool SteersShapes(const Node& node, size_t input) {
  const auto* end = std::end(kSizedByFloats);
  return node.domain.empty() && std::find(std::begin(kSizedByFloats), end, node.op_type) != end &&
         SlotOf(node, input) == InputSlot::kSetting;
}

const Literal* TensorOfConstant(const Node& node) {
  if (node.op_type != "Constant" || !node.domain.empty()) return nullptr;
  const Attribute* value = node.FindAttribute("value");
  return value == nullptr ? nullptr : std::get_if<Literal>(&value->value);
}

bool IsOneOf(const Node& node, std::initializer_list<std::string_view> operators) {
  return node.domain.empty() && std::ranges::find(operators, node.op_type) != operators.end();
}

// Operators that turn floats into the integers and truths that shapes are made of.
bool LeavesFloats(const Node& node) {
  if (node.op_type == "Cast" && node.domain.empty()) return !IsFloating(static_cast<DType>(node.IntOr("to", 0)));
  return IsOneOf(node, {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"});
}

class Fingerprint {
 public:
  explicit Fingerprint(const Graph& graph) : graph_(graph), known_(graph.bodies.size()) {}

  void Add(uint64_t value) { state_ = CombineHash(state_, value); }
  void Add(std::string_view text) { Add(Hash64(text)); }

  void AddLiteral(const Literal& literal) {
    Add(static_cast<uint64_t>(literal.dtype));
    AddValue(literal.dims);
    // Zeros may have been dropped by a tool that strips weights, integers steer shapes: only the latter count here.
    AddValue(literal.ints);
  }

  void AddBody(size_t b) {
    const GraphBody& body = graph_.bodies[b];
    Known& known = known_[b];
    known.number.assign(body.values.size(), kAbsent);
    known.constant.assign(body.values.size(), nullptr);
    known.derived.assign(body.values.size(), false);
    known.steers.assign(body.values.size(), false);
    for (size_t v = 0; v < body.values.size(); ++v) {
      const int32_t literal = body.values[v].literal;
      if (literal >= 0) known.constant[v] = &body.literals[static_cast<size_t>(literal)];
    }
    for (const auto& [inner, outer] : body.captures) {
      const Known& around = known_[body.parent.value()];
      known.constant[inner.value()] = around.constant[outer.value()];
      known.derived[inner.value()] = around.derived[outer.value()];
    }
    FindSteering(b);
    Add(body.inputs.size());
    for (const ValueId id : body.inputs) {
      AddUse(b, id);
      AddDeclared(body.values[id.value()]);
    }
    Add(body.captures.size());
    for (const auto& [inner, outer] : body.captures) {
      AddUse(b, inner);
      AddUse(body.parent.value(), outer);
    }
    Add(body.nodes.size());
    for (const Node& node : body.nodes) AddNode(b, node);
    Add(body.outputs.size());
    for (const ValueId id : body.outputs) AddUse(b, id);
  }

  void AddAttributes(const std::vector<Attribute>& attributes) {
    sorted_.clear();
    for (const Attribute& attribute : attributes) sorted_.push_back(&attribute);
    std::ranges::stable_sort(sorted_, [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
    Add(sorted_.size());
    for (const Attribute* attribute : sorted_) AddAttribute(*attribute);
  }

  [[nodiscard]] uint64_t state() const { return state_; }

 private:
  // What was seen of the values of one body.
  struct Known {
    std::vector<uint64_t> number;          // in the order in which values first matter; kAbsent = not yet
    std::vector<const Literal*> constant;  // its tensor where the file writes it
    std::vector<bool> derived;             // computed from constants and shapes alone
    std::vector<bool> steers;              // derived, and an integer or a truth is computed from it
    uint64_t next = 0;
  };

  void AddAttribute(const Attribute& attribute) {
    Add(attribute.name);
    Add(attribute.ref);
    Add(attribute.value.index());
    std::visit([this](const auto& value) { AddValue(value); }, attribute.value);
  }

  // The value of an attribute, by its kind.
  void AddValue(std::monostate) {}
  void AddValue(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void AddValue(float value) { Add(std::bit_cast<uint32_t>(value)); }
  void AddValue(const std::string& value) { Add(value); }
  void AddValue(const Literal& value) { AddLiteral(value); }
  void AddValue(BodyId value) { Add(value.value()); }
  template <typename Element>
  void AddValue(const std::vector<Element>& list) {
    Add(list.size());
    for (const Element& element : list) AddValue(element);
  }

  void AddDeclared(const Value& value) {
    Add(static_cast<uint64_t>(value.dtype));
    Add(value.dims.has_value() ? value.dims->size() : kAbsent);
    if (!value.dims.has_value()) return;
    for (const DeclaredDim& dim : *value.dims) {
      Add(static_cast<uint64_t>(dim.size));
      // By name: bindings speak of it, and its position depends on the order of the file.
      Add(dim.symbol.valid() ? Hash64(graph_.symbols[dim.symbol.value()]) : kAbsent);
    }
  }

  // Names and the order of initialisers in the file do not count.
  void AddUse(size_t b, ValueId id) {
    if (!id.valid()) return Add(kAbsent);
    Known& known = known_[b];
    uint64_t& mine = known.number[id.value()];
    if (mine == kAbsent) {
      mine = known.next++;
      if (graph_.bodies[b].values[id.value()].literal >= 0) AddLiteral(*known.constant[id.value()]);
    }
    Add(mine);
  }

  void AddNode(size_t b, const Node& node) {
    Known& known = known_[b];
    Add(node.domain);
    Add(node.op_type);
    Add(node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      AddUse(b, id);
      if (!id.valid() || known.constant[id.value()] == nullptr) continue;
      const std::vector<float>& floats = known.constant[id.value()]->floats;
      const bool folded = known.steers[id.value()] && !floats.empty();
      if (!folded && !SteersShapes(node, i)) continue;
      AddValue(floats);
    }
    Add(node.outputs.size());
    for (const ValueId id : node.outputs) AddUse(b, id);
    AddAttributes(node.attributes);
  }

  // Marks the floats of shape arithmetic: from where integers are made of them backwards, as far as nothing but
  // constants and shapes goes in. Weights that are transformed before their use are derived too, but end in no integer.
  void FindSteering(size_t b) {
    const GraphBody& body = graph_.bodies[b];
    Known& known = known_[b];
    for (size_t v = 0; v < body.values.size(); ++v) {
      if (known.constant[v] != nullptr) known.derived[v] = true;
    }
    // What a subgraph or a function is given may be shape arithmetic.
    if (b > 0) {
      for (const ValueId id : body.inputs) known.derived[id.value()] = true;
    }
    const auto derived = [&known](ValueId id) { return !id.valid() || known.derived[id.value()]; };
    for (const Node& node : body.nodes) {
      const Literal* constant = TensorOfConstant(node);
      const bool all = constant != nullptr || IsOneOf(node, {"Constant", "Shape", "Size"}) ||
                       (!node.inputs.empty() && std::ranges::all_of(node.inputs, derived));
      for (const ValueId id : Given(node.outputs)) known.derived[id.value()] = all;
      if (!node.outputs.empty() && node.outputs[0].valid()) known.constant[node.outputs[0].value()] = constant;
    }
    for (size_t n = body.nodes.size(); n-- > 0;) {
      const Node& node = body.nodes[n];
      const auto marked = [&known](ValueId id) { return id.valid() && known.steers[id.value()]; };
      const bool source = LeavesFloats(node) && std::ranges::all_of(node.inputs, derived);
      if (!source && std::ranges::none_of(node.outputs, marked)) continue;
      for (const ValueId id : Given(node.inputs)) {
        if (known.derived[id.value()]) known.steers[id.value()] = true;
      }
    }
  }

  const Graph& graph_;
  std::vector<Known> known_;  // per body; parents come before their subgraphs
  std::vector<const Attribute*> sorted_;
  uint64_t state_ = kSeed;
};

}  // namespace

uint64_t FingerprintOf(const Graph& graph) {
  Fingerprint fingerprint(graph);
  fingerprint.Add(static_cast<uint64_t>(graph.opset));
  for (size_t b = 0; b < graph.bodies.size(); ++b) fingerprint.AddBody(b);
  for (const Function& function : graph.functions) {
    fingerprint.Add(function.domain);
    fingerprint.Add(function.name);
    fingerprint.Add(function.body.value());
    fingerprint.AddAttributes(function.attribute_defaults);
  }
  return fingerprint.state();
}

uint64_t FingerprintOf(const ShapedGraph& shaped) {
  uint64_t state = shaped.graph == nullptr ? kSeed : shaped.graph->fingerprint;
  state = CombineHash(state, static_cast<uint64_t>(shaped.batch));
  for (const Tensor& tensor : shaped.tensors) {
    const uint64_t type = static_cast<uint64_t>(tensor.dtype) << 1 | (tensor.known ? 1 : 0);
    state = CombineHash(state, Hash64(tensor.dims.data(), tensor.dims.size() * sizeof(int64_t), type));
  }
  for (const Op& op : shaped.ops) state = CombineHash(state, static_cast<uint64_t>(op.repeat));
  return state;
}

}  // namespace horus
