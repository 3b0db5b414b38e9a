// SPDX-License-Identifier: Apache-2.0
// What shape rules share: access to inputs, checked setting of outputs, broadcasting.
#include "graph/shape_rule.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/units.h"

namespace horus {
namespace {

const Dims kNoDims;

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
    if (dim < 0) {
      return InvalidArgument("value %s would have shape %s", Quoted(tensor.name), DimsText(dims));
    }
    if (dim > state->max_tensor_elements || (dim > 0 && __builtin_mul_overflow(product, dim, &product)) ||
        product > state->max_tensor_elements) {
      return ResourceExhausted("value %s would have shape %s, limit %d elements", Quoted(tensor.name), DimsText(dims),
                               state->max_tensor_elements);
    }
  }
  if (static_cast<int64_t>(dims.size()) > kMaxRank) {
    return ResourceExhausted("value %s would have %d dimensions, limit %d", Quoted(tensor.name), dims.size(), kMaxRank);
  }
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

const std::vector<int64_t>* RuleContext::ints(size_t i) const {
  const Elements* all = elements(i);
  return all == nullptr || IsFloating(In(i).dtype) ? nullptr : &all->ints;
}

const std::vector<int64_t>* RuleContext::known_ints(size_t i) const {
  const std::vector<int64_t>* values = ints(i);
  if (values == nullptr || std::ranges::find(*values, kUnknownElement) != values->end()) return nullptr;
  return values;
}

std::optional<int64_t> RuleContext::Scalar(size_t i) const {
  const std::vector<int64_t>* values = known_ints(i);
  return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
}

const std::vector<float>* RuleContext::floats(size_t i) const {
  const Elements* all = elements(i);
  return all == nullptr || !IsFloating(In(i).dtype) ? nullptr : &all->floats;
}

std::optional<float> RuleContext::Real(size_t i) const {
  const std::vector<float>* values = floats(i);
  return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
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

void RuleContext::SetType(size_t output, DType dtype) {
  if (wants(output)) state_.tensors[outputs_[output].value()].dtype = dtype;
}

void RuleContext::MarkSequence(size_t output) {
  if (wants(output)) state_.facts[outputs_[output].value()].sequence = true;
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

void RuleContext::SetInts(size_t output, std::vector<int64_t> values) {
  if (wants(output) && !IsFloating(state_.tensors[outputs_[output].value()].dtype)) {
    SetElements(output, Elements{.ints = std::move(values)});
  }
}

void RuleContext::SetFloats(size_t output, std::vector<float> values) {
  if (wants(output) && IsFloating(state_.tensors[outputs_[output].value()].dtype)) {
    SetElements(output, Elements{.floats = std::move(values)});
  }
}

absl::Status RuleContext::Same(DType dtype) {
  SetType(0, dtype);
  return ranked(0) ? Set(dims(0)) : absl::OkStatus();
}

int64_t RuleContext::AtMost(int64_t size) const {
  if (size == kUnknownDim || !state_.bounds_sizes) return kUnknownDim;
  ++state_.bounded;
  return size;
}

absl::Status RuleContext::Axis(int64_t rank, int64_t* axis) const {
  if (*axis < -rank || *axis >= rank) {
    return InvalidArgument("axis %d is outside a tensor of rank %d", *axis, rank);
  }
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

absl::StatusOr<int64_t> RuleContext::AxisOr(int64_t fallback, int64_t rank) const {
  int64_t axis = node_.IntOr("axis", fallback);
  HORUS_RETURN_IF_ERROR(Axis(rank, &axis));
  return axis;
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

}  // namespace horus
