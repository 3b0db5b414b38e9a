// SPDX-License-Identifier: Apache-2.0
// Cost rules: the table from operator type to the function that fills its OpCost, and what such a function may ask.
//
// Enters:  one operator with its tensors' sizes and which gradients are wanted.
// Leaves:  the amounts of one execution in OpCost; repeats are multiplied outside.
// Cost:    O(inputs + outputs) an operator, Einsum by its equation.
#pragma once

#include <span>

#include "features/cost.h"

namespace horus {

// Threads times elements per thread of PyTorch's elementwise kernels: 128 x 4 (ATen/native/cuda/thread_constants.h).
inline constexpr double kElementsPerBlock = 512;
// Edge of the output tile of one block, and the depth at which libraries start to split the inner dimension over
// blocks. Assumptions: common CUTLASS tiles are 64 to 256 wide, and small problems take the small ones.
inline constexpr double kMatmulTile = 64;
inline constexpr double kMatmulSplitDepth = 1024;
// FLOPs that a transcendental function stands for (exp, log, tanh, erf, sqrt): a convention of this project.
inline constexpr double kTranscendentalFlops = 4;

// What autograd keeps of a pointwise operator.
enum class Saves : uint8_t { kNothing, kInputs, kOutput, kBoth, kMask };

// In tables of rules.
inline constexpr double kT = kTranscendentalFlops;
inline constexpr OpClass kAct = OpClass::kActivation;
inline constexpr Saves kIn = Saves::kInputs;

class CostContext;
struct CostRule {
  std::string_view name;  // "Conv"; "com.microsoft::Gelu" outside the default domain; in tables several, with blanks
  OpClass op_class = OpClass::kOther;
  void (*apply)(CostContext&, const CostRule&) = nullptr;
  double flops = 0;  // per element, for rules that are pointwise in their output or input
  double backward_flops = 0;
  Saves saves = Saves::kNothing;
  bool amp_float32 = false;  // autocast computes it in float32
};

[[nodiscard]] inline double PointwiseBlocks(double elements) { return elements / kElementsPerBlock + 1; }

class CostContext {
 public:
  CostContext(const ShapedGraph& shaped, const Op& op, const RunSpec& run, const StepCost& step, OpCost& filled)
      : cost(filled), shaped_(shaped), op_(op), run_(run), step_(step) {}

  OpCost& cost;

  [[nodiscard]] const Node& node() const { return *op_.node; }
  [[nodiscard]] bool training() const { return run_.mode == RunMode::kTraining; }
  [[nodiscard]] bool amp() const {
    return run_.precision == Precision::kAmpFp16 || run_.precision == Precision::kAmpBf16;
  }
  // Kernels written for images of one layout, not generated: eager PyTorch, channels first.
  [[nodiscard]] bool PlanesInTurn() const {
    return (run_.framework == Framework::kPyTorch || run_.framework == Framework::kPyTorch1) &&
           run_.layout == Layout::kNchw;
  }
  [[nodiscard]] size_t inputs() const { return op_.inputs.size(); }
  [[nodiscard]] size_t outputs() const { return op_.outputs.size(); }
  [[nodiscard]] bool Has(size_t i) const { return i < op_.inputs.size() && op_.inputs[i].valid(); }
  [[nodiscard]] bool HasOut(size_t i) const { return i < op_.outputs.size() && op_.outputs[i].valid(); }
  // Only for Has(i) / HasOut(i).
  [[nodiscard]] const Tensor& In(size_t i) const { return shaped_.tensors[op_.inputs[i].value()]; }
  [[nodiscard]] const Tensor& Out(size_t i) const { return shaped_.tensors[op_.outputs[i].value()]; }
  // Elements and stored bytes; 0 for a tensor left out or unknown.
  [[nodiscard]] double InCount(size_t i) const { return Has(i) ? static_cast<double>(In(i).elements()) : 0; }
  [[nodiscard]] double OutCount(size_t i) const { return HasOut(i) ? static_cast<double>(Out(i).elements()) : 0; }
  [[nodiscard]] double InBytes(size_t i) const { return Has(i) ? step_.stored_bytes[op_.inputs[i].value()] : 0; }
  [[nodiscard]] double OutBytes(size_t i) const { return HasOut(i) ? step_.stored_bytes[op_.outputs[i].value()] : 0; }
  [[nodiscard]] double AllInBytes() const;
  [[nodiscard]] double AllOutBytes() const;
  // Size of dimension `axis` (negative counts from the end) of a known tensor; 1 when there is none.
  [[nodiscard]] static double Dim(const Tensor& tensor, int64_t axis);
  [[nodiscard]] double InDim(size_t i, int64_t axis) const { return Dim(In(i), axis); }
  [[nodiscard]] double OutDim(size_t i, int64_t axis) const { return Dim(Out(i), axis); }
  [[nodiscard]] double Int(std::string_view attribute, int64_t otherwise) const {
    return static_cast<double>(node().IntOr(attribute, otherwise));
  }
  // A gradient of input i is computed.
  [[nodiscard]] bool Wants(size_t i) const { return Has(i) && step_.needs_grad[op_.inputs[i].value()] != 0; }
  [[nodiscard]] bool WantsAny(size_t count, size_t from = 0) const {  // of so many inputs
    for (size_t i = from; i < from + count; ++i) {
      if (Wants(i)) return true;
    }
    return false;
  }
  // Input i is a trained parameter, or a constant in the place of one.
  [[nodiscard]] bool IsWeight(size_t i) const;

