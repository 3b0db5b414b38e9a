// SPDX-License-Identifier: Apache-2.0
// Decides what training updates and what costs nothing.
#include "graph/roles.h"

namespace horus {
namespace {

struct SlotRule {
  std::string_view op_types;  // with blanks between them
  uint32_t weights = 0;       // bit i: input i is a weight slot
  uint32_t settings = 0;      // bit i: input i is a setting
  CacheUse caches = CacheUse::kNone;
};

constexpr uint32_t kAllButFirst = ~uint32_t{1};
constexpr uint32_t kAll = ~uint32_t{0};

// Operators that are not listed take their constants as operands.
constexpr SlotRule kSlots[] = {
    {"Attention", 0b110, 0b1000, CacheUse::kReturned},
    {"BatchNormalization", 0b110, 0b11000},
    {"Beside BiasGelu BiasSplitGelu PRelu RMSNormalization SimplifiedLayerNormalization", 0b10, 0},
    {"BitShift ConstantOfShape Equal EyeLike Greater GreaterOrEqual Less LessOrEqual Max Min Mod "
     "NonMaxSuppression OneHot Range Shape Size Where",
     0, kAll},
    {"CausalConv CausalConvWithState", 0b110, 0, CacheUse::kInPlace},
    {"Clip DequantizeLinear Dropout MRotaryEmbedding Pad QuantizeLinear Resize RoiAlign RotaryEmbedding TopK Upsample",
     0, kAllButFirst},
    {"Concat Scatter ScatterElements ScatterND TensorScatter", 0, 0, CacheUse::kJoined},
    {"Conv ConvTranspose FusedConv FusedGemm GatedRMSNorm Gemm GroupNormalization InstanceNormalization "
     "LayerNormalization LinearAttentionGate",
     0b110, 0},
    {"DeformConv", 0b1010, 0},
    {"DynamicQuantizeMatMul", 0b10010, 0b1100},
    {"EmbedLayerNormalization", 0b1111100, 0},
    {"Expand GridSample Pow", 0, 0b10},
    {"GRU RNN", 0b1110, 0b110000, CacheUse::kReturned},
    {"Gather", 0b1, 0b10},
    {"GatherBlockQuantized", 0b1, 0b1110},
    {"GroupQueryAttention", 0b100000000000, 0b111100000, CacheUse::kInPlace},
    {"IndexAttention", 0, 0, CacheUse::kInPlace},
    {"LSTM", 0b10001110, 0b1110000, CacheUse::kReturned},
    {"LatentAttention", 0b100, 0b100000, CacheUse::kInPlace},
    {"LinearAttention", 0b110100, 0, CacheUse::kInPlace},
    {"MatMul", 0b11, 0},
    {"MatMulIntegerToFloat", 0b1000010, 0b111100},
    {"MatMulNBits", 0b100010, 0b11100},
    {"MoE", 0b11111100, 0},
    {"MultiHeadAttention", 0, 0, CacheUse::kReturned},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", 0, 0b100},
    {"QMoE", 0b10110100, 0b1001000},
    {"SkipGroupNorm", 0b10110, 0},
    {"SkipLayerNormalization", 0b11100, 0},
    {"SkipSimplifiedLayerNormalization", 0b1100, 0},
};

SlotRule RuleOf(std::string_view op_type) {
  static const auto rules = [] {
    SeededMap<std::string_view, SlotRule> by_name;
    for (const SlotRule& rule : kSlots)
      ForEachName(rule.op_types, [&](std::string_view name) { by_name[name] = rule; });
    return by_name;
  }();
  const auto rule = rules.find(op_type);
  return rule == rules.end() ? SlotRule{} : rule->second;
}

// Operators whose output 0 is input 0 in another form: a weight stays the same weight behind them.
constexpr std::string_view kForms[] = {"Cast",    "CastLike", "DequantizeLinear", "Flatten",  "Identity",
                                       "Reshape", "Squeeze",  "Transpose",        "Unsqueeze"};

// Operators that make new values at every step although they read no activation.
constexpr std::string_view kRandom[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                        "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

template <size_t N>
bool Contains(const std::string_view (&sorted)[N], std::string_view name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name);
}

// Weight slots that a Constant or ConstantOfShape can fill: files without weights stand them in there. Exporters also
// write plain constants where a normalisation has no affine part, and fixed tables for Gather: those are not trained.
bool TakesMadeWeights(std::string_view op) {
  return op != "InstanceNormalization" && op != "LayerNormalization" && op != "GroupNormalization" && op != "Gather";
}

// Quantised weights: never trained, but weights.
bool IsSmallInteger(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt4 || dtype == DType::kUint4;
}

// Weights of so many bits that a file packs into bytes, [..., bytes]: counted as what they are.
void Unpack(const Op& op, ShapedGraph* graph) {
  constexpr int64_t kNibbles = 2;
  const bool table = op.node->op_type == "GatherBlockQuantized";
  if ((!table && op.node->op_type != "MatMulNBits") || op.node->IntOr("bits", 4) != 4 || op.inputs.size() < 2) return;
  const TensorId packed = op.inputs[table ? 0 : 1];
  if (!packed.valid()) return;
  Tensor& weight = graph->tensors[packed.value()];
  if (!weight.known || weight.dtype != DType::kUint8 || weight.dims.empty()) return;
  weight.dtype = DType::kUint4;
  weight.dims.back() *= kNibbles;  // Bounded: half as many bits each.
}

bool IsMatrixProduct(std::string_view op) { return op == "MatMul" || op == "Gemm" || op == "Conv" || op == "Einsum"; }

// What was seen of each tensor that is a constant or an initialiser, or another form of one.
class RoleWalk {
 public:
  RoleWalk(const ShapeState& state, ShapedGraph* graph)
      : state_(state),
        graph_(*graph),
        root_(graph->tensors.size()),
        candidate_(graph->tensors.size(), Candidate::kNone),
        weight_(graph->tensors.size(), false),
        operand_(graph->tensors.size(), false),
        product_(graph->tensors.size(), false) {}

