// SPDX-License-Identifier: Apache-2.0
// Shape rules of elementwise operators, with folding of shape arithmetic, and of reductions.
#include <cmath>

#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Unary(RuleContext& c) { return c.Same(); }

// Applies one function to every known element.
template <auto OnInt, auto OnFloat>
absl::Status FoldedUnary(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  if (const std::vector<int64_t>* in = c.ints(0)) {
    std::vector<int64_t> out = *in;
    for (int64_t& element : out) {
      if (element != kUnknownElement) element = OnInt(element);
    }
    c.SetInts(0, std::move(out));
  } else if (const std::vector<float>* reals = c.floats(0)) {
    std::vector<float> out = *reals;
    for (float& element : out) element = HeldAs(static_cast<double>(OnFloat(element)), c.dtype(0));
    c.SetFloats(0, std::move(out));
  }
  return absl::OkStatus();
}

int64_t SameInt(int64_t x) { return x; }
int64_t UnknownInt(int64_t /*x*/) { return kUnknownElement; }
float UnknownFloat(float /*x*/) { return std::nanf(""); }

// Of any number of operands.
absl::Status Arithmetic(RuleContext& c) {
  Dims dims = c.dims(0);
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (!c.ranked(i)) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(dims, BroadcastBatch(c.state(), dims, c.dims(i)));
  }
  HORUS_RETURN_IF_ERROR(c.Set(std::move(dims)));
  FoldElementwise(c);
  return absl::OkStatus();
}

absl::Status PRelu(RuleContext& c) {
  if (c.ranked(0) && c.ranked(1)) {
    HORUS_ASSIGN_OR_RETURN(Dims dims, Broadcast(c.dims(0), c.dims(1)));
    if (dims.size() != c.dims(0).size())
      return InvalidArgument("slope %s does not broadcast to %s", DimsText(c.dims(1)), DimsText(c.dims(0)));
  }
  return c.Same();
}

absl::Status Where(RuleContext& c) {
  c.SetType(0, c.dtype(1) == DType::kUndefined ? c.dtype(2) : c.dtype(1));
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(Dims dims, BroadcastBatch(c.state(), c.dims(0), c.dims(1)));
  HORUS_ASSIGN_OR_RETURN(dims, BroadcastBatch(c.state(), dims, c.dims(2)));
  HORUS_RETURN_IF_ERROR(c.Set(std::move(dims)));
  FoldWhere(c);
  return absl::OkStatus();
}

absl::Status Cast(RuleContext& c) {
  const DType to =
      static_cast<DType>(std::clamp<int64_t>(c.node().IntOr("to", 0), 0, static_cast<int64_t>(DType::kInt4)));
  HORUS_RETURN_IF_ERROR(c.Same(to));
  FoldCast(c, to);
  return absl::OkStatus();
}

absl::Status CastLike(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(c.dtype(1)));
  FoldCast(c, c.dtype(1));
  return absl::OkStatus();
}

absl::Status Clip(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  FoldClip(c);
  return absl::OkStatus();
}

absl::Status Dropout(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  c.SetType(1, DType::kBool);
  return c.ranked(0) ? c.Set(1, c.opset() >= 10 ? DType::kBool : c.dtype(0), c.dims(0)) : absl::OkStatus();
}

absl::Status QuantizeLinear(RuleContext& c) {
  return c.Same(c.has(2) ? c.dtype(2) : static_cast<DType>(c.node().IntOr("output_dtype", int64_t{2})));
}

absl::Status DequantizeLinear(RuleContext& c) { return c.Same(c.dtype(1)); }

absl::Status DynamicQuantizeLinear(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(DType::kUint8));
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kFloat32, {}));
  return c.Set(2, DType::kUint8, {});
}

// ---- Shape rules of reductions.

// Opset from which the axes of an operator are an input.
int64_t AxesInputSince(std::string_view op) { return op == "ReduceSum" ? 13 : 18; }

// Folds the reductions that shape arithmetic uses, over all elements only.
void FoldReduction(RuleContext& c) {
  const std::vector<int64_t>* in = c.known_ints(0);
  if (in == nullptr) return;
  int64_t result = 0;
  const std::string_view op = c.node().op_type;
  if (op == "ReduceProd") {
    result = 1;
    for (const int64_t element : *in) {
      if (__builtin_mul_overflow(result, element, &result)) return;
    }
  } else if (op == "ReduceSum") {
    for (const int64_t element : *in) {
      if (__builtin_add_overflow(result, element, &result)) return;
    }
  } else if (op == "ReduceMax" && !in->empty()) {
    result = *std::ranges::max_element(*in);
  } else if (op == "ReduceMin" && !in->empty()) {
    result = *std::ranges::min_element(*in);
  } else {
    return;
  }
  c.SetInts(0, {result});  // taken only if the output has one element
}

