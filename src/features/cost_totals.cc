// SPDX-License-Identifier: Apache-2.0
// Sums operator costs into the step's totals and adds what no operator of the graph shows: loss and optimiser.
#include <algorithm>
#include <cmath>
#include <map>

#include "features/cost_rules.h"
#include "graph/roles.h"

namespace horus {
namespace {

void Add(const OpCost& cost, CostTotals& totals) {
  totals.forward.Add(cost.forward);
  totals.backward.Add(cost.backward);
  totals.horus_flops += cost.horus_flops;
  totals.library_kernels += cost.library_kernels;
  totals.saved_bytes += cost.saved_bytes;
  totals.ops += 1;
}

bool OwnsStorage(const StepCost& step, size_t t) { return step.storage[t].value() == t; }

// Inputs that come out again, grown or changed in place: a cache or a state, which stays on the GPU from step to step.
// Engines write the cache of an attention in place: it is held once, as large as it comes out.
std::vector<uint8_t> FindCaches(const ShapedGraph& shaped, StepCost& step) {
  std::vector<uint8_t> cache(shaped.tensors.size(), 0), returned(shaped.tensors.size(), 0);
  for (const TensorId id : Given(shaped.outputs)) returned[id.value()] = 1;
  // Of [a, b, c] and the same with one size that is not smaller.
  const auto continues = [](const Tensor& from, const Tensor& to) {
    if (!from.known || !to.known || from.dtype != to.dtype || from.dims.size() != to.dims.size()) return false;
    int64_t grown = 0;
    for (size_t i = 0; i < from.dims.size(); ++i) {
      if (to.dims[i] < from.dims[i]) return false;
      grown += to.dims[i] > from.dims[i] ? 1 : 0;
    }
    return grown <= 1;
  };
  for (const Op& op : shaped.ops) {
    const CacheUse use = op.node == nullptr ? CacheUse::kNone : CacheUseOf(op.node->op_type);
    const bool joins = use == CacheUse::kJoined;
    if (use == CacheUse::kNone) continue;
    step.attention_layers += joins ? 0 : 1;
    for (size_t i = joins ? 0 : 3; i < op.inputs.size(); ++i) {
      const TensorId in = op.inputs[i];
      if (!in.valid() || shaped.tensors[in.value()].role != TensorRole::kInput) continue;
      for (size_t o = joins ? 0 : 1; o < op.outputs.size(); ++o) {
        const TensorId out = op.outputs[o];
        if (!out.valid() || returned[out.value()] == 0) continue;
        if (!continues(shaped.tensors[in.value()], shaped.tensors[out.value()])) continue;
        cache[in.value()] = 1;
        if (step.storage[out.value()] != in) continue;
        step.stored_bytes[in.value()] = step.stored_bytes[out.value()];
        step.cache_bytes += step.stored_bytes[in.value()];
      }
    }
  }
  return cache;
}

void CountTensors(const ShapedGraph& shaped, const RunSpec& run, StepCost& step) {
  const std::vector<uint8_t> caches = FindCaches(shaped, step);
  for (size_t t = 0; t < shaped.tensors.size(); ++t) {
    const Tensor& tensor = shaped.tensors[t];
    if (!OwnsStorage(step, t)) continue;
    if (tensor.role == TensorRole::kInput && caches[t] == 0) step.input_bytes += step.stored_bytes[t];
    if (!IsFloating(tensor.dtype) && tensor.role != TensorRole::kParameter) continue;
    const bool frozen = run.mode == RunMode::kTraining && step.needs_grad[t] == 0;
    if (tensor.role == TensorRole::kParameter && !frozen) {
      step.parameters += static_cast<double>(tensor.elements());
      step.parameter_tensors += 1;
    } else if (tensor.role == TensorRole::kBuffer || tensor.role == TensorRole::kParameter) {
      step.buffers += static_cast<double>(tensor.elements());
    }
  }
}

void CountOps(const ShapedGraph& shaped, StepCost& step) {
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    const OpCost& cost = step.ops[i];
    if (op.plumbing || cost.absorbed) continue;
    Add(cost, step.totals);
    Add(cost, step.by_class[static_cast<size_t>(cost.op_class)]);
    step.horus_convs += cost.horus_convs;
    step.horus_linears += cost.horus_linears;
    step.horus_activations += cost.horus_activations;
    step.horus_others += cost.horus_others;
    for (const TensorId out : Given(op.outputs)) {
      if (!OwnsStorage(step, out.value())) continue;
      const Tensor& tensor = shaped.tensors[out.value()];
      if (IsFloating(tensor.dtype))
        step.activations += static_cast<double>(tensor.elements()) * static_cast<double>(op.repeat);
    }
  }
}

// Longest chains over the operators that run a kernel, and how many share a depth.
void MeasureDepth(const ShapedGraph& shaped, StepCost& step) {
  struct Chain {
    int64_t ops = 0;
    double flops = 0;
  };
  std::vector<Chain> chain(shaped.tensors.size());
  std::vector<int64_t> width;
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const Op& op = shaped.ops[i];
    const OpCost& cost = step.ops[i];
    Chain here;
    for (const TensorId in : Given(op.inputs)) {
      here.ops = std::max(here.ops, chain[in.value()].ops);
      here.flops = std::max(here.flops, chain[in.value()].flops);
    }
    if (!op.plumbing && cost.forward.kernels > 0) {
      if (width.size() <= static_cast<size_t>(here.ops)) width.resize(static_cast<size_t>(here.ops) + 1, 0);
      step.max_width = std::max(step.max_width, ++width[static_cast<size_t>(here.ops)]);
      here.ops += 1;
      here.flops += cost.forward.AllFlops();
    }
    for (const TensorId out : Given(op.outputs)) chain[out.value()] = here;
    step.critical_path_ops = std::max(step.critical_path_ops, here.ops);
    step.critical_path_flops = std::max(step.critical_path_flops, here.flops);
  }
}

