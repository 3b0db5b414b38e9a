// SPDX-License-Identifier: Apache-2.0
// Shape rules of convolutions, pooling, resampling and transforms of signals.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "graph/shape_rule.h"

namespace horus {
namespace {

// Window of a convolution or pooling, one entry per spatial axis.
struct Window {
  Dims kernel;
  Dims strides, dilations, pads_begin, pads_end;
  std::string_view auto_pad;
  bool ceil = false;
};

absl::Status Take(const Node& node, std::string_view name, size_t expected, int64_t least, int64_t fallback,
                  Dims* out) {
  const std::vector<int64_t>* given = node.Ints(name);
  if (given == nullptr || given->empty()) {
    out->assign(expected, fallback);
    return absl::OkStatus();
  }
  if (given->size() != expected)
    return InvalidArgument("attribute %s has %d entries, expected %d", name, given->size(), expected);
  for (const int64_t value : *given) {
    if (value < least || value > kMaxAttribute)
      return InvalidArgument("attribute %s holds %d, expected %d to %d", name, value, least, kMaxAttribute);
  }
  *out = *given;
  return absl::OkStatus();
}

absl::Status WindowOf(const Node& node, size_t axes, Window* window) {
  HORUS_RETURN_IF_ERROR(Take(node, "strides", axes, 1, 1, &window->strides));
  HORUS_RETURN_IF_ERROR(Take(node, "dilations", axes, 1, 1, &window->dilations));
  Dims pads;
  // Bounded: at most kMaxRank axes.
  HORUS_RETURN_IF_ERROR(Take(node, "pads", 2 * axes, -kMaxAttribute, 0, &pads));
  window->pads_begin = Part(pads, 0, axes);
  window->pads_end = Part(pads, axes);
  window->auto_pad = node.StringOr("auto_pad", "NOTSET");
  window->ceil = node.IntOr("ceil_mode", 0) != 0;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> WindowSteps(const Window& w, size_t axis, int64_t in) {
  const int64_t kernel = w.kernel[axis];
  if (in == kUnknownDim || kernel == kUnknownDim) return kUnknownDim;
  const int64_t stride = w.strides[axis];
  if (kernel > kMaxAttribute) return InvalidArgument("a kernel has size %d, limit %d", kernel, kMaxAttribute);
  if (w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER") return (in + stride - 1) / stride;
  const bool padded = w.auto_pad != "VALID";
  const int64_t begin = padded ? w.pads_begin[axis] : 0;
  // Bounded: kernel, dilation, stride and pads are at most kMaxAttribute, in is within max_tensor_elements.
  const int64_t extent = (kernel - 1) * w.dilations[axis] + 1;
  const int64_t room = in + begin + (padded ? w.pads_end[axis] : 0) - extent;
  if (room < 0) {
    return InvalidArgument("a window of %d does not fit into axis %d of size %d with padding %d", extent, axis + 2, in,
                           room + extent - in);
  }
  int64_t steps = room / stride + 1;
  // With ceil_mode a last, partial window counts if it starts inside the input or its leading padding.
  // Bounded: kernel, dilation, stride and pads are at most kMaxAttribute, in is within max_tensor_elements.
  if (w.ceil && room % stride != 0 && steps * stride < in + begin) ++steps;
  return steps;
}

// Checks weight [M, C/group, k...] against input [N, C, ...]; both ranked.
absl::Status CheckChannels(RuleContext& c, size_t x, size_t w, int64_t group) {
  const int64_t channels = c.dim(x, 1);
  const int64_t per_group = c.dim(w, 1);
  if (channels != kUnknownDim && per_group != kUnknownDim && (channels % group != 0 || channels / group != per_group)) {
    return InvalidArgument("input %s has %d channels, weight %s takes %d in each of %d groups", DimsText(c.dims(x)),
                           channels, DimsText(c.dims(w)), per_group, group);
  }
  if (c.dim(w, 0) != kUnknownDim && c.dim(w, 0) % group != 0)
    return InvalidArgument("weight %s does not split into %d groups", DimsText(c.dims(w)), group);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GroupOf(const Node& node) {
  const int64_t group = node.IntOr("group", 1);
  if (group < 1 || group > kMaxAttribute)
    return InvalidArgument("attribute group is %d, expected 1 to %d", group, kMaxAttribute);
  return group;
}

absl::Status CheckRanks(const RuleContext& c, const char* second) {
  if (c.rank(0) >= 3 && c.rank(0) == c.rank(1)) return absl::OkStatus();
  return InvalidArgument("input %s and %s %s: expected the same rank, at least 3", DimsText(c.dims(0)), second,
                         DimsText(c.dims(1)));
}

absl::Status CheckBias(RuleContext& c, size_t bias, int64_t channels) {
  if (!c.ranked(bias) || (c.rank(bias) == 1 && Agree(c.dim(bias, 0), channels))) return absl::OkStatus();
  return InvalidArgument("bias has shape %s, expected [%d]", DimsText(c.dims(bias)), channels);
}

absl::Status ConvShape(RuleContext& c, size_t bias) {
  constexpr size_t x = 0, w = 1;
  HORUS_RETURN_IF_ERROR(CheckRanks(c, "weight"));
  HORUS_ASSIGN_OR_RETURN(const int64_t group, GroupOf(c.node()));
  HORUS_RETURN_IF_ERROR(CheckChannels(c, x, w, group));
  HORUS_RETURN_IF_ERROR(CheckBias(c, bias, c.dim(w, 0)));
  const size_t axes = c.dims(x).size() - 2;
  Window window{.kernel = Part(c.dims(w), 2)};
  HORUS_RETURN_IF_ERROR(WindowOf(c.node(), axes, &window));
  const std::vector<int64_t>* declared = c.node().Ints("kernel_shape");
  if (declared != nullptr && !declared->empty()) {
    if (declared->size() != axes)
      return InvalidArgument("attribute kernel_shape has %d entries, expected %d", declared->size(), axes);
    for (size_t i = 0; i < axes; ++i) {
      if (!Agree((*declared)[i], window.kernel[i]) || (*declared)[i] < 1) {
        return InvalidArgument("attribute kernel_shape is %s, weight has shape %s", DimsText(*declared),
                               DimsText(c.dims(w)));
      }
      window.kernel[i] = (*declared)[i];
    }
  }
  Dims out = {c.dim(x, 0), c.dim(w, 0)};
  for (size_t i = 0; i < axes; ++i) HORUS_SET_OR_RETURN(out.emplace_back(), WindowSteps(window, i, c.dims(x)[i + 2]));
  return c.Set(std::move(out));
}

constexpr size_t kNoInput = 1000;  // an input position that no node has

absl::Status Conv(RuleContext& c) { return ConvShape(c, 2); }
absl::Status ConvInteger(RuleContext& c) { return ConvShape(c, kNoInput); }
absl::Status DeformConv(RuleContext& c) { return ConvShape(c, 3); }

absl::Status ConvTranspose(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(CheckRanks(c, "weight"));
  HORUS_ASSIGN_OR_RETURN(const int64_t group, GroupOf(c.node()));
  if (!Agree(c.dim(0, 1), c.dim(1, 0))) {
    return InvalidArgument("input %s and weight %s: expected %d input channels, found %d", DimsText(c.dims(0)),
                           DimsText(c.dims(1)), c.dim(1, 0), c.dim(0, 1));
  }
  const size_t axes = c.dims(0).size() - 2;
  Window w{.kernel = Part(c.dims(1), 2)};
  HORUS_RETURN_IF_ERROR(WindowOf(c.node(), axes, &w));
  Dims extra;
  Dims wished;
  HORUS_RETURN_IF_ERROR(Take(c.node(), "output_padding", axes, 0, 0, &extra));
  HORUS_RETURN_IF_ERROR(Take(c.node(), "output_shape", axes, 1, kUnknownDim, &wished));
  const bool same = w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER";
  const bool padded = w.auto_pad != "VALID";
  int64_t channels = c.dim(1, 1);
  if (channels != kUnknownDim && __builtin_mul_overflow(channels, group, &channels))
    return InvalidArgument("weight %s with %d groups overflows 64 bits", DimsText(c.dims(1)), group);
  HORUS_RETURN_IF_ERROR(CheckBias(c, 2, channels));
  Dims out = {c.dim(0, 0), channels};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t in = c.dims(0)[i + 2];
    int64_t size = wished[i];
    if (size == kUnknownDim && in != kUnknownDim && w.kernel[i] != kUnknownDim) {
      const auto start = static_cast<Wide>(w.strides[i]) * (same ? in : in - 1);
      const Wide tail = same ? 0 : static_cast<Wide>(w.kernel[i] - 1) * w.dilations[i] + 1;
      const Wide all = start + tail + extra[i] - (padded && !same ? w.pads_begin[i] + w.pads_end[i] : 0);
      if (all < 0 || all > c.state().max_tensor_elements) {
        return InvalidArgument("axis %d of input %s would become negative or exceed the limit of %d elements", i + 2,
                               DimsText(c.dims(0)), c.state().max_tensor_elements);
      }
      size = static_cast<int64_t>(all);
    }
    out.push_back(size);
  }
  return c.Set(std::move(out));
}

absl::Status Pool(RuleContext& c) {
  c.SetType(1, DType::kInt64);
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) < 3) return InvalidArgument("input has shape %s, expected rank 3 or more", DimsText(c.dims(0)));
  const size_t axes = c.dims(0).size() - 2;
  Window window;
  HORUS_RETURN_IF_ERROR(WindowOf(c.node(), axes, &window));
  if (c.node().Ints("kernel_shape") == nullptr) return InvalidArgument("attribute kernel_shape is missing");
  HORUS_RETURN_IF_ERROR(Take(c.node(), "kernel_shape", axes, 1, 1, &window.kernel));
  Dims out = {c.dim(0, 0), c.dim(0, 1)};
  for (size_t i = 0; i < axes; ++i) HORUS_SET_OR_RETURN(out.emplace_back(), WindowSteps(window, i, c.dims(0)[i + 2]));
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kInt64, out));
  return c.Set(std::move(out));
}

