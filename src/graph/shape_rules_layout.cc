// SPDX-License-Identifier: Apache-2.0
// Shape rules of operators that compute nothing: views of the same elements, joining, splitting, padding, repeating,
// picking.
#include <numeric>

#include "graph/shape_rule.h"

namespace horus {
namespace {

// ---- Shape rules of operators that show the same elements in another shape or order.

absl::Status Identity(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  FoldAll(c, 0);
  return absl::OkStatus();
}

absl::Status ViewAs(RuleContext& c, Dims dims) {
  HORUS_RETURN_IF_ERROR(c.Set(std::move(dims)));
  FoldAll(c, 0);
  return absl::OkStatus();
}

// One group of a reshape: dims of the file's input and output that hold the same elements.
struct Group {
  size_t in, in_end, out, out_end;
};

// Which entry of the group's output the batch goes into, by the strides of the file's sizes. A batch of 1 has none: it
// joins what lies inside of it (heads), or what lies outside where that is the last axis (features).
size_t BatchEntry(const Dims& from, const Dims& to, const Dims& now, const Group& g, int64_t batch) {
  size_t scaled = g.in;
  while (scaled + 1 < g.in_end && from[scaled] == now[scaled]) ++scaled;
  size_t at = g.out;
  if (from[scaled] != batch) {  // it was joined with others before
    // A batch of 1 may follow as an entry of its own, which belongs to no group for its size.
    const size_t end = batch == 1 && g.out_end < to.size() && to[g.out_end] == 1 ? g.out_end + 1 : g.out_end;
    for (size_t m = g.out; m < end; ++m) {
      if (to[m] == batch) return m;
    }
    while (at + 1 < g.out_end && to[at] % batch != 0) ++at;
  } else {
    const int64_t stride = ElementsOf(Part(from, scaled + 1, g.in_end));
    int64_t inner = 1;
    // Bounded: all of them count elements of one tensor.
    for (at = g.out_end - 1; at > g.out && inner * to[at] < stride * batch; --at) inner *= to[at];
    // Bounded: likewise.
    if (batch == 1 && to[at] != 1 && at > g.out && to[at - 1] == 1 && inner * to[at] == stride) --at;
  }
  const bool features = batch == 1 && scaled == g.in && at == g.out && at + 1 == to.size() && to[at] != 1;
  return features && at > 0 ? at - 1 : at;
}

// The shape that a reshape makes of `now`, its input at the batch that is asked for, where the file's batch makes `to`
// of `from`; empty where that cannot be told.
Dims Rescaled(const Dims& from, const Dims& to, const Dims& now, int64_t batch) {
  if (from.size() != now.size() || ElementsOf(from) < 1 || ElementsOf(from) != ElementsOf(to)) return {};
  Dims result = to;
  for (Group g = {0, 0, 0, 0}; g.in_end < from.size() || g.out_end < to.size();) {
    g = {g.in_end, g.in_end, g.out_end, g.out_end};
    int64_t read = 1, written = 1, grown = 1;
    const auto take = [&] {
      read *= from[g.in_end];  // Bounded: both are at most all elements, which fit 64 bits.
      return !__builtin_mul_overflow(grown, now[g.in_end++], &grown);
    };
    if (g.in_end < from.size() && !take()) return {};
    if (g.out_end < to.size()) written = to[g.out_end++];
    while (read != written) {
      if (read < written ? g.in_end >= from.size() : g.out_end >= to.size()) return {};
      if (read > written) {
        written *= to[g.out_end++];  // Bounded: as above.
      } else if (!take()) {
        return {};
      }
    }
    if (grown == read) continue;
    if (g.out == g.out_end) return {};
    int64_t& entry = result[BatchEntry(from, to, now, g, batch)];
    const Wide scaled = static_cast<Wide>(entry) * grown;
    if (scaled % read != 0 || scaled / read > std::numeric_limits<int64_t>::max()) return {};
    entry = static_cast<int64_t>(scaled / read);
  }
  return result;
}

// A target that was written for the file's batch, scaled for the one that is asked for.
Dims RescaledTarget(const RuleContext& c, const Dims& target) {
  const ShapeState& s = c.state();
  const auto written = s.written_reshapes.find(s.op);
  if (written == s.written_reshapes.end() || !c.ranked(0) || ElementsOf(c.dims(0)) == kUnknownDim) return {};
  if (std::ranges::find(target, kUnknownElement) != target.end()) return {};
  if (std::ranges::none_of(target, [](int64_t entry) { return entry < 0; }) &&
      ElementsOf(target) == ElementsOf(c.dims(0))) {
    return {};
  }
  return Rescaled(written->second.from, written->second.to, c.dims(0), s.old_batch);
}

absl::Status ReshapeTo(RuleContext& c, Dims target, bool allow_zero) {
  if (Dims scaled = RescaledTarget(c, target); !scaled.empty()) target = std::move(scaled);
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
  const int64_t elements = c.ranked(0) ? ElementsOf(c.dims(0)) : kUnknownDim;
  if (elements != kUnknownDim) {
    int64_t rest = 1;
    for (const int64_t entry : target) {
      if (entry != kUnknownDim && __builtin_mul_overflow(rest, entry, &rest))
        return InvalidArgument("the new shape %s overflows 64 bits", DimsText(target));
    }
    const bool open = wildcard >= 0 || unknown > 0;
    const bool fits = rest == 0 ? elements == 0 : open ? elements % rest == 0 : elements == rest;
    if (!fits) {
      return InvalidArgument("input %s has %d elements, which do not fit the new shape %s", DimsText(c.dims(0)),
                             elements, DimsText(target));
    }
    if (rest != 0 && (wildcard >= 0 ? unknown == 0 : unknown == 1))
      *std::ranges::find(target, kUnknownDim) = elements / rest;
  }
  return ViewAs(c, std::move(target));
}

absl::Status Reshape(RuleContext& c) {
  const bool allow_zero = c.node().IntOr("allowzero", 0) != 0;
  if (const std::vector<int64_t>* target = c.ints(1)) return ReshapeTo(c, *target, allow_zero);
  if (const std::vector<int64_t>* target = c.node().Ints("shape")) return ReshapeTo(c, *target, allow_zero);
  const int64_t rank = c.dim(1, 0);  // the rank is known where the target's length is
  if (c.rank(1) == 1 && rank != kUnknownDim && rank <= kMaxRank)
    return c.Set(Dims(static_cast<size_t>(rank), kUnknownDim));
  return absl::OkStatus();
}

absl::Status Flatten(RuleContext& c) {
  int64_t axis = c.node().IntOr("axis", 1);
  if (axis < 0) axis += c.rank(0);
  if (axis < 0 || axis > c.rank(0))
    return InvalidArgument("axis %d is outside a tensor of rank %d", c.node().IntOr("axis", 1), c.rank(0));
  const auto split = static_cast<size_t>(axis);
  return ViewAs(c, {ElementsOf(Part(c.dims(0), 0, split)), ElementsOf(Part(c.dims(0), split))});
}

absl::Status Squeeze(RuleContext& c) {
  auto [given, known, axes] = c.IntsOf("axes", 1);
  if (given && !known) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  Dims out;
  for (int64_t axis = 0; axis < c.rank(0); ++axis) {
    const int64_t size = c.dim(0, axis);
    const bool named = std::ranges::find(axes, axis) != axes.end();
    if (!given && size == kUnknownDim) return absl::OkStatus();
    if (named && !Agree(size, 1))
      return InvalidArgument("axis %d of %s has size %d, expected 1", axis, DimsText(c.dims(0)), size);
    if (given ? !named : size != 1) out.push_back(size);
  }
  return ViewAs(c, std::move(out));
}

absl::Status Unsqueeze(RuleContext& c) {
  auto [given, known, axes] = c.IntsOf("axes", 1);
  if (!given) return InvalidArgument("axes are missing");
  if (!known || !c.ranked(0)) return absl::OkStatus();
  const int64_t rank = c.rank(0) + static_cast<int64_t>(axes.size());
  if (rank > kMaxRank) return InvalidArgument("the result would have %d dimensions, limit %d", rank, kMaxRank);
  HORUS_RETURN_IF_ERROR(c.Axes(rank, &axes));
  std::ranges::sort(axes);
  Dims out = c.dims(0);
  for (const int64_t axis : axes) out.insert(out.begin() + axis, 1);
  return ViewAs(c, std::move(out));
}

absl::Status Transpose(RuleContext& c) {
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
  HORUS_RETURN_IF_ERROR(c.Set(out));
  if (!c.folds(0) || ElementsOf(out) == kUnknownDim) return absl::OkStatus();
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

absl::Status Concat(RuleContext& c) {
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(1));
  Dims out = c.dims(0);
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (!c.ranked(i)) return c.Set(Dims(out.size(), kUnknownDim));
    if (c.rank(i) != c.rank(0)) {
      return InvalidArgument("inputs have shapes %s and %s, expected the same rank", DimsText(c.dims(0)),
                             DimsText(c.dims(i)));
    }
    for (size_t k = 0; k < out.size(); ++k) {
      const int64_t size = c.dims(i)[k];
      if (static_cast<int64_t>(k) == axis) {
        if (!Grow(&out[k], size)) return InvalidArgument("axis %d overflows 64 bits", axis);
        continue;
      }
      const ShapeState& s = c.state();
      const bool rescaled =
          k == 0 && s.old_batch > 0 && std::min(size, out[k]) == s.old_batch && std::max(size, out[k]) == s.new_batch;
      if (!Agree(out[k], size) && !rescaled) {
        return InvalidArgument("inputs have shapes %s and %s, which differ in axis %d", DimsText(c.dims(0)),
                               DimsText(c.dims(i)), k);
      }
      out[k] = rescaled ? s.new_batch : Known(out[k], size);
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(out));
  FoldConcat(c, static_cast<size_t>(axis), out);
  return absl::OkStatus();
}

absl::Status Split(RuleContext& c) {
  for (size_t i = 0; i < c.outputs(); ++i) c.SetType(i, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(0));
  const int64_t whole = c.dim(0, axis);
  auto [given, known, parts] = c.IntsOf("split", 1);
  const auto outputs = static_cast<int64_t>(c.outputs());
  if (!given) {
    // Equal parts; from opset 18 the last one may be smaller.
    const int64_t size = whole == kUnknownDim ? kUnknownDim : (whole + outputs - 1) / outputs;
    parts.assign(c.outputs(), size);
    if (whole != kUnknownDim) {
      // Bounded: less than whole + outputs, by the division above.
      parts.back() = whole - size * (outputs - 1);
      if (parts.back() < 0 || (c.opset() < 18 && parts.back() != size))
        return InvalidArgument("axis %d of %s does not split into %d parts", axis, DimsText(c.dims(0)), outputs);
    }
  } else if (!known) {
    parts.assign(c.outputs(), kUnknownDim);
  }
  if (parts.size() != c.outputs())
    return InvalidArgument("split names %d parts for %d outputs", parts.size(), c.outputs());
  int64_t sum = 0;
  for (const int64_t part : parts) {
    if (part < 0 && !(part == kUnknownDim && (!given || !known))) return InvalidArgument("split holds %d", part);
    if (__builtin_add_overflow(sum, part, &sum)) return InvalidArgument("split overflows 64 bits");
  }
  if (known && whole != kUnknownDim && sum != whole)
    return InvalidArgument("split adds up to %d, axis %d of %s has %d", sum, axis, DimsText(c.dims(0)), whole);
  int64_t begin = 0;
  const bool constant = c.rank(0) == 1 && c.folds(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    Dims out = c.dims(0);
    out[static_cast<size_t>(axis)] = parts[i];
    HORUS_RETURN_IF_ERROR(c.Set(i, c.dtype(0), std::move(out)));
    if (!constant || parts[i] == kUnknownDim) continue;
    std::vector<size_t> positions(static_cast<size_t>(parts[i]));
    std::iota(positions.begin(), positions.end(), static_cast<size_t>(begin));
    FoldCopy(c, 0, positions, i);
    begin += parts[i];
  }
  return absl::OkStatus();
}

absl::Status Expand(RuleContext& c) {
  const std::vector<int64_t>* shape = c.ints(1);
  if (shape == nullptr) return absl::OkStatus();
  Dims target = *shape;
  std::ranges::replace(target, -1, 1);  // exporters write -1 for "as it is"
  HORUS_ASSIGN_OR_RETURN(target, DimsFrom(target, "the new shape"));
  const ShapeState& s = c.state();
  if (s.old_batch > 0 && target.size() >= 2 && target[0] == s.old_batch) target[0] = s.new_batch;
  bool rescaled = false;
  HORUS_ASSIGN_OR_RETURN(Dims out, BroadcastBatch(s, c.dims(0), target, &rescaled));
  HORUS_RETURN_IF_ERROR(c.Set(out));
  const int64_t elements = ElementsOf(out);
  const bool constant = !rescaled && c.folds(0);
  if (constant && elements != kUnknownDim && elements <= kMaxFoldedElements)
    FoldCopy(c, 0, BroadcastPositions(c.dims(0), out));
  return absl::OkStatus();
}

absl::Status Tile(RuleContext& c) {
  const std::vector<int64_t>* repeats = c.ints(1);
  Dims out(c.dims(0).size(), kUnknownDim);
  if (repeats != nullptr) {
    if (repeats->size() != out.size()) {
      return InvalidArgument("repeats has %d entries, input %s has rank %d", repeats->size(), DimsText(c.dims(0)),
                             out.size());
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t times = (*repeats)[i];
      if (times == kUnknownElement || c.dims(0)[i] == kUnknownDim) continue;
      if (times < 0 || __builtin_mul_overflow(c.dims(0)[i], times, &out[i]))
        return InvalidArgument("repeats holds %d for axis %d of %s", times, i, DimsText(c.dims(0)));
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(out));
  const std::vector<int64_t>* elements = c.ints(0);
  if (elements != nullptr && out.size() == 1 && out[0] != kUnknownDim && out[0] <= kMaxFoldedElements) {
    std::vector<size_t> positions(static_cast<size_t>(out[0]));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = i % elements->size();
    FoldCopy(c, 0, positions);
  }
  return absl::OkStatus();
}

absl::Status Pad(RuleContext& c) {
  auto [given, known, pads] = c.IntsOf("pads", 1);
  if (!given) return InvalidArgument("pads are missing");
  if (!known && c.ints(1) != nullptr) {  // in part
    pads = *c.ints(1);
    known = true;
  }
  if (!known || (c.has(3) && c.known_ints(3) == nullptr)) return c.Set(Dims(c.dims(0).size(), kUnknownDim));
  std::vector<int64_t> axes = c.has(3) ? *c.known_ints(3) : AllAxes(c.rank(0));
  Dims out = c.dims(0);
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  if (pads.size() != 2 * axes.size())
    return InvalidArgument("pads has %d entries for %d axes of %s", pads.size(), axes.size(), DimsText(c.dims(0)));
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = out[static_cast<size_t>(axes[i])];
    const bool unknown_pad = pads[i] == kUnknownElement || pads[axes.size() + i] == kUnknownElement;
    if (unknown_pad) size = kUnknownDim;
    if (size == kUnknownDim) continue;
    if (__builtin_add_overflow(size, pads[i], &size) || __builtin_add_overflow(size, pads[axes.size() + i], &size) ||
        size < 0) {
      return InvalidArgument("pads of %d and %d do not fit axis %d of %s", pads[i], pads[axes.size() + i], axes[i],
                             DimsText(c.dims(0)));
    }
  }
  return c.Set(std::move(out));
}

absl::Status DepthToSpace(RuleContext& c) {
  const int64_t block = c.node().IntOr("blocksize", 0);
  if (c.rank(0) != 4 || block < 1 || block > kMaxAttribute) {
    return InvalidArgument("input %s with block size %d: expected rank 4 and a size of at least 1", DimsText(c.dims(0)),
                           block);
  }
  const bool to_space = c.node().op_type == "DepthToSpace";
  Dims out = c.dims(0);
  const auto divide = [](int64_t* size, int64_t by) {
    if (*size == kUnknownDim) return true;
    const bool even = *size % by == 0;
    *size /= by;
    return even;
  };
  const auto multiply = [](int64_t* size, int64_t by) {
    return *size == kUnknownDim || !__builtin_mul_overflow(*size, by, size);
  };
  // Bounded: block is at most kMaxAttribute, 2^30.
  const bool ok = to_space ? divide(&out[1], block * block) && multiply(&out[2], block) && multiply(&out[3], block)
                           : multiply(&out[1], block * block) && divide(&out[2], block) && divide(&out[3], block);
  if (!ok) return InvalidArgument("input %s does not divide by block size %d", DimsText(c.dims(0)), block);
  return c.Set(std::move(out));
}

absl::Status CenterCropPad(RuleContext& c) {
  const std::vector<int64_t>* given = c.node().Ints("axes");
  std::vector<int64_t> axes = given != nullptr ? *given : AllAxes(c.rank(0));
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  const std::vector<int64_t>* sizes = c.known_ints(1);
  if (sizes != nullptr && sizes->size() != axes.size())
    return InvalidArgument("shape has %d entries for %d axes", sizes->size(), axes.size());
  Dims out = c.dims(0);
  for (size_t i = 0; i < axes.size(); ++i)
    out[static_cast<size_t>(axes[i])] = sizes == nullptr ? kUnknownDim : std::max<int64_t>((*sizes)[i], -2);
  return c.Set(std::move(out));
}

// ---- Shape rules of operators that pick elements: slices, gathers, scatters, top-k.

// Start, end and step of a slice along one axis, brought into range as numpy does.
struct SliceRange {
  int64_t start = 0, step = 1, count = 0;
};

int64_t IntoRange(int64_t position, int64_t size, int64_t low, int64_t high) {
  if (position < 0) position = position < -size ? low : position + size;
  return std::clamp(position, low, high);
}

absl::StatusOr<SliceRange> RangeOf(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (step == 0) return InvalidArgument("a slice has step 0");
  if (step == std::numeric_limits<int64_t>::min()) ++step;
  const bool forward = step > 0;
  start = IntoRange(start, size, 0, forward ? size : std::max<int64_t>(size - 1, 0));
  end = IntoRange(end, size, forward ? 0 : -1, size);
  const int64_t span = forward ? end - start : start - end;
  SliceRange range{.start = start, .step = step};
  if (span > 0 && size > 0) range.count = (span - 1) / (forward ? step : -step) + 1;
  return range;
}

// The slice's parameters: attributes before opset 10, then inputs.
struct SliceSpec {
  std::vector<int64_t> starts, ends, axes, steps;
  bool axes_known = true;
};

absl::StatusOr<SliceSpec> SliceSpecOf(RuleContext& c) {
  SliceSpec spec;
  const std::vector<int64_t>* starts = c.ints(1) != nullptr ? c.ints(1) : c.node().Ints("starts");
  const std::vector<int64_t>* ends = c.ints(2) != nullptr ? c.ints(2) : c.node().Ints("ends");
  auto [given, axes_known, axes] = c.IntsOf("axes", 3);
  spec.axes_known = axes_known || !given;
  spec.axes = std::move(axes);
  size_t count = 0;
  if (starts != nullptr)
    count = starts->size();
  else if (ends != nullptr)
    count = ends->size();
  else if (axes_known)
    count = spec.axes.size();
  else if (c.rank(1) == 1 && c.dim(1, 0) >= 0 && c.dim(1, 0) <= kMaxRank)
    count = static_cast<size_t>(c.dim(1, 0));
  else
    spec.axes_known = false;
  if (count > static_cast<size_t>(kMaxRank)) return InvalidArgument("%d axes are sliced, limit %d", count, kMaxRank);
  spec.starts = starts != nullptr ? *starts : std::vector<int64_t>(count, kUnknownElement);
  spec.ends = ends != nullptr ? *ends : std::vector<int64_t>(count, kUnknownElement);
  if (c.has(4)) {
    spec.steps = c.ints(4) != nullptr ? *c.ints(4) : std::vector<int64_t>(count, kUnknownElement);
  } else {
    spec.steps.assign(count, 1);
  }
  if (!given) spec.axes = AllAxes(static_cast<int64_t>(count));
  if (spec.axes_known && (spec.starts.size() != count || spec.ends.size() != count || spec.axes.size() != count ||
                          spec.steps.size() != count)) {
    return InvalidArgument("starts, ends, axes and steps have %d, %d, %d and %d entries", spec.starts.size(),
                           spec.ends.size(), spec.axes.size(), spec.steps.size());
  }
  return spec;
}

// Copies the elements that a slice keeps; `ranges` has one entry for each axis of the input.
void FoldSlice(RuleContext& c, const std::vector<SliceRange>& ranges) {
  if (!c.folds(0)) return;
  const std::vector<int64_t> steps = StepsOf(c.dims(0));
  std::vector<size_t> positions = {0};
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    std::vector<size_t> next;
    for (const size_t base : positions) {
      for (int64_t i = 0; i < ranges[axis].count; ++i) {
        // Bounded: positions within a tensor of at most max_tensor_elements.
        next.push_back(base + static_cast<size_t>((ranges[axis].start + i * ranges[axis].step) * steps[axis]));
      }
    }
    positions = std::move(next);
  }
  FoldCopy(c, 0, positions);
}

absl::Status Slice(RuleContext& c) {
  HORUS_ASSIGN_OR_RETURN(SliceSpec spec, SliceSpecOf(c));
  if (!spec.axes_known) return c.Set(Dims(c.dims(0).size(), kUnknownDim));
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &spec.axes));
  Dims out = c.dims(0);
  std::vector<SliceRange> ranges;
  for (const int64_t size : c.dims(0)) ranges.push_back(SliceRange{.count = size});
  bool all_known = true;
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    int64_t& size = out[static_cast<size_t>(spec.axes[i])];
    const bool whole_step = spec.steps[i] != kUnknownElement;
    if (size == kUnknownDim || spec.starts[i] == kUnknownElement || spec.ends[i] == kUnknownElement || !whole_step) {
      size = c.AtMost(size);
      all_known = false;
      continue;
    }
    SliceRange& range = ranges[static_cast<size_t>(spec.axes[i])];
    HORUS_ASSIGN_OR_RETURN(range, RangeOf(spec.starts[i], spec.ends[i], spec.steps[i], size));
    size = range.count;
  }
  HORUS_RETURN_IF_ERROR(c.Set(std::move(out)));
  if (all_known) FoldSlice(c, ranges);
  return absl::OkStatus();
}