void MeasureCoverage(const ShapedGraph& shaped, StepCost& step) {
  struct Kind {
    int64_t known = 0, unknown = 0;
    double flops = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Kind> kinds;  // by domain and operator
  Kind all;
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const OpCost& cost = step.ops[i];
    if (shaped.ops[i].plumbing || cost.absorbed) continue;
    const Node* node = shaped.ops[i].node;
    Kind& kind = node == nullptr ? kinds[{"", "?"}] : kinds[{node->domain, node->op_type}];
    (cost.known ? kind.known : kind.unknown) += 1;
    (cost.known ? all.known : all.unknown) += 1;
    if (!cost.known) continue;
    kind.flops += cost.forward.AllFlops();
    all.flops += cost.forward.AllFlops();
  }
  step.coverage.ops = all.known + all.unknown;
  step.coverage.ops_known = all.known;
  double missing = 0;
  for (const auto& [name, kind] : kinds) {
    if (kind.unknown == 0) continue;
    std::string qualified(name.first);
    qualified.append(name.first.empty() ? "" : "::").append(name.second);
    step.coverage.unknown.emplace_back(std::move(qualified), kind.unknown);
    const Kind& like = kind.known > 0 ? kind : all;
    if (like.known > 0) missing += like.flops / static_cast<double>(like.known) * static_cast<double>(kind.unknown);
  }
  if (all.known == 0 && all.unknown > 0) {
    step.coverage.flops_share = 0;
  } else if (all.flops + missing > 0) {
    step.coverage.flops_share = all.flops / (all.flops + missing);
  }
}

// Training needs a loss; exported graphs seldom hold one. Softmax cross-entropy on the first floating output that
// has a gradient stands for it: log-softmax and its gradient, in the type of the output, which autocast widens.
void AddLoss(const ShapedGraph& shaped, const RunSpec& run, StepCost& step) {
  constexpr double kForwardFlops = kTranscendentalFlops + 5, kBackwardFlops = kTranscendentalFlops + 3;
  for (const Op& op : shaped.ops) {
    if (op.node != nullptr && op.node->domain.empty() &&
        (op.node->op_type == "SoftmaxCrossEntropyLoss" || op.node->op_type == "NegativeLogLikelihoodLoss")) {
      return;
    }
  }
  for (const TensorId id : Given(shaped.outputs)) {
    if (step.needs_grad[id.value()] == 0) continue;
    const auto elements = static_cast<double>(shaped.tensors[id.value()].elements());
    const double read = step.stored_bytes[id.value()], wide = IsHalf(run.precision) ? read : elements * kFloatBytes;
    step.loss = OpCost{.forward = {.flops_other = kForwardFlops * elements,
                                   .bytes = read + 2 * wide,
                                   .kernels = 2,
                                   .blocks = PointwiseBlocks(elements)},
                       .backward = {.flops_other = kBackwardFlops * elements,
                                    .bytes = 2 * wide + read,
                                    .kernels = 2,
                                    .blocks = PointwiseBlocks(elements)},
                       .saved_bytes = wide,
                       .saved_extra_bytes = wide,
                       .needs_backward = true};
    return;
  }
}

