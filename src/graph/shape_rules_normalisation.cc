// SPDX-License-Identifier: Apache-2.0
// Shape rules of normalisations, softmax and losses.
#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Same(RuleContext& c) { return c.Same(0); }

absl::Status AlongAxis(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  if (!c.ranked(0) || c.rank(0) == 0) return absl::OkStatus();
  int64_t axis = c.node().IntOr("axis", c.opset() >= 13 ? -1 : 1);
  if (axis == c.rank(0) && c.opset() < 13) return absl::OkStatus();  // "flatten before the end" was legal then
  return c.Axis(c.rank(0), &axis);
}

absl::Status CheckPerChannel(RuleContext& c, size_t i, int64_t channels) {
  if (!c.ranked(i) || (c.rank(i) == 1 && Agree(c.dim(i, 0), channels))) return absl::OkStatus();
  return InvalidArgument("input %d has shape %s, expected [%d], one entry for each channel of %s", i,
                         DimsText(c.dims(i)), channels, DimsText(c.dims(0)));
}

absl::Status BatchNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  if (c.ranked(0) && c.rank(0) >= 2) {
    for (size_t i = 1; i < 5; ++i) HORUS_RETURN_IF_ERROR(CheckPerChannel(c, i, c.dim(0, 1)));
  }
  for (size_t out = 1; out < 5; ++out) {
    const size_t like = out == 1 || out == 3 ? 3 : 4;  // mean, variance, saved mean, saved variance
    if (c.ranked(like)) HORUS_RETURN_IF_ERROR(c.Set(out, c.dtype(like), c.dims(like)));
  }
  return absl::OkStatus();
}

absl::Status InstanceNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  if (!c.ranked(0) || c.rank(0) < 2) return absl::OkStatus();
  for (size_t i = 1; i < 3; ++i) HORUS_RETURN_IF_ERROR(CheckPerChannel(c, i, c.dim(0, 1)));
  return absl::OkStatus();
}

absl::Status LayerNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  if (!c.ranked(0)) return absl::OkStatus();
  int64_t axis = c.node().IntOr("axis", -1);
  HORUS_RETURN_IF_ERROR(c.Axis(c.rank(0), &axis));
  for (size_t i = 1; i < 3; ++i) {
    if (!c.ranked(i)) continue;
    const absl::StatusOr<Dims> scaled = Broadcast(c.dims(0), c.dims(i));
    if (!scaled.ok() || scaled->size() != c.dims(0).size()) {
      return InvalidArgument("input %d has shape %s, which does not fit %s", i, DimsText(c.dims(i)),
                             DimsText(c.dims(0)));
    }
  }
  Dims statistics = c.dims(0);
  for (size_t i = static_cast<size_t>(axis); i < statistics.size(); ++i) statistics[i] = 1;
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kFloat32, statistics));
  return c.Set(2, DType::kFloat32, std::move(statistics));
}

absl::Status Loss(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  c.SetType(1, c.dtype(0));
  if (c.node().op_type == "SoftmaxCrossEntropyLoss" && c.ranked(0)) {
    HORUS_RETURN_IF_ERROR(c.Set(1, c.dtype(0), c.dims(0)));
  }
  if (c.node().StringOr("reduction", "mean") != "none") return c.Set(0, c.dtype(0), {});
  return c.ranked(1) ? c.Set(0, c.dtype(0), c.dims(1)) : absl::OkStatus();
}

constexpr RuleEntry kRules[] = {
    {"", "BatchNormalization", BatchNormalization},
    {"", "GroupNormalization", Same},
    {"", "Hardmax", AlongAxis},
    {"", "InstanceNormalization", InstanceNormalization},
    {"", "LRN", Same},
    {"", "LayerNormalization", LayerNormalization},
    {"", "LogSoftmax", AlongAxis},
    {"", "LpNormalization", Same},
    {"", "MeanVarianceNormalization", Same},
    {"", "NegativeLogLikelihoodLoss", Loss},
    {"", "RMSNormalization", Same},
    {"", "SimplifiedLayerNormalization", LayerNormalization},
    {"", "Softmax", AlongAxis},
    {"", "SoftmaxCrossEntropyLoss", Loss},
};

}  // namespace

std::span<const RuleEntry> NormalisationRules() { return kRules; }

}  // namespace horus
