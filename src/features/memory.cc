// SPDX-License-Identifier: Apache-2.0
// Replays one step in topological order, forward and backward, against the caching allocator.
#include "features/memory.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/units.h"
#include "features/allocator.h"
#include "features/cost_totals.h"

namespace horus {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kHalfBytes = 2;
constexpr size_t kNever = SIZE_MAX;

// cuBLAS takes its scratch through the allocator, once a handle: 2 x 4 MiB + 8 x 16 KiB, PyTorch's default
// CUBLAS_WORKSPACE_CONFIG ":4096:2:16:8".
constexpr double kMatmulWorkspaceBytes = 8.125 * static_cast<double>(kBytesPerMib);

// Kernels that PyTorch loads at its first use of a GPU: (666,632,192 - 287,047,680) bytes, the difference that
// loading them lazily makes (pytorch/pytorch pull request 86509). Lazy loading is the default from PyTorch 1.13 with
// CUDA 11.7; libraries then still load what a net uses, so the figure stands for both.
constexpr int64_t kLoadedKernelsMib = 362;

int64_t ToBytes(double bytes) {
  constexpr double kMost = 288230376151711744.0;  // 2^58: ten parts stay below 2^63
  return static_cast<int64_t>(std::clamp(std::ceil(bytes), 0.0, kMost));
}

// What is live of each kind, unrounded.
struct Live {
  double saved = 0;
  double transient = 0;
  double workspace = 0;
};

// A buffer that several holders may share (gradients passed through an addition).
struct Buffer {
  CachingAllocator::Block block = UINT32_MAX;
  double bytes = 0;
  int32_t holders = 0;
};

class Replay {
 public:
  Replay(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run)
      : shaped_(shaped), cost_(cost), run_(run), tensors_(shaped.tensors.size()) {}

  StepMemory Run() {
    FindUses();
    HoldPersistent();
    for (size_t i = 0; i < shaped_.ops.size(); ++i) ForwardOp(i);
    memory_.saved_total = ToBytes(live_.saved);
    if (run_.mode == RunMode::kTraining) {
      StartBackward();
      for (size_t i = shaped_.ops.size(); i-- > 0;) BackwardOp(i);
      OptimizerStep();
    }
    memory_.activations = ToBytes(peak_.saved);
    memory_.transient = ToBytes(peak_.transient);
    const int64_t scratch = ToBytes(peak_.workspace + matmul_workspace_);
    const int64_t parts = memory_.weights + memory_.gradients + memory_.optimizer + memory_.master_weights +
                          memory_.inputs + memory_.activations + memory_.transient + scratch;
    memory_.workspace = scratch + kLoadedKernelsMib * kBytesPerMib;
    memory_.allocator_slack = std::max<int64_t>(0, allocator_.reserved() - parts);
    memory_.horus = HorusMemoryBytes(cost_);
    return memory_;
  }

 private:
  struct State {
    size_t last_use = kNever;     // last forward operator that reads the storage; kNever: none
    size_t released_at = kNever;  // first operator that keeps it for backward; kNever: not kept
    bool output = false;          // of the graph: lives to the end of forward
    bool live = false;
    CachingAllocator::Block block = UINT32_MAX;
    uint32_t gradient = UINT32_MAX;  // position in buffers_
  };

  [[nodiscard]] size_t Root(TensorId id) const { return cost_.storage[id.value()].value(); }
  [[nodiscard]] bool IsStep(size_t root) const { return shaped_.tensors[root].role == TensorRole::kActivation; }
  [[nodiscard]] bool IsInput(size_t root) const { return shaped_.tensors[root].role == TensorRole::kInput; }
  [[nodiscard]] double Repeat(const Op& op) const { return static_cast<double>(std::max<int64_t>(1, op.repeat)); }

  void FindUses() {
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      const Op& op = shaped_.ops[i];
      if (op.plumbing) continue;
      for (const TensorId id : op.inputs) {
        if (id.valid()) tensors_[Root(id)].last_use = i;
      }
      MarkKept(op.inputs, cost_.ops[i].saved_inputs, i);
      MarkKept(op.outputs, cost_.ops[i].saved_outputs, i);
    }
    for (const TensorId id : shaped_.outputs) {
      if (id.valid()) tensors_[Root(id)].output = true;
    }
  }

  void MarkKept(const std::vector<TensorId>& ids, uint32_t mask, size_t op) {
    for (size_t k = 0; k < ids.size() && k < 32; ++k) {
      if ((mask >> k & 1u) == 0 || !ids[k].valid()) continue;
      State& state = tensors_[Root(ids[k])];
      if (IsStep(Root(ids[k])) && state.released_at == kNever) state.released_at = op;
    }
  }

