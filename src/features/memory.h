// SPDX-License-Identifier: Apache-2.0
// StepMemory: the device memory that one step needs, part by part, with its peak and an upper bound.
//
// Enters:  a ShapedGraph, its StepCost and the RunSpec.
// Leaves:  bytes of every part; the context is added per GPU type.
// Units:   bytes (2^20 = 1 MiB); PyTorch's rules for saving, freeing and caching (README.md).
// Cost:    n log n in operators, about 1 us each.
#pragma once

#include "features/cost.h"

namespace horus {

// The peak is the sum of all parts: weights ... context, each as it stands at the moment of the peak.
struct StepMemory {
  int64_t weights = 0;          // parameters and buffers as the run stores them
  int64_t gradients = 0;        // of parameters; kept over the whole step
  int64_t optimizer = 0;        // its state
  int64_t master_weights = 0;   // float32 copies (pure fp16/bf16) or half copies (AMP's weight cache)
  int64_t buckets = 0;          // copies of the gradients that data-parallel replicas exchange
  int64_t inputs = 0;           // the batch
  int64_t activations = 0;      // saved for backward
  int64_t transient = 0;        // live at the peak besides all others: temporaries and gradients of activations
  int64_t workspace = 0;        // scratch of matrix handles
  int64_t loaded_kernels = 0;   // code that the libraries load
  int64_t allocator_slack = 0;  // rounding to 512 bytes and 2/20 MiB segments, and fragments
  int64_t context = 0;          // bare CUDA context of the GPU type

  int64_t saved_total = 0;  // all that is saved for backward at the end of forward (>= activations at the peak)
  // What the bound is made of.
  int64_t largest_scratch = 0;  // input and output of the largest convolution
  int64_t unfused = 0;          // kept besides where attention is not fused: with dropout that the graph does not hold
  int64_t decomposed = 0;       // saved by operators that may be parts of one in the framework
  int64_t horus = 0;            // the Horus formula, a baseline
  // What must be there at once, whatever framework and kernels: weights, optimiser state, the batch, and the larger of
  // the gradients and the inputs of layers with weights, which backward reads (without checkpointing).
  int64_t least = 0;

  [[nodiscard]] int64_t Peak() const;
  // Holds for what is not measured here; the rule is in README.md. Never falls with the batch size
  // by more than one allocator segment.
  [[nodiscard]] int64_t Upper() const;
};

// `context_bytes` = 0 leaves the context out (add it per GPU type by setting `context`).
[[nodiscard]] StepMemory MemoryOfStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run,
                                      int64_t context_bytes = 0);

// What is live and what the caching allocator holds while PyTorch runs a step operator by operator.
struct ReplayedStep {
  // Held over the whole step.
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double master_weights = 0;
  double buckets = 0;
  double inputs = 0;
  double matmul_workspace = 0;
  // Live besides these when their sum is largest.
  double saved = 0;
  double transient = 0;
  double saved_total = 0;  // kept for backward when forward ends
  double reserved = 0;     // by the allocator, at the end
};

// Training replays two steps: the first makes gradients and the optimiser's state where PyTorch makes them, the second
// runs beside them and the first one's leftovers. The peak is that of the last step.
[[nodiscard]] ReplayedStep ReplayStep(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run);

}  // namespace horus