// Copies the picked elements: for each outer position, each index, each inner position.
void FoldGather(RuleContext& c, const std::vector<int64_t>& indices, size_t axis) {
  const Dims& dims = c.dims(0);
  const int64_t outer = ElementsOf(Part(dims, 0, axis)), inner = ElementsOf(Part(dims, axis + 1));
  const auto picked = static_cast<Wide>(indices.size());
  // Bounded: positions within a tensor of at most max_tensor_elements.
  if (outer * inner * picked > kMaxFoldedElements) return;
  std::vector<size_t> positions;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : indices) {
      // Bounded: positions within a tensor of at most max_tensor_elements.
      const int64_t row = o * dims[axis] + (index < 0 ? index + dims[axis] : index);
      // Bounded: positions within a tensor of at most max_tensor_elements.
      for (int64_t i = 0; i < inner; ++i) positions.push_back(static_cast<size_t>(row * inner + i));
    }
  }
  FoldCopy(c, 0, positions);
}

Dims GatheredDims(const RuleContext& c, int64_t axis) {
  Dims out(c.dims(0).begin(), c.dims(0).begin() + axis);
  out.insert(out.end(), c.dims(1).begin(), c.dims(1).end());
  out.insert(out.end(), c.dims(0).begin() + axis + 1, c.dims(0).end());
  return out;
}