  void Run() {
    CollectUses();
    for (size_t t = 0; t < graph_.tensors.size(); ++t) DecideRoot(t);
    for (Op& op : graph_.ops) DecideOp(&op);
  }

 private:
  enum class Candidate : uint8_t { kNone, kInitialiser, kMade };  // kMade: by Constant or ConstantOfShape

  void CollectUses() {
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      root_[t] = TensorId(static_cast<uint32_t>(t));
      const Source source = state_.facts[t].source;
      if (source == Source::kInitialiser || source == Source::kWeightInput) candidate_[t] = Candidate::kInitialiser;
    }
    for (const Op& op : graph_.ops) {
      Unpack(op, &graph_);
      CollectOp(op);
    }
  }

  void CollectOp(const Op& op) {
    const std::string_view type = op.node->op_type;
    const bool form = Contains(kForms, type) && !op.inputs.empty() && op.inputs[0].valid() && !op.outputs.empty() &&
                      op.outputs[0].valid();
    if (form) {
      const TensorId root = root_[op.inputs[0].value()];
      if (candidate_[root.value()] != Candidate::kNone) root_[op.outputs[0].value()] = root;
    }
    if ((type == "Constant" || type == "ConstantOfShape") && !op.outputs.empty() && op.outputs[0].valid())
      candidate_[op.outputs[0].value()] = Candidate::kMade;
    if (IsMatrixProduct(type) && !op.outputs.empty() && op.outputs[0].valid()) product_[op.outputs[0].value()] = true;
    for (size_t i = form ? 1 : 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i].valid()) continue;
      const TensorId root = root_[op.inputs[i].value()];
      const Tensor& tensor = graph_.tensors[root.value()];
      if (candidate_[root.value()] == Candidate::kNone) continue;
      const InputSlot slot = SlotOf(*op.node, i);
      const bool single = tensor.known && tensor.elements() <= 1;
      if (slot == InputSlot::kWeight) {
        if (candidate_[root.value()] == Candidate::kMade && !TakesMadeWeights(type)) continue;
        weight_[root.value()] = weight_[root.value()] || !(single && tensor.dims.empty());
      } else if (slot == InputSlot::kOperand) {
        const size_t other = i == 0 ? 1 : 0;
        const bool bias = type == "Add" && tensor.dims.size() == 1 && op.inputs.size() == 2 &&
                          op.inputs[other].valid() && product_[op.inputs[other].value()];
        operand_[root.value()] = operand_[root.value()] || !single || bias;
      }
    }
  }

  void DecideRoot(size_t t) {
    Tensor& tensor = graph_.tensors[t];
    const bool floating = IsFloating(tensor.dtype);
    switch (state_.facts[t].source) {
      case Source::kInput:
        tensor.role = TensorRole::kInput;
        return;
      case Source::kWeightInput:
      case Source::kInitialiser:
        tensor.role = (floating && (weight_[t] || operand_[t])) || (IsSmallInteger(tensor.dtype) && weight_[t])
                          ? TensorRole::kParameter
                          : TensorRole::kBuffer;
        return;
      case Source::kComputed:
        break;
    }
    if (candidate_[t] == Candidate::kMade)
      tensor.role = floating && weight_[t] ? TensorRole::kParameter : TensorRole::kConstant;
  }

  void DecideOp(Op* op) {
    const std::string_view type = op->node->op_type;
    bool constant = !Contains(kRandom, type);
    for (const TensorId t : Given(op->inputs)) {
      const TensorRole role = graph_.tensors[t.value()].role;
      constant = constant && (role == TensorRole::kConstant || role == TensorRole::kBuffer);
    }
    if (type == "Shape" || type == "Size") constant = true;
    bool all_constant = true;
    for (const TensorId t : Given(op->outputs)) {
      Tensor& tensor = graph_.tensors[t.value()];
      const TensorId root = root_[t.value()];
      if (root != t && graph_.tensors[root.value()].role == TensorRole::kParameter) {
        tensor.role = TensorRole::kParameter;
        tensor.alias_of = root;
        continue;
      }
      if (candidate_[t.value()] == Candidate::kMade) continue;  // decided above
      const bool folded = state_.facts[t.value()].elements >= 0 && !IsFloating(tensor.dtype);
      if (constant || folded) {
        tensor.role = TensorRole::kConstant;
      } else {
        all_constant = false;
      }
    }
    const bool view =
        !op->outputs.empty() && op->outputs[0].valid() && graph_.tensors[op->outputs[0].value()].alias_of.valid();
    op->plumbing = op->plumbing || all_constant || view;
  }

  const ShapeState& state_;
  ShapedGraph& graph_;
  std::vector<TensorId> root_;
  std::vector<Candidate> candidate_;
  std::vector<bool> weight_, operand_, product_;
};

