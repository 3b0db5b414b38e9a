// SPDX-License-Identifier: Apache-2.0
// Copies elements of small constant tensors by position.
#include <cmath>
#include <numeric>

#include "graph/shape_fold.h"

namespace horus {

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
  if (const std::vector<int64_t>* ints = c.ints(i)) {
    std::vector<int64_t> out(positions.size());
    for (size_t k = 0; k < out.size(); ++k) out[k] = (*ints)[positions[k]];
    c.SetInts(output, std::move(out));
  } else if (const std::vector<float>* floats = c.floats(i)) {
    std::vector<float> out(positions.size());
    for (size_t k = 0; k < out.size(); ++k) out[k] = (*floats)[positions[k]];
    c.SetFloats(output, std::move(out));
  }
}

void FoldAll(RuleContext& c, size_t i) {
  if (const std::vector<int64_t>* ints = c.ints(i)) {
    c.SetInts(0, *ints);
  } else if (const std::vector<float>* floats = c.floats(i)) {
    c.SetFloats(0, *floats);
  }
}

namespace {

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

}  // namespace

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
  std::vector<int64_t> ints;
  std::vector<float> floats;
  for (size_t o = 0; total > 0 && o < static_cast<size_t>(outer); ++o) {
    for (const auto& [input, elements] : chunks) {
      if (reals) {
        // Bounded: positions within a tensor of at most max_tensor_elements.
        Append(c.floats(input), o * elements, elements, std::nanf(""), &floats);
      } else {
        // Bounded: positions within a tensor of at most max_tensor_elements.
        Append(c.ints(input), o * elements, elements, kUnknownElement, &ints);
      }
    }
  }
  if (reals) {
    c.SetFloats(0, std::move(floats));
  } else {
    c.SetInts(0, std::move(ints));
  }
}

}  // namespace horus