absl::Status Gather(RuleContext& c) {
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(0));
  const int64_t size = c.dim(0, axis);
  HORUS_RETURN_IF_ERROR(c.Set(GatheredDims(c, axis)));
  const std::vector<int64_t>* indices = c.known_ints(1);
  if (indices == nullptr || size == kUnknownDim) return absl::OkStatus();
  for (const int64_t index : *indices) {
    if (index < -size || index >= size)
      return InvalidArgument("index %d is outside axis %d of %s", index, axis, DimsText(c.dims(0)));
  }
  if (c.folds(0)) FoldGather(c, *indices, static_cast<size_t>(axis));
  return absl::OkStatus();
}

// Of a table whose weights of few bits uint8 holds, several in a byte of the last axis; the scales give the type.
absl::Status GatherBlockQuantized(RuleContext& c) {
  constexpr int64_t kByteBits = 8;
  int64_t axis = c.node().IntOr("gather_axis", 0);
  const int64_t bits = c.node().IntOr("bits", 4);
  if (bits != 2 && bits != 4 && bits != kByteBits) return InvalidArgument("attribute bits is %d", bits);
  c.SetType(0, c.dtype(2));
  if (c.rank(0) == 0 || !c.ranked(1)) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  Dims out = GatheredDims(c, axis);
  // Bounded: a part of a tensor whose size was checked, four times at most.
  if (c.dtype(0) == DType::kUint8 && !out.empty() && out.back() != kUnknownDim) out.back() *= kByteBits / bits;
  return c.Set(std::move(out));
}

