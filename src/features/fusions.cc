// SPDX-License-Identifier: Apache-2.0
// Recognises what exporters decompose: PyTorch runs it as one kernel and keeps its input alone.
#include <algorithm>

#include "features/cost_rules.h"

namespace horus {
namespace {

constexpr size_t kNone = SIZE_MAX;

class Finder {
 public:
  explicit Finder(const ShapedGraph& shaped)
      : shaped_(shaped),
        uses_(shaped.tensors.size(), 0),
        reader_(shaped.tensors.size(), kNone),
        maker_(shaped.tensors.size(), kNone),
        found_(shaped.ops.size()) {
    for (size_t i = 0; i < shaped.ops.size(); ++i) {
      for (const TensorId id : Given(shaped.ops[i].inputs)) {
        ++uses_[id.value()];
        reader_[id.value()] = i;
      }
      for (const TensorId id : Given(shaped.ops[i].outputs)) maker_[id.value()] = i;
    }
    for (const TensorId id : Given(shaped.outputs)) ++uses_[id.value()];
  }

  std::vector<Fusion> Run(const RunSpec& run) {
    const bool fuses_attention = run.framework == Framework::kPyTorch || FusesChains(run.framework);
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      if (fuses_attention && Is(i, "Softmax")) FuseAttention(i);
      if (Is(i, "Sigmoid")) FuseGate(i, "Swish");
      if (Is(i, "HardSigmoid")) FuseGate(i, "HardSwish");
      if (Is(i, "Erf")) FuseGelu(i);
      if (Is(i, "Tanh")) FuseTanhGelu(i);
      if (Is(i, "Softplus")) FuseMish(i);
      if (Is(i, "Sqrt")) FuseLayerNorm(i);
      if (Is(i, "Pad")) FusePool(i);
    }
    selects_ = fuses_attention;
    if (run.framework != Framework::kTensorFlow) FindViews(run.layout == Layout::kNhwc);
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool Is(size_t op, std::string_view type) const {
    if (op == kNone) return false;
    const Op& o = shaped_.ops[op];
    return !o.plumbing && o.node != nullptr && o.node->domain.empty() && o.node->op_type == type && !o.inputs.empty() &&
           o.inputs[0].valid() && o.outputs.size() == 1 && o.outputs[0].valid();
  }
  [[nodiscard]] TensorId OutputOf(size_t op) const { return shaped_.ops[op].outputs[0]; }

  // The only operator that reads the output of `op`; kNone when there are several, or the graph returns it.
  [[nodiscard]] size_t OnlyReader(size_t op) const {
    const TensorId out = OutputOf(op);
    return uses_[out.value()] == 1 ? reader_[out.value()] : kNone;
  }

  // The other operand of a binary operator; invalid when `id` is none of them.
  [[nodiscard]] TensorId Other(size_t op, TensorId id) const {
    const std::vector<TensorId>& in = shaped_.ops[op].inputs;
    if (in.size() != 2 || !in[0].valid() || !in[1].valid()) return {};
    if (in[0] == id) return in[1];
    return in[1] == id ? in[0] : TensorId();
  }
  [[nodiscard]] bool IsScalar(TensorId id) const {
    const Tensor* tensor = id.valid() ? &shaped_.tensors[id.value()] : nullptr;
    return tensor != nullptr && tensor->known && tensor->elements() == 1 && tensor->role != TensorRole::kActivation;
  }
  // What `op` scales by a scalar, where it is a product or a quotient of that kind.
  [[nodiscard]] TensorId ScaledBy(size_t op) const {
    if (!Is(op, "Mul") && !Is(op, "Div")) return {};
    const std::vector<TensorId>& in = shaped_.ops[op].inputs;
    if (in.size() != 2 || !in[1].valid()) return {};
    if (IsScalar(in[1])) return in[0];
    return Is(op, "Mul") && IsScalar(in[0]) ? in[1] : TensorId();
  }

  // Average pooling that counts its padding has no padding of its own in older opsets.
  void FusePool(size_t pad) {
    const size_t pool = OnlyReader(pad);
    if (Is(pool, "AveragePool")) Accept(std::array{pad}, pool, "AveragePool", shaped_.ops[pad].inputs[0]);
  }

  void FuseGate(size_t gate, std::string_view name) {
    const TensorId x = shaped_.ops[gate].inputs[0];
    const size_t product = OnlyReader(gate);
    if (!Is(product, "Mul") || Other(product, OutputOf(gate)) != x) return;
    Accept(std::array{gate}, product, name, x);
  }

  // The only reader of `op` that is of a type, and what else it reads.
  [[nodiscard]] size_t OnlyReaderOf(size_t op, std::string_view type, TensorId& other) const {
    const size_t reader = OnlyReader(op);
    if (!Is(reader, type)) return kNone;
    other = Other(reader, OutputOf(op));
    return other.valid() ? reader : kNone;
  }
  [[nodiscard]] bool IsParameter(TensorId id) const {
    return id.valid() && shaped_.tensors[id.value()].role == TensorRole::kParameter;
  }