absl::Status GlobalPool(RuleContext& c) {
  if (c.rank(0) < 2) return InvalidArgument("input has shape %s, expected rank 2 or more", DimsText(c.dims(0)));
  Dims out(c.dims(0).size(), 1);
  out[0] = c.dim(0, 0);
  out[1] = c.dim(0, 1);
  return c.Set(std::move(out));
}

absl::Status MaxUnpool(RuleContext& c) {
  if (const std::vector<int64_t>* shape = c.known_ints(2)) return c.Set(*shape);
  if (c.has(2) || c.rank(0) < 3) return absl::OkStatus();
  const size_t axes = c.dims(0).size() - 2;
  Window w;
  HORUS_RETURN_IF_ERROR(WindowOf(c.node(), axes, &w));
  HORUS_RETURN_IF_ERROR(Take(c.node(), "kernel_shape", axes, 1, 1, &w.kernel));
  Dims out = {c.dim(0, 0), c.dim(0, 1)};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t in = c.dims(0)[i + 2];
    int64_t size = kUnknownDim;
    if (in != kUnknownDim) {
      if (__builtin_mul_overflow(in - 1, w.strides[i], &size)) size = c.state().max_tensor_elements;
      size += w.kernel[i] - w.pads_begin[i] - w.pads_end[i];
    }
    out.push_back(size);
  }
  return c.Set(std::move(out));
}

