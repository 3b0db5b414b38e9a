// SPDX-License-Identifier: Apache-2.0
// Shape rules of operators that pick elements: slices, gathers, scatters, top-k.
#include <algorithm>

#include "graph/shape_fold.h"
#include "graph/shape_rule.h"

namespace horus {
namespace {

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
    if (index < -size || index >= size) {
      return InvalidArgument("index %d is outside axis %d of %s", index, axis, DimsText(c.dims(0)));
    }
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
  if (c.dtype(0) == DType::kUint8 && out.back() != kUnknownDim)
    out.back() *= kByteBits / bits;  // Bounded: a table's width, at most four to a byte
  return c.Set(std::move(out));
}

absl::Status GatherElements(RuleContext& c) { return c.ranked(1) ? c.Set(c.dims(1)) : absl::OkStatus(); }

absl::Status GatherNd(RuleContext& c) {
  const int64_t batch_dims = c.node().IntOr("batch_dims", 0);
  const int64_t depth = c.dim(1, -1);
  if (c.rank(1) < 1 || batch_dims < 0 || batch_dims >= c.rank(1) || batch_dims > c.rank(0)) {
    return InvalidArgument("shapes %s and %s with %d batch dimensions", DimsText(c.dims(0)), DimsText(c.dims(1)),
                           batch_dims);
  }
  if (depth == kUnknownDim) return absl::OkStatus();
  if (depth < 1 || depth > c.rank(0) - batch_dims) {
    return InvalidArgument("indices %s reach deeper than %s", DimsText(c.dims(1)), DimsText(c.dims(0)));
  }
  Dims out(c.dims(1).begin(), c.dims(1).end() - 1);
  out.insert(out.end(), c.dims(0).begin() + batch_dims + depth, c.dims(0).end());
  return c.Set(std::move(out));
}

absl::Status Scatter(RuleContext& c) { return c.Same(); }

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
  c.SetType(0, DType::kInt64);
  if (!c.ranked(0)) return absl::OkStatus();
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
  if (count < kUnknownDim || (size != kUnknownDim && count > size)) {
    return InvalidArgument("k is %d, axis %d of %s has %d", count, axis, DimsText(c.dims(0)), size);
  }
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
  if (condition != nullptr) {
    count = static_cast<int64_t>(condition->size()) - std::ranges::count(*condition, 0);
  }
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

constexpr RuleEntry kIndexRules[] = {
    {"Compress", Compress},
    {"Gather", Gather, 2},
    {"GatherBlockQuantized", GatherBlockQuantized, 0, kMicrosoftDomain},
    {"GatherElements", GatherElements},
    {"GatherND", GatherNd, 2},
    {"NonMaxSuppression", NonMaxSuppression},
    {"NonZero", NonZero},
    {"OneHot", OneHot},
    {"ReverseSequence Scatter ScatterElements ScatterND TensorScatter", Scatter},
    {"Slice", Slice, 1},
    {"TopK", TopK},
    {"Unique", Unique},
};

}  // namespace

std::span<const RuleEntry> IndexRules() { return kIndexRules; }

}  // namespace horus
