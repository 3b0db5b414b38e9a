// SPDX-License-Identifier: Apache-2.0
// Shape rules of operators that make tensors from little, and of sequences, which are held as their tensors stacked.
#include <cmath>

#include "graph/shape_rule.h"

namespace horus {
namespace {

DType AttributeType(const Node& node, DType fallback) {
  return DTypeOfNumber(node.IntOr("dtype", static_cast<int64_t>(fallback)));
}

// Elements are taken where there are as many as the dims say.
absl::Status SetConstant(RuleContext& c, DType dtype, Dims dims, Elements elements) {
  HORUS_RETURN_IF_ERROR(c.Set(0, dtype, std::move(dims)));
  c.SetElements(0, std::move(elements));
  return absl::OkStatus();
}

absl::Status Constant(RuleContext& c) {
  const auto length = [](const auto& list) { return Dims{static_cast<int64_t>(list.size())}; };
  for (const Attribute& attribute : c.node().attributes) {
    if (const auto* literal = std::get_if<Literal>(&attribute.value)) {
      if (!literal->has_data) return c.Set(0, literal->dtype, literal->dims);
      return SetConstant(c, literal->dtype, literal->dims, {literal->ints, literal->floats});
    }
    if (const auto* value = std::get_if<int64_t>(&attribute.value))
      return SetConstant(c, DType::kInt64, {}, {.ints = {*value}});
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value))
      return SetConstant(c, DType::kInt64, length(*list), {.ints = *list});
    if (const auto* real = std::get_if<float>(&attribute.value))
      return SetConstant(c, DType::kFloat32, {}, {.floats = {*real}});
    if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value))
      return SetConstant(c, DType::kFloat32, length(*reals), {.floats = *reals});
    if (std::holds_alternative<std::string>(attribute.value)) return c.Set(0, DType::kString, {});
    if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value))
      return c.Set(0, DType::kString, length(*texts));
  }
  return absl::OkStatus();  // a sparse or unreadable constant
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
    return c.Set(Dims(static_cast<size_t>(rank), kUnknownDim));
  }
  HORUS_ASSIGN_OR_RETURN(Dims dims, DimsFrom(*shape, "the wished shape"));
  const int64_t elements = ElementsOf(dims);
  HORUS_RETURN_IF_ERROR(c.Set(std::move(dims)));
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
  const int64_t rank = c.rank(0);
  const auto into_range = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = into_range(std::max(c.node().IntOr("start", 0), -rank));
  const int64_t end = into_range(std::max(c.node().IntOr("end", rank), -rank));
  std::vector<int64_t> out;
  for (int64_t i = start; i < end; ++i) out.push_back(c.dim(0, i) == kUnknownDim ? kUnknownElement : c.dim(0, i));
  const auto length = static_cast<int64_t>(out.size());
  return SetConstant(c, DType::kInt64, {length}, {.ints = std::move(out)});
}

absl::Status Size(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {}));
  if (c.ranked(0) && ElementsOf(c.dims(0)) != kUnknownDim) c.SetInts(0, {ElementsOf(c.dims(0))});
  return absl::OkStatus();
}

absl::Status Range(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Set({kUnknownDim}));
  const std::optional<int64_t> start = c.Scalar(0), limit = c.Scalar(1), delta = c.Scalar(2);
  if (start && limit && delta) {
    const int64_t step = *delta;
    if (step == 0) return InvalidArgument("delta is 0");
    const Wide span = static_cast<Wide>(*limit) - *start;
    const Wide count = (span > 0) == (step > 0) && span != 0 ? (span + step - (step > 0 ? 1 : -1)) / step : 0;
    if (count > c.state().max_tensor_elements) return InvalidArgument("the range has too many elements");
    HORUS_RETURN_IF_ERROR(c.Set({static_cast<int64_t>(count)}));
    if (count > kMaxFoldedElements) return absl::OkStatus();
    std::vector<int64_t> out(static_cast<size_t>(count));
    // Each element lies between start and limit; its distance from start may not fit 64 bits.
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(*start + static_cast<Wide>(i) * step);
    c.SetInts(0, std::move(out));
    return absl::OkStatus();
  }
  const std::optional<float> x = c.Real(0), y = c.Real(1), d = c.Real(2);
  if (!x || !y || !d) return absl::OkStatus();
  const double count = std::ceil((static_cast<double>(*y) - *x) / *d);
  if (!(count < static_cast<double>(kMaxAttribute))) return absl::OkStatus();  // NaN too
  return c.Set({count > 0 ? static_cast<int64_t>(count) : 0});
}

