// SPDX-License-Identifier: Apache-2.0
// Cost of one step: FLOPs, bytes, kernels and saved activations of every operator, forward and backward.
//
// Enters:  a ShapedGraph and a RunSpec.   Leaves: one OpCost an operator (same order) and the totals of the step.
// Units:   FLOPs (multiply-add = 2 but for horus_flops), bytes, kernels; per GPU and step, repeats included.
//          Amounts are doubles: exact below 2^53, and a hostile size can neither overflow nor wrap.
// Cost:    linear in operators, about 0.2 us each.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "features/run_spec.h"

namespace horus {

// Of one element, in the two widths that training computes in.
inline constexpr double kHalfBytes = 2, kFloatBytes = 4;

enum class OpClass : uint8_t {
  kConvolution,
  kMatmul,
  kRecurrent,
  kAttention,
  kNormalisation,
  kActivation,
  kElementwise,
  kReduction,
  kEmbedding,
  kPooling,
  kDataMovement,
  kOther,
};
inline constexpr size_t kOpClassCount = 12;
[[nodiscard]] std::string_view Name(OpClass op_class);

// What a kernel does, as far as one constant stands for its like (predict/prior.h fits them).
enum class KernelKind : uint8_t {
  kMatmul,
  kAttention,       // products of two activations, each a kernel
  kFusedAttention,  // both products and the softmax in one
  kConvolution,
  kPointwiseConvolution,  // filters of one element
  kGroupedConvolution,
  kDepthwiseConvolution,
  kDepthwiseBackward,
  kRecurrent,
  kBatchNorm,
  kNorm,  // any other
  kSoftmax,
  kActivation,
  kElementwise,
  kReduction,
  kPooling,
  kEmbedding,
  kDataMovement,
  kOther,  // loss and optimiser too
};
inline constexpr size_t kKernelKindCount = 19;

// [batch, m, k] x [batch, k, n], the product an operator comes down to; `batch` 0: none.
struct ProductShape {
  double batch = 0, m = 0, n = 0, k = 0;
  double taps = 1;           // of a convolution, filter elements a channel: the gradient of its input sums n x taps
  bool first_grad = false;   // backward has the gradient of [m, k],
  bool second_grad = false;  // and of [k, n]
};

// Of the forward pass or of the backward pass.
struct PassCost {
  double flops = 0;        // convolution, matmul, recurrent and attention products
  double flops_other = 0;  // everything else
  double bytes = 0;        // read and written in device memory
  double kernels = 0;
  double serial_reads = 0;  // of memory by one thread, each after the one before; 0: many threads share them
  double blocks = 0;        // thread blocks of one kernel of an operator, on average (occupancy)

  [[nodiscard]] double AllFlops() const { return flops + flops_other; }
  // So many launches more.
  void Launch(double more, double more_bytes, double blocks_each);
  void Add(const PassCost& more);  // but its blocks
};

struct OpCost {
  PassCost forward, backward;
  double horus_flops = 0;        // forward, as the author of Horus counts (README.md)
  double library_kernels = 0;    // kernels that one call of a library launches beyond its first (recurrent layers)
  double saved_bytes = 0;        // kept for backward by this operator and by none before it
  double saved_extra_bytes = 0;  // part of saved_bytes that is no tensor of the graph (masks, statistics)
  double workspace_bytes = 0;    // scratch that it may take while it runs
  double given_bytes = 0;        // of a product: what the forward pass reads and no operator makes (weights, caches)
  double horus_convs = 0;        // how it enters the four Horus counts
  double horus_linears = 0;
  double horus_activations = 0;
  double horus_others = 0;
  uint32_t saved_inputs = 0;  // bit i: autograd keeps input i (i < 32)
  uint32_t saved_outputs = 0;
  ProductShape product;
  OpClass op_class = OpClass::kOther;
  KernelKind kind = KernelKind::kOther;
  bool known = true;             // false: a shape or the rule is missing; the amounts are then a lower bound
  bool absorbed = false;         // part of a fused kernel that its last operator stands for (fusions.cc); all zero
  bool needs_backward = false;   // some gradient flows through it
  bool passes_gradient = false;  // the gradient of its output is that of its inputs, in the same storage
};

// How much of the step the amounts stand for.
struct CostCoverage {
  int64_t ops = 0;  // operators that run a kernel (plumbing excluded)
  int64_t ops_known = 0;
  double flops_share = 1;  // estimated share of forward FLOPs in known operators, 0-1: an unknown operator
                           // is taken to cost the mean of the known ones of its type, or of all if there are none
  std::vector<std::pair<std::string, int64_t>> unknown;  // "domain::type" (default domain without prefix), by name
};

// Amounts of one group of operators, or of the whole step.
struct CostTotals {
  PassCost forward, backward;
  double horus_flops = 0;
  double library_kernels = 0;
  double saved_bytes = 0;
  int64_t ops = 0;
};

// Work of the optimiser over all parameters, once a step; zero for inference.
struct OptimizerCost {
  double flops = 0;
  double bytes = 0;
  double kernels = 0;
};

struct StepCost {
  std::vector<OpCost> ops;           // parallel to ShapedGraph::ops; plumbing is all zero
  std::vector<uint8_t> needs_grad;   // per tensor: a gradient is computed for it (all 0 for inference)
  std::vector<TensorId> storage;     // per tensor: the tensor whose storage it uses (itself but for views)
  std::vector<double> stored_bytes;  // per tensor: its size as the run stores it (float32 of the file may be 2 bytes an
                                     // element), whoever owns the storage; 0 when unknown or never materialised
  std::vector<uint32_t> segments;    // per operator: its checkpoint segment; empty without checkpointing
  uint32_t last_segment = 0;         // runs forward once, the others twice
  CostTotals totals;                 // operators only; add `loss` and `optimizer` for the step
  std::array<CostTotals, kOpClassCount> by_class = {};
  PassCost recomputed;  // forward, of what runs twice
  OpCost loss;          // softmax cross-entropy on the first floating output, where the graph has no loss
  OptimizerCost optimizer;
  double parameters = 0;  // trained elements, each storage once
  double parameter_tensors = 0;
  double buffers = 0;            // floating elements held but not trained
  double input_bytes = 0;        // the batch, copied from the host at each step
  int64_t attention_layers = 0;  // whose operator knows of caches, linear ones too
  double cache_bytes = 0;        // of attention, as large as the step leaves it
  double given_bytes = 0;        // of the products, each storage once
  double activations = 0;        // elements of operator outputs (plumbing excluded) for the whole batch
  double horus_convs = 0;        // the four counts of Horus
  double horus_linears = 0;
  double horus_activations = 0;
  double horus_others = 0;
  int64_t critical_path_ops = 0;   // longest chain of operators that run a kernel
  double critical_path_flops = 0;  // most forward FLOPs (both kinds) along one chain
  int64_t max_width = 0;           // most operators at one depth
  CostCoverage coverage;

  [[nodiscard]] bool RunsTwice(size_t op) const { return !segments.empty() && segments[op] < last_segment; }

  // Forward, or forward + backward + loss + optimiser when training; what checkpointing runs again included.
  [[nodiscard]] double StepFlops() const;
  [[nodiscard]] double StepBytes() const;
  [[nodiscard]] double StepKernels() const;

 private:
  [[nodiscard]] std::array<const PassCost*, 5> Passes() const {
    return {&recomputed, &totals.forward, &totals.backward, &loss.forward, &loss.backward};
  }
};

// Never fails: what cannot be known is counted in `coverage`.
[[nodiscard]] StepCost CostOfStep(const ShapedGraph& shaped, const RunSpec& run);

}  // namespace horus
