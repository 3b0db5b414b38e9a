// SPDX-License-Identifier: Apache-2.0
// Shape rules of matrix products and of layers around them: attention and other fused operators, normalisations,
// recurrent nets.
#include <array>

#include "graph/shape_rule.h"

namespace horus {
namespace {

// Numpy matmul of dims a and b (rank >= 1 each).
absl::StatusOr<Dims> MatMulDims(const ShapeState& state, Dims a, Dims b) {
  if (a.empty() || b.empty())
    return InvalidArgument("shapes %s and %s: a scalar has no matrix product", DimsText(a), DimsText(b));
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  const Dims left = a;
  const Dims right = b;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (!Agree(a.back(), b[b.size() - 2])) {
    return InvalidArgument("shapes %s and %s: inner sizes %d and %d differ", DimsText(left), DimsText(right), a.back(),
                           b[b.size() - 2]);
  }
  HORUS_ASSIGN_OR_RETURN(Dims out, BroadcastBatch(state, Part(a, 0, a.size() - 2), Part(b, 0, b.size() - 2)));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  return out;
}

absl::Status MatMul(RuleContext& c) { return c.SetFound(MatMulDims(c.state(), c.dims(0), c.dims(1))); }
absl::Status MatMulIntegerToFloat(RuleContext& c) {
  c.SetType(0, c.dtype(2));  // as the scales
  return c.ranked(0) && c.ranked(1) ? MatMul(c) : absl::OkStatus();
}

// Weights of few bits in blocks, [columns, blocks, bytes of a block]: attributes K and N give the sizes.
absl::Status MatMulNBits(RuleContext& c) {
  const int64_t columns = c.node().IntOr("N", kUnknownDim), inner = c.node().IntOr("K", kUnknownDim);
  if (columns < 1 || inner < 1) return InvalidArgument("attributes K and N are %d and %d", inner, columns);
  return c.rank(0) == 0 ? absl::OkStatus() : c.SetFound(MatMulDims(c.state(), c.dims(0), {inner, columns}));
}

absl::Status Gemm(RuleContext& c) {
  if (c.rank(0) != 2 || c.rank(1) != 2) {
    return InvalidArgument("inputs have shapes %s and %s, expected two matrices", DimsText(c.dims(0)),
                           DimsText(c.dims(1)));
  }
  const bool flip_a = c.node().IntOr("transA", 0) != 0;
  const bool flip_b = c.node().IntOr("transB", 0) != 0;
  const int64_t inner_a = c.dim(0, flip_a ? 0 : 1);
  const int64_t inner_b = c.dim(1, flip_b ? 1 : 0);
  if (!Agree(inner_a, inner_b)) {
    return InvalidArgument("shapes %s%s and %s%s: inner sizes %d and %d differ", DimsText(c.dims(0)),
                           flip_a ? " transposed" : "", DimsText(c.dims(1)), flip_b ? " transposed" : "", inner_a,
                           inner_b);
  }
  Dims out = {c.dim(0, flip_a ? 1 : 0), c.dim(1, flip_b ? 0 : 1)};
  if (c.ranked(2)) {
    HORUS_ASSIGN_OR_RETURN(const Dims with_bias, Broadcast(out, c.dims(2)));
    for (size_t i = 0; i < 2; ++i) {
      if (with_bias.size() != 2 || (out[i] != kUnknownDim && with_bias[i] != out[i]))
        return InvalidArgument("bias %s does not broadcast to %s", DimsText(c.dims(2)), DimsText(out));
    }
  }
  return c.Set(std::move(out));
}

// Labels of an Einsum: letters, and an ellipsis that stands for any number of leading axes.
struct Term {
  std::string letters;                  // without the ellipsis
  size_t ellipsis = std::string::npos;  // position of the ellipsis among the letters
};

absl::StatusOr<Term> TermOf(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      if (text.substr(i, 3) != "..." || term.ellipsis != std::string::npos)
        return InvalidArgument("equation has a misplaced dot");
      term.ellipsis = term.letters.size();
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      term.letters += text[i];
    } else {
      return InvalidArgument("equation holds the character '%c'", text[i]);
    }
  }
  return term;
}