absl::Status Random(RuleContext& c) {
  const std::vector<int64_t>* shape = c.node().Ints("shape");
  if (shape == nullptr) return InvalidArgument("attribute shape is missing");
  HORUS_ASSIGN_OR_RETURN(Dims dims, DimsFrom(*shape, "the wished shape"));
  return c.Set(0, AttributeType(c.node(), DType::kFloat32), std::move(dims));
}

absl::Status FilledLike(RuleContext& c) { return c.Same(AttributeType(c.node(), c.dtype(0))); }

absl::Status Multinomial(RuleContext& c) {
  const DType dtype = AttributeType(c.node(), DType::kInt32);
  const int64_t samples = c.node().IntOr("sample_size", 1);
  if (samples < 1) return InvalidArgument("attribute sample_size is %d, expected at least 1", samples);
  return c.Set(0, dtype, {c.dim(0, 0), samples});
}

absl::Status WindowFunction(RuleContext& c) {
  const auto dtype = static_cast<DType>(
      std::clamp<int64_t>(c.node().IntOr("output_datatype", 1), 0, static_cast<int64_t>(DType::kInt4)));
  return c.Set(0, dtype, {std::max(c.Scalar(0).value_or(kUnknownDim), kUnknownDim)});
}

// ---- Operators over sequences, which are held as their tensors stacked; optionals and texts, whose shapes stay
// unknown.

absl::Status Opaque(RuleContext& c) {
  c.SetType(0, DType::kUndefined);
  return absl::OkStatus();
}

// Sets output 0 to a sequence of `length` tensors with dims `each`.
absl::Status SetSequence(RuleContext& c, int64_t length, const Dims& each) {
  c.MarkSequence(0);
  Dims stacked = {length};
  stacked.insert(stacked.end(), each.begin(), each.end());
  return c.Set(std::move(stacked));
}

// Dims of one tensor of the sequence that is input 0, ranked.
Dims EachOf(const RuleContext& c) { return c.rank(0) == 0 ? Dims() : Part(c.dims(0), 1); }

// What two tensors of a sequence have in common: unknown sizes where they differ; false if their ranks do.
bool Merge(const Dims& other, Dims* each) {
  if (other.size() != each->size()) return false;
  for (size_t k = 0; k < other.size(); ++k) {
    if (other[k] != (*each)[k]) (*each)[k] = kUnknownDim;
  }
  return true;
}

absl::Status SequenceEmpty(RuleContext& c) {
  const int64_t number = c.node().IntOr("dtype", static_cast<int64_t>(DType::kFloat32));
  if (number < 0 || number > static_cast<int64_t>(DType::kInt4))
    return InvalidArgument("attribute dtype is %d, expected a type of tensors", number);
  c.SetType(0, static_cast<DType>(number));
  return SetSequence(c, 0, {});
}

absl::Status SequenceConstruct(RuleContext& c) {
  c.MarkSequence(0);
  if (c.inputs() == 0) return absl::OkStatus();
  Dims each = c.dims(0);
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (!c.ranked(i) || !Merge(c.dims(i), &each)) return absl::OkStatus();
  }
  return SetSequence(c, static_cast<int64_t>(c.inputs()), each);
}

