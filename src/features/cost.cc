// SPDX-License-Identifier: Apache-2.0
// Walks the operators of a step in order, decides widths, storage and gradients, and applies the cost rules.
#include "features/cost.h"

#include <algorithm>
#include <cmath>

#include "features/cost_rules.h"
#include "graph/from_config.h"
#include "graph/roles.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, kOpClassCount> kClassNames = {
    "convolution", "matmul",    "recurrent", "attention", "normalisation", "activation",
    "elementwise", "reduction", "embedding", "pooling",   "data_movement", "other"};

// By class, of an operator whose rule says nothing closer.
constexpr std::array<KernelKind, kOpClassCount> kKinds = {
    KernelKind::kConvolution, KernelKind::kMatmul,     KernelKind::kRecurrent,    KernelKind::kFusedAttention,
    KernelKind::kNorm,        KernelKind::kActivation, KernelKind::kElementwise,  KernelKind::kReduction,
    KernelKind::kEmbedding,   KernelKind::kPooling,    KernelKind::kDataMovement, KernelKind::kOther};

KernelKind KindOf(const CostRule& rule) {
  if (rule.name == "BatchNormalization") return KernelKind::kBatchNorm;
  if (rule.name.ends_with("Softmax")) return KernelKind::kSoftmax;
  return kKinds[static_cast<size_t>(rule.op_class)];
}

// ---- What a compiler (torch.compile) saves by running pointwise operators, normalisations and reductions that follow
// each other as one kernel.

// Of the kernel that the first operator of a chain has; not zero, for its bytes still move.
constexpr double kPartOfKernel = 1e-3;

bool Fuses(const OpCost& cost) {
  if (!cost.known || cost.absorbed || cost.forward.kernels <= 0) return false;
  return cost.op_class == OpClass::kNormalisation || cost.op_class == OpClass::kActivation ||
         cost.op_class == OpClass::kElementwise || cost.op_class == OpClass::kReduction ||
         cost.op_class == OpClass::kDataMovement;
}

void Less(double bytes, double& of) { of = std::max(0.0, of - bytes); }

// Takes the bytes and launches of intermediate tensors out of the operators on both sides of them: neither written nor
// read, nor a kernel of its own. Totals are not touched.
void FuseChains(const ShapedGraph& shaped, StepCost& step) {
  constexpr uint8_t kRead = 1, kStored = 2;
  std::vector<uint8_t> tensor(shaped.tensors.size(), 0);
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    if (op.plumbing) continue;
    const OpCost& cost = step.ops[i];
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (!op.inputs[k].valid()) continue;
      const bool kept = k < 32 && (cost.saved_inputs >> k & 1u) != 0;
      tensor[op.inputs[k].value()] |= Fuses(cost) && !kept ? kRead : kStored;
    }
  }
  for (const TensorId id : Given(shaped.outputs)) tensor[id.value()] |= kStored;
  std::vector<uint8_t> made(shaped.tensors.size(), 0);  // by an operator that fuses
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    OpCost& cost = step.ops[i];
    if (op.plumbing || !Fuses(cost)) continue;
    const auto repeat = static_cast<double>(std::max<int64_t>(1, op.repeat));
    bool follows = false, is_followed = false;
    for (const TensorId id : Given(op.inputs)) {
      if (made[id.value()] == 0) continue;
      follows = true;
      Less(repeat * step.stored_bytes[id.value()], cost.forward.bytes);
      Less(repeat * step.stored_bytes[id.value()], cost.backward.bytes);  // its gradient goes on in registers
    }
    for (const TensorId id : Given(op.outputs)) {
      made[id.value()] = 1;
      if (tensor[id.value()] == kRead) Less(repeat * step.stored_bytes[id.value()], cost.forward.bytes);
      if ((tensor[id.value()] & kRead) == 0) continue;
      is_followed = true;
      Less(repeat * step.stored_bytes[id.value()], cost.backward.bytes);
    }
    if (follows) cost.forward.kernels *= kPartOfKernel;
    if (is_followed) cost.backward.kernels *= kPartOfKernel;
  }
}

// ---- The walk.

