// SPDX-License-Identifier: Apache-2.0
// Names the parts of a replayed step, and bounds their sum.
#include "features/memory.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/units.h"

namespace horus {
namespace {

// Kernels that PyTorch loads at its first use of a GPU: (666,632,192 - 287,047,680) bytes, the difference that
// loading them lazily makes (pytorch/pytorch pull request 86509). Lazy loading is the default from PyTorch 1.13 with
// CUDA 11.7; libraries then still load what a net uses, so the figure stands for both.
constexpr int64_t kLoadedKernelsMib = 362;

int64_t ToBytes(double bytes) {
  constexpr double kMost = 288230376151711744.0;  // 2^58: ten parts stay below 2^63
  return static_cast<int64_t>(std::clamp(std::ceil(bytes), 0.0, kMost));
}

// Kept by operators that often stand for a part of what the framework runs as one.
int64_t DecomposedBytes(const StepCost& cost) {
  double bytes = 0;
  for (const OpClass op_class : {OpClass::kAttention, OpClass::kElementwise, OpClass::kReduction, OpClass::kRecurrent,
                                 OpClass::kDataMovement, OpClass::kOther}) {
    bytes += cost.by_class[static_cast<size_t>(op_class)].saved_bytes;
  }
  return ToBytes(bytes);
}

// What training of a language model may keep besides of every score of attention: the softmax where it is fused here,
// what dropout left of it, and its mask. Such models drop in training as a rule, and an export for inference does not
// show it. Where the softmax counts already, its bytes stand for the dropouts of the other layers.
int64_t UnfusedBytes(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run) {
  const auto ran = [&cost](OpClass op_class) { return cost.by_class[static_cast<size_t>(op_class)].ops > 0; };
  const auto drops = [](const Op& op) { return op.node != nullptr && op.node->op_type == "Dropout"; };
  if (!cost.segments.empty() || !ran(OpClass::kAttention) || !ran(OpClass::kEmbedding)) return 0;
  if (std::ranges::any_of(shaped.ops, drops)) return 0;
  bool centres = false;
  for (size_t i = 0; i < shaped.ops.size() && !centres; ++i) {
    const std::string_view type = shaped.ops[i].node == nullptr ? "" : std::string_view(shaped.ops[i].node->op_type);
    centres = cost.ops[i].kind == KernelKind::kNorm && !type.starts_with("RMS") &&
              type.find("Simpl") == std::string_view::npos;
  }
  if (!centres) return 0;
  constexpr double kMaskBytes = 1;
  const double each = 2 * (IsHalf(run.precision) || IsAmp(run.precision) ? kFloatBytes / 2 : kFloatBytes) + kMaskBytes;
  double scores = 0;
  for (const Op& op : shaped.ops) {
    if (op.node == nullptr || op.node->op_type != "Softmax" || op.outputs.empty() || !op.outputs[0].valid()) continue;
    const Tensor& out = shaped.tensors[op.outputs[0].value()];
    const bool kept = cost.needs_grad[op.outputs[0].value()] != 0 && out.dims.size() > 2;
    if (kept) scores += static_cast<double>(out.elements()) * static_cast<double>(std::max<int64_t>(1, op.repeat));
  }
  return ToBytes(scores * each);
}

// Inputs that layers with weights keep for backward, each storage once. Products of two activations are left out:
// fused attention computes one of them again.
int64_t LayerInputBytes(const ShapedGraph& shaped, const StepCost& cost) {
  if (!cost.segments.empty()) return 0;
  const auto is_weight = [&](TensorId id) {
    return id.valid() && shaped.tensors[id.value()].role == TensorRole::kParameter;
  };
  std::vector<bool> counted(shaped.tensors.size(), false);
  double bytes = 0;
  for (size_t i = 0; i < shaped.ops.size(); ++i) {
    const OpCost& op = cost.ops[i];
    const std::vector<TensorId>& inputs = shaped.ops[i].inputs;
    const bool layer = op.op_class == OpClass::kConvolution || op.op_class == OpClass::kMatmul;
    if (!layer || !op.needs_backward || std::ranges::none_of(inputs, is_weight)) continue;
    for (size_t k = 0; k < inputs.size() && k < 32; ++k) {  // OpCost::saved_inputs tells of 32
      if ((op.saved_inputs >> k & 1) == 0 || !inputs[k].valid()) continue;
      const auto storage = cost.storage[inputs[k].value()].value();
      if (counted[storage] || shaped.tensors[storage].role != TensorRole::kActivation) continue;
      counted[storage] = true;
      bytes += cost.stored_bytes[storage];
    }
  }
  return ToBytes(bytes);
}

// Width of the bound: a share of the peak for what the replay misses, and the largest convolution's operands for
// algorithms that transform them. The scale is the conformal one of 12 CNNs on 5 GPUs (bench/quality/memory).
constexpr double kMarginShare = 0.03;
constexpr double kMarginScale = 1.8;

// For parts that an exporter decomposed, whose original may keep more. Assumption: no measurement.
constexpr double kDecomposedShare = 0.25;

// Libraries that load all kernels at once: over 1,000 MiB with the context before CUDA 11.7
// (pytorch/pytorch issue 107667).
constexpr int64_t kLibraryReserveMib = 512;

// More than so much of the peak nobody keeps: without fused kernels such a job is not trained.
constexpr int64_t kMostUnfused = 2;

}  // namespace

int64_t StepMemory::Peak() const {
  return weights + gradients + optimizer + master_weights + buckets + inputs + activations + transient + workspace +
         loaded_kernels + allocator_slack + context;
}

int64_t StepMemory::Upper() const {
  const auto peak = static_cast<double>(Peak());
  const double margin = kMarginScale * (kMarginShare * peak + static_cast<double>(largest_scratch)) +
                        kDecomposedShare * static_cast<double>(decomposed);
  return Peak() + std::min(unfused, Peak() / kMostUnfused) + ToBytes(margin) + kLibraryReserveMib * kBytesPerMib;
}

int64_t HorusMemoryBytes(const StepCost& cost) {
  return ToBytes(kFloatBytes * (cost.activations + cost.parameters + cost.activations));
}

StepMemory MemoryOfStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run, int64_t context_bytes) {
  const ReplayedStep step = ReplayStep(shaped, cost, run);
  StepMemory memory;
  memory.weights = ToBytes(step.weights);
  memory.gradients = ToBytes(step.gradients);
  memory.optimizer = ToBytes(step.optimizer);
  memory.master_weights = ToBytes(step.master_weights);
  memory.buckets = ToBytes(step.buckets);
  memory.inputs = ToBytes(step.inputs);
  memory.activations = ToBytes(step.saved);
  memory.transient = ToBytes(step.transient);
  memory.saved_total = ToBytes(step.saved_total);
  memory.workspace = ToBytes(step.matmul_workspace);
  const int64_t parts = memory.weights + memory.gradients + memory.optimizer + memory.master_weights + memory.buckets +
                        memory.inputs + memory.activations + memory.transient + memory.workspace;
  memory.allocator_slack = std::max<int64_t>(0, ToBytes(step.reserved) - parts);
  // PyTorch by itself makes a cache that is one token longer at each step; what it frees is too small for the next.
  // Measured: about the cache once more (QwenLM's README, Qwen-7B, 1 to 100 sequences of 1,024 to 8,192 tokens).
  if (!IsEngine(run.framework) && run.framework != Framework::kTensorFlow) {
    memory.allocator_slack += ToBytes(cost.cache_bytes);
  }
  memory.loaded_kernels = kLoadedKernelsMib * kBytesPerMib;
  double largest = 0;
  for (const OpCost& op : cost.ops) largest = std::max(largest, op.workspace_bytes);
  memory.largest_scratch = ToBytes(largest);
  memory.decomposed = DecomposedBytes(cost);
  memory.unfused = UnfusedBytes(shaped, cost, run);
  memory.horus = HorusMemoryBytes(cost);
  memory.least =
      memory.weights + memory.optimizer + memory.inputs + std::max(memory.gradients, LayerInputBytes(shaped, cost));
  memory.context = std::max<int64_t>(0, context_bytes);
  return memory;
}

}  // namespace horus
