// SPDX-License-Identifier: Apache-2.0
// What shape rules share: access to inputs, checked setting of outputs, broadcasting, folding.
#include "graph/shape_rule.h"

#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/units.h"

namespace horus {
namespace {

const Dims kNoDims;

// Appends `count` elements of `from`, beginning at `first`; unknown ones where nothing is known.
template <typename Element>
void Append(const std::vector<Element>* from, size_t first, size_t count, Element unknown, std::vector<Element>* out) {
  if (from == nullptr) {
    out->insert(out->end(), count, unknown);
  } else {
    const auto at = from->begin() + static_cast<std::ptrdiff_t>(first);
    out->insert(out->end(), at, at + static_cast<std::ptrdiff_t>(count));
  }
}

// ---- What the elements of folded tensors become in another type.

// Bits of precision, the leading one included; 0 where elements are no numbers.
int PrecisionOf(DType dtype) {
  if (dtype == DType::kFloat16) return 11;
  if (dtype == DType::kBfloat16) return 8;
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 ? std::numeric_limits<float>::digits : 0;
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

std::string DimsText(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    if (dims[i] == kUnknownDim) {
      text += '?';
    } else {
      absl::StrAppend(&text, dims[i]);
    }
  }
  return text + "]";
}

int64_t ElementsOf(const Dims& dims) {
  int64_t product = 1;
  bool unknown = false;
  for (const int64_t dim : dims) {
    if (dim == 0) return 0;
    if (dim == kUnknownDim) {
      unknown = true;
      continue;
    }
    if (__builtin_mul_overflow(product, dim, &product)) return kUnknownDim;
  }
  return unknown ? kUnknownDim : product;
}

std::vector<int64_t> AllAxes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

absl::StatusOr<Dims> DimsFrom(const std::vector<int64_t>& elements, const char* what) {
  Dims dims = elements;
  for (int64_t& dim : dims) {
    if (dim == kUnknownElement) {
      dim = kUnknownDim;
    } else if (dim < 0) {
      return InvalidArgument("%s holds %d", what, dim);
    }
  }
  return dims;
}

bool Grow(int64_t* size, int64_t by) {
  if (*size != kUnknownDim && by != kUnknownDim) return !__builtin_add_overflow(*size, by, size);
  *size = kUnknownDim;
  return true;
}

bool Agree(int64_t a, int64_t b) { return a == kUnknownDim || b == kUnknownDim || a == b; }

absl::StatusOr<Dims> Broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& mine = result[shift + i];
    const int64_t other = shorter[i];
    if (mine == other || other == 1) continue;
    if (mine == 1) {
      mine = other;
    } else if (mine == kUnknownDim) {
      mine = other;
    } else if (other != kUnknownDim) {
      return InvalidArgument("shapes %s and %s do not broadcast", DimsText(a), DimsText(b));
    }
  }
  return result;
}

bool IsBatchPair(const ShapeState& state, int64_t a, int64_t b) {
  return state.old_batch > 1 && std::min(a, b) == std::min(state.old_batch, state.new_batch) &&
         std::max(a, b) == std::max(state.old_batch, state.new_batch);
}

absl::StatusOr<Dims> BroadcastBatch(const ShapeState& state, const Dims& a, const Dims& b, bool* rescaled) {
  Dims left = a;
  Dims right = b;
  bool stale = false;
  for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
    if (a[i] == b[i] || !IsBatchPair(state, a[i], b[i])) continue;
    left[i] = right[i] = state.new_batch;
    stale = true;
  }
  if (rescaled != nullptr) *rescaled = stale;
  return Broadcast(left, right);
}

absl::Status SetDims(ShapeState* state, TensorId t, DType dtype, Dims dims) {
  Tensor& tensor = state->tensors[t.value()];
  int64_t product = 1;
  bool known = BitsOf(dtype) != 0;
  for (const int64_t dim : dims) {
    if (dim == kUnknownDim) {
      known = false;
      continue;
    }
    if (dim < 0) return InvalidArgument("value %s would have shape %s", Quoted(tensor.name), DimsText(dims));
    if (dim > state->max_tensor_elements || (dim > 0 && __builtin_mul_overflow(product, dim, &product)) ||
        product > state->max_tensor_elements) {
      return ResourceExhausted("value %s would have shape %s, limit %d elements", Quoted(tensor.name), DimsText(dims),
                               state->max_tensor_elements);
    }
  }
  if (static_cast<int64_t>(dims.size()) > kMaxRank)
    return ResourceExhausted("value %s would have %d dimensions, limit %d", Quoted(tensor.name), dims.size(), kMaxRank);
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  tensor.known = known;
  state->facts[t.value()].ranked = true;
  return absl::OkStatus();
}