constexpr double kBitsPerByte = 8;

// Everything the walk knows of the tensors so far.
class Walk {
 public:
  Walk(const ShapedGraph& shaped, const RunSpec& run)
      : shaped_(shaped),
        run_(run),
        is_config_(shaped.graph != nullptr && !ComputeTypeOf(*shaped.graph).empty()),
        eager_config_(is_config_ && (run.framework == Framework::kPyTorch || run.framework == Framework::kPyTorch1)),
        fusions_(FindFusions(shaped, run)),
        width_(shaped.tensors.size(), 0),
        grad_uses_(shaped.tensors.size(), 0) {}

  StepCost Run() {
    InitTensors();
    step_.ops.resize(shaped_.ops.size());
    for (size_t i = 0; i < shaped_.ops.size(); ++i) Visit(i);
    if (FusesChains(run_.framework)) FuseChains(shaped_, step_);
    AddTotals(shaped_, run_, step_);
    return std::move(step_);
  }

 private:
  void InitTensors() {
    const size_t count = shaped_.tensors.size();
    step_.needs_grad.assign(count, 0);
    step_.storage.resize(count);
    step_.stored_bytes.assign(count, 0);
    for (size_t t = 0; t < count; ++t) {
      step_.storage[t] = RootOf(TensorId(static_cast<uint32_t>(t)));
      const Tensor& tensor = shaped_.tensors[t];
      SetWidth(t, WidthOf(tensor));
      // A form of a weight is frozen as what it was made from is.
      const bool trained = tensor.role == TensorRole::kParameter && IsFloating(tensor.dtype) &&
                           !IsFrozen(shaped_.tensors[step_.storage[t].value()].name);
      step_.needs_grad[t] = trained && run_.mode == RunMode::kTraining;
    }
    if (!run_.frozen.empty()) FreezeByScope();
  }

  // Half precision narrows; float32 widens the 16 bits of a config that nobody stated otherwise, as loading it does.
  double WidthOf(const Tensor& tensor) const {
    const double width = BitsOf(tensor.dtype) / kBitsPerByte;
    if (!IsFloating(tensor.dtype) || IsAmp(run_.precision)) return width;
    if (IsHalf(run_.precision)) return std::min(kHalfBytes, width);
    if (!is_config_ || width != kHalfBytes) return width;
    const bool stated = !SaidOf(*shaped_.graph, tensor.role == TensorRole::kInput ? "cache" : "weights").empty();
    return stated ? width : kFloatBytes;
  }

  bool IsFrozen(std::string_view name) const {
    return std::ranges::any_of(run_.frozen, [name](const std::string& prefix) { return name.starts_with(prefix); });
  }

  // An exporter that folds a Transpose renames the weight ("onnx::MatMul_17"); its readers still stand in the module's
  // scope: "/encoder/layer/layer.0/query/MatMul" reads what belongs to "encoder.layer.0.query".
  void FreezeByScope() {
    for (const Op& op : shaped_.ops) {
      const std::string scope = op.node == nullptr ? "" : ModuleOf(op.node->name);
      if (scope.empty() || !IsFrozen(scope)) continue;
      for (const TensorId id : op.inputs) {
        const bool renamed =
            id.valid() && shaped_.tensors[step_.storage[id.value()].value()].name.starts_with("onnx::");
        if (renamed && shaped_.tensors[id.value()].role == TensorRole::kParameter) step_.needs_grad[id.value()] = 0;
      }
    }
  }

  static std::string ModuleOf(std::string_view node) {
    std::string module, last;
    while (node.starts_with('/')) {
      node.remove_prefix(1);
      const std::string part(node.substr(0, node.find('/')));
      node.remove_prefix(part.size());
      if (part.starts_with(last + ".")) module.resize(module.size() - last.size() - 1);
      module += part + ".";
      last = part;
    }
    return module;
  }

  bool IsAlias(const Tensor& tensor) const {
    return tensor.alias_of.valid() && tensor.alias_of.value() < shaped_.tensors.size();
  }

