// SPDX-License-Identifier: Apache-2.0
// Computes small integer, bool and float tensors.
#include "graph/shape_fold.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/units.h"

namespace horus {
namespace {

enum class Operator : uint8_t {
  kNone,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kMin,
  kMax,
  kPow,
  kAnd,
  kOr,
  kXor,
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
};

struct NamedOperator {
  std::string_view name;
  Operator op;
};

constexpr NamedOperator kOperators[] = {
    {"Add", Operator::kAdd},         {"Sub", Operator::kSub},
    {"Mul", Operator::kMul},         {"Div", Operator::kDiv},
    {"Mod", Operator::kMod},         {"Min", Operator::kMin},
    {"Max", Operator::kMax},         {"Pow", Operator::kPow},
    {"And", Operator::kAnd},         {"Or", Operator::kOr},
    {"Xor", Operator::kXor},         {"Equal", Operator::kEqual},
    {"Less", Operator::kLess},       {"LessOrEqual", Operator::kLessOrEqual},
    {"Greater", Operator::kGreater}, {"GreaterOrEqual", Operator::kGreaterOrEqual},
    {"Sum", Operator::kAdd},
};

Operator OperatorOf(std::string_view name) {
  for (const NamedOperator& candidate : kOperators) {
    if (candidate.name == name) return candidate.op;
  }
  return Operator::kNone;
}

int64_t PowInt(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 62) return kUnknownElement;
  int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return kUnknownElement;
  }
  return result;
}

// ONNX Mod takes the sign of the divisor unless fmod is set, then of the dividend.
int64_t ModInt(int64_t a, int64_t b, bool like_c) {
  if (b == 0 || b == -1) return b == 0 ? kUnknownElement : 0;
  const int64_t remainder = a % b;
  return !like_c && remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// 0 or 1 for two known elements; unknown where the operator compares nothing.
template <typename Element>
int64_t Compare(Operator op, Element a, Element b) {
  switch (op) {
    case Operator::kEqual:
      return a == b ? 1 : 0;
    case Operator::kLess:
      return a < b ? 1 : 0;
    case Operator::kLessOrEqual:
      return a <= b ? 1 : 0;
    case Operator::kGreater:
      return a > b ? 1 : 0;
    case Operator::kGreaterOrEqual:
      return a >= b ? 1 : 0;
    default:
      return kUnknownElement;
  }
}

int64_t ApplyInt(Operator op, int64_t a, int64_t b, bool like_c) {
  if (op == Operator::kAnd && (a == 0 || b == 0)) return 0;  // known even when one side is not
  if (op == Operator::kMul && (a == 0 || b == 0)) return 0;
  if (a == kUnknownElement || b == kUnknownElement) return kUnknownElement;
  switch (op) {
    case Operator::kAdd:
      return CheckedAdd(a, b).value_or(kUnknownElement);
    case Operator::kSub: {
      int64_t difference = 0;
      return __builtin_sub_overflow(a, b, &difference) ? kUnknownElement : difference;
    }
    case Operator::kMul:
      return CheckedMul(a, b).value_or(kUnknownElement);
    case Operator::kDiv:
      return b == 0 ? kUnknownElement : a / b;
    case Operator::kMod:
      return ModInt(a, b, like_c);
    case Operator::kMin:
      return std::min(a, b);
    case Operator::kMax:
      return std::max(a, b);
    case Operator::kPow:
      return PowInt(a, b);
    case Operator::kAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case Operator::kOr:
      return a != 0 || b != 0 ? 1 : 0;
    case Operator::kXor:
      return (a != 0) != (b != 0) ? 1 : 0;
    default:
      return Compare(op, a, b);
  }
}

float ApplyFloat(Operator op, float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::nanf("");
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSub:
      return a - b;
    case Operator::kMul:
      return a * b;
    case Operator::kDiv:
      return a / b;
    case Operator::kMod:
      return std::fmod(a, b);
    case Operator::kMin:
      return std::min(a, b);
    case Operator::kMax:
      return std::max(a, b);
    case Operator::kPow:
      return std::pow(a, b);
    default:
      return std::nanf("");
  }
}

int64_t CompareFloat(Operator op, float a, float b) {
  return std::isnan(a) || std::isnan(b) ? kUnknownElement : Compare(op, a, b);
}

bool Foldable(const Dims& dims) {
  const int64_t elements = ElementsOf(dims);
  return elements != kUnknownDim && elements <= kMaxFoldedElements;
}

// What a cast to a narrower integer keeps; casts that would change a value give up instead of guessing.
int64_t Narrowed(int64_t value, DType to) {
  if (value == kUnknownElement) return value;
  if (to == DType::kBool) return value != 0 ? 1 : 0;
  const int bits = BitsOf(to);
  if (bits <= 0) return kUnknownElement;  // strings, and types the file invents
  if (bits >= 64) return value;
  const bool is_unsigned = to == DType::kUint8 || to == DType::kUint16 || to == DType::kUint32;
  const int64_t low = is_unsigned ? 0 : -(int64_t{1} << (bits - 1));
  const int64_t high = is_unsigned ? (int64_t{1} << bits) - 1 : (int64_t{1} << (bits - 1)) - 1;
  return value < low || value > high ? kUnknownElement : value;
}

int64_t FromFloat(float value, DType to) {
  if (std::isnan(value)) return kUnknownElement;
  if (to == DType::kBool) return value != 0.0f ? 1 : 0;
  constexpr float kInt64Edge = 9.2e18f;  // just inside the range of int64
  if (value > kInt64Edge || value < -kInt64Edge) return kUnknownElement;
  return Narrowed(static_cast<int64_t>(value), to);
}

}  // namespace