const Dims& RuleContext::dims(size_t i) const { return ranked(i) ? In(i).dims : kNoDims; }

int64_t RuleContext::dim(size_t i, int64_t axis) const {
  const Dims& all = dims(i);
  const auto rank = static_cast<int64_t>(all.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? all[static_cast<size_t>(axis)] : kUnknownDim;
}

const Elements* RuleContext::elements(size_t i) const {
  const int32_t position = has(i) ? state_.facts[inputs_[i].value()].elements : -1;
  if (position < 0 || state_.folded > kMaxFoldedTotal) return nullptr;
  return &state_.elements[static_cast<size_t>(position)];
}

const std::vector<int64_t>* RuleContext::known_ints(size_t i) const {
  const std::vector<int64_t>* values = ints(i);
  if (values == nullptr || std::ranges::find(*values, kUnknownElement) != values->end()) return nullptr;
  return values;
}

RuleContext::Setting RuleContext::IntsOf(std::string_view name, size_t i) const {
  const std::vector<int64_t>* attribute = node_.Ints(name);
  const std::vector<int64_t>* values = attribute != nullptr ? attribute : known_ints(i);
  if (values == nullptr) return {.given = has(i)};
  return {.given = true, .known = true, .values = *values};
}

absl::Status RuleContext::Set(size_t output, DType dtype, Dims dims) {
  if (!wants(output)) return absl::OkStatus();
  return SetDims(&state_, outputs_[output], dtype, std::move(dims));
}

absl::Status RuleContext::Set(Dims dims) {
  return wants(0) ? SetDims(&state_, outputs_[0], state_.tensors[outputs_[0].value()].dtype, std::move(dims))
                  : absl::OkStatus();
}

void SetElements(ShapeState* state, TensorId t, Elements elements) {
  const Tensor& tensor = state->tensors[t.value()];
  const size_t count = IsFloating(tensor.dtype) ? elements.floats.size() : elements.ints.size();
  const auto size = static_cast<int64_t>(count);
  if (size > kMaxFoldedElements || !tensor.known || ElementsOf(tensor.dims) != size) return;
  state->folded += size + 1;
  if (state->folded > kMaxFoldedTotal) return;
  state->facts[t.value()].elements = static_cast<int32_t>(state->elements.size());
  state->elements.push_back(std::move(elements));
}

void RuleContext::SetElements(size_t output, Elements elements) {
  if (wants(output)) horus::SetElements(&state_, outputs_[output], std::move(elements));
}

absl::Status RuleContext::Axis(int64_t rank, int64_t* axis) const {
  if (*axis < -rank || *axis >= rank) return InvalidArgument("axis %d is outside a tensor of rank %d", *axis, rank);
  if (*axis < 0) *axis += rank;
  return absl::OkStatus();
}

absl::Status RuleContext::Axes(int64_t rank, std::vector<int64_t>* axes) const {
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t& axis : *axes) {
    HORUS_RETURN_IF_ERROR(Axis(rank, &axis));
    if (seen[static_cast<size_t>(axis)]) return InvalidArgument("axis %d is given twice", axis);
    seen[static_cast<size_t>(axis)] = true;
  }
  return absl::OkStatus();
}

absl::Status RuleEntry::Apply(RuleContext& c) const {
  c.SetType(0, type == DType::kUndefined ? c.dtype(0) : type);
  for (size_t i = 0; i < ranked; ++i) {
    if (!c.ranked(i)) return absl::OkStatus();
  }
  return rule(c);
}

RuleTable::RuleTable() {
  for (const std::span<const RuleEntry> list :
       {PointwiseRules(), ConvolutionRules(), MatrixRules(), LayoutRules(), GeneratorRules()}) {
    for (const RuleEntry& entry : list) {
      auto& rules = entry.domain.empty() ? rules_ : other_rules_;
      ForEachName(entry.operators, [&](std::string_view name) { rules.emplace(name, &entry); });
    }
  }
}