  // Follows alias_of; a chain longer than the table is a cycle and ends where it is.
  TensorId RootOf(TensorId id) const {
    for (size_t steps = 0; steps < shaped_.tensors.size(); ++steps) {
      if (!IsAlias(shaped_.tensors[id.value()])) break;
      id = shaped_.tensors[id.value()].alias_of;
    }
    return id;
  }

  void SetWidth(size_t t, double width) {
    width_[t] = width;
    step_.stored_bytes[t] = static_cast<double>(shaped_.tensors[t].elements()) * width;
  }

  // Autocast: products in half precision, listed functions in float32, the rest in the widest input's type.
  double AmpWidth(const Op& op, const CostRule* rule) const {
    if (rule != nullptr && rule->amp_float32) return kFloatBytes;
    if (rule != nullptr && (rule->op_class == OpClass::kConvolution || rule->op_class == OpClass::kMatmul ||
                            rule->op_class == OpClass::kRecurrent || rule->op_class == OpClass::kAttention)) {
      return kHalfBytes;
    }
    // Normalisation's parameters stay float32 and do not widen its output; a scalar never widens.
    const bool first_only = rule != nullptr && rule->op_class == OpClass::kNormalisation;
    double widest = 0;
    for (size_t i = 0; i < op.inputs.size() && !(first_only && i > 0); ++i) {
      if (!op.inputs[i].valid()) continue;
      const Tensor& tensor = shaped_.tensors[op.inputs[i].value()];
      if (IsFloating(tensor.dtype) && tensor.elements() != 1) widest = std::max(widest, width_[op.inputs[i].value()]);
    }
    return widest > 0 ? widest : kFloatBytes;
  }

  void Visit(size_t index) {
    const Op& op = shaped_.ops[index];
    const CostRule* rule = RuleOf(index);
    OpCost& cost = step_.ops[index];
    const bool wants = WantsGradient(op, rule);
    for (const TensorId out : Given(op.outputs)) {
      const Tensor& tensor = shaped_.tensors[out.value()];
      // What a reshape views may itself be a view, of a slice.
      if (IsAlias(tensor)) step_.storage[out.value()] = step_.storage[tensor.alias_of.value()];
      if (!IsFloating(tensor.dtype)) continue;
      if (wants) step_.needs_grad[out.value()] = 1;
      if (IsAmp(run_.precision) && tensor.dtype == DType::kFloat32) SetWidth(out.value(), AmpWidth(op, rule));
    }
    if (op.plumbing) return;
    if (fusions_[index].absorbed) {
      cost.absorbed = true;
      for (const TensorId out : op.outputs) step_.storage[out.value()] = step_.storage[fusions_[index].source.value()];
      if (wants) PassGradients(op, cost);
      return;
    }
    if (!fusions_[index].reads.empty()) {
      VisitFused(op, fusions_[index], *rule, cost);
      return;
    }
    cost.op_class = rule == nullptr ? OpClass::kOther : rule->op_class;
    if (rule != nullptr) cost.kind = KindOf(*rule);
    cost.needs_backward = wants;
    cost.known = rule != nullptr && AllShapesKnown(op);
    if (rule == nullptr) return;
    ShareViews(op, *rule);
    ShareCaches(op);
    CostContext context(shaped_, op, run_, step_, cost);
    rule->apply(context, *rule);
    CountGiven(op, context);
    if (eager_config_) AddEagerTraffic(op, context);
    CountForHorus(cost);
    // A view turned brings its base no gradient besides those of its readers.
    if (wants && !(op.node->op_type == "Transpose" && IsViewOperator(*rule))) AddAccumulation(op, context);
    Repeat(op, cost);
    Keep(op, cost);
  }

  const CostRule* RuleOf(size_t index) const {
    const Op& op = shaped_.ops[index];
    if (!fusions_[index].stands_for.empty()) return FindCostRule(fusions_[index].stands_for);
    return op.plumbing || op.node == nullptr ? nullptr : FindCostRule(*op.node);
  }

