// SPDX-License-Identifier: Apache-2.0
// Finds the operators that engines have kernels for, and adds up their times.
#include "predict/engine_step.h"

#include <algorithm>

namespace horus {
namespace {

// Assumptions. A plain kernel in a CUDA graph, its start included: 1.9 to 2.8 us for one token of Llama-3.1-8B on an
// RTX 4090 (casys-kaist/LLMServingSim). What an engine does between two steps: sampling, the batch, its tables.
constexpr double kPlainKernelUs = 2.2;
constexpr double kPlainBandwidth = 0.85;
constexpr double kPlainRate = 0.7;
constexpr double kHostUs = 300;
constexpr double kPlainUpper = 1.5, kHostUpper = 2;  // of their bounds

// TensorRT-LLM quantises activations inside the kernels before a product; measured alone, products count that. Served
// Llama-3.1-70B, DeepSeek-V3 and Qwen3-235B say .70 to .80 each (`bench llm --only steps`, rows `served_...`).
constexpr double kFusedQuantisation = 0.8;

const Tensor* TensorAt(const ShapedGraph& shaped, const Op& op, size_t i) {
  return i < op.inputs.size() && op.inputs[i].valid() ? &shaped.tensors[op.inputs[i].value()] : nullptr;
}
double DimOf(const Tensor* tensor, size_t axis) {
  return tensor != nullptr && axis < tensor->dims.size() && tensor->dims[axis] > 0
             ? static_cast<double>(tensor->dims[axis])
             : 0;
}

constexpr double kNvfp4Group = 16;  // weights that share a scale; integers share it among 32 and more

// `group`: weights along the inner dimension that share a scale.
NumberType TypeOf(int bits, bool floating, double group, bool in_groups) {
  if (bits > 8) return NumberType::kBf16;
  if (bits == 4) return group == kNvfp4Group ? NumberType::kNvfp4 : NumberType::kInt4Weights;
  if (!floating) return NumberType::kInt8;
  return in_groups ? NumberType::kFp8Block : NumberType::kFp8;
}
NumberType TypeOf(const Tensor& weights, double inner, double groups) {
  return TypeOf(BitsOf(weights.dtype), IsFloating(weights.dtype), groups > 0 ? inner / groups : 0, groups > 1);
}

EngineStep::Plain PlainOf(const OpCost& op) { return {op.forward.bytes, op.forward.AllFlops(), op.forward.kernels}; }

double PlainUs(const EngineStep::Plain& op, const GpuType& gpu) {
  constexpr double kGflopsToFlopsPerUs = 1e3;
  const double bytes_per_us = std::max<double>(1, static_cast<double>(gpu.mem_bandwidth_mb_s)) * kPlainBandwidth;
  const double rate = std::max<double>(1, static_cast<double>(gpu.fp32_gflops)) * kGflopsToFlopsPerUs * kPlainRate;
  return std::max({op.kernels * kPlainKernelUs, op.bytes / bytes_per_us, op.flops / rate});
}

// Engines take each other's kernels over: a served net runs as if each operator had the fastest that any engine was
// measured with. Time per token of nets served: median error 25 % with the engine's own kernels, 12 % so, and 8 % with
// kFusedQuantisation (`bench llm --only steps`). Nothing undercuts its floor, and a bound keeps its distance; a step
// that moves no more than L2 holds may find all of it there.
OperatorTime FastestOf(Operator op, const GpuType& gpu, double step_bytes) {
  constexpr double kBytesPerKib = 1024;
  const bool fused = op.engine == ServingEngine::kTensorRtLlm && op.type != NumberType::kBf16 &&
                     (op.kind == OperatorKind::kProduct || op.kind == OperatorKind::kExperts);
  OperatorTime fastest;
  for (size_t engine = 0; engine < kEngines; ++engine) {
    op.engine = static_cast<ServingEngine>(engine);
    const OperatorTime time = OperatorModel::Default().TimeOf(op, gpu);
    if (engine == 0 || time.us < fastest.us) fastest = time;
  }
  if (fused) fastest.us *= kFusedQuantisation;
  if (step_bytes <= static_cast<double>(gpu.l2_kib) * kBytesPerKib) op.least_bytes = 0;
  const double lift = std::max(1.0, FloorUs(op, gpu) / fastest.us);
  return {fastest.us * lift, fastest.upper_us * lift};
}

class Reader {
 public:
  Reader(const ShapedGraph& shaped, const StepCost& cost, ServingEngine engine)
      : shaped_(shaped), cost_(cost), engine_(engine) {}