absl::Status GatherNd(RuleContext& c) {
  const int64_t batch_dims = c.node().IntOr("batch_dims", 0);
  const int64_t depth = c.dim(1, -1);
  if (c.rank(1) < 1 || batch_dims < 0 || batch_dims >= c.rank(1) || batch_dims > c.rank(0)) {
    return InvalidArgument("shapes %s and %s with %d batch dimensions", DimsText(c.dims(0)), DimsText(c.dims(1)),
                           batch_dims);
  }
  if (depth == kUnknownDim) return absl::OkStatus();
  if (depth < 1 || depth > c.rank(0) - batch_dims)
    return InvalidArgument("indices %s reach deeper than %s", DimsText(c.dims(1)), DimsText(c.dims(0)));
  Dims out(c.dims(1).begin(), c.dims(1).end() - 1);
  out.insert(out.end(), c.dims(0).begin() + batch_dims + depth, c.dims(0).end());
  return c.Set(std::move(out));
}

absl::Status OneHot(RuleContext& c) {
  c.SetType(0, c.dtype(2));
  if (!c.ranked(0)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(-1, c.rank(0) + 1));
  int64_t size = c.Scalar(1).value_or(kUnknownDim);
  const float real = c.Real(1).value_or(-1);
  if (real >= 0 && real < static_cast<float>(kMaxAttribute)) size = static_cast<int64_t>(real);
  if (size < kUnknownDim) return InvalidArgument("depth is %d", size);
  Dims out = c.dims(0);
  out.insert(out.begin() + axis, size);
  return c.Set(std::move(out));
}