// What the readers of one graph input say of it.
struct Evidence {
  bool fixed = false, weight = false, data = false;
};

// Which values are a graph input in some form, and which come from initialisers alone.
class WeightInputs {
 public:
  explicit WeightInputs(const GraphBody& main)
      : main_(main), input_(main.values.size(), -1), constant_(main.values.size(), false), of_(main.inputs.size()) {
    for (size_t v = 0; v < main.values.size(); ++v) constant_[v] = main.values[v].literal >= 0;
    for (size_t i = 0; i < main.inputs.size(); ++i) {
      const Value& value = main.values[main.inputs[i].value()];
      input_[main.inputs[i].value()] = static_cast<int32_t>(i);
      if (!value.dims.has_value() || value.dims->empty()) continue;
      if (batch_ == 0) batch_ = value.dims->front().size;
      of_[i].fixed = IsFloating(value.dtype) &&
                     std::ranges::all_of(*value.dims, [](const DeclaredDim& dim) { return dim.size != kUnknownDim; });
    }
  }

  std::vector<bool> Run() {
    for (const Node& node : main_.nodes) Look(node);
    std::vector<bool> weights;
    bool behind = false;  // exporters declare what is fed before the weights
    for (const Evidence& input : of_) {
      weights.push_back(input.fixed && !input.data && (input.weight || behind));
      behind = behind || (weights.back() && input.weight);
    }
    return weights;
  }

