// SPDX-License-Identifier: Apache-2.0
// Cost of operators that compute each output element by itself: activations, arithmetic, comparisons, casts.
#include <algorithm>

#include "features/cost_rules.h"

namespace horus {
namespace {

double LargestInput(const CostContext& c) {
  double elements = 0;
  for (size_t i = 0; i < c.inputs(); ++i) elements = std::max(elements, c.InCount(i));
  return elements;
}

void Forward(CostContext& c, const CostRule& rule, double elements) {
  c.ForwardOver(elements, rule.flops * elements, c.AllInBytes() + c.AllOutBytes());
}

// One input carries the data; others are parameters or limits.
void Unary(CostContext& c, const CostRule& rule) {
  const double elements = c.OutCount(0);
  Forward(c, rule, elements);
  if (rule.op_class == OpClass::kActivation) {
    c.cost.horus_activations = 1;
    c.cost.horus_flops = elements;
  }
  if (!c.WantsAny(c.inputs())) return;
  double kept = 0;
  if (rule.saves == Saves::kInputs || rule.saves == Saves::kBoth) {
    c.SaveInput(0);
    kept += c.InBytes(0);
  }
  if (rule.saves == Saves::kOutput || rule.saves == Saves::kBoth) {
    c.SaveOutput(0);
    kept += c.OutBytes(0);
  }
  if (rule.saves == Saves::kMask) {
    c.SaveExtra(elements);  // one byte each
    kept += elements;
  }
  c.BackwardOver(elements, rule.backward_flops * elements, c.OutBytes(0) + kept + c.InBytes(0));
  for (size_t i = 1; i < c.inputs(); ++i) {  // PRelu's slope
    if (c.Wants(i)) c.Backward(1, c.OutBytes(0) + c.InBytes(0), PointwiseBlocks(elements));
  }
}

// Sums the gradient over the dimensions along which input i was broadcast.
void ReduceBroadcast(CostContext& c, size_t i) {
  if (!c.Wants(i) || c.InCount(i) >= c.OutCount(0)) return;
  c.BackwardOver(c.OutCount(0), c.OutCount(0), c.OutBytes(0) + c.InBytes(i));
}

// Addition and its like: the gradient passes unchanged, no kernel and nothing kept.
void Additive(CostContext& c, const CostRule& rule) {
  const double elements = c.OutCount(0);
  Forward(c, rule, elements * std::max<double>(1, static_cast<double>(c.inputs()) - 1));
  c.cost.passes_gradient = true;
  for (size_t i = 0; i < c.inputs(); ++i) {
    ReduceBroadcast(c, i);
    if (rule.backward_flops > 0 && i > 0 && c.Wants(i)) {  // Sub negates
      c.BackwardOver(elements, rule.backward_flops * elements, 2 * c.OutBytes(0));
    }
  }
}

// Mul, Div, Pow, Max, Min: each gradient needs the other operand.
void Multiplicative(CostContext& c, const CostRule& rule) {
  const double elements = c.OutCount(0);
  Forward(c, rule, elements * std::max<double>(1, static_cast<double>(c.inputs()) - 1));
  const bool all = rule.saves == Saves::kInputs;
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.Wants(i)) continue;
    double read = 0;
    for (size_t j = 0; j < c.inputs(); ++j) {
      const bool own_needed = all || (rule.name == "Div" && i == 1) || rule.name == "Pow";
      if (j == i && !own_needed) continue;
      // A scalar literal is no tensor in PyTorch, and a constant is held anyway.
      if (c.InCount(j) > 1) c.SaveInput(j);
      read += c.InBytes(j);
    }
    c.BackwardOver(elements, rule.backward_flops * elements, 2 * c.OutBytes(0) + read);
    ReduceBroadcast(c, i);
  }
}

// Comparisons, logic, rounding, random numbers: no gradient.
void NoGradient(CostContext& c, const CostRule& rule) { Forward(c, rule, std::max(c.OutCount(0), c.OutCount(1))); }

void Where(CostContext& c, const CostRule& rule) {
  Forward(c, rule, c.OutCount(0));
  if (!c.Wants(1) && !c.Wants(2)) return;
  c.SaveInput(0);
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!c.Wants(i)) continue;
    c.Backward(1, 2 * c.OutBytes(0) + c.InBytes(0), PointwiseBlocks(c.OutCount(0)));
    ReduceBroadcast(c, i);
  }
}

void Dropout(CostContext& c, const CostRule& rule) {
  if (!c.training()) return;  // nothing happens at inference
  Unary(c, rule);
}

void BiasActivation(CostContext& c, const CostRule& rule) {
  Unary(c, rule);
  ReduceBroadcast(c, 1);
}