  // d / sqrt(mean(d^2) + eps) * weight + bias with d = x - mean(x), as opsets before 17 write layer normalisation.
  void FuseLayerNorm(size_t root) {
    const size_t sum = maker_[shaped_.ops[root].inputs[0].value()];
    if (!Is(sum, "Add") || shaped_.ops[sum].inputs.size() != 2) return;
    const size_t variance = MakerOfEither(sum, "ReduceMean");
    if (variance == kNone) return;
    const size_t square = maker_[shaped_.ops[variance].inputs[0].value()];
    if (!Is(square, "Pow") && !Is(square, "Mul")) return;
    const TensorId difference = shaped_.ops[square].inputs[0];
    const size_t centre = maker_[difference.value()];
    if (!Is(centre, "Sub") || shaped_.ops[centre].inputs.size() != 2 || !shaped_.ops[centre].inputs[1].valid()) return;
    const TensorId x = shaped_.ops[centre].inputs[0];
    const size_t mean = maker_[shaped_.ops[centre].inputs[1].value()];
    if (!Is(mean, "ReduceMean") || shaped_.ops[mean].inputs[0] != x) return;
    TensorId dividend, weight, bias;
    const size_t quotient = OnlyReaderOf(root, "Div", dividend);
    if (quotient == kNone || dividend != difference) return;
    const size_t scaled = OnlyReaderOf(quotient, "Mul", weight);
    if (scaled == kNone || !IsParameter(weight)) return;
    const size_t shifted = OnlyReaderOf(scaled, "Add", bias);
    if (shifted == kNone || !IsParameter(bias)) return;
    if (Accept(std::array{mean, centre, square, variance, sum, root, quotient, scaled}, shifted, "LayerNormalization",
               x)) {
      found_[shifted].reads = {x, weight, bias};
    }
  }
  [[nodiscard]] size_t MakerOfEither(size_t op, std::string_view type) const {
    for (const TensorId id : Given(shaped_.ops[op].inputs)) {
      if (Is(maker_[id.value()], type)) return maker_[id.value()];
    }
    return kNone;
  }

  // x * tanh(softplus(x)).
  void FuseMish(size_t softplus) {
    const TensorId x = shaped_.ops[softplus].inputs[0];
    const size_t gate = OnlyReader(softplus);
    if (!Is(gate, "Tanh")) return;
    const size_t product = OnlyReader(gate);
    if (!Is(product, "Mul") || Other(product, OutputOf(gate)) != x) return;
    Accept(std::array{softplus, gate}, product, "Mish", x);
  }

  // x * (1 + erf(x / sqrt 2)) / 2.
  void FuseGelu(size_t erf) {
    const size_t scale = maker_[shaped_.ops[erf].inputs[0].value()];
    if (scale == kNone || uses_[shaped_.ops[erf].inputs[0].value()] != 1) return;
    FinishGelu({scale, erf}, erf, ScaledBy(scale));
  }

  // x * (1 + tanh(a (x + b x^3))) / 2 as nn.GELU(approximate="tanh") is exported: the cube by products or, where the
  // half comes last, by Pow. Models that write the formula themselves begin with x / 2 and a Pow, and run as written.
  void FuseTanhGelu(size_t tanh) {
    const size_t scale = maker_[shaped_.ops[tanh].inputs[0].value()];
    if (scale == kNone || OnlyReader(scale) != tanh) return;
    const TensorId inside = ScaledBy(scale);
    const size_t polynomial = inside.valid() ? maker_[inside.value()] : kNone;
    if (!Is(polynomial, "Add") || OnlyReader(polynomial) != scale || shaped_.ops[polynomial].inputs.size() != 2) return;
    for (const TensorId x : shaped_.ops[polynomial].inputs) {
      const TensorId third = Other(polynomial, x);
      const size_t weighted = third.valid() ? maker_[third.value()] : kNone;
      if (weighted == kNone || OnlyReader(weighted) != polynomial) continue;
      const TensorId cubed = ScaledBy(weighted);
      const size_t cube = cubed.valid() ? maker_[cubed.value()] : kNone;
      if (cube == kNone || OnlyReader(cube) != weighted) continue;
      if (Is(cube, "Pow") && shaped_.ops[cube].inputs[0] == x) {
        FinishGelu({cube, weighted, polynomial, scale, tanh}, tanh, x, true);
        return;
      }
      if (!Is(cube, "Mul")) continue;
      const TensorId squared = Other(cube, x);
      const size_t square = squared.valid() ? maker_[squared.value()] : kNone;
      if (!Is(square, "Mul") || OnlyReader(square) != cube || Other(square, x) != x) continue;
      FinishGelu({square, cube, weighted, polynomial, scale, tanh}, tanh, x);
      return;
    }
  }

