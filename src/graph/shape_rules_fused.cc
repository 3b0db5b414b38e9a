// SPDX-License-Identifier: Apache-2.0
// Shape rules of fused operators: attention of the default domain (opset 23) and com.microsoft.
#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Same(RuleContext& c) { return c.Same(0); }

absl::Status BiasPointwise(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || !c.ranked(1)) return c.Same(0);
  HORUS_ASSIGN_OR_RETURN(Dims dims, Broadcast(c.dims(0), c.dims(1)));
  return c.Set(0, c.dtype(0), std::move(dims));
}

// input [batch, seq, in], weight [in, q + k + v]; the value part gives the output's width.
absl::Status Attention(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) != 3) return InvalidArgument("input has shape %s, expected [batch,seq,width]", DimsText(c.dims(0)));
  int64_t width = kUnknownDim;
  if (const std::vector<int64_t>* parts = c.node().Ints("qkv_hidden_sizes"); parts != nullptr && parts->size() == 3) {
    width = (*parts)[2];
    if (width < 1) return InvalidArgument("attribute qkv_hidden_sizes holds %d", width);
  } else if (c.ranked(1)) {
    const int64_t all = c.dim(1, -1);
    if (all != kUnknownDim && all % 3 != 0) {
      return InvalidArgument("weight %s does not split into query, key and value", DimsText(c.dims(1)));
    }
    width = all == kUnknownDim ? kUnknownDim : all / 3;
  }
  if (c.ranked(1) && !Agree(c.dim(1, 0), c.dim(0, 2))) {
    return InvalidArgument("input %s and weight %s: inner sizes differ", DimsText(c.dims(0)), DimsText(c.dims(1)));
  }
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(0), {c.dim(0, 0), c.dim(0, 1), width}));
  const int64_t heads = c.node().IntOr("num_heads", 0);
  if (c.has(4) || heads < 1 || width == kUnknownDim || width % heads != 0) {
    c.SetType(1, c.dtype(0));
    return absl::OkStatus();
  }
  return c.Set(1, c.dtype(0), {2, c.dim(0, 0), heads, c.dim(0, 1), width / heads});
}

// query, key and value come as three inputs [batch, seq, width].
absl::Status MultiHeadAttention(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (!c.ranked(0) || c.rank(0) != 3) return absl::OkStatus();
  return c.Set(0, c.dtype(0), {c.dim(0, 0), c.dim(0, 1), c.rank(2) == 3 ? c.dim(2, 2) : c.dim(0, 2)});
}

absl::Status GroupQueryAttention(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  if (c.has(1)) HORUS_RETURN_IF_ERROR(c.Same(0));
  for (size_t i = 1; i < 3; ++i) c.SetType(i, c.dtype(0));
  return absl::OkStatus();
}

// Keys or values with those of earlier steps before them: [batch, heads, past + new, size].
absl::Status SetPresent(RuleContext& c, size_t output, size_t now, size_t past, int64_t heads) {
  c.SetType(output, c.dtype(now));
  if (!c.ranked(now) || (c.has(past) && c.rank(past) != 4)) return absl::OkStatus();
  Dims out = c.dims(now);
  if (out.size() == 3) {
    if (heads < 1 || heads > kMaxAttribute) return absl::OkStatus();
    const int64_t size = out[2] == kUnknownDim ? kUnknownDim : out[2] / heads;
    out = {out[0], heads, out[1], size};
  }
  if (out.size() != 4) return absl::OkStatus();
  if (c.has(past)) {
    const int64_t before = c.dim(past, 2);
    if (before == kUnknownDim || out[2] == kUnknownDim) {
      out[2] = kUnknownDim;
    } else if (__builtin_add_overflow(before, out[2], &out[2])) {
      return InvalidArgument("past %s with %d new rows overflows 64 bits", DimsText(c.dims(past)), before);
    }
  }
  return c.Set(output, c.dtype(now), std::move(out));
}

// Attention of opset 23: [batch, heads, seq, size] or [batch, seq, heads * size].
absl::Status StandardAttention(RuleContext& c) {
  c.SetType(0, c.dtype(0));
  const int64_t query_heads = c.node().IntOr("q_num_heads", 0);
  const int64_t value_heads = c.node().IntOr("kv_num_heads", 0);
  HORUS_RETURN_IF_ERROR(SetPresent(c, 1, 1, 4, value_heads));
  HORUS_RETURN_IF_ERROR(SetPresent(c, 2, 2, 5, value_heads));
  if (!c.ranked(0) || !c.ranked(2)) return absl::OkStatus();
  Dims out = c.dims(0);
  if (c.rank(0) == 4) {
    out[3] = c.dim(2, 3);
  } else if (c.rank(0) == 3 && value_heads > 0 && query_heads > 0 && query_heads <= kMaxAttribute) {
    const int64_t width = c.dim(2, 2);
    out[2] = width == kUnknownDim ? kUnknownDim : width / value_heads;
    if (out[2] != kUnknownDim && __builtin_mul_overflow(out[2], query_heads, &out[2])) {
      return InvalidArgument("value %s with %d query heads overflows 64 bits", DimsText(c.dims(2)), query_heads);
    }
  } else {
    return absl::OkStatus();
  }
  return c.Set(0, c.dtype(0), std::move(out));
}

absl::Status SkipLayerNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same(0));
  if (!c.ranked(0)) return absl::OkStatus();
  Dims statistics = c.dims(0);
  if (!statistics.empty()) statistics.back() = 1;
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kFloat32, statistics));
  HORUS_RETURN_IF_ERROR(c.Set(2, DType::kFloat32, statistics));
  return c.Set(3, c.dtype(0), c.dims(0));
}

absl::Status EmbedLayerNormalization(RuleContext& c) {
  c.SetType(0, c.dtype(2));
  c.SetType(1, DType::kInt32);
  if (!c.ranked(0) || !c.ranked(2)) return absl::OkStatus();
  if (c.rank(0) != 2 || c.rank(2) != 2) {
    return InvalidArgument("token ids have shape %s and embeddings %s, expected two matrices", DimsText(c.dims(0)),
                           DimsText(c.dims(2)));
  }
  const Dims out = {c.dim(0, 0), c.dim(0, 1), c.dim(2, 1)};
  HORUS_RETURN_IF_ERROR(c.Set(0, c.dtype(2), out));
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kInt32, {c.dim(0, 0)}));
  return c.Set(2, c.dtype(2), out);
}

constexpr RuleEntry kRules[] = {
    {"", "Attention", StandardAttention},
    {"", "RotaryEmbedding", Same},
    {"com.microsoft", "Attention", Attention},
    {"com.microsoft", "BiasGelu", BiasPointwise},
    {"com.microsoft", "EmbedLayerNormalization", EmbedLayerNormalization},
    {"com.microsoft", "FastGelu", Same},
    {"com.microsoft", "Gelu", Same},
    {"com.microsoft", "GroupQueryAttention", GroupQueryAttention},
    {"com.microsoft", "MultiHeadAttention", MultiHeadAttention},
    {"com.microsoft", "QuickGelu", Same},
    {"com.microsoft", "RotaryEmbedding", Same},
    {"com.microsoft", "SimplifiedLayerNormalization", Same},
    {"com.microsoft", "SkipLayerNormalization", SkipLayerNormalization},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", SkipLayerNormalization},
};

}  // namespace

std::span<const RuleEntry> FusedRules() { return kRules; }

}  // namespace horus