  // The operator that the node runs as; nullopt: a plain one.
  [[nodiscard]] std::optional<Operator> Read(size_t at) const {
    std::optional<Operator> one = KindOf(at);
    if (!one.has_value()) return one;
    const PassCost& all = cost_.ops[at].forward;  // of its repeats
    const auto repeat = static_cast<double>(std::max<int64_t>(1, shaped_.ops[at].repeat));
    one->least_flops = all.AllFlops() / repeat, one->least_bytes = all.bytes / repeat;
    return one;
  }

 private:
  [[nodiscard]] std::optional<Operator> KindOf(size_t at) const {
    const Op& op = shaped_.ops[at];
    const std::string_view type = op.node->op_type;
    Operator o{.engine = engine_};
    if (type == "AllReduce") return AllReduce(op, o);
    if (type == "GroupQueryAttention") return GroupedAttention(op, o);
    if (type == "LatentAttention") return LatentAttention(op, o);
    if (type == "LinearAttention") return LinearAttention(op, o);
    if (type == "IndexAttention") return IndexAttention(op, o);
    if (type == "CausalConv") return Convolution(op, o);
    if (type == "MoE" || type == "QMoE") return Experts(op, o);
    return Product(at, o);
  }

  [[nodiscard]] std::optional<Operator> Product(size_t at, Operator o) const {
    const Op& op = shaped_.ops[at];
    const OpCost& cost = cost_.ops[at];
    const ProductShape& p = cost.product;
    if (cost.kind == KernelKind::kAttention || cost.kind == KernelKind::kFusedAttention) {
      o.kind = OperatorKind::kEncoder;
      o.heads = o.key_heads = 1;
      o.batch = p.batch, o.queries = p.m, o.keys = p.n, o.head_size = p.k;
      return p.batch > 0 && cost.kind == KernelKind::kFusedAttention ? std::optional(o) : std::nullopt;
    }
    if (cost.kind != KernelKind::kMatmul || !(p.batch > 0)) return std::nullopt;
    const bool packed = op.node->op_type == "MatMulNBits";
    const Tensor* weights = TensorAt(shaped_, op, 1);
    if (packed) {
      const auto group = static_cast<double>(op.node->IntOr("block_size", 0));
      o.type = op.node->IntOr("bits", 4) > 4 ? NumberType::kInt8Weights : TypeOf(4, false, group, true);
    } else if (weights != nullptr) {
      o.type = TypeOf(*weights, p.k, DimOf(TensorAt(shaped_, op, 2), 0));
    }
    o.m = p.batch * p.m, o.n = p.n, o.k = p.k;
    return o;
  }

  [[nodiscard]] std::optional<Operator> AllReduce(const Op& op, Operator o) const {
    o.kind = OperatorKind::kAllReduce;
    o.bytes = cost_.stored_bytes[op.outputs[0].value()];
    o.ranks = static_cast<double>(op.node->IntOr("ranks", 1));
    return o;
  }

  [[nodiscard]] std::optional<Operator> GroupedAttention(const Op& op, Operator o) const {
    constexpr size_t kPastKeys = 3;
    const Tensor* q = TensorAt(shaped_, op, 0);
    const Tensor* past = TensorAt(shaped_, op, kPastKeys);
    if (q == nullptr || q->dims.size() != 3) return std::nullopt;
    o.heads = std::max<double>(1, static_cast<double>(op.node->IntOr("num_heads", 1)));
    o.key_heads = std::max<double>(1, static_cast<double>(op.node->IntOr("kv_num_heads", 1)));
    o.batch = DimOf(q, 0), o.queries = DimOf(q, 1);
    const bool packed = TensorAt(shaped_, op, 1) == nullptr;
    const double out = DimOf(&shaped_.tensors[op.outputs[0].value()], 2) / o.heads;  // values may differ from keys
    o.head_size = packed ? DimOf(q, 2) / (o.heads + 2 * o.key_heads) : (DimOf(q, 2) / o.heads + out) / 2;
    o.keys = o.queries + DimOf(past, 2);
    o.kind = o.queries == 1 ? OperatorKind::kDecode : OperatorKind::kPrefill;
    o.window = std::max<double>(0, static_cast<double>(op.node->IntOr("local_window_size", -1)));
    o.cache_fp8 = past != nullptr && BitsOf(past->dtype) == 8;
    // Keys that tokens share widen the window.
    if (const auto shared = static_cast<double>(op.node->IntOr("compressed", 0)); shared > 0) {
      o.keys = o.queries + DimOf(TensorAt(shaped_, op, kPastKeys + 1), 2);
      const auto top = static_cast<double>(op.node->IntOr("index_topk", 0));
      o.window += top > 0 ? std::min(top, o.keys / shared) : o.keys / shared;
    }
    return o;
  }