const RuleEntry* RuleTable::Find(const Node& node) const {
  const auto& table = node.domain.empty() ? rules_ : other_rules_;
  const auto found = table.find(node.op_type);
  return found == table.end() || found->second->domain != node.domain ? nullptr : found->second;
}

// ---- Folding of small constant tensors.

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

// ---- Copies elements of small constant tensors by position.

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

void FoldCopy(RuleContext& c, size_t i, const std::vector<size_t>& positions, size_t output) {
  const std::vector<int64_t>* ints = c.ints(i);
  const std::vector<float>* floats = c.floats(i);
  Elements out;
  for (const size_t at : positions) {
    if (ints != nullptr) out.ints.push_back((*ints)[at]);
    if (floats != nullptr) out.floats.push_back((*floats)[at]);
  }
  if (c.folds(i)) c.SetElements(output, std::move(out));
}

void FoldAll(RuleContext& c, size_t i) {
  if (const Elements* all = c.elements(i)) c.SetElements(0, *all);
}

void FoldConcat(RuleContext& c, size_t axis, const Dims& joined) {
  const int64_t total = ElementsOf(joined);
  if (total == kUnknownDim || total > kMaxFoldedElements) return;
  const bool reals = IsFloating(c.dtype(0));
  bool any = false;
  struct Chunk {
    size_t input, elements;  // that lie together
  };
  std::vector<Chunk> chunks;  // of the inputs that are not empty: no more turns below than elements
  for (size_t i = 0; i < c.inputs(); ++i) {
    Dims like = c.dims(i);
    like[axis] = joined[axis];
    if (like != joined || IsFloating(c.dtype(i)) != reals) return;  // a batch size was replaced in one of them
    any = any || c.ints(i) != nullptr || c.floats(i) != nullptr;
    const Dims inner(c.dims(i).begin() + static_cast<std::ptrdiff_t>(axis), c.dims(i).end());
    if (ElementsOf(inner) > 0) chunks.push_back({i, static_cast<size_t>(ElementsOf(inner))});
  }
  if (!any) return;
  const int64_t outer = ElementsOf(Dims(joined.begin(), joined.begin() + static_cast<std::ptrdiff_t>(axis)));
  Elements out;
  for (size_t o = 0; total > 0 && o < static_cast<size_t>(outer); ++o) {
    for (const auto& [input, elements] : chunks) {
      if (reals) {
        // Bounded: positions within a tensor of at most max_tensor_elements.
        Append(c.floats(input), o * elements, elements, std::nanf(""), &out.floats);
      } else {
        // Bounded: positions within a tensor of at most max_tensor_elements.
        Append(c.ints(input), o * elements, elements, kUnknownElement, &out.ints);
      }
    }
  }
  c.SetElements(0, std::move(out));
}

namespace {

// ---- What an operator makes of two elements.

struct FoldedOperator {
  std::string_view name;
  int64_t (*on_ints)(int64_t, int64_t);            // of known elements
  double (*on_floats)(double, double) = nullptr;   // null: of no floats
  bool tells = false;                              // a truth, else a number of the operands' type
  std::optional<int64_t> decisive = std::nullopt;  // as an operand this is the result, whatever the other one is
};

template <typename Order>
constexpr FoldedOperator Comparison(std::string_view name) {
  return {name, [](int64_t a, int64_t b) { return int64_t{Order()(a, b) ? 1 : 0}; },
          [](double a, double b) { return Order()(a, b) ? 1.0 : 0.0; }, true};
}

int64_t SubInt(int64_t a, int64_t b) {
  int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? kUnknownElement : difference;
}

int64_t PowInt(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 62) return kUnknownElement;
  int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) return kUnknownElement;
  }
  return result;
}

// With the sign of the dividend.
int64_t FmodInt(int64_t a, int64_t b) { return b == 0 ? kUnknownElement : b == -1 ? 0 : a % b; }