struct EinsumSizes {
  std::array<int64_t, 128> size;  // by letter
  std::array<int, 128> uses;
  Dims ellipsis;
};

absl::Status Match(const ShapeState& state, const Term& term, const Dims& dims, EinsumSizes* sizes) {
  const size_t letters = term.letters.size();
  const bool dots = term.ellipsis != std::string::npos;
  if (dims.size() < letters || (!dots && dims.size() != letters))
    return InvalidArgument("an input of shape %s does not fit the %d letters of its term", DimsText(dims), letters);
  const size_t extra = dims.size() - letters;
  for (size_t i = 0; i < letters; ++i) {
    int64_t found = dims[dots && i >= term.ellipsis ? i + extra : i];
    const auto letter = static_cast<size_t>(term.letters[i]);
    int64_t& size = sizes->size[letter];
    if (size != found && IsBatchPair(state, size, found)) size = found = state.new_batch;
    if (size == 1) size = found == kUnknownDim ? 1 : found;
    if (found != 1 && !Agree(size, found))
      return InvalidArgument("letter %c stands for %d and for %d", term.letters[i], size, found);
    size = Known(size, found);
    ++sizes->uses[letter];
  }
  if (dots)
    HORUS_SET_OR_RETURN(sizes->ellipsis, Broadcast(sizes->ellipsis, Part(dims, term.ellipsis, term.ellipsis + extra)));
  return absl::OkStatus();
}

absl::Status Einsum(RuleContext& c) {
  std::string_view equation = c.node().StringOr("equation", "");
  const size_t arrow = equation.find("->");
  std::string_view inputs = equation.substr(0, arrow);
  EinsumSizes sizes;
  sizes.size.fill(kUnknownDim);
  sizes.uses.fill(0);
  bool dots = false;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const size_t comma = inputs.find(',');
    HORUS_ASSIGN_OR_RETURN(const Term term, TermOf(inputs.substr(0, comma)));
    dots = dots || term.ellipsis != std::string::npos;
    if ((comma == std::string_view::npos) != (i + 1 == c.inputs()))
      return InvalidArgument("the equation does not have one term for each of %d inputs", c.inputs());
    inputs = comma == std::string_view::npos ? std::string_view() : inputs.substr(comma + 1);
    if (!c.ranked(i)) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(Match(c.state(), term, c.dims(i), &sizes));
  }
  Term result;
  if (arrow != std::string_view::npos) {
    HORUS_ASSIGN_OR_RETURN(result, TermOf(equation.substr(arrow + 2)));
  } else {
    if (dots) result.ellipsis = 0;
    for (size_t letter = 0; letter < sizes.uses.size(); ++letter) {
      if (sizes.uses[letter] == 1) result.letters += static_cast<char>(letter);
    }
  }
  Dims out;
  for (size_t i = 0; i <= result.letters.size(); ++i) {
    if (i == result.ellipsis) out.insert(out.end(), sizes.ellipsis.begin(), sizes.ellipsis.end());
    if (i == result.letters.size()) break;
    const auto letter = static_cast<size_t>(result.letters[i]);
    if (sizes.uses[letter] == 0) return InvalidArgument("letter %c of the result is in no input", result.letters[i]);
    out.push_back(sizes.size[letter]);
  }
  return c.Set(std::move(out));
}

absl::Status Det(RuleContext& c) {
  if (c.rank(0) < 2) return InvalidArgument("input has shape %s, expected matrices", DimsText(c.dims(0)));
  return c.Set(Part(c.dims(0), 0, c.dims(0).size() - 2));
}