  [[nodiscard]] std::optional<Operator> LatentAttention(const Op& op, Operator o) const {
    constexpr size_t kPast = 3;
    const Tensor* q = TensorAt(shaped_, op, 0);
    const Tensor* past = TensorAt(shaped_, op, kPast);
    if (q == nullptr || q->dims.size() != 3) return std::nullopt;
    o.heads = std::max<double>(1, static_cast<double>(op.node->IntOr("num_heads", 1)));
    o.batch = DimOf(q, 0), o.queries = DimOf(q, 1), o.keys = o.queries + DimOf(past, 2);
    o.kind = o.queries == 1 ? OperatorKind::kLatentDecode : OperatorKind::kLatentPrefill;
    o.key_heads = o.kind == OperatorKind::kLatentDecode ? 1 : o.heads;
    o.window = std::max<double>(0, static_cast<double>(op.node->IntOr("local_window_size", -1)));
    o.cache_fp8 = past != nullptr && BitsOf(past->dtype) == 8;
    return o;
  }

  [[nodiscard]] std::optional<Operator> LinearAttention(const Op& op, Operator o) const {
    constexpr size_t kState = 3;
    const Tensor* mixed = TensorAt(shaped_, op, 0);
    const Tensor* state = TensorAt(shaped_, op, kState);
    o.heads = std::max<double>(1, static_cast<double>(op.node->IntOr("num_heads", 1)));
    o.key_size = std::max<double>(1, static_cast<double>(op.node->IntOr("key_size", 1)));
    o.head_size = std::max<double>(1, static_cast<double>(op.node->IntOr("value_size", 1)));
    o.batch = DimOf(mixed, 0), o.queries = o.keys = DimOf(mixed, 1);
    o.key_heads = (DimOf(mixed, 2) - o.heads * o.head_size) / (2 * o.key_size);
    o.kind = o.queries == 1 ? OperatorKind::kLinearDecode : OperatorKind::kLinearPrefill;
    if (state != nullptr) o.state_bytes = static_cast<double>(BitsOf(state->dtype)) / 8;
    o.delta = op.node->IntOr("delta", 1) > 0;
    return o.batch > 0 ? std::optional(o) : std::nullopt;
  }

  [[nodiscard]] std::optional<Operator> Convolution(const Op& op, Operator o) const {
    const Tensor* mixed = TensorAt(shaped_, op, 0);
    o.kind = OperatorKind::kConvolution;
    o.batch = DimOf(mixed, 0), o.queries = o.keys = DimOf(mixed, 1), o.head_size = DimOf(mixed, 2);
    o.heads = o.key_heads = 1, o.convolved = DimOf(TensorAt(shaped_, op, 1), 1);
    return o.batch > 0 ? std::optional(o) : std::nullopt;
  }

  // As an attention that reads keys alone: half of its bytes and FLOPs.
  [[nodiscard]] std::optional<Operator> IndexAttention(const Op& op, Operator o) const {
    constexpr size_t kPast = 3;
    const Tensor* q = TensorAt(shaped_, op, 0);
    o.heads = std::max<double>(1, static_cast<double>(op.node->IntOr("num_heads", 1)));
    o.key_heads = 1;
    o.batch = DimOf(q, 0), o.queries = DimOf(q, 1), o.keys = o.queries + DimOf(TensorAt(shaped_, op, kPast), 2);
    o.keys = std::max(o.queries, o.keys / std::max<double>(1, static_cast<double>(op.node->IntOr("compressed", 1))));
    o.head_size = DimOf(q, 2) / o.heads / 2;
    o.kind = o.queries == 1 ? OperatorKind::kDecode : OperatorKind::kPrefill;
    o.cache_fp8 = true;
    return o.batch > 0 ? std::optional(o) : std::nullopt;
  }

