// SPDX-License-Identifier: Apache-2.0
// The memory of a step: training or inference is replayed in topological order, forward and backward, against the
// caching allocator; the parts are named and their sum is bounded.
#include "features/memory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/units.h"
#include "features/allocator.h"
#include "features/cost_rules.h"

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

// 4 x (activations x batch + parameters + gradients of activations x batch): the published Horus estimate.
int64_t HorusMemoryBytes(const StepCost& cost) {
  return ToBytes(kFloatBytes * (cost.activations + cost.parameters + cost.activations));
}

// ---- The replay.

using Block = CachingAllocator::Block;

constexpr uint32_t kNoGradient = UINT32_MAX;
constexpr Block kNoBlock = UINT32_MAX;

// cuBLAS takes its scratch through the allocator, once a handle: 2 x 4 MiB + 8 x 16 KiB, PyTorch's default
// CUBLAS_WORKSPACE_CONFIG ":4096:2:16:8".
constexpr double kMatmulWorkspaceBytes = 8.125 * static_cast<double>(kBytesPerMib);

// The first step makes what the second finds.
constexpr int kTrainingSteps = 2;

// What is live of each kind, unrounded.
struct Live {
  double saved = 0;
  double transient = 0;
  [[nodiscard]] double Sum() const { return saved + transient; }
};

// The storage of a step's tensor.
struct Storage {
  bool live = false;
  double bytes = 0;
  Block block = kNoBlock;
  uint32_t gradient = kNoGradient;  // position in gradients_
};

// A buffer that several tensors' gradients may share, passed through an addition.
struct Gradient {
  Block block = kNoBlock;
  double bytes = 0;
  int32_t holders = 0;
};

bool Is(const Node* node, std::string_view type) {
  return node != nullptr && node->domain.empty() && node->op_type == type;
}

// Model code of convolutional nets calls ReLU in place, after a convolution, a normalisation or a sum; and the sum too,
// that ends a residual block. Elsewhere (perceptrons, transformers, LeakyReLU) the default stands, which is a result of
// its own.
bool RunsInPlace(const Node& node, const Node* before, const Node* after) {
  if (Is(&node, "Relu")) return Is(before, "Conv") || Is(before, "BatchNormalization") || Is(before, "Add");
  return Is(&node, "Add") && Is(after, "Relu");
}

struct StorageLife {
  static constexpr size_t kNever = SIZE_MAX;
  size_t last_use = kNever;  // last operator that reads it forward; kNever: none
  size_t kept_by = kNever;   // first operator that keeps it for backward; kNever: not kept
  uint32_t keepers = 0;      // operands and results that keep it
  bool output = false;       // of the graph
};

// In which storage each tensor of a step lies, who reads it last and who keeps it for backward: views lie in their
// base's storage, results of in-place operators in an operand's.
class Lifetimes {
 public:
  Lifetimes(const ShapedGraph& shaped, const StepCost& cost)
      : shaped_(shaped), cost_(cost), maker_(shaped.tensors.size()), reader_(shaped.tensors.size()) {
    for (size_t t = 0; t < shaped.tensors.size(); ++t) root_.push_back(t);
    FindUses();
    for (const Op& op : shaped.ops) {
      for (const TensorId id : Given(op.inputs)) reader_[id.value()] = op.node;
      for (const TensorId id : Given(op.outputs)) maker_[id.value()] = op.node;
    }
    for (size_t i = 0; i < shaped.ops.size(); ++i) ShareInPlace(i);
    FindUses();
  }

  [[nodiscard]] size_t StorageOf(TensorId id) const { return root_[cost_.storage[id.value()].value()]; }
  [[nodiscard]] const StorageLife& Of(size_t storage) const { return lives_[storage]; }