// Moves the last but one axis in front of the last, as the transpose flags ask.
Dims Flipped(Dims dims, bool flip) {
  if (flip && dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

absl::Status FusedMatMul(RuleContext& c) {
  if (c.node().IntOr("transBatchA", 0) != 0 || c.node().IntOr("transBatchB", 0) != 0) return absl::OkStatus();
  return c.SetFound(MatMulDims(c.state(), Flipped(c.dims(0), c.node().IntOr("transA", 0) != 0),
                               Flipped(c.dims(1), c.node().IntOr("transB", 0) != 0)));
}

// ---- Shape rules of fused operators: attention of the default domain (opset 23) and com.microsoft.

absl::Status Same(RuleContext& c) { return c.Same(); }

absl::Status BiasPointwise(RuleContext& c) {
  return c.ranked(0) && c.ranked(1) ? c.SetFound(Broadcast(c.dims(0), c.dims(1))) : c.Same();
}

// input [batch, seq, in], weight [in, q + k + v]; the value part gives the output's width.
absl::Status Attention(RuleContext& c) {
  if (c.rank(0) != 3) return InvalidArgument("input has shape %s, expected [batch,seq,width]", DimsText(c.dims(0)));
  int64_t width = kUnknownDim;
  if (const std::vector<int64_t>* parts = c.node().Ints("qkv_hidden_sizes"); parts != nullptr && parts->size() == 3) {
    width = (*parts)[2];
    if (width < 1) return InvalidArgument("attribute qkv_hidden_sizes holds %d", width);
  } else if (c.ranked(1)) {
    const int64_t all = c.dim(1, -1);
    if (all != kUnknownDim && all % 3 != 0)
      return InvalidArgument("weight %s does not split into query, key and value", DimsText(c.dims(1)));
    width = all == kUnknownDim ? kUnknownDim : all / 3;
  }
  if (c.ranked(1) && !Agree(c.dim(1, 0), c.dim(0, 2)))
    return InvalidArgument("input %s and weight %s: inner sizes differ", DimsText(c.dims(0)), DimsText(c.dims(1)));
  HORUS_RETURN_IF_ERROR(c.Set({c.dim(0, 0), c.dim(0, 1), width}));
  const int64_t heads = c.node().IntOr("num_heads", 0);
  c.SetType(1, c.dtype(0));
  if (heads < 1 || width == kUnknownDim || width % heads != 0) return absl::OkStatus();
  int64_t rows = c.dim(0, 1);
  if (c.has(4) && !Grow(&rows, c.dim(4, 3))) rows = kUnknownDim;  // of [2, batch, heads, past, size]
  return c.Set(1, c.dtype(0), {2, c.dim(0, 0), heads, rows, width / heads});
}

// Keys or values with those of earlier steps before them, in the type of those: [batch, heads, past + new, size].
absl::Status SetPresent(RuleContext& c, size_t output, Dims out, size_t past, int64_t heads) {
  if (c.has(past) && c.rank(past) != 4) return absl::OkStatus();
  if (out.size() == 3) {
    if (heads < 1 || heads > kMaxAttribute) return absl::OkStatus();
    const int64_t size = out[2] == kUnknownDim ? kUnknownDim : out[2] / heads;
    out = {out[0], heads, out[1], size};
  }
  if (out.size() != 4) return absl::OkStatus();
  if (c.has(past) && !Grow(&out[2], c.dim(past, 2)))
    return InvalidArgument("past %s with %d new rows overflows 64 bits", DimsText(c.dims(past)), c.dim(past, 2));
  return c.Set(output, c.dtype(c.has(past) ? past : 0), std::move(out));
}

// query, key and value come as three inputs [batch, seq, width], or as one [batch, seq, heads, 3, size].
absl::Status MultiHeadAttention(RuleContext& c) {
  for (size_t i = 0; i < 3; ++i) c.SetType(i, c.dtype(0));
  const int64_t heads = c.node().IntOr("num_heads", 0);
  if (c.rank(0) == 5) return c.Set({c.dim(0, 0), c.dim(0, 1), ElementsOf({c.dim(0, 2), c.dim(0, 4)})});
  if (c.rank(0) != 3) return absl::OkStatus();
  if (c.ranked(1)) HORUS_RETURN_IF_ERROR(SetPresent(c, 1, c.dims(1), 6, heads));
  if (c.ranked(2)) HORUS_RETURN_IF_ERROR(SetPresent(c, 2, c.dims(2), 7, heads));
  return c.Set({c.dim(0, 0), c.dim(0, 1), c.rank(2) == 3 ? c.dim(2, 2) : c.dim(0, 2)});
}

// As above, or all in input 0: [batch, seq, (query heads + 2 x key heads) x size].
absl::Status GroupQueryAttention(RuleContext& c) {
  for (size_t i = 0; i < 3; ++i) c.SetType(i, c.dtype(0));
  if (c.rank(0) != 3) return absl::OkStatus();
  const int64_t heads = c.node().IntOr("num_heads", 0), key_heads = c.node().IntOr("kv_num_heads", 0);
  if (heads < 1 || key_heads < 1 || heads > kMaxAttribute || key_heads > kMaxAttribute)
    return InvalidArgument("attributes num_heads and kv_num_heads are %d and %d", heads, key_heads);
  Dims out = c.dims(0), keys = c.dims(0);
  if (c.has(1)) {
    keys = c.dims(1);
  } else if (out[2] != kUnknownDim) {
    const int64_t size = out[2] / (heads + 2 * key_heads);  // Bounded: both are at most kMaxAttribute.
    out[2] = size * heads;                                  // Bounded: a part of what was out[2].
    keys[2] = size * key_heads;                             // Bounded: likewise.
  }
  if (c.node().IntOr("compressed", -1) >= 0) {
    // Of single tokens a window is kept; tokens before it share keys, of which the cache has a part for each token.
    if (c.has(3)) HORUS_RETURN_IF_ERROR(c.Set(1, c.dtype(3), c.dims(3)));
    if (c.has(4)) HORUS_RETURN_IF_ERROR(SetPresent(c, 2, {out[0], 1, out[1], c.dim(4, 3)}, 4, 1));
    return c.Set(std::move(out));
  }
  const bool values = c.has(1) && c.has(2) && c.rank(2) == 3;
  HORUS_RETURN_IF_ERROR(SetPresent(c, 1, keys, 3, key_heads));
  HORUS_RETURN_IF_ERROR(SetPresent(c, 2, values ? c.dims(2) : keys, 4, key_heads));
  // Values may be of another size than keys.
  if (values && c.dim(2, 2) != kUnknownDim) out[2] = ElementsOf({heads, c.dim(2, 2) / key_heads});
  return c.Set(std::move(out));
}

// Attention of opset 23: [batch, heads, seq, size] or [batch, seq, heads * size].
absl::Status StandardAttention(RuleContext& c) {
  const int64_t query_heads = c.node().IntOr("q_num_heads", 0);
  const int64_t value_heads = c.node().IntOr("kv_num_heads", 0);
  for (size_t i = 1; i < 3; ++i) {
    c.SetType(i, c.dtype(0));
    if (c.ranked(i)) HORUS_RETURN_IF_ERROR(SetPresent(c, i, c.dims(i), 3 + i, value_heads));
  }
  if (!c.ranked(0) || !c.ranked(2)) return absl::OkStatus();
  Dims out = c.dims(0);
  if (c.rank(0) == 4) {
    out[3] = c.dim(2, 3);
  } else if (c.rank(0) == 3 && value_heads > 0 && query_heads > 0 && query_heads <= kMaxAttribute) {
    const int64_t width = c.dim(2, 2);
    out[2] = width == kUnknownDim ? kUnknownDim : width / value_heads;
    if (out[2] != kUnknownDim && __builtin_mul_overflow(out[2], query_heads, &out[2]))
      return InvalidArgument("value %s with %d query heads overflows 64 bits", DimsText(c.dims(2)), query_heads);
  } else {
    return absl::OkStatus();
  }
  return c.Set(std::move(out));
}

// Queries [batch, seq, heads x (nope + rope)], latent keys [batch, seq, rank], the product that makes keys and values
// of them [rank, heads x (nope + value)], cache [batch, 1, past, rank + rope], turned keys [batch, seq, rope].
absl::Status LatentAttention(RuleContext& c) {
  for (size_t i = 0; i < 2; ++i) c.SetType(i, c.dtype(0));
  const int64_t heads = c.node().IntOr("num_heads", 0), value = c.node().IntOr("v_head_dim", 0);
  if (heads < 1 || value < 1 || heads > kMaxAttribute || value > kMaxAttribute)
    return InvalidArgument("attributes num_heads and v_head_dim are %d and %d", heads, value);
  if (c.rank(0) != 3 || c.rank(1) != 3) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(c.Set({c.dim(0, 0), c.dim(0, 1), ElementsOf({heads, value})}));
  if (!c.has(3) || c.rank(3) != 4) return absl::OkStatus();
  return SetPresent(c, 1, {c.dim(1, 0), 1, c.dim(1, 1), c.dim(3, 3)}, 3, 1);
}

// Queries [batch, seq, heads x size], keys [batch, seq, size], weights of heads [batch, seq, heads], cache [batch, 1,
// past, bytes]; the best tokens of each.
absl::Status IndexAttention(RuleContext& c) {
  if (c.rank(0) != 3) return absl::OkStatus();
  const int64_t top = c.node().IntOr("index_topk", 0);
  if (top < 1) return InvalidArgument("attribute index_topk is %d", top);
  HORUS_RETURN_IF_ERROR(c.Set(0, DType::kInt32, {c.dim(0, 0), c.dim(0, 1), top}));
  if (!c.has(3) || c.rank(3) != 4) return absl::OkStatus();
  return SetPresent(c, 1, {c.dim(1, 0), 1, c.dim(1, 1), c.dim(3, 3)}, 3, 1);
}

// Tokens [batch, seq, channels] or [batch, channels, seq], weights [channels, .., width], their biases, the tokens
// before [batch, channels, width - 1].
absl::Status CausalConv(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  return c.has(3) ? c.Set(1, c.dtype(3), c.dims(3)) : absl::OkStatus();
}

// Queries, keys and values [batch, seq, heads x size], state [batch, heads, key size, value size] of the values' heads.
absl::Status StatefulAttention(RuleContext& c) {
  const int64_t queries = c.node().IntOr("q_num_heads", 0), values = c.node().IntOr("kv_num_heads", 0);
  if (queries < 1 || values < 1 || queries > kMaxAttribute || values > kMaxAttribute)
    return InvalidArgument("attributes q_num_heads and kv_num_heads are %d and %d", queries, values);
  c.SetType(0, c.dtype(0));
  if (c.rank(0) == 3 && c.rank(2) == 3) {
    const int64_t width = c.dim(2, 2), heads = std::max(queries, values);
    const int64_t out = width == kUnknownDim ? kUnknownDim : ElementsOf({heads, width / values});
    HORUS_RETURN_IF_ERROR(c.Set({c.dim(0, 0), c.dim(0, 1), out}));
  }
  return c.has(3) ? c.Set(1, c.dtype(3), c.dims(3)) : absl::OkStatus();
}

// Queries, keys and values [batch, seq, channels], rates [batch, seq, ..], decay [heads], state [batch, heads, key
// size, value size], the rates' biases and the weights of what is passed by [heads].
absl::Status LinearAttention(RuleContext& c) {
  const int64_t heads = c.node().IntOr("num_heads", 0), value = c.node().IntOr("value_size", 0);
  if (heads < 1 || value < 1 || heads > kMaxAttribute || value > kMaxAttribute)
    return InvalidArgument("attributes num_heads and value_size are %d and %d", heads, value);
  c.SetType(0, c.dtype(0));
  if (c.rank(0) != 3) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(c.Set({c.dim(0, 0), c.dim(0, 1), ElementsOf({heads, value})}));
  return c.has(3) ? c.Set(1, c.dtype(3), c.dims(3)) : absl::OkStatus();
}

// Tokens [.., hidden], their scores [.., experts], weights [experts, .., hidden] and [experts, hidden, ..].
absl::Status MixtureOfExperts(RuleContext& c) {
  const size_t down = c.node().op_type == "QMoE" ? 5 : 4;
  const bool ranked = c.rank(0) > 0 && c.rank(2) == 3 && c.rank(down) == 3;
  if (ranked && (!Agree(c.dim(2, 0), c.dim(down, 0)) || !Agree(c.dim(down, 1), c.dim(0, -1)))) {
    return InvalidArgument("weights %s and %s do not fit the input %s", DimsText(c.dims(2)), DimsText(c.dims(down)),
                           DimsText(c.dims(0)));
  }
  return c.Same();
}

absl::Status SkipLayerNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  Dims statistics = c.dims(0);
  if (!statistics.empty()) statistics.back() = 1;
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kFloat32, statistics));
  HORUS_RETURN_IF_ERROR(c.Set(2, DType::kFloat32, statistics));
  return c.Set(3, c.dtype(0), c.dims(0));
}