 private:
  [[nodiscard]] int32_t InputOf(ValueId id) const { return id.valid() ? input_[id.value()] : -1; }
  [[nodiscard]] bool IsConstant(ValueId id) const { return id.valid() && constant_[id.value()]; }
  [[nodiscard]] const std::vector<DeclaredDim>& DimsOf(int32_t input) const {
    return *main_.values[main_.inputs[static_cast<size_t>(input)].value()].dims;
  }

  void Look(const Node& node) {
    const bool form =
        Contains(kForms, node.op_type) && !node.inputs.empty() && !node.outputs.empty() && node.outputs[0].valid();
    if (form) {
      input_[node.outputs[0].value()] = InputOf(node.inputs[0]);
      constant_[node.outputs[0].value()] = IsConstant(node.inputs[0]);
    } else if (node.op_type == "Constant" && !node.outputs.empty() && node.outputs[0].valid()) {
      constant_[node.outputs[0].value()] = true;
    }
    for (size_t slot = form ? 1 : 0; slot < node.inputs.size(); ++slot) {
      const int32_t input = InputOf(node.inputs[slot]);
      if (input < 0 || !of_[static_cast<size_t>(input)].fixed) continue;
      Evidence& of = of_[static_cast<size_t>(input)];
      if (node.op_type == "MatMul" && slot < 2 && node.inputs.size() == 2) {
        const ValueId other = node.inputs[1 - slot];
        const bool same_batch = DimsOf(input).size() > 2 && DimsOf(input).front().size == batch_;
        const bool data = IsConstant(other) || (slot == 0 ? InputOf(other) >= 0 : same_batch);
        of.data = of.data || data;
        of.weight = of.weight || (slot == 1 && !data);
      } else if (node.op_type == "Gather") {  // from a table, by what is fed
        of.weight = of.weight || (slot == 0 && DimsOf(input).size() == 2 && node.IntOr("axis", 0) == 0 &&
                                  !IsConstant(node.inputs.back()));
      } else if (SlotOf(node, slot) == InputSlot::kWeight) {
        of.weight = true;
      } else if (slot == 0 && HasWeights(node)) {
        of.data = true;
      }
    }
  }

  static bool HasWeights(const Node& node) {
    for (size_t slot = 1; slot < node.inputs.size(); ++slot) {
      if (SlotOf(node, slot) == InputSlot::kWeight) return true;
    }
    return false;
  }

  const GraphBody& main_;
  std::vector<int32_t> input_;  // per value: the graph input that it is, or -1
  std::vector<bool> constant_;
  std::vector<Evidence> of_;
  int64_t batch_ = 0;
};

}  // namespace

std::vector<bool> FindWeightInputs(const GraphBody& main) { return WeightInputs(main).Run(); }

InputSlot SlotOf(const Node& node, size_t input) {
  const SlotRule rule = RuleOf(node.op_type);
  const uint32_t bit = input < 32 ? uint32_t{1} << input : 0;
  if ((rule.weights & bit) != 0) return InputSlot::kWeight;
  return (rule.settings & bit) != 0 ? InputSlot::kSetting : InputSlot::kOperand;
}

CacheUse CacheUseOf(std::string_view op_type) { return RuleOf(op_type).caches; }

void AssignRoles(const ShapeState& state, ShapedGraph* graph) { RoleWalk(state, graph).Run(); }

}  // namespace horus
