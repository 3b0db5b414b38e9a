// SPDX-License-Identifier: Apache-2.0
// What the elements of folded tensors become in another type.
#include <cmath>
#include <limits>

#include "graph/shape_fold.h"

namespace horus {
namespace {

// Bits of precision, the leading one included; 0 where elements are no numbers.
int PrecisionOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 11;
    case DType::kBfloat16:
      return 8;
    case DType::kFloat32:
    case DType::kFloat64:
      return std::numeric_limits<float>::digits;
    default:
      return 0;
  }
}

// Straight to float32: by way of double it would be rounded twice.
float FromInt(int64_t value, DType to) {
  const auto rounded = static_cast<float>(value);
  if (to == DType::kFloat32) return rounded;
  // A float64 holds more than `rounded`; the comparison is in 128 bits, for 2^63 itself fits no int64_t.
  return static_cast<Wide>(rounded) == static_cast<Wide>(value) ? HeldAs(static_cast<double>(rounded), to)
                                                                : std::nanf("");
}

int64_t FromFloat(float value, DType to) {
  if (std::isnan(value)) return kUnknownElement;
  if (to == DType::kBool) return value != 0.0f ? 1 : 0;
  constexpr float kInt64Edge = 9.2e18f;  // just inside the range of int64
  if (value > kInt64Edge || value < -kInt64Edge) return kUnknownElement;
  return HeldAs(static_cast<int64_t>(value), to);
}

}  // namespace

float HeldAs(double value, DType dtype) {
  const int bits = PrecisionOf(dtype);
  if (bits == 0 || !(std::fabs(value) <= std::numeric_limits<float>::max())) return std::nanf("");
  const auto held = static_cast<float>(value);
  if (dtype == DType::kFloat32) return held;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(value, &exponent), bits);
  const bool exact = scaled == std::trunc(scaled) && static_cast<double>(held) == value;
  const bool in_range = dtype != DType::kFloat16 || value == 0 || (exponent <= 16 && exponent > -14);  // normal numbers
  return exact && in_range ? held : std::nanf("");
}

int64_t HeldAs(int64_t value, DType dtype) {
  if (value == kUnknownElement) return value;
  if (dtype == DType::kBool) return value != 0 ? 1 : 0;
  const int bits = BitsOf(dtype);
  if (bits <= 0) return kUnknownElement;  // strings, and types the file invents
  if (bits >= 64) return dtype == DType::kUint64 && value < 0 ? kUnknownElement : value;
  const bool is_unsigned = dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kUint32;
  const int64_t low = is_unsigned ? 0 : -(int64_t{1} << (bits - 1));
  const int64_t high = is_unsigned ? (int64_t{1} << bits) - 1 : (int64_t{1} << (bits - 1)) - 1;
  return value < low || value > high ? kUnknownElement : value;
}

void FoldCast(RuleContext& c, DType to) {
  const std::vector<int64_t>* ints = c.ints(0);
  const std::vector<float>* floats = c.floats(0);
  if (ints == nullptr && floats == nullptr) return;
  if (IsFloating(to)) {
    std::vector<float> out;
    if (floats != nullptr) {
      for (const float value : *floats) out.push_back(HeldAs(static_cast<double>(value), to));
    } else {
      for (const int64_t value : *ints) out.push_back(value == kUnknownElement ? std::nanf("") : FromInt(value, to));
    }
    return c.SetFloats(0, std::move(out));
  }
  std::vector<int64_t> out;
  if (ints != nullptr) {
    for (const int64_t value : *ints) out.push_back(HeldAs(value, to));
  } else {
    for (const float value : *floats) out.push_back(FromFloat(value, to));
  }
  c.SetInts(0, std::move(out));
}

}  // namespace horus