// Two outputs like the first input.
absl::Status SameTwice(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  return c.Set(1, c.dtype(0), c.dims(0));
}

// Half of the last axis gates the other.
absl::Status BiasSplitGelu(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  if (c.rank(0) == 0 || c.dim(0, -1) == kUnknownDim) return absl::OkStatus();
  Dims out = c.dims(0);
  out.back() /= 2;
  return c.Set(std::move(out));
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
  HORUS_RETURN_IF_ERROR(c.Set(out));
  HORUS_RETURN_IF_ERROR(c.Set(1, DType::kInt32, {c.dim(0, 0)}));
  return c.Set(2, c.dtype(2), out);
}

// ---- Shape rules of normalisations, softmax and losses.

absl::Status AlongAxis(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  if (c.rank(0) == 0) return absl::OkStatus();
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
  HORUS_RETURN_IF_ERROR(c.Same());
  if (c.rank(0) >= 2) {
    for (size_t i = 1; i < 5; ++i) HORUS_RETURN_IF_ERROR(CheckPerChannel(c, i, c.dim(0, 1)));
  }
  for (size_t out = 1; out < 5; ++out) {
    const size_t like = out == 1 || out == 3 ? 3 : 4;  // mean, variance, saved mean, saved variance
    if (c.ranked(like)) HORUS_RETURN_IF_ERROR(c.Set(out, c.dtype(like), c.dims(like)));
  }
  return absl::OkStatus();
}

