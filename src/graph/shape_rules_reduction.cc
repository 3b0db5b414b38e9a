// SPDX-License-Identifier: Apache-2.0
// Shape rules of reductions.
#include <algorithm>

#include "graph/shape_rule.h"

namespace horus {
namespace {

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
    result = *std::max_element(in->begin(), in->end());
  } else if (op == "ReduceMin" && !in->empty()) {
    result = *std::min_element(in->begin(), in->end());
  } else {
    return;
  }
  c.SetInts(0, {result});  // taken only if the output has one element
}

absl::Status Reduce(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  const bool keep = c.node().IntOr("keepdims", 1) != 0;
  std::vector<int64_t> axes;
  bool given = false;
  bool known = c.IntsOf("axes", 1, &axes, &given);
  if (c.opset() < AxesInputSince(c.node().op_type) && given && !known) given = false;
  if (!c.ranked(0)) return absl::OkStatus();
  if (!given || (known && axes.empty())) {
    if (c.node().IntOr("noop_with_empty_axes", 0) != 0) return c.Same(0);
    for (int64_t axis = 0; axis < c.rank(0); ++axis) axes.push_back(axis);
    known = true;
  }
  if (!known) {
    // Which axes go is not known, only how many stay.
    return keep ? c.Set(0, c.dtype(0), Dims(c.dims(0).size(), kUnknownDim)) : absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  Dims out;
  for (int64_t axis = 0; axis < c.rank(0); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced) {
      out.push_back(c.dim(0, axis));
    } else if (keep) {
      out.push_back(1);
    }
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), std::move(out)));
  FoldReduction(c);
  return absl::OkStatus();
}

absl::Status ArgReduce(RuleContext& c) {
  c.SetType(0, DType::kInt64);
  if (!c.ranked(0)) return absl::OkStatus();
  int64_t axis = c.node().IntOr("axis", 0);
  HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  Dims out = c.dims(0);
  if (c.node().IntOr("keepdims", 1) != 0) {
    out[static_cast<size_t>(axis)] = 1;
  } else {
    out.erase(out.begin() + axis);
  }
  return c.Set(0, DType::kInt64, std::move(out));
}

constexpr RuleEntry kRules[] = {
    {"", "ArgMax", ArgReduce},  {"", "ArgMin", ArgReduce},    {"", "ReduceL1", Reduce},
    {"", "ReduceL2", Reduce},   {"", "ReduceLogSum", Reduce}, {"", "ReduceLogSumExp", Reduce},
    {"", "ReduceMax", Reduce},  {"", "ReduceMean", Reduce},   {"", "ReduceMin", Reduce},
    {"", "ReduceProd", Reduce}, {"", "ReduceSum", Reduce},    {"", "ReduceSumSquare", Reduce},
};

}  // namespace

std::span<const RuleEntry> ReductionRules() { return kRules; }

}  // namespace horus