  void HoldPersistent() {
    const bool training = run_.mode == RunMode::kTraining;
    double weights = 0, gradients = 0, masters = 0, inputs = 0;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Tensor& tensor = shaped_.tensors[t];
      if (Root(TensorId(static_cast<uint32_t>(t))) != t) continue;
      const double bytes = cost_.stored_bytes[t];
      const auto elements = static_cast<double>(tensor.elements());
      if (tensor.role == TensorRole::kParameter || tensor.role == TensorRole::kBuffer) {
        weights += Hold(bytes);
        if (tensor.role == TensorRole::kBuffer || !IsFloating(tensor.dtype) || !training) continue;
        gradients += Hold(bytes);
        if (IsHalf(run_.precision)) masters += Hold(kFloatBytes * elements);
      } else if (tensor.role == TensorRole::kInput) {
        inputs += Hold(bytes);
      }
    }
    if (IsAmp(run_.precision)) masters += HoldHalfCopies();
    memory_.weights = ToBytes(weights);
    memory_.gradients = ToBytes(gradients);
    memory_.master_weights = ToBytes(masters);
    memory_.inputs = ToBytes(inputs);
    if (training) {
      const double state = OptimizerStateBytes(shaped_, cost_, run_.optimizer);
      memory_.optimizer = ToBytes(state);
      const double pieces = std::max(1.0, cost_.parameter_tensors);
      for (double i = 0; i < pieces; ++i) Hold(state / pieces);
    }
    const bool products = std::any_of(cost_.ops.begin(), cost_.ops.end(), [](const OpCost& op) {
      return op.forward_flops > 0 && (op.op_class == OpClass::kMatmul || op.op_class == OpClass::kAttention);
    });
    if (products) matmul_workspace_ = Hold(kMatmulWorkspaceBytes);
  }

  // Autocast keeps a half copy of every weight that a product reads until the step ends.
  double HoldHalfCopies() {
    std::vector<uint8_t> copied(tensors_.size(), 0);
    double bytes = 0;
    for (size_t i = 0; i < shaped_.ops.size(); ++i) {
      if (cost_.ops[i].forward_flops <= 0) continue;
      for (const TensorId id : shaped_.ops[i].inputs) {
        if (!id.valid() || shaped_.tensors[Root(id)].role != TensorRole::kParameter || copied[Root(id)] != 0) continue;
        copied[Root(id)] = 1;
        bytes += Hold(kHalfBytes * static_cast<double>(shaped_.tensors[Root(id)].elements()));
      }
    }
    return bytes;
  }

  double Hold(double bytes) {
    static_cast<void>(allocator_.Take(bytes));
    return std::max(0.0, bytes);
  }

  void ForwardOp(size_t i) {
    const Op& op = shaped_.ops[i];
    if (op.plumbing) return;
    const OpCost& cost = cost_.ops[i];
    for (const TensorId id : op.outputs) {
      if (id.valid() && IsStep(Root(id)) && !tensors_[Root(id)].live) Make(Root(id), Repeat(op));
    }
    extra_.resize(shaped_.ops.size(), UINT32_MAX);
    if (cost.saved_extra_bytes > 0) {
      extra_[i] = allocator_.Take(cost.saved_extra_bytes);
      live_.saved += cost.saved_extra_bytes;
    }
    Scratch(cost.workspace_bytes);
    for (const TensorId id : op.inputs) ReleaseAfterForward(id, i);
    for (const TensorId id : op.outputs) ReleaseAfterForward(id, i);
  }

  void Make(size_t root, double repeat) {
    State& state = tensors_[root];
    // A kept tensor of a loop body exists once an iteration.
    const double bytes = cost_.stored_bytes[root] * (state.released_at != kNever ? repeat : 1);
    state.block = allocator_.Take(bytes);
    state.live = true;
    size_of_.resize(tensors_.size(), 0);
    size_of_[root] = bytes;
    (state.released_at != kNever ? live_.saved : live_.transient) += bytes;
    Look();
  }

  void ReleaseAfterForward(TensorId id, size_t i) {
    if (!id.valid()) return;
    State& state = tensors_[Root(id)];
    const bool read_later = state.last_use != kNever && state.last_use > i;
    if (!state.live || !IsStep(Root(id)) || state.output || read_later || state.released_at != kNever) return;
    Drop(Root(id));
  }

  void Drop(size_t root) {
    State& state = tensors_[root];
    allocator_.Give(state.block);
    state.live = false;
    (state.released_at != kNever ? live_.saved : live_.transient) -= size_of_[root];
  }

  void Scratch(double bytes) {
    if (bytes <= 0) return;
    const CachingAllocator::Block block = allocator_.Take(bytes);
    live_.workspace += bytes;
    Look();
    live_.workspace -= bytes;
    allocator_.Give(block);
  }

  // The loss keeps its log-probabilities and hands a gradient to the outputs.
  void StartBackward() {
    if (cost_.loss.saved_extra_bytes > 0) {
      const CachingAllocator::Block kept = allocator_.Take(cost_.loss.saved_extra_bytes);
      live_.saved += cost_.loss.saved_extra_bytes;
      Look();
      for (const TensorId id : shaped_.outputs) {
        if (id.valid() && cost_.needs_grad[id.value()] != 0) AddGradient(id, std::nullopt);
      }
      allocator_.Give(kept);
      live_.saved -= cost_.loss.saved_extra_bytes;
    }
    for (size_t root = 0; root < tensors_.size(); ++root) {
      const State& state = tensors_[root];
      if (state.live && state.output && state.released_at == kNever && IsStep(root)) Drop(root);
    }
  }

  // A gradient for the storage of `id`; shares `passed` when given and none exists yet.
  void AddGradient(TensorId id, std::optional<uint32_t> passed) {
    State& state = tensors_[Root(id)];
    const double bytes = cost_.stored_bytes[Root(id)];
    if (state.gradient != UINT32_MAX) {  // added to what is there: one temporary more
      Temporary(cost_.stored_bytes[id.value()]);
      return;
    }
    if (passed && buffers_[*passed].bytes >= bytes) {
      state.gradient = *passed;
      buffers_[*passed].holders += 1;
      return;
    }
    buffers_.push_back({allocator_.Take(bytes), bytes, 1});
    live_.transient += bytes;
    state.gradient = static_cast<uint32_t>(buffers_.size() - 1);
    Look();
  }

  void Temporary(double bytes) {
    const CachingAllocator::Block block = allocator_.Take(bytes);
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
    for (const TensorId id : op.outputs) {
      if (id.valid() && tensors_[Root(id)].gradient != UINT32_MAX) passed = tensors_[Root(id)].gradient;
    }
    if (cost.needs_backward && passed) {
      Scratch(cost.workspace_bytes);
      for (const TensorId id : op.inputs) {
        if (!id.valid() || cost_.needs_grad[id.value()] == 0) continue;
        if (IsStep(Root(id))) {
          AddGradient(id, cost.passes_gradient ? passed : std::nullopt);
        } else if (!IsInput(Root(id))) {
          Temporary(cost_.stored_bytes[id.value()]);  // added into the held gradient of the parameter
        }
      }
    }
    for (const TensorId id : op.outputs) {
      if (id.valid() && Root(id) == id.value()) DropGradient(Root(id));
    }
    if (i < extra_.size() && extra_[i] != UINT32_MAX) {
      allocator_.Give(extra_[i]);
      live_.saved -= cost.saved_extra_bytes;
    }
    ReleaseKept(op.inputs, i);
    ReleaseKept(op.outputs, i);
  }

  void DropGradient(size_t root) {
    State& state = tensors_[root];
    if (state.gradient == UINT32_MAX) return;
    Buffer& buffer = buffers_[state.gradient];
    state.gradient = UINT32_MAX;
    if (--buffer.holders > 0) return;
    allocator_.Give(buffer.block);
    live_.transient -= buffer.bytes;
  }

  void ReleaseKept(const std::vector<TensorId>& ids, size_t i) {
    for (const TensorId id : ids) {
      if (id.valid() && tensors_[Root(id)].live && tensors_[Root(id)].released_at == i) Drop(Root(id));
    }
  }

  // Adam's multi-tensor form holds the square roots of all second moments at once.
  void OptimizerStep() {
    if (run_.optimizer == Optimizer::kAdam || run_.optimizer == Optimizer::kAdamW) {
      Temporary(kFloatBytes * cost_.parameters);
    }
  }

  void Look() {
    const auto sum = [](const Live& live) { return live.saved + live.transient + live.workspace; };
    if (sum(live_) > sum(peak_)) peak_ = live_;
  }

  const ShapedGraph& shaped_;
  const StepCost& cost_;
  const RunSpec& run_;
  std::vector<State> tensors_;
  std::vector<double> size_of_;
  std::vector<CachingAllocator::Block> extra_;
  std::vector<Buffer> buffers_;
  CachingAllocator allocator_;
  Live live_;
  Live peak_;
  double matmul_workspace_ = 0;
  StepMemory memory_;
};

// The upper bound adds this share of everything that moves with the batch, for fused or unfused variants of
// operators and fragments, and a fixed amount for libraries that load lazily. Assumptions, not yet calibrated.
constexpr int64_t kVariantShareDivisor = 4;  // a quarter
constexpr int64_t kLibraryReserveMib = 512;

}  // namespace

int64_t StepMemory::Peak() const {
  return weights + gradients + optimizer + master_weights + inputs + activations + transient + workspace +
         allocator_slack + context;
}

int64_t StepMemory::Upper() const {
  return Peak() + (activations + transient + workspace) / kVariantShareDivisor + kLibraryReserveMib * kBytesPerMib;
}

int64_t HorusMemoryBytes(const StepCost& cost) {
  return ToBytes(kFloatBytes * (cost.activations + cost.parameters + cost.activations));
}

StepMemory MemoryOfStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run, int64_t context_bytes) {
  StepMemory memory = Replay(shaped, cost, run).Run();
  memory.context = std::max<int64_t>(0, context_bytes);
  return memory;
}

}  // namespace horus