absl::Status InstanceNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  if (c.rank(0) < 2) return absl::OkStatus();
  for (size_t i = 1; i < 3; ++i) HORUS_RETURN_IF_ERROR(CheckPerChannel(c, i, c.dim(0, 1)));
  return absl::OkStatus();
}

absl::Status LayerNormalization(RuleContext& c) {
  HORUS_RETURN_IF_ERROR(c.Same());
  HORUS_ASSIGN_OR_RETURN(const int64_t axis, c.AxisOr(-1));
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
  c.SetType(1, c.dtype(0));
  if (c.node().op_type == "SoftmaxCrossEntropyLoss" && c.ranked(0))
    HORUS_RETURN_IF_ERROR(c.Set(1, c.dtype(0), c.dims(0)));
  if (c.node().StringOr("reduction", "mean") != "none") return c.Set({});
  return c.ranked(1) ? c.Set(c.dims(1)) : absl::OkStatus();
}

// ---- Shape rules of RNN, GRU and LSTM.

int64_t GatesOf(std::string_view op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

absl::Status CheckWeights(RuleContext& c, int64_t directions, int64_t hidden, int64_t features) {
  const int64_t gates = GatesOf(c.node().op_type);
  if (!c.ranked(1)) return absl::OkStatus();
  // Bounded: hidden is at most kMaxAttribute, checked by the caller, of 4 gates.
  const bool fits = c.rank(1) == 3 && Agree(c.dim(1, 0), directions) && Agree(c.dim(1, 2), features) &&
                    (hidden == kUnknownDim || Agree(c.dim(1, 1), gates * hidden));
  if (fits) return absl::OkStatus();
  // Bounded: hidden is at most kMaxAttribute, checked by the caller, of 4 gates.
  return InvalidArgument("weight has shape %s, expected [%d,%d,%d] for input %s", DimsText(c.dims(1)), directions,
                         gates * hidden, features, DimsText(c.dims(0)));
}

absl::Status Recurrent(RuleContext& c) {
  const DType dtype = c.dtype(0);
  for (size_t i = 0; i < 3; ++i) c.SetType(i, dtype);
  if (!c.ranked(0)) return absl::OkStatus();
  if (c.rank(0) != 3) return InvalidArgument("input has shape %s, expected rank 3", DimsText(c.dims(0)));
  const int64_t directions = c.node().StringOr("direction", "forward") == "bidirectional" ? 2 : 1;
  int64_t hidden = c.node().IntOr("hidden_size", kUnknownDim);
  if (hidden == kUnknownDim) hidden = c.dim(2, 2);  // R is [directions, gates * hidden, hidden]
  if (hidden != kUnknownDim && (hidden < 1 || hidden > kMaxAttribute))
    return InvalidArgument("attribute hidden_size is %d, expected 1 to %d", hidden, kMaxAttribute);
  HORUS_RETURN_IF_ERROR(CheckWeights(c, directions, hidden, c.dim(0, 2)));
  const bool batch_first = c.node().IntOr("layout", 0) != 0;
  const int64_t steps = c.dim(0, batch_first ? 1 : 0);
  const int64_t batch = c.dim(0, batch_first ? 0 : 1);
  const Dims all = batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
  const Dims last = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  HORUS_RETURN_IF_ERROR(c.Set(0, dtype, all));
  HORUS_RETURN_IF_ERROR(c.Set(1, dtype, last));
  return c.Set(2, dtype, last);
}

constexpr RuleEntry kMatrixRules[] = {
    {"Attention", StandardAttention},
    {"BatchNormalization", BatchNormalization},
    {"CausalConvWithState", CausalConv},
    {"Det", Det, 1},
    {"Einsum", Einsum},
    {"GRU LSTM RNN", Recurrent},
    {"Gemm", Gemm, 2},
    {"GroupNormalization LRN LpNormalization MeanVarianceNormalization RMSNormalization RotaryEmbedding", Same},
    {"Hardmax LogSoftmax Softmax", AlongAxis},
    {"InstanceNormalization", InstanceNormalization},
    {"LayerNormalization SimplifiedLayerNormalization", LayerNormalization, 1},
    {"LinearAttention", StatefulAttention},
    {"MatMul", MatMul, 2},
    {"MatMulInteger", MatMul, 2, "", false, DType::kInt32},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", Loss},
    {"Attention", Attention, 1, kMicrosoftDomain},
    {"BiasGelu", BiasPointwise, 0, kMicrosoftDomain},
    {"BiasSplitGelu", BiasSplitGelu, 0, kMicrosoftDomain},
    {"DynamicQuantizeMatMul", MatMul, 2, kMicrosoftDomain},
    {"EmbedLayerNormalization", EmbedLayerNormalization, 0, kMicrosoftDomain},
    {"FastGelu GatedAdd GatedRMSNorm Gelu MRotaryEmbedding QuickGelu RotaryEmbedding SimplifiedLayerNormalization",
     Same, 0, kMicrosoftDomain},
    {"FusedGemm", Gemm, 2, kMicrosoftDomain},
    {"FusedMatMul TransposeMatMul", FusedMatMul, 2, kMicrosoftDomain},
    {"GroupQueryAttention", GroupQueryAttention, 0, kMicrosoftDomain},
    {"MatMulIntegerToFloat", MatMulIntegerToFloat, 0, kMicrosoftDomain},
    {"MatMulNBits", MatMulNBits, 0, kMicrosoftDomain},
    {"MoE QMoE", MixtureOfExperts, 0, kMicrosoftDomain},
    {"MultiHeadAttention", MultiHeadAttention, 0, kMicrosoftDomain},
    {"LinearAttentionGate SkipGroupNorm", SameTwice, 1, kMicrosoftDomain},
    {"SkipLayerNormalization SkipSimplifiedLayerNormalization", SkipLayerNormalization, 1, kMicrosoftDomain},
    {"AllReduce Beside", Same, 0, kHorusDomain},
    {"CausalConv", CausalConv, 0, kHorusDomain},
    {"IndexAttention", IndexAttention, 0, kHorusDomain},
    {"LatentAttention", LatentAttention, 0, kHorusDomain},
    {"LinearAttention", LinearAttention, 0, kHorusDomain},
};

}  // namespace

std::span<const RuleEntry> MatrixRules() { return kMatrixRules; }

}  // namespace horus