  // An absorbed operator has no kernel, but the fused one makes gradients for its parameters; and for keys, which are
  // kept like queries.
  void PassGradients(const Op& op, OpCost& cost) const {
    const bool product = op.node->op_type == "MatMul";
    const bool parameters = std::ranges::any_of(op.inputs, [this](TensorId id) {
      return id.valid() && step_.needs_grad[id.value()] != 0 &&
             shaped_.tensors[id.value()].role == TensorRole::kParameter;
    });
    if (product) cost.saved_inputs = 0b11;
    cost.needs_backward = cost.passes_gradient = product || parameters;
  }

  // The last operator of a fused group costs what the one kernel does.
  void VisitFused(const Op& op, const Fusion& fusion, const CostRule& rule, OpCost& cost) {
    const TensorId source = fusion.source;
    Op fused = op;
    fused.inputs = fusion.reads;
    cost.op_class = rule.op_class;
    cost.kind = KindOf(rule);
    cost.needs_backward = WantsGradient(op, &rule);
    cost.known = AllShapesKnown(fused);
    CostContext context(shaped_, fused, run_, step_, cost);
    rule.apply(context, rule);
    CountGiven(fused, context);
    CountForHorus(cost);
    if (cost.needs_backward) AddAccumulation(fused, context);
    Repeat(op, cost);
    Keep(fused, cost);
    if (fusion.stands_for == kFusedAttentionRule && cost.saved_inputs != 0) {
      cost.saved_inputs = 0b10;  // the values; PassGradients has the others
      return;
    }
    if (cost.saved_inputs == 0) return;
    // What lies between uses the source's storage: keep it through an operand of the operator that is in the graph.
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i].valid() && step_.storage[op.inputs[i].value()] == step_.storage[source.value()]) {
        cost.saved_inputs = 1u << i;
        return;
      }
    }
  }

  bool WantsGradient(const Op& op, const CostRule* rule) const {
    if (run_.mode != RunMode::kTraining || (rule != nullptr && StopsGradient(*rule))) return false;
    return std::ranges::any_of(op.inputs,
                               [this](TensorId id) { return id.valid() && step_.needs_grad[id.value()] != 0; });
  }

  bool AllShapesKnown(const Op& op) const {
    const auto known = [this](TensorId id) { return !id.valid() || shaped_.tensors[id.value()].known; };
    return std::ranges::all_of(op.inputs, known) && std::ranges::all_of(op.outputs, known);
  }

  void ShareViews(const Op& op, const CostRule& rule) {
    if (!IsViewOperator(rule) || op.inputs.empty() || !op.inputs[0].valid()) return;
    for (const TensorId out : Given(op.outputs)) step_.storage[out.value()] = step_.storage[op.inputs[0].value()];
  }

  // Keys and values that an engine adds to a cache in its place.
  void ShareCaches(const Op& op) {
    if (CacheUseOf(op.node->op_type) != CacheUse::kInPlace || run_.mode == RunMode::kTraining) return;
    for (size_t out = 1; out < op.outputs.size() && out + 2 < op.inputs.size(); ++out) {
      const TensorId past = op.inputs[out + 2];
      if (!past.valid() || !op.outputs[out].valid()) continue;
      step_.storage[op.outputs[out].value()] = past;
      SetWidth(op.outputs[out].value(), width_[past.value()]);
      // A state is not rounded to what the rest computes in.
      if (op.node->op_type != "LinearAttention") continue;
      for (const TensorId id : {past, op.outputs[out]})
        SetWidth(id.value(), BitsOf(shaped_.tensors[past.value()].dtype) / kBitsPerByte);
    }
  }

  void CountGiven(const Op& op, CostContext& context) {
    if (context.cost.forward.flops <= 0) return;
    given_.resize(shaped_.tensors.size(), 0);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i].valid()) continue;
      const size_t root = step_.storage[op.inputs[i].value()].value();
      if (shaped_.tensors[root].role == TensorRole::kActivation) continue;
      context.cost.given_bytes += context.InBytes(i);
      if (std::exchange(given_[root], uint8_t{1}) == 0) step_.given_bytes += context.InBytes(i);
    }
  }

  // Everything that runs and is no convolution, linear layer or activation is one of the others.
  static void CountForHorus(OpCost& cost) {
    const bool counted = cost.horus_convs + cost.horus_linears + cost.horus_activations + cost.horus_others > 0;
    if (!counted && cost.forward.kernels > 0) cost.horus_others = 1;
  }

  // What PyTorch's eager mode reads and writes beside the one kernel that an operator of a config's graph stands for:
  // the norm and the rotation of huggingface/transformers (LlamaRMSNorm, apply_rotary_pos_emb), the casts and the
  // dropout before an adapter of huggingface/peft (tuners/lora/layer.py). Bytes of an element, each kernel's reads and
  // writes. Launches are counted of the dropout alone: flash-attn's norms and rotations, which many use, are one
  // kernel.
  void AddEagerTraffic(const Op& op, CostContext& context) const {
    const std::string_view type = op.node->op_type, name = op.node->name;
    const double elements = context.InCount(0), width = elements > 0 ? context.InBytes(0) / elements : 0;
    const double casts = width < kFloatBytes ? 2 * (width + kFloatBytes) : 0;  // there and back
    double forward = 0, backward = 0;
    if (type == "SimplifiedLayerNormalization" || type == "RMSNormalization") {
      forward = 5 * kFloatBytes + casts;  // squares, their mean, the product with its root
      backward = 11 * kFloatBytes + casts;
    } else if (type == "RotaryEmbedding") {
      forward = 8 * width;  // two products, a half negated, both joined, the sum
      backward = 9 * width;
    } else if (name.starts_with("lora.") && name.ends_with(".lora_A")) {
      const bool amp = IsAmp(run_.precision);  // the adapter is then in float32
      forward = backward = 2 * (amp ? kFloatBytes : width) + 1 + (amp ? casts : 0);
      context.Forward(1, 0, PointwiseBlocks(elements));
      if (context.cost.needs_backward) context.Backward(1, 0, PointwiseBlocks(elements));
    }
    context.cost.forward.bytes += forward * elements;
    // Of a cache a longer one is made at each step (DynamicCache.update).
    for (size_t i = 3; CacheUseOf(type) == CacheUse::kInPlace && i < op.inputs.size(); ++i) {
      if (context.Has(i) && context.In(i).role == TensorRole::kInput)
        context.cost.forward.bytes += 2 * context.InBytes(i);
    }
    if (context.cost.needs_backward) context.cost.backward.bytes += backward * elements;
  }

  // A tensor read by k operators gets k gradients, added k - 1 times.
  void AddAccumulation(const Op& op, CostContext& context) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!context.Wants(i)) continue;
      uint32_t& uses = grad_uses_[step_.storage[op.inputs[i].value()].value()];
      if (uses++ == 0) continue;
      context.BackwardOver(context.InCount(i), context.InCount(i), 3 * context.InBytes(i));
    }
  }

  static void Repeat(const Op& op, OpCost& cost) {
    if (op.repeat == 1) return;
    const auto times = static_cast<double>(std::max<int64_t>(0, op.repeat));
    for (PassCost* pass : {&cost.forward, &cost.backward}) {
      for (double* amount : {&pass->flops, &pass->flops_other, &pass->bytes, &pass->kernels, &pass->serial_reads})
        *amount *= times;
    }
    for (double* amount : {&cost.horus_flops, &cost.library_kernels, &cost.saved_extra_bytes, &cost.horus_convs,
                           &cost.horus_linears, &cost.horus_activations, &cost.horus_others}) {
      *amount *= times;
    }
  }

  // Charges each kept storage to its first keeper; parameters and the batch are held anyway.
  void Keep(const Op& op, OpCost& cost) {
    cost.saved_bytes = cost.saved_extra_bytes;
    const auto keep = [&](const std::vector<TensorId>& ids, uint32_t mask) {
      for (size_t i = 0; i < ids.size() && i < 32; ++i) {
        if ((mask >> i & 1u) == 0 || !ids[i].valid()) continue;
        const TensorId root = step_.storage[ids[i].value()];
        if (shaped_.tensors[root.value()].role != TensorRole::kActivation) continue;
        if (kept_.size() != shaped_.tensors.size()) kept_.assign(shaped_.tensors.size(), 0);
        if (std::exchange(kept_[root.value()], uint8_t{1}) != 0) continue;
        cost.saved_bytes += step_.stored_bytes[root.value()] * static_cast<double>(std::max<int64_t>(1, op.repeat));
      }
    };
    keep(op.inputs, cost.saved_inputs);
    keep(op.outputs, cost.saved_outputs);
  }

  const ShapedGraph& shaped_;
  const RunSpec& run_;
  const bool is_config_, eager_config_;
  const std::vector<Fusion> fusions_;
  std::vector<double> width_;        // bytes of an element, per tensor
  std::vector<uint32_t> grad_uses_;  // gradients made so far, per storage
  std::vector<uint8_t> kept_;        // per storage
  std::vector<uint8_t> given_;       // per storage
  StepCost step_;
};

}  // namespace