// Of a parameter. Kernels are PyTorch's multi-tensor ("foreach") ones; the number of tensor lists d of a kernel bounds
// the tensors it takes (ATen/native/cuda/MultiTensorApply.cuh: 110, 64, 48, 36, 30).
struct Work {
  double flops;
  double bytes;   // read and written in float32
  double passes;  // kernels it takes part in
  double state;   // bytes kept; OptimizerStateBytes knows more of Adafactor's and of 8-bit ones
};
constexpr double kAdamFlops = 1 + 2 + 1 + 3 + kTranscendentalFlops + 1 + 1 + 3;
constexpr double kAdamBytes = 8 + 12 + 8 + 12 + 8 + 8 + 8 + 16;

// By Optimizer, counted update by update.
constexpr Work kWorks[] = {
    // p += -lr g
    {2, 12, 1, 0},
    // m *= b; m += g; p += -lr m
    {1 + 1 + 2, 8 + 12 + 12, 3, kFloatBytes},
    // Adam: m *= b; m += (1 - b) g; v *= b; v += (1 - b) g g; sqrt; / correction; + eps; p += m / that
    {kAdamFlops, kAdamBytes, 8, 2 * kFloatBytes},
    // AdamW: p *= 1 - lr decay before
    {1 + kAdamFlops, 8 + kAdamBytes, 9, 2 * kFloatBytes},
    // Adafactor: g g; + eps; row, column means; their product; rsqrt; x g; its rms; /; p += -lr that
    {1 + 1 + 2 + 1 + kTranscendentalFlops + 1 + 2 + 1 + 2, 8 + 8 + 8 + 4 + 8 + 12 + 4 + 8 + 12, 10, 0},
    // 8-bit Adam, one kernel: p and g in float32, two states of one byte
    {kAdamFlops, 8 + 4 + 4, 1, 0},
    // RMSprop: v *= b; v += (1 - b) g g; sqrt; + eps; p += -lr g / that
    {1 + 3 + kTranscendentalFlops + 1 + 3, 8 + 12 + 8 + 8 + 16, 5, kFloatBytes},
    // Adagrad: v += g g; sqrt; + eps; -lr g; p += that / root
    {2 + kTranscendentalFlops + 1 + 1 + 2, 12 + 8 + 8 + 8 + 16, 5, kFloatBytes},
    // AdamW in two bytes
    {1 + kAdamFlops, (8 + kAdamBytes) / 2, 9, kFloatBytes},
};
const Work& WorkOf(Optimizer optimizer) { return kWorks[static_cast<size_t>(optimizer)]; }

// Consecutive operators whose kept bytes are about equal, cut where the least is carried on: between the layers.
void AddSegments(const ShapedGraph& shaped, int64_t count, StepCost& step) {
  const size_t ops = step.ops.size();
  std::vector<size_t> made(shaped.tensors.size(), ops), read(shaped.tensors.size(), 0);  // by storage, first and last
  for (size_t i = 0; i < ops; ++i) {
    if (shaped.ops[i].plumbing) continue;
    for (const TensorId id : Given(shaped.ops[i].outputs))
      made[step.storage[id.value()].value()] = std::min(made[step.storage[id.value()].value()], i);
    for (const TensorId id : Given(shaped.ops[i].inputs)) read[step.storage[id.value()].value()] = i;
  }
  std::vector<double> carried(ops + 1, 0);  // past the beginning of each operator
  for (size_t t = 0; t < made.size(); ++t) {
    if (made[t] >= read[t]) continue;
    carried[made[t] + 1] += step.stored_bytes[t];
    carried[read[t] + 1] -= step.stored_bytes[t];
  }
  for (size_t i = 0; i < ops; ++i) carried[i + 1] += carried[i];
  const double share = step.totals.saved_bytes / static_cast<double>(count);
  step.segments.resize(ops);
  // Those that get no operator are not counted: there are never more than operators, however many are asked for.
  double before = 0, border = 0;
  std::pair<double, double> best = {HUGE_VAL, 0};  // what is carried there, and how far it lies from the border
  size_t at = 0;
  const auto cut = [&] {
    if (border >= 1 && border <= static_cast<double>(count - 1)) step.segments[at] = 1;
    best = {HUGE_VAL, 0};
  };
  for (size_t i = 0; i < ops; ++i) {
    const double exact = share > 0 ? before / share : 0, nearest = std::floor(exact + 0.5);
    if (nearest != border) cut();
    border = nearest;
    const std::pair here = {carried[i], std::abs(exact - nearest)};
    if (here < best) {
      best = here;
      at = i;
    }
    before += step.ops[i].saved_bytes;
  }
  cut();
  for (size_t i = 1; i < ops; ++i) step.segments[i] += step.segments[i - 1];
  if (!step.segments.empty()) step.last_segment = step.segments.back();
  for (size_t i = 0; i < step.ops.size(); ++i) {
    if (step.RunsTwice(i)) step.recomputed.Add(step.ops[i].forward);
  }
}