// With that of the divisor.
int64_t ModInt(int64_t a, int64_t b) {
  const int64_t remainder = FmodInt(a, b);
  return b != 0 && remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

int64_t AddInt(int64_t a, int64_t b) { return CheckedAdd(a, b).value_or(kUnknownElement); }
int64_t MulInt(int64_t a, int64_t b) { return CheckedMul(a, b).value_or(kUnknownElement); }

// Floats in double precision, which rounds to the same float32 as float32 arithmetic does.
constexpr FoldedOperator kOperators[] = {
    {"Add", AddInt, [](double a, double b) { return a + b; }},
    {"Sum", AddInt, [](double a, double b) { return a + b; }},
    {"Sub", SubInt, [](double a, double b) { return a - b; }},
    {"Mul", MulInt, [](double a, double b) { return a * b; }, false, 0},
    {"Div", [](int64_t a, int64_t b) { return b == 0 ? kUnknownElement : a / b; },
     [](double a, double b) { return a / b; }},
    {"Mod", ModInt, [](double a, double b) { return std::fmod(a, b); }},
    {"fmod", FmodInt, [](double a, double b) { return std::fmod(a, b); }},  // Mod where the attribute is set
    {"Min", [](int64_t a, int64_t b) { return std::min(a, b); }, [](double a, double b) { return std::min(a, b); }},
    {"Max", [](int64_t a, int64_t b) { return std::max(a, b); }, [](double a, double b) { return std::max(a, b); }},
    {"Pow", PowInt, [](double a, double b) { return std::pow(a, b); }},
    {"And", [](int64_t a, int64_t b) -> int64_t { return a != 0 && b != 0; }, nullptr, true, 0},
    {"Or", [](int64_t a, int64_t b) -> int64_t { return a != 0 || b != 0; }, nullptr, true, 1},
    {"Xor", [](int64_t a, int64_t b) -> int64_t { return (a != 0) != (b != 0); }, nullptr, true},
    Comparison<std::equal_to<>>("Equal"),
    Comparison<std::less<>>("Less"),
    Comparison<std::less_equal<>>("LessOrEqual"),
    Comparison<std::greater<>>("Greater"),
    Comparison<std::greater_equal<>>("GreaterOrEqual"),
};

const FoldedOperator* OperatorOf(const Node& node) {
  const bool like_c = node.op_type == "Mod" && node.IntOr("fmod", 0) != 0;
  const auto* found =
      std::ranges::find(kOperators, like_c ? "fmod" : std::string_view(node.op_type), &FoldedOperator::name);
  return found == std::end(kOperators) ? nullptr : found;
}

int64_t OnInts(const FoldedOperator& op, int64_t a, int64_t b) {
  if (op.decisive && (a == *op.decisive || b == *op.decisive)) return *op.decisive;
  return a == kUnknownElement || b == kUnknownElement ? kUnknownElement : op.on_ints(a, b);
}

double OnFloats(const FoldedOperator& op, double a, double b) {
  return std::isnan(a) || std::isnan(b) || op.on_floats == nullptr ? std::nan("") : op.on_floats(a, b);
}

bool Foldable(const Dims& dims) {
  const int64_t elements = ElementsOf(dims);
  return elements != kUnknownDim && elements <= kMaxFoldedElements;
}

// Known elements of one operand and its dims.
struct Operand {
  Elements elements;
  Dims dims;
};

std::optional<Operand> OperandOf(const RuleContext& c, size_t i) {
  const Elements* elements = c.elements(i);
  return elements == nullptr ? std::nullopt : std::optional(Operand{*elements, c.dims(i)});
}

// `a` op `b`, broadcast; nothing where the result is too large or the operands are of two kinds.
std::optional<Operand> Combine(const RuleContext& c, const FoldedOperator& op, const Operand& a, const Operand& b) {
  const absl::StatusOr<Dims> dims = Broadcast(a.dims, b.dims);
  if (!dims.ok() || !Foldable(*dims)) return std::nullopt;
  const auto total = static_cast<size_t>(ElementsOf(*dims));
  const bool reals = IsFloating(c.dtype(0));
  if (reals != IsFloating(c.dtype(1))) return std::nullopt;
  const bool same = a.dims == *dims && b.dims == *dims;
  const std::vector<size_t> left = same ? std::vector<size_t>() : BroadcastPositions(a.dims, *dims);
  const std::vector<size_t> right = same ? std::vector<size_t>() : BroadcastPositions(b.dims, *dims);
  Operand out{.elements = {}, .dims = *dims};
  for (size_t i = 0; i < total; ++i) {
    const size_t l = same ? i : left[i];
    const size_t r = same ? i : right[i];
    if (!reals) {
      const int64_t value = OnInts(op, a.elements.ints[l], b.elements.ints[r]);
      out.elements.ints.push_back(op.tells ? value : HeldAs(value, c.dtype(0)));
      continue;
    }
    const double value = OnFloats(op, a.elements.floats[l], b.elements.floats[r]);
    if (op.tells) {
      out.elements.ints.push_back(std::isnan(value) ? kUnknownElement : static_cast<int64_t>(value));
    } else {
      out.elements.floats.push_back(HeldAs(value, c.dtype(0)));
    }
  }
  return out;
}

}  // namespace