absl::Status NonZero(RuleContext& c) {
  const int64_t rank = std::max<int64_t>(c.rank(0), 1);
  const std::vector<int64_t>* in = c.known_ints(0);
  if (in == nullptr) return c.Set(0, DType::kInt64, {rank, c.AtMost(ElementsOf(c.dims(0)))});
  std::vector<int64_t> where;
  for (size_t i = 0; i < in->size(); ++i) {
    if ((*in)[i] != 0) where.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(where.size());
  const std::vector<int64_t> steps = StepsOf(c.dims(0));
  std::vector<int64_t> out;
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (const int64_t position : where) {
      out.push_back(steps.empty() ? 0
                                  : position / steps[static_cast<size_t>(axis)] % c.dims(0)[static_cast<size_t>(axis)]);
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt64, {rank, count}));
  c.SetInts(0, std::move(out));
  return absl::OkStatus();
}

absl::Status TopK(RuleContext& c) {
  c.SetType(1, DType::kInt64);
  if (!c.ranked(0)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(-1));
  const int64_t count = c.Scalar(1).value_or(c.node().IntOr("k", kUnknownDim));
  const int64_t size = c.dim(0, axis);
  if (count < kUnknownDim || (size != kUnknownDim && count > size))
    return InvalidArgument("k is %d, axis %d of %s has %d", count, axis, DimsText(c.dims(0)), size);
  Dims out = c.dims(0);
  out[static_cast<size_t>(axis)] = count == kUnknownDim ? c.AtMost(size) : count;
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kInt64, out));
  return c.Set(std::move(out));
}