 private:
  void FindUses() {
    lives_.assign(shaped_.tensors.size(), {});
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      const Op& op = shaped_.ops[i];
      if (op.plumbing) continue;
      for (const TensorId id : Given(op.inputs)) lives_[StorageOf(id)].last_use = i;
      MarkKept(op.inputs, cost_.ops[i].saved_inputs, i);
      MarkKept(op.outputs, cost_.ops[i].saved_outputs, i);
    }
    for (const TensorId id : Given(shaped_.outputs)) lives_[StorageOf(id)].output = true;
  }

  void MarkKept(const std::vector<TensorId>& ids, uint32_t mask, size_t op) {
    for (size_t k = 0; k < ids.size() && k < 32; ++k) {
      if ((mask >> k & 1u) == 0 || !ids[k].valid() || !IsActivation(StorageOf(ids[k]))) continue;
      StorageLife& life = lives_[StorageOf(ids[k])];
      if (life.kept_by == StorageLife::kNever) life.kept_by = op;
      ++life.keepers;
    }
  }

  // The result takes an operand's storage when this operator is the last to read it and nobody else keeps it.
  void ShareInPlace(size_t i) {
    const Op& op = shaped_.ops[i];
    if (op.plumbing || op.node == nullptr || cost_.ops[i].absorbed) return;
    if (op.outputs.size() != 1 || !op.outputs[0].valid()) return;
    const size_t out = op.outputs[0].value();
    if (cost_.storage[out].value() != out) return;
    for (size_t k = 0; k < op.inputs.size() && k < 32; ++k) {
      if (!op.inputs[k].valid()) continue;
      if (!RunsInPlace(*op.node, maker_[op.inputs[k].value()], reader_[out])) continue;
      const size_t operand = StorageOf(op.inputs[k]);
      if (!IsActivation(operand) || operand == out) continue;
      StorageLife& life = lives_[operand];
      const uint32_t own = cost_.ops[i].saved_inputs >> k & 1u;
      if (life.last_use != i || life.output || life.keepers > own) continue;
      if (cost_.stored_bytes[operand] != cost_.stored_bytes[out]) continue;
      life = lives_[out];
      root_[out] = operand;
      return;
    }
  }

  [[nodiscard]] bool IsActivation(size_t t) const { return shaped_.tensors[t].role == TensorRole::kActivation; }

  const ShapedGraph& shaped_;
  const StepCost& cost_;
  std::vector<size_t> root_;  // per tensor that owns its storage in `cost_`
  std::vector<StorageLife> lives_;
  std::vector<const Node*> maker_, reader_;  // per tensor; the last reader
};

// Which operators run twice, and which storages live across segments in between. Linear in operators; nothing without
// checkpointing.
class CheckpointPlan {
 public:
  CheckpointPlan(const ShapedGraph& shaped, const StepCost& cost, const Lifetimes& lifetimes) : cost_(cost) {
    if (cost.segments.empty()) return;
    constexpr uint32_t kUnmade = UINT32_MAX;
    std::vector<uint32_t> made_in(shaped.tensors.size(), kUnmade);
    crosses_.resize(shaped.tensors.size(), 0);
    crossing_.resize(size_t{cost.last_segment} + 1);
    for (size_t i = 0; i < shaped.ops.size(); ++i) {
      if (shaped.ops[i].plumbing) continue;
      for (const TensorId id : Given(shaped.ops[i].inputs)) {
        const size_t storage = lifetimes.StorageOf(id);
        if (made_in[storage] >= cost.segments[i] || crosses_[storage] != 0) continue;
        crosses_[storage] = 1;
        crossing_[made_in[storage]].push_back(storage);
      }
      for (const TensorId id : Given(shaped.ops[i].outputs)) {
        uint32_t& made = made_in[lifetimes.StorageOf(id)];
        if (made == kUnmade) made = cost.segments[i];
      }
    }
  }

  // Made in one segment and read in a later one: held until the segment that made it has run backward.
  [[nodiscard]] bool Crosses(size_t storage) const { return !crosses_.empty() && crosses_[storage] != 0; }
  [[nodiscard]] bool RunsTwice(size_t op) const { return cost_.RunsTwice(op); }
  // First operator of the segment whose last one `op` is; `op` + 1 when it is not the last.
  [[nodiscard]] size_t FirstOfSegmentEndingAt(size_t op) const {
    if (!RunsTwice(op)) return op + 1;
    if (op + 1 < cost_.segments.size() && cost_.segments[op + 1] == cost_.segments[op]) return op + 1;
    size_t first = op;
    while (first > 0 && cost_.segments[first - 1] == cost_.segments[op]) --first;
    return first;
  }
  [[nodiscard]] bool IsFirstOfSegment(size_t op) const {
    return !cost_.segments.empty() && (op == 0 || cost_.segments[op - 1] != cost_.segments[op]);
  }
  // Storages that cross from the segment of `op`.
  [[nodiscard]] const std::vector<size_t>& CrossingFrom(size_t op) const { return crossing_[cost_.segments[op]]; }

 private:
  const StepCost& cost_;
  std::vector<uint8_t> crosses_;
  std::vector<std::vector<size_t>> crossing_;  // per segment
};

class Replay {
 public:
  Replay(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run)
      : shaped_(shaped),
        cost_(cost),
        run_(run),
        lifetimes_(shaped, cost),
        plan_(shaped, cost, lifetimes_),
        storages_(shaped.tensors.size()),
        held_gradient_(shaped.tensors.size(), 0),
        extra_(shaped.ops.size(), kNoBlock) {}