absl::Status SequenceInsert(RuleContext& c) {
  c.MarkSequence(0);
  c.SetType(0, c.dtype(1));
  if (!c.ranked(1) || c.rank(0) == 0) return absl::OkStatus();
  const int64_t length = c.dim(0, 0);
  Dims each = c.dims(1);
  if (length != 0 && !Merge(EachOf(c), &each)) return absl::OkStatus();
  // Bounded: a length within max_tensor_elements.
  return SetSequence(c, length == kUnknownDim ? kUnknownDim : length + 1, each);
}

absl::Status SequenceErase(RuleContext& c) {
  c.MarkSequence(0);
  if (c.rank(0) == 0) return absl::OkStatus();
  const int64_t length = c.dim(0, 0);
  if (length == 0) return InvalidArgument("the sequence is empty");
  return SetSequence(c, length == kUnknownDim ? kUnknownDim : length - 1, EachOf(c));
}

// The elements of the tensor at a known position; at an unknown one those that all tensors share.
void FoldAt(RuleContext& c, int64_t length, const Dims& each) {
  if (!c.folds(0)) return;
  const auto size = static_cast<size_t>(ElementsOf(each));
  int64_t at = c.Scalar(1).value_or(kUnknownElement);
  if (at != kUnknownElement && at < 0) at += length;
  std::vector<size_t> positions(size);
  if (at >= 0 && at < length) {
    // Bounded: positions within a tensor of at most max_tensor_elements.
    for (size_t i = 0; i < size; ++i) positions[i] = static_cast<size_t>(at) * size + i;
    return FoldCopy(c, 0, positions);
  }
  const std::vector<int64_t>* ints = c.ints(0);
  if (ints == nullptr || at != kUnknownElement) return;
  std::vector<int64_t> shared(ints->begin(), ints->begin() + static_cast<std::ptrdiff_t>(size));
  for (size_t i = size; i < ints->size(); ++i) {
    if ((*ints)[i] != shared[i % size]) shared[i % size] = kUnknownElement;
  }
  c.SetInts(0, std::move(shared));
}

absl::Status SequenceAt(RuleContext& c) {
  const int64_t length = c.dim(0, 0);
  if (c.rank(0) == 0 || length == 0) return absl::OkStatus();
  const Dims each = EachOf(c);
  HORUS_RETURN_IF_ERROR(c.Set(each));
  if (length != kUnknownDim && ElementsOf(each) > 0) FoldAt(c, length, each);
  return absl::OkStatus();
}

absl::Status SequenceLength(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {}));
  if (c.ranked(0) && c.dim(0, 0) != kUnknownDim) c.SetInts(0, {c.dim(0, 0)});
  return absl::OkStatus();
}

// Elements of a split constant: the parts along `axis`, one after the other. `dims` are those of the input.
void FoldSplit(RuleContext& c, const Dims& dims, size_t axis, int64_t part) {
  if (!c.folds(0)) return;
  const int64_t outer = ElementsOf(Part(dims, 0, axis)), inner = ElementsOf(Part(dims, axis + 1));
  // Bounded: positions within a tensor of at most max_tensor_elements.
  const int64_t chunk = part * inner;
  // Bounded: positions within a tensor of at most max_tensor_elements.
  const int64_t whole = dims[axis] * inner;
  if (chunk <= 0) return;
  std::vector<size_t> positions;
  for (int64_t begin = 0; begin < whole; begin += chunk) {
    for (int64_t o = 0; o < outer; ++o) {
      // Bounded: positions within a tensor of at most max_tensor_elements.
      for (int64_t i = 0; i < chunk; ++i) positions.push_back(static_cast<size_t>(o * whole + begin + i));
    }
  }
  FoldCopy(c, 0, positions);
}