  // What follows erf or tanh: add one, multiply by x, and by a half before or after, or folded into x.
  void FinishGelu(std::vector<size_t> before, size_t gate, TensorId x, bool half_last = false) {
    const size_t sum = OnlyReader(gate);
    if (!x.valid() || !Is(sum, "Add") || !IsScalar(Other(sum, OutputOf(gate)))) return;
    const size_t product = OnlyReader(sum);
    if (!Is(product, "Mul")) return;
    before.push_back(sum);
    const TensorId other = Other(product, OutputOf(sum));
    if (other == x) {
      const size_t half = OnlyReader(product);
      if (half == kNone || ScaledBy(half) != OutputOf(product)) {
        Accept(before, product, "Gelu", x);
        return;
      }
      before.push_back(product);
      Accept(before, half, "Gelu", x);
      return;
    }
    const size_t half = other.valid() ? maker_[other.value()] : kNone;
    if (half_last || half == kNone || uses_[other.value()] != 1 || ScaledBy(half) != x) return;
    before.push_back(half);
    Accept(before, product, "Gelu", x);
  }

  // Masks, biases and casts of scores.
  [[nodiscard]] bool IsBetweenScores(size_t op) const {
    return Is(op, "Add") || Is(op, "Cast") || Is(op, "Where") || Is(op, "Dropout");
  }
  [[nodiscard]] bool IsActivationProduct(size_t op) const {
    if (!Is(op, "MatMul") || shaped_.ops[op].inputs.size() != 2) return false;
    return std::ranges::none_of(shaped_.ops[op].inputs, [this](TensorId id) {
      const TensorRole role = id.valid() ? shaped_.tensors[id.value()].role : TensorRole::kParameter;
      return role == TensorRole::kParameter || role == TensorRole::kConstant;
    });
  }
  // The operator that made the scores `op` reads; kNone where there is none, or others read them too.
  [[nodiscard]] size_t ScoresBefore(size_t op) const {
    for (const TensorId id : Given(shaped_.ops[op].inputs)) {
      if (uses_[id.value()] != 1) continue;
      const Tensor& tensor = shaped_.tensors[id.value()];
      if (!tensor.known || tensor.dims != shaped_.tensors[OutputOf(op).value()].dims) continue;
      const size_t before = maker_[id.value()];
      if (before != kNone && (IsBetweenScores(before) || IsActivationProduct(before))) return before;
    }
    return kNone;
  }

  // softmax(Q Kt) V: the scores are never in memory.
  void FuseAttention(size_t softmax) {
    std::vector<size_t> absorbed = {softmax};
    size_t scores = ScoresBefore(softmax);
    for (; scores != kNone && !IsActivationProduct(scores); scores = ScoresBefore(scores)) absorbed.push_back(scores);
    if (scores == kNone) return;
    absorbed.push_back(scores);
    TensorId weights = OutputOf(softmax);
    size_t product = OnlyReader(softmax);
    for (; IsBetweenScores(product); product = OnlyReader(product)) {
      absorbed.push_back(product);
      weights = OutputOf(product);
    }
    if (!IsActivationProduct(product) || shaped_.ops[product].inputs[0] != weights) return;
    const TensorId queries = shaped_.ops[scores].inputs[0], keys = shaped_.ops[scores].inputs[1];
    const TensorId values = shaped_.ops[product].inputs[1];
    if (Accept(absorbed, product, kFusedAttentionRule, queries)) found_[product].reads = {queries, keys, values};
  }

  // ---- Views. PyTorch's Transpose turns strides and copies nothing. It stands for the copy that a reader makes which
  // cannot take them, and is free where none does.

  void FindViews(bool channels_last) {
    std::vector<uint8_t> taken(shaped_.tensors.size(), 1), parted(shaped_.tensors.size(), 0);
    for (size_t i = shaped_.ops.size(); i-- > 0;) {
      const bool carried = std::ranges::all_of(shaped_.ops[i].outputs,
                                               [&](TensorId out) { return !out.valid() || taken[out.value()] != 0; });
      const bool part = IsPart(i);
      for (const TensorId id : Given(shaped_.ops[i].inputs)) {
        if (!TakesStrides(i, id, carried)) taken[id.value()] = 0;
        if (part) parted[id.value()] = 1;
      }
    }
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      if (IsSelection(i)) found_[i].stands_for = "Slice";
      if (!Is(i, "Transpose")) continue;
      const size_t maker = maker_[shaped_.ops[i].inputs[0].value()];
      const bool heads_back =  // the kernel writes its result row by row
          maker != kNone && found_[maker].stands_for == kFusedAttentionRule && Swaps(i, 2);
      const std::vector<int64_t>* order = shaped_.ops[i].node->Ints("perm");
      const bool images = channels_last && order != nullptr &&
                          (*order == std::vector<int64_t>{0, 2, 3, 1} || *order == std::vector<int64_t>{0, 3, 1, 2});
      const size_t out = OutputOf(i).value();
      if (!heads_back && !images && taken[out] == 0) continue;
      found_[i].stands_for = parted[out] != 0 ? kTurnedBackRule : "Identity";
    }
  }