absl::Status Reduce(RuleContext& c) {
  const bool keep = c.node().IntOr("keepdims", 1) != 0;
  auto [given, known, axes] = c.IntsOf("axes", 1);
  if (c.opset() < AxesInputSince(c.node().op_type) && given && !known) given = false;
  if (!c.ranked(0)) return absl::OkStatus();
  if (!given || (known && axes.empty())) {
    if (c.node().IntOr("noop_with_empty_axes", 0) != 0) return c.Same();
    axes = AllAxes(c.rank(0));
    known = true;
  }
  if (!known) {
    // Which axes go is not known, only how many stay.
    return keep ? c.Set(Dims(c.dims(0).size(), kUnknownDim)) : absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  Dims out;
  for (int64_t axis = 0; axis < c.rank(0); ++axis) {
    const bool reduced = std::ranges::find(axes, axis) != axes.end();
    if (!reduced) {
      out.push_back(c.dim(0, axis));
    } else if (keep) {
      out.push_back(1);
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(std::move(out)));
  FoldReduction(c);
  return absl::OkStatus();
}

absl::Status ArgReduce(RuleContext& c) {
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(0));
  Dims out = c.dims(0);
  if (c.node().IntOr("keepdims", 1) != 0) {
    out[static_cast<size_t>(axis)] = 1;
  } else {
    out.erase(out.begin() + axis);
  }
  return c.Set(std::move(out));
}

constexpr RuleEntry kPointwiseRules[] = {
    {"Abs", FoldedUnary<[](int64_t x) { return x < 0 ? -x : x; }, [](float x) { return std::fabs(x); }>},
    {"Acos Acosh Asin Asinh Atan Atanh BitwiseNot Celu Cos Cosh CumProd CumSum Elu Erf Gelu HardSigmoid HardSwish "
     "LeakyRelu Mish Selu Shrink Sigmoid Sin Sinh Softplus Softsign Swish Tan Tanh ThresholdedRelu",
     Unary},
    {"Add BitShift BitwiseAnd BitwiseOr BitwiseXor Div Max Mean Min Mod Mul Pow Sub Sum", Arithmetic, 1},
    {"And Equal Greater GreaterOrEqual Less LessOrEqual Or Xor", Arithmetic, 1, "", false, DType::kBool},
    {"ArgMax ArgMin", ArgReduce, 1, "", false, DType::kInt64},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
     "ReduceSumSquare",
     Reduce},
    {"Cast", Cast},
    {"CastLike", CastLike},
    {"Ceil", FoldedUnary<SameInt, [](float x) { return std::ceil(x); }>},
    {"Clip", Clip},
    {"DequantizeLinear", DequantizeLinear},
    {"Dropout", Dropout},
    {"DynamicQuantizeLinear", DynamicQuantizeLinear},
    {"Exp", FoldedUnary<UnknownInt, [](float x) { return std::exp(x); }>},
    {"Floor", FoldedUnary<SameInt, [](float x) { return std::floor(x); }>},
    {"IsInf IsNaN", [](RuleContext& c) { return c.Same(DType::kBool); }},
    {"Log", FoldedUnary<UnknownInt, [](float x) { return std::log(x); }>},
    {"Neg", FoldedUnary<[](int64_t x) { return -x; }, [](float x) { return -x; }>},
    {"Not", FoldedUnary<[](int64_t x) { return x == 0 ? 1 : 0; }, UnknownFloat>},
    {"PRelu", PRelu},
    {"QuantizeLinear", QuantizeLinear},
    {"Reciprocal", FoldedUnary<UnknownInt, [](float x) { return 1.0f / x; }>},
    {"Relu", FoldedUnary<[](int64_t x) { return x < 0 ? 0 : x; }, [](float x) { return x <= 0 ? 0.0f : x; }>},
    {"Round", FoldedUnary<SameInt, [](float x) { return std::nearbyint(x); }>},
    {"Sign", FoldedUnary<[](int64_t x) { return (x > 0) - (x < 0); },
                         [](float x) { return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0)); }>},
    {"Sqrt", FoldedUnary<UnknownInt, [](float x) { return std::sqrt(x); }>},
    {"Where", Where},
    {"DequantizeLinear", DequantizeLinear, 0, kMicrosoftDomain},
    {"QuantizeLinear", QuantizeLinear, 0, kMicrosoftDomain},
};

}  // namespace

std::span<const RuleEntry> PointwiseRules() { return kPointwiseRules; }

}  // namespace horus