// Regions of interest: [regions, channels, height, width].
absl::Status Regions(RuleContext& c, int64_t height, int64_t width) {
  if (!c.ranked(0) && !c.ranked(1)) return absl::OkStatus();
  if (height < 1 || width < 1 || height > kMaxAttribute || width > kMaxAttribute)
    return InvalidArgument("output size is %d x %d, expected at least 1 x 1", height, width);
  return c.Set({c.dim(1, 0), c.dim(0, 1), height, width});
}

absl::Status RoiAlign(RuleContext& c) {
  return Regions(c, c.node().IntOr("output_height", 1), c.node().IntOr("output_width", 1));
}

absl::Status MaxRoiPool(RuleContext& c) {
  const std::vector<int64_t>* size = c.node().Ints("pooled_shape");
  if (size == nullptr || size->size() != 2) return InvalidArgument("attribute pooled_shape needs 2 entries");
  return Regions(c, (*size)[0], (*size)[1]);
}

// ---- Shape rules of resampling and transforms of signals.

absl::Status Scaled(RuleContext& c, const std::vector<float>& scales, const std::vector<int64_t>& axes) {
  if (scales.size() != axes.size())
    return InvalidArgument("scales has %d entries for %d axes of %s", scales.size(), axes.size(), DimsText(c.dims(0)));
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
    if (!(scale > 0) || !(scaled <= static_cast<double>(c.state().max_tensor_elements)))
      return InvalidArgument("scale %g does not fit axis %d of %s", scale, axes[i], DimsText(c.dims(0)));
    size = static_cast<int64_t>(scaled);
  }
  return c.Set(std::move(out));
}

absl::Status Sized(RuleContext& c, const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes) {
  if (sizes.size() != axes.size())
    return InvalidArgument("sizes has %d entries for %d axes of %s", sizes.size(), axes.size(), DimsText(c.dims(0)));
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
  return c.Set(std::move(out));
}

absl::Status Resize(RuleContext& c) {
  const std::vector<int64_t>* given = c.node().Ints("axes");
  std::vector<int64_t> axes = given != nullptr && !given->empty() ? *given : AllAxes(c.rank(0));
  HORUS_RETURN_IF_ERROR(c.Axes(c.rank(0), &axes));
  if (const std::vector<float>* scales =
          c.node().FindAttribute("scales") == nullptr
              ? nullptr
              : std::get_if<std::vector<float>>(&c.node().FindAttribute("scales")->value)) {
    return Scaled(c, *scales, axes);  // Upsample 7
  }
  const size_t scales_at = c.node().op_type == "Resize" && c.opset() >= 11 ? 2 : 1;
  if (c.ints(3) != nullptr) return Sized(c, *c.ints(3), axes);
  if (const std::vector<float>* scales = c.floats(scales_at); scales != nullptr && !scales->empty())
    return Scaled(c, *scales, axes);
  Dims out = c.dims(0);
  for (const int64_t axis : axes) out[static_cast<size_t>(axis)] = kUnknownDim;
  return c.Set(std::move(out));
}