  ReplayedStep Steps() {
    HoldWeights();
    const int steps = run_.mode == RunMode::kTraining ? kTrainingSteps : 1;
    for (int step = 0; step < steps; ++step) {
      peak_ = {};
      TakeInputs();
      for (size_t i = 0; i < shaped_.ops.size(); ++i) ForwardOp(i, plan_.RunsTwice(i) ? Run::kFirstOfTwo : Run::kOnly);
      out_.saved_total = live_.saved;
      if (run_.mode == RunMode::kTraining) {
        if (step == 0) HoldBuckets();
        StartBackward();
        for (size_t i = shaped_.ops.size(); i-- > 0;) {
          for (size_t again = plan_.FirstOfSegmentEndingAt(i); again <= i; ++again) ForwardOp(again, Run::kAgain);
          BackwardOp(i);
          if (plan_.IsFirstOfSegment(i)) DropCrossing(i);
        }
        OptimizerStep(step == 0);
      }
      EndStep();
    }
    out_.saved = peak_.saved;
    out_.transient = peak_.transient;
    out_.reserved = static_cast<double>(allocator_.reserved());
    return out_;
  }

 private:
  [[nodiscard]] size_t Root(TensorId id) const { return lifetimes_.StorageOf(id); }
  [[nodiscard]] bool Kept(size_t root) const {
    return plan_.Crosses(root) || lifetimes_.Of(root).kept_by != StorageLife::kNever;
  }
  [[nodiscard]] bool IsStep(size_t root) const { return shaped_.tensors[root].role == TensorRole::kActivation; }
  [[nodiscard]] bool IsInput(size_t root) const { return shaped_.tensors[root].role == TensorRole::kInput; }
  [[nodiscard]] bool Owns(size_t t) const { return cost_.storage[t].value() == t; }
  [[nodiscard]] double BytesOf(TensorId id) const { return cost_.stored_bytes[id.value()]; }

  void HoldWeights() {
    for (size_t t = 0; t < storages_.size(); ++t) {
      const Tensor& tensor = shaped_.tensors[t];
      if (!Owns(t) || (tensor.role != TensorRole::kParameter && tensor.role != TensorRole::kBuffer)) continue;
      out_.weights += Hold(cost_.stored_bytes[t]);
      if (Trains(t) && IsHalf(run_.precision) && run_.optimizer != Optimizer::kAdamWBf16)
        out_.master_weights += Hold(kFloatBytes * static_cast<double>(tensor.elements()));
    }
    if (IsAmp(run_.precision)) HoldHalfCopies();
    const bool products = std::ranges::any_of(cost_.ops, [](const OpCost& op) {
      return op.forward.flops > 0 && (op.op_class == OpClass::kMatmul || op.op_class == OpClass::kAttention);
    });
    if (products) out_.matmul_workspace = Hold(kMatmulWorkspaceBytes);
  }

  [[nodiscard]] bool Trains(size_t t) const {
    return shaped_.tensors[t].role == TensorRole::kParameter && cost_.needs_grad[t] != 0;
  }

