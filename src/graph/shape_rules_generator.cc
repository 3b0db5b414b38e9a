// SPDX-License-Identifier: Apache-2.0
// Shape rules of operators that make tensors from little: constants, shapes, ranges, random numbers.
#include <algorithm>
#include <cmath>

#include "graph/shape_fold.h"
#include "graph/shape_rule.h"

namespace horus {
namespace {

DType AttributeType(const Node& node, DType fallback) {
  const int64_t number = node.IntOr("dtype", static_cast<int64_t>(fallback));
  return number >= 0 && number <= static_cast<int64_t>(DType::kInt4) ? static_cast<DType>(number) : DType::kUndefined;
}

absl::Status ConstantTensor(RuleContext& c, const Literal& literal) {
  HORUS_RETURN_IF_ERROR(c.Set(0, literal.dtype, literal.dims));
  if (!literal.has_data) return absl::OkStatus();
  if (IsFloating(literal.dtype)) {
    c.SetFloats(0, literal.floats);
  } else {
    c.SetInts(0, literal.ints);
  }
  return absl::OkStatus();
}

absl::Status Constant(RuleContext& c) {
  for (const Attribute& attribute : c.node().attributes) {
    if (const auto* literal = std::get_if<Literal>(&attribute.value)) return ConstantTensor(c, *literal);
    if (const auto* value = std::get_if<int64_t>(&attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {}));
      c.SetInts(0, {*value});
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {static_cast<int64_t>(list->size())}));
      c.SetInts(0, *list);
    } else if (const auto* real = std::get_if<float>(&attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kFloat32, {}));
      c.SetFloats(0, {*real});
    } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kFloat32, {static_cast<int64_t>(reals->size())}));
      c.SetFloats(0, *reals);
    } else if (std::holds_alternative<std::string>(attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kString, {}));
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
      HORUS_RETURN_IF_ERROR(c.Set(0, DType::kString, {static_cast<int64_t>(texts->size())}));
    } else {
      continue;
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();  // a sparse or unreadable constant
}

// Sizes given as elements of a constant; unknown elements become unknown dims.
absl::StatusOr<Dims> DimsFrom(const std::vector<int64_t>& elements) {
  Dims dims = elements;
  for (int64_t& dim : dims) {
    if (dim == kUnknownElement) {
      dim = kUnknownDim;
    } else if (dim < 0) {
      return InvalidArgument("the wished shape holds %d", dim);
    }
  }
  return dims;
}

absl::Status ConstantOfShape(RuleContext& c) {
  DType dtype = DType::kFloat32;
  const Attribute* attribute = c.node().FindAttribute("value");
  const Literal* value = attribute == nullptr ? nullptr : std::get_if<Literal>(&attribute->value);
  if (value != nullptr) dtype = value->dtype;
  c.SetType(0, dtype);
  const std::vector<int64_t>* shape = c.ints(0);
  if (shape == nullptr) {
    const int64_t rank = c.dim(0, 0);
    if (c.rank(0) != 1 || rank == kUnknownDim || rank > kMaxRank) return absl::OkStatus();
    return c.Set(0, dtype, Dims(static_cast<size_t>(rank), kUnknownDim));
  }
  HORUS_ASSIGN_OR_RETURN(Dims dims, DimsFrom(*shape));
  const int64_t elements = ElementsOf(dims);
  HORUS_RETURN_IF_ERROR(c.Set(0, dtype, std::move(dims)));
  if (elements == kUnknownDim || elements > kMaxFoldedElements) return absl::OkStatus();
  const auto count = static_cast<size_t>(elements);
  if (IsFloating(dtype)) {
    const bool known = value == nullptr || value->floats.size() == 1;
    c.SetFloats(0, std::vector<float>(count, !known ? std::nanf("") : value == nullptr ? 0.0f : value->floats[0]));
  } else if (value != nullptr && value->ints.size() == 1) {
    c.SetInts(0, std::vector<int64_t>(count, value->ints[0]));
  }
  return absl::OkStatus();
}

absl::Status Shape(RuleContext& c) {
  c.SetType(0, DType::kInt64);
  if (!c.ranked(0)) return absl::OkStatus();
  const int64_t rank = c.rank(0);
  const auto into_range = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = into_range(std::max(c.node().IntOr("start", 0), -rank));
  const int64_t end = into_range(std::max(c.node().IntOr("end", rank), -rank));
  std::vector<int64_t> out;
  for (int64_t i = start; i < end; ++i) out.push_back(c.dim(0, i) == kUnknownDim ? kUnknownElement : c.dim(0, i));
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {static_cast<int64_t>(out.size())}));
  c.SetInts(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Size(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {}));
  if (c.ranked(0) && ElementsOf(c.dims(0)) != kUnknownDim) c.SetInts(0, {ElementsOf(c.dims(0))});
  return absl::OkStatus();
}

