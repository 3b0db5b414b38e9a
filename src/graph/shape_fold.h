// SPDX-License-Identifier: Apache-2.0
// Folding of small constant tensors: the arithmetic that exporters leave in a graph to compute shapes.
//
// Enters:  a RuleContext whose output 0 already has its dims.
// Leaves:  elements of output 0 where those of the inputs are known; unknown elements stay unknown.
// Units:   elements; integer overflow gives an unknown element.
// Cost:    linear in elements, at most kMaxFoldedElements.     Thread class: one thread at a time.
#pragma once

#include "graph/shape_rule.h"

namespace horus {

// Floating elements are folded in the precision of their type: float32 rounds as ONNX does, and of the other types a
// result is kept where it is exact. Infinite and undefined results are unknown.

void FoldElementwise(RuleContext& c);  // by op_type: arithmetic, comparison, logic; operands from left to right
void FoldClip(RuleContext& c);
void FoldWhere(RuleContext& c);
void FoldCast(RuleContext& c, DType to);

// `value` as an element of `dtype`; NaN, which stands for unknown, where the type cannot hold it.
[[nodiscard]] float HeldAs(double value, DType dtype);
// The same for integers and bool; kUnknownElement where the value would wrap around.
[[nodiscard]] int64_t HeldAs(int64_t value, DType dtype);

// For each element of `out`, in order, the position in a tensor of dims `in` that broadcasts to it.
[[nodiscard]] std::vector<size_t> BroadcastPositions(const Dims& in, const Dims& out);

// Row-major steps of `dims`.
[[nodiscard]] std::vector<int64_t> StepsOf(const Dims& dims);

// Copies elements of input `i` to an output by position; nothing happens when they are not known.
void FoldCopy(RuleContext& c, size_t i, const std::vector<size_t>& positions, size_t output = 0);

// As above with every element in its place (Reshape and its like).
void FoldAll(RuleContext& c, size_t i);

// Joins the inputs along `axis` to a tensor of dims `joined`; elements of an unknown input stay unknown.
void FoldConcat(RuleContext& c, size_t axis, const Dims& joined);

}  // namespace horus