  // Autocast keeps a half copy of every wider weight that a product reads until the step ends.
  void HoldHalfCopies() {
    std::vector<uint8_t> copied(storages_.size(), 0);
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      if (cost_.ops[i].forward.flops <= 0) continue;
      for (const TensorId id : Given(shaped_.ops[i].inputs)) {
        if (shaped_.tensors[Root(id)].role != TensorRole::kParameter || copied[Root(id)] != 0) continue;
        copied[Root(id)] = 1;
        const double half = kHalfBytes * static_cast<double>(shaped_.tensors[Root(id)].elements());
        if (cost_.stored_bytes[Root(id)] > half) out_.master_weights += Hold(half);
      }
    }
  }

  double Hold(double bytes) {
    static_cast<void>(allocator_.Take(bytes));
    return std::max(0.0, bytes);
  }

  // The next batch is copied to the device before the last one's name is bound to it.
  void TakeInputs() {
    std::vector<Block> batch;
    out_.inputs = 0;
    for (size_t t = 0; t < storages_.size(); ++t) {
      if (!Owns(t) || !IsInput(t)) continue;
      batch.push_back(allocator_.Take(cost_.stored_bytes[t]));
      out_.inputs += std::max(0.0, cost_.stored_bytes[t]);
    }
    for (const Block block : inputs_) allocator_.Give(block);
    inputs_ = std::move(batch);
  }

  // Of two runs only the second keeps anything for backward.
  enum class Run : uint8_t { kOnly, kFirstOfTwo, kAgain };

  void ForwardOp(size_t i, Run run) {
    const Op& op = shaped_.ops[i];
    if (op.plumbing) return;
    const OpCost& cost = cost_.ops[i];
    for (const TensorId id : Given(op.outputs)) {
      if (IsStep(Root(id)) && !storages_[Root(id)].live)
        Make(Root(id), static_cast<double>(std::max<int64_t>(1, op.repeat)));
    }
    if (cost.saved_extra_bytes > 0 && run != Run::kFirstOfTwo) {
      extra_[i] = allocator_.Take(cost.saved_extra_bytes);
      live_.saved += cost.saved_extra_bytes;
    }
    for (const TensorId id : op.inputs) ReleaseAfterForward(id, i, run);
    for (const TensorId id : op.outputs) ReleaseAfterForward(id, i, run);
  }

  void Make(size_t root, double repeat) {
    Storage& storage = storages_[root];
    // A kept tensor of a loop body exists once an iteration.
    storage.bytes = cost_.stored_bytes[root] * (Kept(root) ? repeat : 1);
    storage.block = allocator_.Take(storage.bytes);
    storage.live = true;
    (Kept(root) ? live_.saved : live_.transient) += storage.bytes;
    Look();
  }

  void ReleaseAfterForward(TensorId id, size_t i, Run run) {
    if (!id.valid() || !IsStep(Root(id)) || plan_.Crosses(Root(id))) return;
    const StorageLife& life = lifetimes_.Of(Root(id));
    const bool read_later = life.last_use != StorageLife::kNever && life.last_use > i;
    if (!storages_[Root(id)].live || life.output || read_later) return;
    if (run != Run::kFirstOfTwo && Kept(Root(id))) return;
    Drop(Root(id));
  }

  void Drop(size_t root) {
    Storage& storage = storages_[root];
    allocator_.Give(storage.block);
    storage.live = false;
    (Kept(root) ? live_.saved : live_.transient) -= storage.bytes;
  }

  // The loss keeps its log-probabilities and hands a gradient to the outputs.
  void StartBackward() {
    const double kept = cost_.loss.saved_extra_bytes;
    if (kept <= 0) return;
    const Block block = allocator_.Take(kept);
    live_.saved += kept;
    const uint32_t of_probabilities = Make(kept);
    for (const TensorId id : Given(shaped_.outputs)) {
      if (cost_.needs_grad[id.value()] != 0) Receive(Root(id), BytesOf(id), std::nullopt);
    }
    Leave(of_probabilities);
    allocator_.Give(block);
    live_.saved -= kept;
  }

  // A gradient arrives for a storage: shared with `passed` when given; added to one that came before.
  void Receive(size_t root, double bytes, std::optional<uint32_t> passed) {
    Storage& storage = storages_[root];
    const double whole = cost_.stored_bytes[root];
    const bool shares = passed && gradients_[*passed].bytes >= whole;
    if (storage.gradient == kNoGradient) {
      storage.gradient = shares ? *passed : Make(whole);
      if (shares) ++gradients_[*passed].holders;
      return;
    }
    const uint32_t arrived = shares ? kNoGradient : Make(bytes);
    const uint32_t sum = Make(whole);
    Leave(storage.gradient);
    if (arrived != kNoGradient) Leave(arrived);
    storage.gradient = sum;
  }

  uint32_t Make(double bytes) {
    gradients_.push_back({allocator_.Take(bytes), bytes, 1});
    live_.transient += bytes;
    Look();
    return static_cast<uint32_t>(gradients_.size() - 1);
  }

  void Leave(uint32_t index) {
    Gradient& gradient = gradients_[index];
    if (--gradient.holders > 0) return;
    allocator_.Give(gradient.block);
    live_.transient -= gradient.bytes;
  }

  void Temporary(double bytes) {
    const Block block = allocator_.Take(bytes);
    live_.transient += bytes;
    Look();
    live_.transient -= bytes;
    allocator_.Give(block);
  }

  void BackwardOp(size_t i) {
    const Op& op = shaped_.ops[i];
    const OpCost& cost = cost_.ops[i];
    if (op.plumbing) return;
    std::optional<uint32_t> passed;
    std::vector<uint32_t> done;    // gradients of outputs, which nobody reads after this operator
    std::vector<uint32_t> to_add;  // gradients of parameters that already hold one
    for (const TensorId id : Given(op.outputs)) {
      if (storages_[Root(id)].gradient == kNoGradient) continue;
      passed = storages_[Root(id)].gradient;
      if (!Owns(id.value())) continue;  // a view's gradient is a part of its base's
      done.push_back(*passed);
      storages_[Root(id)].gradient = kNoGradient;
    }
    if (cost.needs_backward && passed) {
      for (const TensorId id : Given(op.inputs)) {
        if (cost_.needs_grad[id.value()] == 0) continue;
        if (IsStep(Root(id))) {
          Receive(Root(id), BytesOf(id), cost.passes_gradient ? passed : std::nullopt);
        } else if (Trains(Root(id))) {
          ReceiveParameter(Root(id), BytesOf(id), &to_add);
        }
      }
    }
    for (const uint32_t gradient : done) Leave(gradient);
    if (extra_[i] != kNoBlock) {
      allocator_.Give(extra_[i]);
      live_.saved -= cost.saved_extra_bytes;
      extra_[i] = kNoBlock;
    }
    ReleaseKept(op.inputs, i);
    ReleaseKept(op.outputs, i);
    for (const uint32_t gradient : to_add) Leave(gradient);
  }

  void ReceiveParameter(size_t root, double bytes, std::vector<uint32_t>* to_add) {
    if (held_gradient_[root] != 0) {
      to_add->push_back(Make(bytes));
      return;
    }
    held_gradient_[root] = 1;
    out_.gradients += Hold(cost_.stored_bytes[root]);
  }

  void ReleaseKept(const std::vector<TensorId>& ids, size_t i) {
    for (const TensorId id : Given(ids)) {
      const Storage& storage = storages_[Root(id)];
      if (storage.live && lifetimes_.Of(Root(id)).kept_by == i && !plan_.Crosses(Root(id))) Drop(Root(id));
    }
  }

  // Nobody runs again that reads what this segment made.
  void DropCrossing(size_t first) {
    for (const size_t root : plan_.CrossingFrom(first)) {
      if (storages_[root].live && !lifetimes_.Of(root).output) Drop(root);
    }
  }

  // Replicas exchange gradients in flat copies: PyTorch's first bucket is 1 MiB, the others are 25 MiB
  // (torch/nn/parallel/distributed.py, bucket_cap_mb).
  void HoldBuckets() {
    if (run_.data_parallel <= 1) return;
    constexpr double kFirst = 1.0 * kBytesPerMib, kOther = 25.0 * kBytesPerMib;
    double bucket = 0;
    for (size_t t = storages_.size(); t-- > 0;) {
      if (!Owns(t) || !Trains(t)) continue;
      bucket += cost_.stored_bytes[t];
      if (bucket < (out_.buckets == 0 ? kFirst : kOther)) continue;
      out_.buckets += Hold(bucket);
      bucket = 0;
    }
    out_.buckets += Hold(bucket);
  }

  void OptimizerStep(bool first) {
    for (size_t t = 0; first && t < storages_.size(); ++t) {
      if (Owns(t) && Trains(t)) out_.optimizer += Hold(OptimizerStateBytes(shaped_.tensors[t], run_.optimizer));
    }
    // Multi-tensor forms hold the square roots of all second moments at once.
    const Optimizer optimizer = run_.optimizer;
    if (optimizer == Optimizer::kAdam || optimizer == Optimizer::kAdamW || optimizer == Optimizer::kRmsprop ||
        optimizer == Optimizer::kAdagrad) {
      Temporary(kFloatBytes * cost_.parameters);
    }
    if (optimizer == Optimizer::kAdamWBf16) Temporary(kHalfBytes * cost_.parameters);
  }

  // Outputs, and what no operator released.
  void EndStep() {
    for (size_t root = 0; root < storages_.size(); ++root) {
      if (storages_[root].live) Drop(root);
      if (storages_[root].gradient != kNoGradient) Leave(storages_[root].gradient);
      storages_[root].gradient = kNoGradient;
    }
    gradients_.clear();
    live_ = {};
  }

  void Look() {
    if (live_.Sum() > peak_.Sum()) peak_ = live_;
  }

  const ShapedGraph& shaped_;
  const StepCost& cost_;
  const RunSpec& run_;
  const Lifetimes lifetimes_;
  const CheckpointPlan plan_;
  std::vector<Storage> storages_;
  std::vector<uint8_t> held_gradient_;  // per parameter: its gradient exists
  std::vector<Block> extra_;            // per operator
  std::vector<Block> inputs_;
  std::vector<Gradient> gradients_;
  CachingAllocator allocator_;
  Live live_;
  Live peak_;
  ReplayedStep out_;
};

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
  if (!IsEngine(run.framework) && run.framework != Framework::kTensorFlow)
    memory.allocator_slack += ToBytes(cost.cache_bytes);
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

ReplayedStep ReplayStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run) {
  return Replay(shaped, cost, run).Steps();
}

}  // namespace horus