void AddOptimizer(const RunSpec& run, StepCost& step) {
  constexpr double kTensorsPerKernel = 48;  // three lists: parameter, gradient, state
  if (step.parameter_tensors == 0) return;
  const Work& work = WorkOf(run.optimizer);
  // 8-bit states and Adafactor's factors are updated tensor by tensor.
  const bool lists = run.framework == Framework::kPyTorch || FusesChains(run.framework);
  const bool one_by_one = !lists || run.optimizer == Optimizer::kAdam8Bit || run.optimizer == Optimizer::kAdafactor;
  const double launches = one_by_one ? step.parameter_tensors : std::ceil(step.parameter_tensors / kTensorsPerKernel);
  step.optimizer.flops = work.flops * step.parameters;
  step.optimizer.bytes = work.bytes * step.parameters;
  // TensorFlow has one kernel an update (core/kernels/training_ops_gpu.cu.cc), which then reads and writes each value
  // once.
  step.optimizer.kernels = (run.framework == Framework::kTensorFlow ? 1 : work.passes) * launches;
}

// Adafactor keeps a row and a column sum of each matrix in place of its second moment.
double FactoredBytes(const Tensor& tensor) {
  if (tensor.dims.size() < 2) return kFloatBytes * static_cast<double>(tensor.elements());
  const double rows = CostContext::Dim(tensor, -2), columns = CostContext::Dim(tensor, -1);
  const double matrices = rows * columns > 0 ? static_cast<double>(tensor.elements()) / (rows * columns) : 0;
  return kFloatBytes * matrices * (rows + columns);
}

// bitsandbytes: two states of one byte, a float32 scale per block of 256 each; small tensors keep float32 states.
double EightBitBytes(const Tensor& tensor) {
  constexpr double kBlock = 256, kSmallest = 4096;
  const auto elements = static_cast<double>(tensor.elements());
  if (elements < kSmallest) return 2 * kFloatBytes * elements;
  return 2 * (elements + kFloatBytes * std::ceil(elements / kBlock));
}

}  // namespace

double OptimizerStateBytes(const Tensor& parameter, Optimizer optimizer) {
  if (optimizer == Optimizer::kAdafactor) return FactoredBytes(parameter);
  if (optimizer == Optimizer::kAdam8Bit) return EightBitBytes(parameter);
  return WorkOf(optimizer).state * static_cast<double>(parameter.elements());
}

void AddTotals(const ShapedGraph& shaped, const RunSpec& run, StepCost& step) {
  CountTensors(shaped, run, step);
  CountOps(shaped, step);
  MeasureDepth(shaped, step);
  MeasureCoverage(shaped, step);
  if (run.mode != RunMode::kTraining) return;
  AddLoss(shaped, run, step);
  AddOptimizer(run, step);
  if (run.checkpoint_segments > 1) AddSegments(shaped, run.checkpoint_segments, step);
}

double StepCost::StepFlops() const {
  double flops = 0;
  for (const PassCost* pass : Passes()) flops = flops + pass->flops + pass->flops_other;
  return flops + optimizer.flops;
}

double StepCost::StepBytes() const {
  double bytes = 0;
  for (const PassCost* pass : Passes()) bytes += pass->bytes;
  return bytes + optimizer.bytes;
}

double StepCost::StepKernels() const {
  double kernels = 0;
  for (const PassCost* pass : Passes()) kernels += pass->kernels;
  return kernels + optimizer.kernels;
}

}  // namespace horus