std::string_view Name(OpClass op_class) {
  const auto index = static_cast<size_t>(op_class);
  return index < kOpClassCount ? kClassNames[index] : "invalid";
}

StepCost CostOfStep(const ShapedGraph& shaped, const RunSpec& run) { return Walk(shaped, run).Run(); }

// ---- The table of cost rules and the questions a rule may ask of its operator.

double CostContext::AllInBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < inputs(); ++i) {
    const bool again = std::find(op_.inputs.begin(), op_.inputs.begin() + static_cast<ptrdiff_t>(i), op_.inputs[i]) !=
                       op_.inputs.begin() + static_cast<ptrdiff_t>(i);
    if (!again) bytes += InBytes(i);
  }
  return bytes;
}

double CostContext::AllOutBytes() const {
  double bytes = 0;
  for (size_t i = 0; i < outputs(); ++i) bytes += OutBytes(i);
  return bytes;
}

double CostContext::Dim(const Tensor& tensor, int64_t axis) {
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  if (axis < 0) axis += rank;
  if (!tensor.known || axis < 0 || axis >= rank) return 1;
  return static_cast<double>(tensor.dims[static_cast<size_t>(axis)]);
}

bool CostContext::IsWeight(size_t i) const {
  if (!Has(i)) return false;
  const TensorRole role = shaped_.tensors[step_.storage[op_.inputs[i].value()].value()].role;
  return role == TensorRole::kParameter || role == TensorRole::kConstant || role == TensorRole::kBuffer;
}