std::vector<int64_t> StepsOf(const Dims& dims) {
  std::vector<int64_t> steps(dims.size(), 1);
  // Bounded: of a tensor within max_tensor_elements (SetDims).
  for (size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

std::vector<size_t> BroadcastPositions(const Dims& in, const Dims& out) {
  const auto total = static_cast<size_t>(ElementsOf(out));
  std::vector<size_t> positions(total, 0);
  const std::vector<int64_t> in_steps = StepsOf(in);
  const std::vector<int64_t> out_steps = StepsOf(out);
  const size_t shift = out.size() - in.size();
  for (size_t axis = 0; axis < in.size(); ++axis) {
    if (in[axis] == 1) continue;
    const auto step = static_cast<size_t>(in_steps[axis]);
    const auto out_step = static_cast<size_t>(out_steps[shift + axis]);
    const auto size = static_cast<size_t>(out[shift + axis]);
    // Bounded: of a tensor within max_tensor_elements (SetDims).
    for (size_t i = 0; i < total; ++i) positions[i] += i / out_step % size * step;
  }
  return positions;
}

void FoldBinary(RuleContext& c) {
  if (c.inputs() != 2) return;
  const std::vector<int64_t>* a = c.ints(0);
  const std::vector<int64_t>* b = c.ints(1);
  const std::vector<float>* x = c.floats(0);
  const std::vector<float>* y = c.floats(1);
  const bool integers = a != nullptr && b != nullptr;
  const bool reals = x != nullptr && y != nullptr;
  if (!integers && !reals) return;
  const Operator op = OperatorOf(c.node().op_type);
  if (op == Operator::kNone) return;
  const absl::StatusOr<Dims> dims = Broadcast(c.dims(0), c.dims(1));
  if (!dims.ok() || !Foldable(*dims)) return;
  const bool same = c.dims(0) == *dims && c.dims(1) == *dims;
  const std::vector<size_t> left = same ? std::vector<size_t>() : BroadcastPositions(c.dims(0), *dims);
  const std::vector<size_t> right = same ? std::vector<size_t>() : BroadcastPositions(c.dims(1), *dims);
  const auto total = static_cast<size_t>(ElementsOf(*dims));
  const bool compares = op >= Operator::kAnd;
  const bool like_c = c.node().IntOr("fmod", 0) != 0;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  for (size_t i = 0; i < total; ++i) {
    const size_t l = same ? i : left[i];
    const size_t r = same ? i : right[i];
    if (integers) {
      ints.push_back(ApplyInt(op, (*a)[l], (*b)[r], like_c));
    } else if (compares) {
      ints.push_back(CompareFloat(op, (*x)[l], (*y)[r]));
    } else {
      floats.push_back(ApplyFloat(op, (*x)[l], (*y)[r]));
    }
  }
  if (integers || compares) {
    c.SetInts(0, std::move(ints));
  } else {
    c.SetFloats(0, std::move(floats));
  }
}

void FoldWhere(RuleContext& c) {
  const std::vector<int64_t>* condition = c.ints(0);
  const std::vector<int64_t>* yes = c.ints(1);
  const std::vector<int64_t>* no = c.ints(2);
  if (condition == nullptr || yes == nullptr || no == nullptr) return;
  absl::StatusOr<Dims> dims = Broadcast(c.dims(0), c.dims(1));
  if (dims.ok()) dims = Broadcast(*dims, c.dims(2));
  if (!dims.ok() || !Foldable(*dims)) return;
  const std::vector<size_t> which = BroadcastPositions(c.dims(0), *dims);
  const std::vector<size_t> left = BroadcastPositions(c.dims(1), *dims);
  const std::vector<size_t> right = BroadcastPositions(c.dims(2), *dims);
  std::vector<int64_t> out(which.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t chosen = (*condition)[which[i]];
    out[i] = chosen == kUnknownElement ? kUnknownElement : chosen != 0 ? (*yes)[left[i]] : (*no)[right[i]];
  }
  c.SetInts(0, std::move(out));
}

void FoldCast(RuleContext& c, DType to) {
  const std::vector<int64_t>* ints = c.ints(0);
  const std::vector<float>* floats = c.floats(0);
  if (ints == nullptr && floats == nullptr) return;
  if (IsFloating(to)) {
    std::vector<float> out;
    if (floats != nullptr) {
      out = *floats;
    } else {
      for (const int64_t value : *ints)
        out.push_back(value == kUnknownElement ? std::nanf("") : static_cast<float>(value));
    }
    return c.SetFloats(0, std::move(out));
  }
  std::vector<int64_t> out;
  if (ints != nullptr) {
    for (const int64_t value : *ints) out.push_back(Narrowed(value, to));
  } else {
    for (const float value : *floats) out.push_back(FromFloat(value, to));
  }
  c.SetInts(0, std::move(out));
}

void FoldCopy(RuleContext& c, size_t i, const std::vector<size_t>& positions) {
  if (const std::vector<int64_t>* ints = c.ints(i)) {
    std::vector<int64_t> out(positions.size());
    for (size_t k = 0; k < out.size(); ++k) out[k] = (*ints)[positions[k]];
    c.SetInts(0, std::move(out));
  } else if (const std::vector<float>* floats = c.floats(i)) {
    std::vector<float> out(positions.size());
    for (size_t k = 0; k < out.size(); ++k) out[k] = (*floats)[positions[k]];
    c.SetFloats(0, std::move(out));
  }
}

void FoldAll(RuleContext& c, size_t i) {
  if (const std::vector<int64_t>* ints = c.ints(i)) {
    c.SetInts(0, *ints);
  } else if (const std::vector<float>* floats = c.floats(i)) {
    c.SetFloats(0, *floats);
  }
}

}  // namespace horus