absl::Status SplitToSequence(RuleContext& c) {
  c.MarkSequence(0);
  if (!c.ranked(0)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(0));
  const Dims dims = c.dims(0);
  const int64_t whole = c.dim(0, axis);
  Dims each = dims;
  int64_t& part = each[static_cast<size_t>(axis)];
  part = 1;
  int64_t length = whole;
  if (c.has(1)) {
    const std::vector<int64_t>* sizes = c.known_ints(1);
    if (sizes == nullptr || sizes->empty()) {
      part = length = kUnknownDim;
    } else if (c.rank(1) == 0) {
      part = (*sizes)[0];
      if (part < 1) return InvalidArgument("split is %d, expected at least 1", part);
      length = whole == kUnknownDim ? kUnknownDim : whole / part + (whole % part != 0 ? 1 : 0);
      if (whole == kUnknownDim || whole % part != 0) part = kUnknownDim;  // the last part is smaller
    } else {
      Wide sum = 0;
      bool equal = true;
      for (const int64_t size : *sizes) {
        if (size < 0) return InvalidArgument("split holds %d", size);
        equal = equal && size == (*sizes)[0];
        sum += size;
      }
      if (whole != kUnknownDim && sum != whole)
        return InvalidArgument("split %s does not add up to axis %d of %s", DimsText(*sizes), axis, DimsText(dims));
      length = static_cast<int64_t>(sizes->size());
      part = equal ? (*sizes)[0] : kUnknownDim;
    }
  }
  const int64_t size = part;
  const bool dropped = !c.has(1) && c.node().IntOr("keepdims", 1) == 0;
  if (dropped) each.erase(each.begin() + axis);
  HORUS_RETURN_IF_ERROR(SetSequence(c, length, each));
  if (size > 0 && length > 0) FoldSplit(c, dims, static_cast<size_t>(axis), size);
  return absl::OkStatus();
}

absl::Status ConcatFromSequence(RuleContext& c) {
  if (c.rank(0) == 0 || c.dim(0, 0) == 0) return absl::OkStatus();
  const int64_t length = c.dim(0, 0);
  Dims out = EachOf(c);
  const bool added = c.node().IntOr("new_axis", 0) != 0;
  int64_t axis = c.node().IntOr("axis", 0);
  HORUS_RETURN_IF_ERROR(c.Axis(static_cast<int64_t>(out.size()) + (added ? 1 : 0), &axis));
  if (added) {
    out.insert(out.begin() + axis, length);
    return c.Set(std::move(out));
  }
  int64_t& joined = out[static_cast<size_t>(axis)];
  if (joined == kUnknownDim || length == kUnknownDim) {
    joined = kUnknownDim;
  } else if (__builtin_mul_overflow(joined, length, &joined)) {
    return InvalidArgument("axis %d overflows 64 bits", axis);
  }
  return c.Set(std::move(out));
}

absl::Status TextConcat(RuleContext& c) { return c.SetFound(Broadcast(c.dims(0), c.dims(1))); }

constexpr RuleEntry kGeneratorRules[] = {
    {"Bernoulli EyeLike RandomNormalLike RandomUniformLike", FilledLike},
    {"BlackmanWindow HammingWindow HannWindow", WindowFunction},
    {"ConcatFromSequence", ConcatFromSequence},
    {"Constant", Constant},
    {"ConstantOfShape", ConstantOfShape},
    {"ImageDecoder Optional OptionalGetElement SequenceMap StringNormalizer StringSplit TfIdfVectorizer", Opaque},
    {"Multinomial", Multinomial},
    {"OptionalHasElement", [](RuleContext& c) { return c.Set(0, DType::kBool, {}); }},
    {"RandomNormal RandomUniform", Random},
    {"Range", Range},
    {"RegexFullMatch", [](RuleContext& c) { return c.Same(DType::kBool); }},
    {"SequenceAt", SequenceAt},
    {"SequenceConstruct", SequenceConstruct},
    {"SequenceEmpty", SequenceEmpty},
    {"SequenceErase", SequenceErase},
    {"SequenceInsert", SequenceInsert},
    {"SequenceLength", SequenceLength},
    {"Shape", Shape, 1, "", false, DType::kInt64},
    {"Size", Size},
    {"SplitToSequence", SplitToSequence},
    {"StringConcat", TextConcat, 2, "", false, DType::kString},
};

}  // namespace

std::span<const RuleEntry> GeneratorRules() { return kGeneratorRules; }

}  // namespace horus
