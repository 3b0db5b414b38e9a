// SPDX-License-Identifier: Apache-2.0
// Shape rules of resampling and transforms of signals.
#include <algorithm>
#include <cmath>

#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Scaled(RuleContext& c, const std::vector<float>& scales, const std::vector<int64_t>& axes) {
  if (scales.size() != axes.size()) {
    return InvalidArgument("scales has %d entries for %d axes of %s", scales.size(), axes.size(), DimsText(c.dims(0)));
  }
  Dims out = c.dims(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = out[static_cast<size_t>(axes[i])];
    if (size == kUnknownDim) continue;
    const float scale = scales[i];
    if (std::isnan(scale)) {
      size = kUnknownDim;
      continue;
    }
    const double scaled = std::floor(static_cast<double>(size) * static_cast<double>(scale));
    if (!(scale > 0) || !(scaled <= static_cast<double>(c.state().max_tensor_elements))) {
      return InvalidArgument("scale %g does not fit axis %d of %s", scale, axes[i], DimsText(c.dims(0)));
    }
    size = static_cast<int64_t>(scaled);
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status Sized(RuleContext& c, const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes) {
  if (sizes.size() != axes.size()) {
    return InvalidArgument("sizes has %d entries for %d axes of %s", sizes.size(), axes.size(), DimsText(c.dims(0)));
  }
  Dims out = c.dims(0);
  const std::string_view policy = c.node().StringOr("keep_aspect_ratio_policy", "stretch");
  const bool stretch = policy == "stretch";
  double common = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = sizes[i] == kUnknownElement ? kUnknownDim : sizes[i];
    if (size < kUnknownDim) return InvalidArgument("sizes holds %d", size);
    int64_t& mine = out[static_cast<size_t>(axes[i])];
    const double ratio = mine > 0 && size >= 0 ? static_cast<double>(size) / static_cast<double>(mine) : std::nan("");
    common = i == 0 ? ratio : policy == "not_larger" ? std::fmin(common, ratio) : std::fmax(common, ratio);
    if (stretch) mine = size;
  }
  if (!stretch) {
    for (const int64_t axis : axes) {
      int64_t& mine = out[static_cast<size_t>(axis)];
      const double size = std::round(static_cast<double>(mine) * common);
      const bool usable =
          mine != kUnknownDim && size >= 0 && size <= static_cast<double>(c.state().max_tensor_elements);
      mine = usable ? static_cast<int64_t>(size) : kUnknownDim;
    }
  }
  const ShapeState& s = c.state();
  if (s.old_batch > 0 && !axes.empty() && axes[0] == 0 && out[0] == s.old_batch) out[0] = c.dim(0, 0);
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status Resize(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  std::vector<int64_t> axes;
  if (const std::vector<int64_t>* given = c.node().Ints("axes"); given != nullptr && !given->empty()) {
    axes = *given;
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  if (const std::vector<float>* scales =
          c.node().FindAttribute("scales") == nullptr
              ? nullptr
              : std::get_if<std::vector<float>>(&c.node().FindAttribute("scales")->value)) {
    return Scaled(c, *scales, axes);  // Upsample 7
  }
  const size_t scales_at = c.node().op_type == "Resize" && c.opset() >= 11 ? 2 : 1;
  if (c.ints(3) != nullptr) return Sized(c, *c.ints(3), axes);
  if (const std::vector<float>* scales = c.floats(scales_at); scales != nullptr && !scales->empty()) {
    return Scaled(c, *scales, axes);
  }
  Dims out = c.dims(0);
  for (const int64_t axis : axes) out[static_cast<size_t>(axis)] = kUnknownDim;
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status GridSample(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || !c.ranked(1)) return absl::OkStatus();
  if (c.rank(0) < 3 || c.rank(0) != c.rank(1)) {
    return InvalidArgument("input %s and grid %s: expected the same rank, at least 3", DimsText(c.dims(0)),
                           DimsText(c.dims(1)));
  }
  Dims out = {c.dim(0, 0), c.dim(0, 1)};
  out.insert(out.end(), c.dims(1).begin() + 1, c.dims(1).end() - 1);
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status AffineGrid(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  const std::vector<int64_t>* size = c.known_ints(1);
  if (size == nullptr || size->size() < 3) return absl::OkStatus();
  Dims out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<int64_t>(size->size()) - 2);
  for (const int64_t dim : out) {
    if (dim < 0) return InvalidArgument("size holds %d", dim);
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status Dft(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) < 2) return InvalidArgument("input has shape %s, expected rank 2 or more", DimsText(c.dims(0)));
  int64_t axis = c.node().IntOr("axis", c.opset() >= 20 ? -2 : 1);
  if (const std::vector<int64_t>* given = c.known_ints(2); given != nullptr && given->size() == 1) axis = (*given)[0];
  HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  Dims out = c.dims(0);
  int64_t& length = out[static_cast<size_t>(axis)];
  const bool onesided = c.node().IntOr("onesided", 0) != 0;
  const bool to_real = onesided && c.node().IntOr("inverse", 0) != 0;
  // Bounded: length is within max_tensor_elements.
  if (to_real && length != kUnknownDim) length = std::max<int64_t>(1, 2 * (length - 1));
  if (c.has(1)) {
    const std::vector<int64_t>* wished = c.known_ints(1);
    length = wished != nullptr && wished->size() == 1 && (*wished)[0] >= 0 ? (*wished)[0] : kUnknownDim;
  }
  if (onesided && !to_real && length != kUnknownDim) length = length / 2 + 1;
  out.back() = to_real ? 1 : 2;
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status Col2Im(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  const std::vector<int64_t>* image = c.known_ints(1);
  const std::vector<int64_t>* block = c.known_ints(2);
  if (!c.ranked(0) || c.rank(0) != 3 || image == nullptr || block == nullptr) return absl::OkStatus();
  const int64_t window = ElementsOf(*block);
  const int64_t columns = c.dim(0, 1);
  if (window < 1 || (columns != kUnknownDim && columns % window != 0)) {
    return InvalidArgument("input %s does not divide by block %s", DimsText(c.dims(0)), DimsText(*block));
  }
  Dims out = {c.dim(0, 0), columns == kUnknownDim ? kUnknownDim : columns / window};
  for (const int64_t size : *image) {
    if (size < 0) return InvalidArgument("image_shape holds %d", size);
    out.push_back(size);
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status MelWeightMatrix(RuleContext& c) {
  const std::vector<int64_t>* bins = c.known_ints(0);
  const std::vector<int64_t>* length = c.known_ints(1);
  const auto one = [](const std::vector<int64_t>* v) { return v != nullptr && v->size() == 1 && (*v)[0] >= 0; };
  return c.Set(0, DType::kFloat32,
               {one(length) ? (*length)[0] / 2 + 1 : kUnknownDim, one(bins) ? (*bins)[0] : kUnknownDim});
}

absl::Status Stft(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || c.rank(0) < 2) return absl::OkStatus();
  const std::vector<int64_t>* step = c.known_ints(1);
  const std::vector<int64_t>* frame = c.known_ints(3);
  int64_t window = c.dim(2, 0);
  if (frame != nullptr && frame->size() == 1) window = (*frame)[0];
  const int64_t signal = c.dim(0, 1);
  Dims out = {c.dim(0, 0), kUnknownDim, kUnknownDim, 2};
  if (window >= 1) out[2] = c.node().IntOr("onesided", 1) != 0 ? window / 2 + 1 : window;
  if (window >= 1 && signal >= window && step != nullptr && step->size() == 1 && (*step)[0] >= 1) {
    out[1] = (signal - window) / (*step)[0] + 1;
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

constexpr RuleEntry kRules[] = {
    {"", "AffineGrid", AffineGrid},
    {"", "Col2Im", Col2Im},
    {"", "DFT", Dft},
    {"", "GridSample", GridSample},
    {"", "MelWeightMatrix", MelWeightMatrix},
    {"", "Resize", Resize},
    {"", "STFT", Stft},
    {"", "Upsample", Resize},
};

}  // namespace

std::span<const RuleEntry> ResampleRules() { return kRules; }

}  // namespace horus