void Sort(CostContext& c, const CostRule& rule) {
  const double elements = LargestInput(c);
  Forward(c, rule, elements);
  if (c.Wants(0)) {
    c.SaveOutput(1);
    c.Backward(2, c.InBytes(0) + 2 * c.OutBytes(0), PointwiseBlocks(elements));
  }
}

constexpr OpClass kEl = OpClass::kElementwise;
constexpr Saves kOut = Saves::kOutput;

constexpr CostRule kPointwiseCostRules[] = {
    // name, class, rule, FLOPs forward and backward per element, what is kept, float32 under autocast
    {"Relu", kAct, Unary, 1, 1, kOut},
    {"LeakyRelu", kAct, Unary, 2, 2, kIn},
    {"PRelu", kAct, Unary, 2, 3, kIn},
    {"ThresholdedRelu", kAct, Unary, 1, 1, kIn},
    {"Elu", kAct, Unary, kT + 2, kT + 2, kIn},
    {"Celu Selu", kAct, Unary, kT + 3, kT + 3, kIn},
    {"Sigmoid", kAct, Unary, kT + 2, 3, kOut},
    {"HardSigmoid", kAct, Unary, 4, 2, kIn},
    {"HardSwish", kAct, Unary, 5, 5, kIn},
    {"Swish com.microsoft::QuickGelu", kAct, Unary, kT + 3, kT + 6, kIn},
    {"Mish", kAct, Unary, 3 * kT, 3 * kT + 6, kIn},
    {"Softplus", kAct, Unary, 2 * kT, kT + 2, kIn, true},
    {"Softsign", kAct, Unary, 3, 4, kIn},
    {"Tanh", kAct, Unary, kT, 3, kOut},
    {"Erf", kAct, Unary, kT, kT + 2, kIn},
    {"Gelu com.microsoft::Gelu", kAct, Unary, kT + 4, kT + 8, kIn},
    {"Shrink", kAct, Unary, 3, 1, kIn},
    {"Clip", kAct, Unary, 2, 1, kIn},
    {"com.microsoft::FastGelu", kAct, BiasActivation, kT + 8, kT + 12, kIn},
    {"com.microsoft::BiasGelu com.microsoft::BiasSplitGelu", kAct, BiasActivation, kT + 5, kT + 8, kIn},
    {"Dropout", kEl, Dropout, 2, 1, Saves::kMask},
    {"Abs", kEl, Unary, 1, 2, kIn},
    {"Neg", kEl, Unary, 1, 1},
    {"Exp", kEl, Unary, kT, 1, kOut, true},
    {"Log", kEl, Unary, kT, 1, kIn, true},
    {"Sqrt", kEl, Unary, kT, 2, kOut},
    {"Reciprocal", kEl, Unary, 1, 2, kOut, true},
    {"Sin Cos", kEl, Unary, kT, kT + 1, kIn},
    {"Tan", kEl, Unary, kT, 3, kOut, true},
    {"Asin Acos", kEl, Unary, kT, kT + 2, kIn, true},
    {"Atan Atanh", kEl, Unary, kT, 3, kIn},
    {"Sinh Cosh", kEl, Unary, kT, kT + 1, kIn, true},
    {"Asinh Acosh", kEl, Unary, kT, kT + 2, kIn},
    {"Cast CastLike", kEl, Unary, 0, 0},
    {"QuantizeLinear com.microsoft::QuantizeLinear", kEl, Unary, 3, 1},
    {"DequantizeLinear com.microsoft::DequantizeLinear", kEl, Unary, 2, 1},
    {"DynamicQuantizeLinear", kEl, NoGradient, 5},
    {"Add Sum Mean", kEl, Additive, 1},
    {"Sub", kEl, Additive, 1, 1},
    {"Mul Mod", kEl, Multiplicative, 1, 1},
    {"Div", kEl, Multiplicative, 1, 2},
    {"Pow", kEl, Multiplicative, kT, kT + 2, Saves::kNothing, true},
    {"Max Min", kEl, Multiplicative, 1, 1, kIn},
    {"Where", kEl, Where, 1, 1},
    {"com.microsoft::GatedAdd", kEl, Multiplicative, kT + 2, kT + 4, kIn},
    {"com.microsoft::LinearAttentionGate", kEl, Unary, 3 * kT, 3 * kT, kIn},
    {"Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Not BitwiseAnd BitwiseOr BitwiseXor "
     "BitwiseNot BitShift IsNaN IsInf Floor Ceil Round Sign",
     kEl, NoGradient, 1},
    {"Bernoulli RandomUniform RandomUniformLike", kEl, NoGradient, 2},
    {"RandomNormal RandomNormalLike", kEl, NoGradient, 2 * kT},
    {"TopK Unique", OpClass::kReduction, Sort, 8},
};

}  // namespace

std::span<const CostRule> PointwiseCostRules() { return kPointwiseCostRules; }

bool StopsGradient(const CostRule& rule) { return rule.apply == NoGradient; }

}  // namespace horus