  // x[i] of an activation. PyTorch 1 copies the parts of packed projections.
  [[nodiscard]] bool IsSelection(size_t i) const {
    if (!selects_ || !Is(i, "Gather")) return false;
    const std::vector<TensorId>& in = shaped_.ops[i].inputs;
    return in.size() == 2 && IsScalar(in[1]) && shaped_.tensors[in[1].value()].dims.empty() &&
           shaped_.tensors[in[0].value()].role == TensorRole::kActivation;
  }
  [[nodiscard]] bool IsPart(size_t i) const {
    const Node* node = shaped_.ops[i].node;
    return node != nullptr && node->domain.empty() &&
           (node->op_type == "Slice" || node->op_type == "Split" || IsSelection(i));
  }
  // A Transpose of the axis `last` from the end and the one before it, and of no others.
  [[nodiscard]] bool Swaps(size_t transpose, size_t last) const {
    const std::vector<int64_t>* order = shaped_.ops[transpose].node->Ints("perm");
    if (order == nullptr || order->size() < last + 1) return false;
    std::vector<int64_t> swapped = *order;
    std::swap(swapped[order->size() - last], swapped[order->size() - last - 1]);
    return *order != swapped && std::ranges::is_sorted(swapped);
  }

  // Whether operator i reads a tensor that is turned as it lies; `carried`: what reads its results does too.
  [[nodiscard]] bool TakesStrides(size_t i, TensorId id, bool carried) const {
    const Op& op = shaped_.ops[i];
    if (op.plumbing && !op.outputs.empty() && op.outputs[0].valid()) {
      const Tensor& out = shaped_.tensors[op.outputs[0].value()];
      return !out.alias_of.valid() || (carried && SplitsAxes(shaped_.tensors[id.value()], out));
    }
    if (op.plumbing || op.node == nullptr || Is(i, "Transpose") || Is(i, "Concat")) return true;
    if (found_[i].stands_for == kFusedAttentionRule || (found_[i].absorbed && Is(i, "MatMul"))) return true;
    if (IsPart(i)) return carried;
    const TensorId other = Other(i, id);
    if (Is(i, "MatMul") && other.valid()) {  // libraries take a matrix either way round
      const size_t maker = maker_[id.value()];
      return Is(maker, "Transpose") && Swaps(maker, 1) &&
             !Is(maker_[shaped_.ops[maker].inputs[0].value()], "Transpose") &&
             shaped_.tensors[id.value()].dims.size() == shaped_.tensors[other.value()].dims.size();
    }
    const CostRule* rule = carried && !found_[i].absorbed ? FindCostRule(*op.node) : nullptr;
    return rule != nullptr && (rule->op_class == OpClass::kElementwise || rule->op_class == OpClass::kActivation);
  }

  // A Reshape that joins no axes never copies.
  [[nodiscard]] static bool SplitsAxes(const Tensor& from, const Tensor& to) {
    if (!from.known || !to.known) return false;
    size_t at = 0;
    for (const int64_t whole : from.dims) {
      int64_t product = 1;
      for (; at < to.dims.size() && product < whole; ++at) product *= to.dims[at];
      if (product != whole) return false;
    }
    return true;
  }

  bool Accept(const auto& absorbed, size_t last, std::string_view name, TensorId source) {
    const int64_t repeat = shaped_.ops[last].repeat;
    const auto taken = [this, repeat](size_t op) {
      return found_[op].absorbed || !found_[op].stands_for.empty() || shaped_.ops[op].repeat != repeat;
    };
    if (taken(last) || std::ranges::any_of(absorbed, taken)) return false;
    for (const size_t op : absorbed) found_[op] = {.absorbed = true, .stands_for = {}, .source = source};
    found_[last] = {.stands_for = name, .source = source, .reads = {source}};
    return true;
  }

  const ShapedGraph& shaped_;
  std::vector<uint32_t> uses_;  // per tensor, by operators and as graph outputs
  std::vector<size_t> reader_;  // per tensor, the last operator that reads it
  std::vector<size_t> maker_;   // per tensor
  bool selects_ = false;
  std::vector<Fusion> found_;
};

}  // namespace

std::vector<Fusion> FindFusions(const ShapedGraph& shaped, const RunSpec& run) { return Finder(shaped).Run(run); }

}  // namespace horus