void FoldElementwise(RuleContext& c) {
  const FoldedOperator* op = OperatorOf(c.node());
  if (op == nullptr) return;
  const bool variadic = op->name == "Min" || op->name == "Max" || op->name == "Sum";
  if (c.inputs() != 2 && !variadic) return;
  std::optional<Operand> result = OperandOf(c, 0);
  for (size_t i = 1; i < c.inputs() && result.has_value(); ++i) {
    const std::optional<Operand> next = OperandOf(c, i);
    result = next.has_value() ? Combine(c, *op, *result, *next) : std::nullopt;
  }
  if (result.has_value()) c.SetElements(0, std::move(result->elements));
}

void FoldClip(RuleContext& c) {
  const std::optional<Operand> in = OperandOf(c, 0);
  if (!in.has_value()) return;
  Operand out = *in;
  constexpr std::string_view kNames[] = {"min", "max"};
  for (size_t bound = 0; bound < 2; ++bound) {  // the lower first: where they cross, the upper wins
    const Attribute* attribute = c.node().FindAttribute(kNames[bound]);
    const float* given = attribute == nullptr ? nullptr : std::get_if<float>(&attribute->value);
    std::optional<Operand> limit = OperandOf(c, bound + 1);
    if (given != nullptr) limit = Operand{.elements = {.floats = {*given}}, .dims = {}};
    if (!limit.has_value() && c.has(bound + 1)) return;
    if (!limit.has_value()) continue;
    for (float& element : out.elements.floats) {
      if (limit->elements.floats.size() != 1 || std::isnan(limit->elements.floats[0])) return;
      const float edge = limit->elements.floats[0];
      if (!std::isnan(element)) element = bound == 0 ? std::max(element, edge) : std::min(element, edge);
    }
    for (int64_t& element : out.elements.ints) {
      if (limit->elements.ints.size() != 1 || limit->elements.ints[0] == kUnknownElement) return;
      const int64_t edge = limit->elements.ints[0];
      if (element != kUnknownElement) element = bound == 0 ? std::max(element, edge) : std::min(element, edge);
    }
  }
  c.SetElements(0, std::move(out.elements));
}

void FoldWhere(RuleContext& c) {
  const std::vector<int64_t>* condition = c.ints(0);
  const std::optional<Operand> yes = OperandOf(c, 1);
  const std::optional<Operand> no = OperandOf(c, 2);
  if (condition == nullptr || !yes.has_value() || !no.has_value()) return;
  const bool reals = IsFloating(c.dtype(1));
  if (reals != IsFloating(c.dtype(2))) return;
  absl::StatusOr<Dims> dims = Broadcast(c.dims(0), c.dims(1));
  if (dims.ok()) dims = Broadcast(*dims, c.dims(2));
  if (!dims.ok() || !Foldable(*dims)) return;
  const std::vector<size_t> which = BroadcastPositions(c.dims(0), *dims);
  const std::vector<size_t> left = BroadcastPositions(c.dims(1), *dims);
  const std::vector<size_t> right = BroadcastPositions(c.dims(2), *dims);
  Elements out;
  for (size_t i = 0; i < which.size(); ++i) {
    const int64_t chosen = (*condition)[which[i]];
    const size_t at = chosen != 0 ? left[i] : right[i];
    const Elements& from = chosen != 0 ? yes->elements : no->elements;
    if (reals) {
      out.floats.push_back(chosen == kUnknownElement ? std::nanf("") : from.floats[at]);
    } else {
      out.ints.push_back(chosen == kUnknownElement ? kUnknownElement : from.ints[at]);
    }
  }
  c.SetElements(0, std::move(out));
}

}  // namespace horus