  [[nodiscard]] std::optional<Operator> Experts(const Op& op, Operator o) const {
    const bool quantised = op.node->op_type == "QMoE";
    const Tensor* hidden = TensorAt(shaped_, op, 0);
    const Tensor* up = TensorAt(shaped_, op, 2);
    const Tensor* down = TensorAt(shaped_, op, quantised ? 5 : 4);
    if (hidden == nullptr || up == nullptr || down == nullptr || hidden->dims.empty()) return std::nullopt;
    o.kind = OperatorKind::kExperts;
    o.k = DimOf(hidden, hidden->dims.size() - 1), o.n = DimOf(down, 2);
    o.gated = DimOf(up, 1) != o.n;
    o.type = TypeOf(*up, o.k, quantised ? DimOf(TensorAt(shaped_, op, 3), 2) : 0);
    o.m = o.k > 0 ? static_cast<double>(hidden->elements()) / o.k : 0;
    const double held = DimOf(up, 0);
    o.experts = std::max(held, static_cast<double>(op.node->IntOr("experts", 0)));
    o.expert_parallel = held > 0 ? o.experts / held : 1;
    o.top_k = static_cast<double>(op.node->IntOr("k", 1));
    return o;
  }

  const ShapedGraph& shaped_;
  const StepCost& cost_;
  const ServingEngine engine_;
};

}  // namespace

std::optional<ServingEngine> EngineOf(Framework framework) {
  if (!IsEngine(framework)) return std::nullopt;
  return static_cast<ServingEngine>(static_cast<int>(framework) - static_cast<int>(Framework::kVllm));  // same order
}

EngineStep EngineStepOf(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run) {
  EngineStep step{.bytes = cost.StepBytes()};
  const std::optional<ServingEngine> engine = EngineOf(run.framework);
  if (!engine.has_value()) return step;
  std::map<Operator, double> operators;
  std::map<EngineStep::Plain, double> plain;
  const Reader reader(shaped, cost, *engine);
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const OpCost& op = cost.ops[i];
    if (op.forward.kernels <= 0) continue;
    const auto repeat = static_cast<double>(shaped.ops[i].repeat);
    const std::optional<Operator> one = reader.Read(i);
    if (one.has_value()) {
      operators[*one] += repeat;
    } else {
      plain[PlainOf(op)] += 1;  // repeats included
    }
  }
  step.operators.assign(operators.begin(), operators.end());
  step.plain.assign(plain.begin(), plain.end());
  return step;
}

std::vector<double> OperatorTimesOf(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run,
                                    const GpuType& gpu) {
  std::vector<double> times(shaped.ops.size(), 0);
  const std::optional<ServingEngine> engine = EngineOf(run.framework);
  if (!engine.has_value()) return times;
  const Reader reader(shaped, cost, *engine);
  for (size_t i = 0; i < times.size(); ++i) {
    if (cost.ops[i].forward.kernels <= 0) continue;
    const std::optional<Operator> one = reader.Read(i);
    times[i] = one.has_value() ? FastestOf(*one, gpu, cost.StepBytes()).us * static_cast<double>(shaped.ops[i].repeat)
                               : PlainUs(PlainOf(cost.ops[i]), gpu);
  }
  return times;
}

EngineTime TimeOf(const EngineStep& step, const GpuType& gpu) {
  EngineTime time;
  double upper_us = 0, plain_us = 0;
  for (const auto& [op, count] : step.operators) {
    const OperatorTime one = FastestOf(op, gpu, step.bytes);
    time.device_us += count * one.us;
    upper_us += count * one.upper_us;
  }
  for (const auto& [op, count] : step.plain) plain_us += count * PlainUs(op, gpu);
  time.device_us += plain_us;
  time.step_us = time.device_us + kHostUs;
  time.step_upper_us = std::max(time.step_us, upper_us + kPlainUpper * plain_us + kHostUpper * kHostUs);
  return time;
}

}  // namespace horus