void PassCost::Launch(double more, double more_bytes, double blocks_each) {
  const double total = kernels + more;
  if (total > 0) blocks = (blocks * kernels + blocks_each * more) / total;
  kernels = total;
  bytes += more_bytes;
}

void PassCost::Add(const PassCost& more) {
  flops += more.flops;
  flops_other += more.flops_other;
  serial_reads += more.serial_reads;
  bytes += more.bytes;
  kernels += more.kernels;
}

double MatmulBlocks(double batch, double m, double n, double k) {
  const double tiles = std::ceil(m / kMatmulTile) * std::ceil(n / kMatmulTile);
  return batch * tiles * std::max(1.0, std::floor(k / kMatmulSplitDepth));
}

const std::vector<CostRule>& SortedCostRules() {
  static const std::vector<CostRule> sorted = [] {
    std::vector<CostRule> rules;
    for (const std::span<const CostRule> table :
         {MatrixCostRules(), AttentionCostRules(), PointwiseCostRules(), ReductionCostRules(), DataCostRules()}) {
      for (const CostRule& rule : table)
        ForEachName(rule.name, [&](std::string_view name) { rules.emplace_back(rule).name = name; });
    }
    std::ranges::sort(rules, {}, &CostRule::name);
    return rules;
  }();
  return sorted;
}

const CostRule* FindCostRule(const Node& node) {
  return node.domain.empty() ? FindCostRule(node.op_type) : FindCostRule(node.domain + "::" + node.op_type);
}

const CostRule* FindCostRule(std::string_view name) {
  const std::vector<CostRule>& rules = SortedCostRules();
  const auto at = std::ranges::lower_bound(rules, name, {}, &CostRule::name);
  return at != rules.end() && at->name == name ? &*at : nullptr;
}

}  // namespace horus
