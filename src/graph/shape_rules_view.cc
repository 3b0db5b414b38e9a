// SPDX-License-Identifier: Apache-2.0
// Shape rules of operators that show the same elements in another shape or order.
#include <algorithm>

#include "graph/shape_fold.h"
#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Identity(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  FoldAll(c, 0);
  return absl::OkStatus();
}

// A target written for another batch size: scales the first entry that differs from the input's dims, if that makes
// the element counts agree. Where a -1 takes what is left both would: then the batch stays where the input has it,
// which leaves the -1 the size that it had in the file.
void RescaleTarget(const RuleContext& c, Dims* target) {
  const int64_t old_batch = c.state().old_batch;
  const int64_t new_batch = c.state().new_batch;
  if (old_batch < 1 || old_batch == new_batch || !c.ranked(0)) return;
  const int64_t elements = ElementsOf(c.dims(0));
  const int64_t wished = ElementsOf(*target);
  if (elements == kUnknownDim || (wished != kUnknownDim && wished == elements)) return;
  const Dims& in = c.dims(0);
  size_t at = 0;
  while (at < in.size() && at < target->size() && in[at] == (*target)[at]) ++at;
  if (at >= target->size()) return;
  int64_t& entry = (*target)[at];
  if (entry < 1 || entry % old_batch != 0) return;
  int64_t scaled = 0;
  if (__builtin_mul_overflow(entry / old_batch, new_batch, &scaled)) return;
  if (wished == kUnknownDim) {  // a -1 takes what is left
    Wide rest = scaled;
    for (size_t i = 0; i < target->size(); ++i) {
      // Bounded: ends where it exceeds the elements, which fit 64 bits.
      if (i != at && (*target)[i] != kUnknownDim && rest <= elements) rest *= (*target)[i];
    }
    if (at < in.size() && in[at] % new_batch == 0 && rest > 0 && elements % rest == 0) entry = scaled;
  } else if (static_cast<Wide>(wished) / entry * scaled == elements) {
    entry = scaled;
  }
}

absl::Status ReshapeTo(RuleContext& c, Dims target, bool allow_zero) {
  int64_t wildcard = -1;
  int64_t unknown = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    int64_t& entry = target[i];
    if (entry == kUnknownElement) {
      ++unknown;
      entry = kUnknownDim;
    } else if (entry == 0 && !allow_zero) {
      entry = c.ranked(0) ? c.dim(0, static_cast<int64_t>(i)) : kUnknownDim;
      if (c.ranked(0) && i >= c.dims(0).size()) {
        return InvalidArgument("entry %d of the new shape copies a dimension that input %s lacks", i,
                               DimsText(c.dims(0)));
      }
      if (entry == kUnknownDim) ++unknown;
    } else if (entry == -1) {
      if (wildcard >= 0) return InvalidArgument("the new shape %s has two entries of -1", DimsText(target));
      wildcard = static_cast<int64_t>(i);
    } else if (entry < 0) {
      return InvalidArgument("entry %d of the new shape is %d", i, entry);
    }
  }
  if (unknown == 0) RescaleTarget(c, &target);
  const int64_t elements = c.ranked(0) ? ElementsOf(c.dims(0)) : kUnknownDim;
  if (elements != kUnknownDim) {
    int64_t rest = 1;
    for (const int64_t entry : target) {
      if (entry != kUnknownDim && __builtin_mul_overflow(rest, entry, &rest)) {
        return InvalidArgument("the new shape %s overflows 64 bits", DimsText(target));
      }
    }
    const bool open = wildcard >= 0 || unknown > 0;
    const bool fits = rest == 0 ? elements == 0 : open ? elements % rest == 0 : elements == rest;
    if (!fits) {
      return InvalidArgument("input %s has %d elements, which do not fit the new shape %s", DimsText(c.dims(0)),
                             elements, DimsText(target));
    }
    if (rest != 0 && (wildcard >= 0 ? unknown == 0 : unknown == 1)) {
      *std::find(target.begin(), target.end(), kUnknownDim) = elements / rest;
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), std::move(target)));
  FoldAll(c, 0);
  return absl::OkStatus();
}

