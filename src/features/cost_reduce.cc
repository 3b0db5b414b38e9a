// SPDX-License-Identifier: Apache-2.0
// Cost of operators that combine many elements: normalisations, softmax, reductions, pooling and losses.
#include <algorithm>

#include "features/cost_rules.h"

namespace horus {
namespace {

constexpr double kFloat32Bytes = 4;
constexpr double kIndexBytes = 8;  // PyTorch's indices are int64

// Passes over the data: statistics, then normalisation; the backward reads both gradient and input twice.
constexpr double kNormForwardPasses = 3;
constexpr double kNormBackwardPasses = 5;
constexpr double kNormTrainingFlops = 7;   // per element: mean 1, variance 3, normalise 2, scale 1
constexpr double kNormInferenceFlops = 2;  // batch statistics known: one scale, one shift
constexpr double kNormBackwardFlops = 10;

// Statistics of `groups` groups of elements, then scale and shift.
void Normalise(CostContext& c, double groups, size_t first_parameter, size_t parameters) {
  const double n = c.InCount(0);
  const double bytes = c.InBytes(0);
  c.cost.horus_flops = n;
  c.cost.horus_others = 1;
  c.ForwardOver(n, kNormTrainingFlops * n, kNormForwardPasses * bytes);
  if (!c.Wants(0) && !c.WantsAny(parameters, first_parameter)) return;
  c.BackwardOver(n, kNormBackwardFlops * n, kNormBackwardPasses * bytes);
  c.SaveInput(0);
  c.SaveExtra(2 * groups * kFloat32Bytes);
}

void BatchNormalization(CostContext& c, const CostRule&) {
  if (!c.Has(0)) return c.Unknown();
  if (!c.training()) {
    c.cost.horus_flops = c.InCount(0);
    c.ForwardOver(c.InCount(0), kNormInferenceFlops * c.InCount(0), 2 * c.InBytes(0));
    return;
  }
  Normalise(c, c.InCount(1), 1, 2);
}

void LayerNormalization(CostContext& c, const CostRule&) {
  if (!c.Has(0)) return c.Unknown();
  // Rows: all dimensions before `axis`; the scale has the others.
  const double row = std::max(1.0, c.InCount(1));
  Normalise(c, c.InCount(0) / row, 1, 2);
  if (c.Wants(1)) c.Backward(1, 2 * c.InBytes(0), PointwiseBlocks(c.InCount(0)));  // gradients of scale and bias
}

void GroupedNormalization(CostContext& c, const CostRule& rule) {  // Instance, Group
  if (!c.Has(0)) return c.Unknown();
  const bool instance = rule.name == "InstanceNormalization";
  const double groups = instance ? c.InDim(0, 1) : c.Int("num_groups", c.node().IntOr("groups", 1));
  Normalise(c, c.InDim(0, 0) * std::max(1.0, groups), 1, 2);
}

// Local response, Lp and mean-variance normalisation: no parameters.
void PlainNormalization(CostContext& c, const CostRule& rule) {
  Normalise(c, 0, 1, 0);
  if (rule.name != "LRN") return;
  const double window = std::max(1.0, c.Int("size", 1));
  c.cost.forward.flops_other = (2 * window + kT + 2) * c.InCount(0);
  if (!c.Wants(0)) return;
  c.SaveOutput(0);
  c.SaveExtra(c.InBytes(0));  // the scale of each element
}

// x + skip (+ bias), then layer normalisation; the sum is what the backward needs.
void SkipLayerNormalization(CostContext& c, const CostRule&) {
  if (!c.Has(0)) return c.Unknown();
  const double n = c.InCount(0);
  const double row = std::max(1.0, c.InCount(2));
  Normalise(c, n / row, 2, 2);
  c.cost.forward.flops_other += n;
  c.cost.forward.bytes += c.InBytes(1);
  if (c.cost.saved_inputs == 0) return;
  c.cost.saved_inputs = 0;
  c.SaveExtra(c.InBytes(0));
}

void EmbedLayerNormalization(CostContext& c, const CostRule&) {
  const double n = c.OutCount(0);
  c.cost.horus_linears = 3;
  c.cost.horus_flops = n;
  c.ForwardOver(n, (kNormTrainingFlops + 2) * n, 4 * c.OutBytes(0));
  if (!c.training()) return;
  c.BackwardOver(n, kNormBackwardFlops * n, 8 * c.OutBytes(0) + c.InBytes(2) + c.InBytes(3) + c.InBytes(4), 4);
  c.SaveExtra(c.OutBytes(0));
}

void Softmax(CostContext& c, const CostRule& rule) {
  const double n = c.OutCount(0);
  c.cost.horus_activations = 1;
  c.cost.horus_flops = n;
  c.ForwardOver(n, rule.flops * n, c.InBytes(0) + c.OutBytes(0));
  if (!c.Wants(0)) return;
  c.SaveOutput(0);
  c.BackwardOver(n, rule.backward_flops * n, 2 * c.OutBytes(0) + c.InBytes(0));
}

// Sums over axes; the gradient is spread again.
void Reduce(CostContext& c, const CostRule& rule) {
  const double n = c.InCount(0);
  c.ForwardOver(n, rule.flops * n, c.InBytes(0) + c.OutBytes(0));
  if (!c.Wants(0)) return;
  if (rule.saves == Saves::kInputs || rule.saves == Saves::kBoth) c.SaveInput(0);
  if (rule.saves == Saves::kOutput || rule.saves == Saves::kBoth) c.SaveOutput(0);
  c.cost.backward.flops_other = rule.backward_flops * n;
  const double read = rule.saves == Saves::kNothing ? 0 : c.InBytes(0);
  c.Backward(1, read + c.InBytes(0) + c.OutBytes(0), PointwiseBlocks(n));
}

// Elements under one window; the whole plane for the global kind.
double Window(const CostContext& c) {
  const std::vector<int64_t>* kernel = c.node().Ints("kernel_shape");
  if (kernel == nullptr) return c.OutCount(0) > 0 ? c.InCount(0) / c.OutCount(0) : 1;
  double window = 1;
  for (const int64_t edge : *kernel) window *= static_cast<double>(std::max<int64_t>(0, edge));
  return window;
}

void Pool(CostContext& c, const CostRule& rule) {
  const double out = c.OutCount(0);
  c.ForwardOver(out, out * Window(c), c.InBytes(0) + c.AllOutBytes());
  if (!c.Wants(0)) return;
  const bool maximum = rule.saves == Saves::kBoth;
  c.SaveInput(0);
  if (maximum) c.SaveExtra(out * kIndexBytes);
  c.BackwardOver(c.InCount(0), maximum ? out : out * Window(c),
                 c.OutBytes(0) + c.InBytes(0) + (maximum ? out * kIndexBytes : 0));
}

void Loss(CostContext& c, const CostRule& rule) {
  const double n = c.InCount(0);
  c.ForwardOver(n, rule.flops * n, 2 * c.InBytes(0) + c.AllOutBytes(), 2);
  if (!c.Wants(0)) return;
  c.SaveInput(1);
  if (rule.name == "SoftmaxCrossEntropyLoss") c.SaveExtra(n * kFloat32Bytes);  // log-probabilities
  c.BackwardOver(n, rule.backward_flops * n, 4 * c.InBytes(0), 2);
}

constexpr OpClass kNorm = OpClass::kNormalisation;
constexpr OpClass kRed = OpClass::kReduction;
constexpr OpClass kPool = OpClass::kPooling;
constexpr Saves kBoth = Saves::kBoth;

constexpr CostRule kReductionCostRules[] = {
    {"BatchNormalization", kNorm, BatchNormalization},
    {"LayerNormalization RMSNormalization SimplifiedLayerNormalization com.microsoft::GatedRMSNorm", kNorm,
     LayerNormalization, 0, 0, kIn, true},
    {"com.microsoft::SkipGroupNorm com.microsoft::SkipLayerNormalization "
     "com.microsoft::SkipSimplifiedLayerNormalization",
     kNorm, SkipLayerNormalization},
    {"com.microsoft::EmbedLayerNormalization", kNorm, EmbedLayerNormalization},
    {"InstanceNormalization", kNorm, GroupedNormalization},
    {"GroupNormalization", kNorm, GroupedNormalization, 0, 0, kIn, true},
    {"LRN MeanVarianceNormalization", kNorm, PlainNormalization},
    {"LpNormalization", kNorm, PlainNormalization, 0, 0, kIn, true},
    {"Softmax", kAct, Softmax, kT + 3, 4, Saves::kOutput, true},
    {"LogSoftmax", kAct, Softmax, kT + 4, kT + 3, Saves::kOutput, true},
    {"Hardmax", kAct, Softmax, 2, 0},
    {"ReduceSum", kRed, Reduce, 1, 0, Saves::kNothing, true},
    {"ReduceMean", kRed, Reduce, 1, 1},
    {"ReduceMax ReduceMin", kRed, Reduce, 1, 2, kBoth},
    {"ReduceProd", kRed, Reduce, 1, 2, kBoth, true},
    {"ReduceL1 ReduceSumSquare", kRed, Reduce, 2, 2, kIn, true},
    {"ReduceL2", kRed, Reduce, 2, 2, kBoth, true},
    {"ReduceLogSum", kRed, Reduce, 1, 2, kIn, true},
    {"ReduceLogSumExp", kRed, Reduce, kT + 1, kT + 1, kBoth, true},
    {"ArgMax ArgMin", kRed, Reduce, 1},
    {"CumProd CumSum", kRed, Reduce, 1, 1, Saves::kNothing, true},
    {"GlobalAveragePool", kPool, Reduce, 1, 1},
    {"GlobalMaxPool", kPool, Reduce, 1, 2, kBoth},
    {"GlobalLpPool", kPool, Reduce, 2, 2, kBoth},
    {"AveragePool LpPool RoiAlign", kPool, Pool, 0, 0, kIn},
    {"MaxPool MaxRoiPool", kPool, Pool, 0, 0, kBoth},
    {"SoftmaxCrossEntropyLoss", OpClass::kOther, Loss, kT + 5, 3, kIn, true},
    {"NegativeLogLikelihoodLoss", OpClass::kOther, Loss, 1, 1, kIn, true},
};

}  // namespace

std::span<const CostRule> ReductionCostRules() { return kReductionCostRules; }

}  // namespace horus