absl::Status Unique(RuleContext& c) {
  const bool flat = c.node().FindAttribute("axis") == nullptr;
  int64_t axis = c.node().IntOr("axis", 0);
  if (c.ranked(0) && !flat) HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  const int64_t most = !c.ranked(0) ? kUnknownDim : c.AtMost(flat ? ElementsOf(c.dims(0)) : c.dim(0, axis));
  for (size_t i = 1; i < 4; ++i) HORUS_RETURN_IF_ERROR(c.Set(i, DType::kInt64, {most}));
  if (flat) return c.Set({most});
  if (!c.ranked(0)) return absl::OkStatus();
  Dims out = c.dims(0);
  out[static_cast<size_t>(axis)] = most;
  return c.Set(std::move(out));
}

absl::Status Compress(RuleContext& c) {
  const std::vector<int64_t>* condition = c.known_ints(1);
  int64_t count = c.AtMost(condition == nullptr && c.ranked(1) ? c.dim(1, 0) : kUnknownDim);
  if (condition != nullptr) count = static_cast<int64_t>(condition->size()) - std::ranges::count(*condition, 0);
  if (c.node().FindAttribute("axis") == nullptr) return c.Set({count});
  if (!c.ranked(0)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(0));
  Dims out = c.dims(0);
  out[static_cast<size_t>(axis)] = count;
  return c.Set(std::move(out));
}