absl::Status GridSample(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(CheckRanks(c, "grid"));
  Dims out = {c.dim(0, 0), c.dim(0, 1)};
  out.insert(out.end(), c.dims(1).begin() + 1, c.dims(1).end() - 1);
  return c.Set(std::move(out));
}

absl::Status AffineGrid(RuleContext& c) {
  const std::vector<int64_t>* size = c.known_ints(1);
  if (size == nullptr || size->size() < 3) return absl::OkStatus();
  Dims out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<int64_t>(size->size()) - 2);
  for (const int64_t dim : out) {
    if (dim < 0) return InvalidArgument("size holds %d", dim);
  }
  return c.Set(std::move(out));
}

absl::Status Dft(RuleContext& c) {
  if (c.rank(0) < 2) return InvalidArgument("input has shape %s, expected rank 2 or more", DimsText(c.dims(0)));
  int64_t axis = c.Scalar(2).value_or(c.node().IntOr("axis", c.opset() >= 20 ? -2 : 1));
  HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  Dims out = c.dims(0);
  int64_t& length = out[static_cast<size_t>(axis)];
  const bool onesided = c.node().IntOr("onesided", 0) != 0;
  const bool to_real = onesided && c.node().IntOr("inverse", 0) != 0;
  // Bounded: length is within max_tensor_elements.
  if (to_real && length != kUnknownDim) length = std::max<int64_t>(1, 2 * (length - 1));
  if (c.has(1)) length = std::max(c.Scalar(1).value_or(kUnknownDim), kUnknownDim);
  if (onesided && !to_real && length != kUnknownDim) length = length / 2 + 1;
  out.back() = to_real ? 1 : 2;
  return c.Set(std::move(out));
}

absl::Status Col2Im(RuleContext& c) {
  const std::vector<int64_t>* image = c.known_ints(1);
  const std::vector<int64_t>* block = c.known_ints(2);
  if (c.rank(0) != 3 || image == nullptr || block == nullptr) return absl::OkStatus();
  const int64_t window = ElementsOf(*block);
  const int64_t columns = c.dim(0, 1);
  if (window < 1 || (columns != kUnknownDim && columns % window != 0))
    return InvalidArgument("input %s does not divide by block %s", DimsText(c.dims(0)), DimsText(*block));
  HORUS_ASSIGN_OR_RETURN(Dims out, DimsFrom(*image, "image_shape"));
  out.insert(out.begin(), {c.dim(0, 0), columns == kUnknownDim ? kUnknownDim : columns / window});
  return c.Set(std::move(out));
}

absl::Status MelWeightMatrix(RuleContext& c) {
  const int64_t bins = std::max(c.Scalar(0).value_or(kUnknownDim), kUnknownDim);
  const int64_t length = c.Scalar(1).value_or(kUnknownDim);
  return c.Set(0, DType::kFloat32, {length >= 0 ? length / 2 + 1 : kUnknownDim, bins});
}

absl::Status Stft(RuleContext& c) {
  if (c.rank(0) < 2) return absl::OkStatus();
  const int64_t step = c.Scalar(1).value_or(0), window = c.Scalar(3).value_or(c.dim(2, 0)), signal = c.dim(0, 1);
  Dims out = {c.dim(0, 0), kUnknownDim, kUnknownDim, 2};
  if (window >= 1) out[2] = c.node().IntOr("onesided", 1) != 0 ? window / 2 + 1 : window;
  if (window >= 1 && signal >= window && step >= 1) out[1] = (signal - window) / step + 1;
  return c.Set(std::move(out));
}

constexpr RuleEntry kConvolutionRules[] = {
    {"AffineGrid", AffineGrid},
    {"AveragePool LpPool MaxPool", Pool},
    {"Col2Im", Col2Im},
    {"Conv", Conv, 2},
    {"ConvInteger", ConvInteger, 2, "", false, DType::kInt32},
    {"ConvTranspose", ConvTranspose, 2},
    {"DFT", Dft, 1},
    {"DeformConv", DeformConv, 2},
    {"GlobalAveragePool GlobalLpPool GlobalMaxPool", GlobalPool, 1},
    {"GridSample", GridSample, 2},
    {"MaxRoiPool", MaxRoiPool},
    {"MaxUnpool", MaxUnpool},
    {"MelWeightMatrix", MelWeightMatrix},
    {"Resize Upsample", Resize, 1},
    {"RoiAlign", RoiAlign},
    {"STFT", Stft},
    {"FusedConv", Conv, 2, kMicrosoftDomain},
};

}  // namespace

std::span<const RuleEntry> ConvolutionRules() { return kConvolutionRules; }

}  // namespace horus