absl::Status Reshape(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  const bool allow_zero = c.node().IntOr("allowzero", 0) != 0;
  if (const std::vector<int64_t>* target = c.ints(1)) return ReshapeTo(c, *target, allow_zero);
  if (const std::vector<int64_t>* target = c.node().Ints("shape")) return ReshapeTo(c, *target, allow_zero);
  const int64_t rank = c.dim(1, 0);  // the rank is known where the target's length is
  if (c.rank(1) == 1 && rank != kUnknownDim && rank <= kMaxRank) {
    return c.Set(0, c.dtype(0), Dims(static_cast<size_t>(rank), kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status Flatten(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  int64_t axis = c.node().IntOr("axis", 1);
  if (axis < 0) axis += c.rank(0);
  if (axis < 0 || axis > c.rank(0)) {
    return InvalidArgument("axis %d is outside a tensor of rank %d", c.node().IntOr("axis", 1), c.rank(0));
  }
  const Dims& in = c.dims(0);
  HORUS_RETURN_IF_ERROR(c.Set(
      0, c.dtype(0), {ElementsOf(Dims(in.begin(), in.begin() + axis)), ElementsOf(Dims(in.begin() + axis, in.end()))}));
  FoldAll(c, 0);
  return absl::OkStatus();
}

absl::Status Squeeze(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  std::vector<int64_t> axes;
  bool given = false;
  const bool known = c.IntsOf("axes", 1, &axes, &given);
  if (!c.ranked(0) || (given && !known)) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  Dims out;
  for (int64_t axis = 0; axis < c.rank(0); ++axis) {
    const int64_t size = c.dim(0, axis);
    const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!given && size == kUnknownDim) return absl::OkStatus();
    if (named && !Agree(size, 1)) {
      return InvalidArgument("axis %d of %s has size %d, expected 1", axis, DimsText(c.dims(0)), size);
    }
    if (given ? !named : size != 1) out.push_back(size);
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), std::move(out)));
  FoldAll(c, 0);
  return absl::OkStatus();
}

absl::Status Unsqueeze(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  std::vector<int64_t> axes;
  bool given = false;
  if (!c.IntsOf("axes", 1, &axes, &given)) {
    return given ? absl::OkStatus() : InvalidArgument("axes are missing");
  }
  if (!c.ranked(0)) return absl::OkStatus();
  const int64_t rank = c.rank(0) + static_cast<int64_t>(axes.size());
  if (rank > kMaxRank) return InvalidArgument("the result would have %d dimensions, limit %d", rank, kMaxRank);
  HORUS_RETURN_IF_ERROR(c.Axes(rank, &axes));
  Dims out(static_cast<size_t>(rank), kUnknownDim);
  for (const int64_t axis : axes) out[static_cast<size_t>(axis)] = 1;
  std::vector<bool> added(out.size(), false);
  for (const int64_t axis : axes) added[static_cast<size_t>(axis)] = true;
  size_t next = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!added[i]) out[i] = c.dims(0)[next++];
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), std::move(out)));
  FoldAll(c, 0);
  return absl::OkStatus();
}

absl::Status Transpose(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  const size_t rank = c.dims(0).size();
  std::vector<int64_t> order;
  if (const std::vector<int64_t>* given = c.node().Ints("perm"); given != nullptr && !given->empty()) {
    order = *given;
  } else {
    for (size_t i = rank; i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  if (order.size() != rank) {
    return InvalidArgument("attribute perm has %d entries, input %s has rank %d", order.size(), DimsText(c.dims(0)),
                           rank);
  }
  HORUS_RETURN_IF_ERROR(c.Axes(static_cast<int64_t>(rank), &order));
  Dims out;
  for (const int64_t axis : order) out.push_back(c.dim(0, axis));
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), out));
  if ((c.ints(0) == nullptr && c.floats(0) == nullptr) || ElementsOf(out) == kUnknownDim) return absl::OkStatus();
  const std::vector<int64_t> in_steps = StepsOf(c.dims(0));
  const std::vector<int64_t> out_steps = StepsOf(out);
  std::vector<size_t> positions(static_cast<size_t>(ElementsOf(out)), 0);
  for (size_t i = 0; i < positions.size(); ++i) {
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t index = static_cast<int64_t>(i) / out_steps[axis] % out[axis];
      // Bounded: positions within a tensor of at most max_tensor_elements.
      positions[i] += static_cast<size_t>(index * in_steps[static_cast<size_t>(order[axis])]);
    }
  }
  FoldCopy(c, 0, positions);
  return absl::OkStatus();
}

constexpr RuleEntry kRules[] = {
    {"", "Flatten", Flatten, true}, {"", "Identity", Identity, true},    {"", "Reshape", Reshape, true},
    {"", "Squeeze", Squeeze, true}, {"", "Transpose", Transpose, false}, {"", "Unsqueeze", Unsqueeze, true},
};

}  // namespace

std::span<const RuleEntry> ViewRules() { return kRules; }

}  // namespace horus