  // A product of two activations.
  void BecomeAttention() {
    cost.op_class = OpClass::kAttention;
    cost.kind = KernelKind::kAttention;
  }

  // The rule cannot tell the cost: the amounts so far are a lower bound.
  void Unknown() { cost.known = false; }

  void SaveInput(size_t i) {
    if (i < 32 && Has(i)) cost.saved_inputs |= 1u << i;
  }
  void SaveInputs(size_t count) {
    for (size_t i = 0; i < count; ++i) SaveInput(i);
  }
  void SaveOutput(size_t i) {
    if (i < 32 && HasOut(i)) cost.saved_outputs |= 1u << i;
  }
  void SaveExtra(double bytes) { cost.saved_extra_bytes += bytes; }

  // One forward (backward) launch more: `blocks` thread blocks each; blocks are averaged over kernels.
  void Forward(double kernels, double bytes, double blocks) { cost.forward.Launch(kernels, bytes, blocks); }
  void Backward(double kernels, double bytes, double blocks) { cost.backward.Launch(kernels, bytes, blocks); }
  // The same of kernels that compute element by element, with their FLOPs.
  void ForwardOver(double elements, double flops, double bytes, double kernels = 1) {
    cost.forward.flops_other += flops;
    Forward(kernels, bytes, PointwiseBlocks(elements));
  }
  void BackwardOver(double elements, double flops, double bytes, double kernels = 1) {
    cost.backward.flops_other += flops;
    Backward(kernels, bytes, PointwiseBlocks(elements));
  }

 private:
  const ShapedGraph& shaped_;
  const Op& op_;
  const RunSpec& run_;
  const StepCost& step_;
};

// Thread blocks of `batch` products [m, k] x [k, n].
[[nodiscard]] double MatmulBlocks(double batch, double m, double n, double k);

// One table a file, in its order.
[[nodiscard]] std::span<const CostRule> MatrixCostRules();
[[nodiscard]] std::span<const CostRule> AttentionCostRules();
[[nodiscard]] std::span<const CostRule> PointwiseCostRules();
[[nodiscard]] std::span<const CostRule> ReductionCostRules();
[[nodiscard]] std::span<const CostRule> DataCostRules();

// Slice, Split, Expand and their like: PyTorch returns a view on the first input, so nothing is materialised.
[[nodiscard]] bool IsViewOperator(const CostRule& rule);

// Comparisons, rounding, random numbers: no gradient passes.
[[nodiscard]] bool StopsGradient(const CostRule& rule);

// Fills what a StepCost says of the whole step: sums, classes, depth, loss, optimiser and coverage. Its `ops`,
// `storage` and `stored_bytes` are there.
void AddTotals(const ShapedGraph& shaped, const RunSpec& run, StepCost& step);

// Bytes of the optimiser's state for one parameter.
[[nodiscard]] double OptimizerStateBytes(const Tensor& parameter, Optimizer optimizer);

// All of them, one a name, sorted by it.
[[nodiscard]] const std::vector<CostRule>& SortedCostRules();
// nullptr when there is none.
[[nodiscard]] const CostRule* FindCostRule(const Node& node);
[[nodiscard]] const CostRule* FindCostRule(std::string_view name);

// ---- Groups of operators that an exporter wrote for what is one kernel when the job runs (fusions.cc).

struct Fusion {
  bool absorbed = false;             // no kernel of its own; its output is never materialised
  std::string_view stands_for;       // the rule that the last operator of a group, or a view, costs by ("Gelu")
  TensorId source;                   // its storage stands for all that lies between; valid in every operator of a group
  std::vector<TensorId> reads = {};  // by the operator that stands for the group; empty of a view
};
// What attention costs by where its operators are one kernel.
inline constexpr std::string_view kFusedAttentionRule = "horus::FusedAttention";
// And a Transpose that is a view, of whose result the parts are read: their gradients are joined, and then turned back.
inline constexpr std::string_view kTurnedBackRule = "horus::TurnedBack";

// Finds x * sigmoid(x), x * hard-sigmoid(x), Mish, the erf form of GELU and layer normalisation, in any order of
// operands, and padding before average pooling, where nobody else reads what lies between. Under PyTorch 2 attention
// too: two products of activations around a softmax, masks and casts between them. Not where scores are scaled after
// their product: models that call the fused kernel scale queries or leave it to the kernel, and export accordingly.
// Transposes and x[i] that PyTorch does not copy cost by the rule of a view. One entry an operator.
[[nodiscard]] std::vector<Fusion> FindFusions(const ShapedGraph& shaped, const RunSpec& run);

}  // namespace horus