// Of each image and class at most as many as are asked for, and as there are.
absl::Status NonMaxSuppression(RuleContext& c) {
  int64_t each = c.dim(1, 2);
  if (each != kUnknownDim) each = std::clamp<int64_t>(c.Scalar(2).value_or(each), 0, each);
  return c.Set(0, DType::kInt64, {c.AtMost(ElementsOf({c.dim(1, 0), c.dim(1, 1), each})), 3});
}

constexpr RuleEntry kLayoutRules[] = {
    {"Compress", Compress},
    {"Gather", Gather, 2},
    {"GatherBlockQuantized", GatherBlockQuantized, 0, kMicrosoftDomain},
    {"GatherElements", [](RuleContext& c) { return c.ranked(1) ? c.Set(c.dims(1)) : absl::OkStatus(); }},
    {"GatherND", GatherNd, 2},
    {"NonMaxSuppression", NonMaxSuppression},
    {"NonZero", NonZero, 1, "", false, DType::kInt64},
    {"OneHot", OneHot},
    {"ReverseSequence Scatter ScatterElements ScatterND TensorScatter", [](RuleContext& c) { return c.Same(); }},
    {"Slice", Slice, 1},
    {"TopK", TopK},
    {"Unique", Unique},
    {"CenterCropPad", CenterCropPad, 1},
    {"Concat", Concat, 1},
    {"DepthToSpace SpaceToDepth", DepthToSpace, 1},
    {"Expand", Expand, 1},
    {"Flatten", Flatten, 1, "", true},
    {"Identity", Identity, 0, "", true},
    {"Reshape", Reshape, 0, "", true},
    {"Pad", Pad, 1},
    {"Split", Split},
    {"Squeeze", Squeeze, 1, "", true},
    {"Transpose", Transpose, 1},
    {"Unsqueeze", Unsqueeze, 0, "", true},
    {"Tile", Tile, 1},
    {"Trilu", [](RuleContext& c) { return c.Same(); }},
};

}  // namespace

std::span<const RuleEntry> LayoutRules() { return kLayoutRules; }

}  // namespace horus