absl::Status Range(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), {kUnknownDim}));
  const std::vector<int64_t>* start = c.known_ints(0);
  const std::vector<int64_t>* limit = c.known_ints(1);
  const std::vector<int64_t>* delta = c.known_ints(2);
  if (start != nullptr && limit != nullptr && delta != nullptr && start->size() == 1 && limit->size() == 1 &&
      delta->size() == 1) {
    const int64_t step = (*delta)[0];
    if (step == 0) return InvalidArgument("delta is 0");
    const Wide span = static_cast<Wide>((*limit)[0]) - (*start)[0];
    const Wide count = (span > 0) == (step > 0) && span != 0 ? (span + step - (step > 0 ? 1 : -1)) / step : 0;
    if (count > c.state().max_tensor_elements) return InvalidArgument("the range has too many elements");
    const int64_t first = (*start)[0];
    HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), {static_cast<int64_t>(count)}));
    if (count > kMaxFoldedElements) return absl::OkStatus();
    std::vector<int64_t> out(static_cast<size_t>(count));
    // Each element lies between start and limit; its distance from start may not fit 64 bits.
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(first + static_cast<Wide>(i) * step);
    c.SetInts(0, std::move(out));
    return absl::OkStatus();
  }
  const std::vector<float>* x = c.floats(0);
  const std::vector<float>* y = c.floats(1);
  const std::vector<float>* d = c.floats(2);
  if (x == nullptr || y == nullptr || d == nullptr || x->size() != 1 || y->size() != 1 || d->size() != 1) {
    return absl::OkStatus();
  }
  const double count = std::ceil((static_cast<double>((*y)[0]) - (*x)[0]) / (*d)[0]);
  if (!(count < static_cast<double>(kMaxAttribute))) return absl::OkStatus();  // NaN too
  return c.Set(0, c.dtype(0), {count > 0 ? static_cast<int64_t>(count) : 0});
}

absl::Status EyeLike(RuleContext& c) { return c.Same(0, AttributeType(c.node(), c.dtype(0))); }

absl::Status Random(RuleContext& c) {
  const std::vector<int64_t>* shape = c.node().Ints("shape");
  if (shape == nullptr) return InvalidArgument("attribute shape is missing");
  HORUS_ASSIGN_OR_RETURN(Dims dims, DimsFrom(*shape));
  return c.Set(0, AttributeType(c.node(), DType::kFloat32), std::move(dims));
}

absl::Status RandomLike(RuleContext& c) { return c.Same(0, AttributeType(c.node(), c.dtype(0))); }

absl::Status Multinomial(RuleContext& c) {
  const DType dtype = AttributeType(c.node(), DType::kInt32);
  const int64_t samples = c.node().IntOr("sample_size", 1);
  if (samples < 1) return InvalidArgument("attribute sample_size is %d, expected at least 1", samples);
  return c.Set(0, dtype, {c.dim(0, 0), samples});
}

absl::Status Window(RuleContext& c) {
  const auto dtype = static_cast<DType>(
      std::clamp<int64_t>(c.node().IntOr("output_datatype", 1), 0, static_cast<int64_t>(DType::kInt4)));
  const std::vector<int64_t>* size = c.known_ints(0);
  return c.Set(0, dtype, {size != nullptr && size->size() == 1 && (*size)[0] >= 0 ? (*size)[0] : kUnknownDim});
}

constexpr RuleEntry kRules[] = {
    {"", "Bernoulli", RandomLike},
    {"", "BlackmanWindow", Window},
    {"", "Constant", Constant},
    {"", "ConstantOfShape", ConstantOfShape},
    {"", "EyeLike", EyeLike},
    {"", "HammingWindow", Window},
    {"", "HannWindow", Window},
    {"", "Multinomial", Multinomial},
    {"", "RandomNormal", Random},
    {"", "RandomNormalLike", RandomLike},
    {"", "RandomUniform", Random},
    {"", "RandomUniformLike", RandomLike},
    {"", "Range", Range},
    {"", "Shape", Shape},
    {"", "Size", Size},
};

}  // namespace

std::span<const RuleEntry> GeneratorRules() { return kRules; }

}  // namespace horus
