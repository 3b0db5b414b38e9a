// SPDX-License-Identifier: Apache-2.0
// Cost of attention where the graph holds it as one operator; it runs fused, so no score matrix is kept.
#include <algorithm>

#include "features/cost_rules.h"

namespace horus {
namespace {

constexpr double kSoftmaxFlops = 2 * kTranscendentalFlops;  // per score: scale, maximum, exp, sum, division
constexpr double kStatisticBytes = 4;                       // float32 log-sum-exp a row
// The fused backward computes the scores again: five products for the forward's two.
constexpr double kBackwardProducts = 2.5;

struct Scores {
  double batch = 1, queries = 1, keys = 1;  // keys that a query attends to, on average
  double width = 1;                         // heads x head size of the queries
  double heads = 1;
};

// Of `queries` causal ones behind `past` others: each attends to those before it and itself, at most `window` (0: all).
double CausalKeys(double queries, double past, double window) {
  if (window <= 0 || past + queries <= window) return past + (queries + 1) / 2;
  const double ramp = std::max(0.0, window - past);  // queries that see fewer
  return (ramp * (past + (ramp + 1) / 2) + (queries - ramp) * window) / queries;
}

// Q Kt and P V, softmax between them; `bytes` read and written.
void AddScores(CostContext& c, const Scores& s, bool backward, double bytes) {
  const double scores = s.batch * s.heads * s.queries * s.keys;
  const double products = 4 * s.batch * s.queries * s.keys * s.width;
  c.cost.forward.flops += products;
  c.cost.forward.flops_other += scores * kSoftmaxFlops;
  c.cost.horus_flops += std::max(0.0, products - scores - s.batch * s.queries * s.width);
  c.cost.horus_linears += 2;
  const double blocks = s.batch * s.heads * (s.queries / kMatmulTile + 1);
  c.Forward(1, bytes, blocks);
  if (!backward) return;
  c.cost.backward.flops += kBackwardProducts * products;
  c.cost.backward.flops_other += 2 * scores * kSoftmaxFlops;
  c.Backward(2, 2 * (c.AllInBytes() + c.AllOutBytes()), blocks);
  c.SaveOutput(0);
  c.SaveExtra(s.batch * s.heads * s.queries * kStatisticBytes);
}

void AddScores(CostContext& c, const Scores& s, bool backward) {
  AddScores(c, s, backward, c.AllInBytes() + c.AllOutBytes());
}

double HeadsOf(const CostContext& c, const char* name) { return std::max(1.0, c.Int(name, 1)); }

// Of the keys of earlier steps, [batch, heads, past, head size], at input i.
double PastAt(const CostContext& c, size_t i) { return c.Has(i) && c.In(i).dims.size() == 4 ? c.InDim(i, 2) : 0; }

// Queries, keys and values in one tensor, as com.microsoft operators may take them: [batch, sequence, heads, 3, head
// size], or [batch, sequence, (query heads + 2 x key heads) x head size].
bool ReadPacked(const CostContext& c, Scores& s) {
  const Tensor& qkv = c.In(0);
  s.batch = CostContext::Dim(qkv, 0);
  s.queries = s.keys = CostContext::Dim(qkv, 1);
  s.heads = HeadsOf(c, "num_heads");
  if (qkv.dims.size() == 5) {
    s.width = CostContext::Dim(qkv, 2) * CostContext::Dim(qkv, 4);
    return true;
  }
  const auto key_heads = c.Int("kv_num_heads", 0);
  if (qkv.dims.size() != 3 || key_heads <= 0) return false;
  s.width = CostContext::Dim(qkv, 2) * s.heads / (s.heads + 2 * key_heads);
  return true;
}

// Those, or queries and keys apart: [batch, sequence, width] or [batch, heads, sequence, head size].
bool Read(const CostContext& c, bool onnx, Scores& s) {
  if (!c.Has(0) || !c.Has(1)) return c.Has(0) && ReadPacked(c, s);
  const bool four = c.In(0).dims.size() == 4;
  s.batch = c.InDim(0, 0);
  s.queries = c.InDim(0, four ? 2 : 1);
  s.keys = c.InDim(1, c.In(1).dims.size() == 4 ? 2 : 1);
  s.heads = four ? c.InDim(0, 1) : HeadsOf(c, onnx ? "q_num_heads" : "num_heads");
  s.width = four ? s.heads * c.InDim(0, 3) : c.InDim(0, 2);
  return true;
}

// Position of the keys of earlier steps, which the queries attend to as well.
size_t PastKeys(const CostRule& rule) {
  if (rule.name == "Attention") return 4;
  return rule.name == "com.microsoft::GroupQueryAttention" ? 3 : 6;
}

void SplitAttention(CostContext& c, const CostRule& rule) {
  Scores s;
  if (!Read(c, rule.name == "Attention", s)) return c.Unknown();
  const size_t past = PastKeys(rule);
  s.keys += PastAt(c, past);
  const bool backward = c.WantsAny(3);
  AddScores(c, s, backward);
  if (backward) c.SaveInputs(3);
}

// Causal, with caches that grow in place: new keys and values are written, of old ones those in the window are read.
void GroupQueryAttention(CostContext& c, const CostRule& rule) {
  Scores s;
  if (!Read(c, /*onnx=*/false, s)) return c.Unknown();
  const size_t cache = PastKeys(rule);
  const double past = PastAt(c, cache);
  const double added = s.keys, window = std::max(0.0, c.Int("local_window_size", -1));
  s.keys = CausalKeys(s.queries, past, window);
  if (c.HasOut(0)) s.width = (s.width + c.OutDim(0, -1)) / 2;  // keys and values may differ
  const bool backward = c.WantsAny(3);
  double bytes = c.AllInBytes() + c.OutBytes(0);
  if (const auto shared = c.Int("compressed", 0); shared > 0) {
    // Before the window `shared` tokens have a key, of which at most so many are read.
    const double earlier = c.Has(cache + 1) ? c.InDim(cache + 1, 2) : 0;
    const auto top = c.Int("index_topk", 0);
    const double keys = CausalKeys(s.queries, earlier, 0) / shared, read = top > 0 ? std::min(top, keys) : keys;
    s.keys = CausalKeys(s.queries, earlier, window) + read;
    if (s.queries == 1 && keys > 0) bytes -= c.InBytes(cache + 1) * (1 - read / keys);
    return AddScores(c, s, backward, bytes);
  }
  for (size_t i = cache; i < cache + 2; ++i) {
    if (window > 0 && past > window) bytes -= c.InBytes(i) * (1 - window / past);
    bytes += c.OutBytes(i - cache + 1) * added / std::max(1.0, past + added);
  }
  AddScores(c, s, backward, bytes);
  if (backward) c.SaveInputs(3);
}

// horus.LatentAttention (graph/shape_rules_matrix.cc has its inputs). Engines take the way with fewer FLOPs: make keys
// and values of all cached tokens, as prefill does, or bring queries into the latent space and results out of it, as
// decoding does.
void LatentAttention(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.Has(2) || !c.HasOut(0)) return c.Unknown();
  const double rope = c.Int("qk_rope_head_dim", 0);
  const double rank = c.InDim(1, -1), columns = c.InDim(2, -1);
  const double past = PastAt(c, 3);
  Scores s{.batch = c.InDim(0, 0), .queries = c.InDim(0, 1), .heads = HeadsOf(c, "num_heads")};
  const double top = std::max(0.0, c.Int("local_window_size", -1));
  s.keys = CausalKeys(s.queries, past, top);
  const double tokens = s.batch * s.queries, cached = s.batch * (past + s.queries);
  const double scores = 2 * tokens * s.keys;
  const double wide = (c.InDim(0, 2) + c.OutDim(0, 2)) / 2;  // as 4 x .. x width counts
  const double latent = s.heads * (2 * rank + rope) / 2;
  const double expanded = 2 * cached * rank * columns, absorbed = 2 * tokens * rank * columns;
  const bool expands = expanded + 2 * scores * wide <= absorbed + 2 * scores * latent;
  const double product = expands ? expanded : absorbed;
  s.width = expands ? wide : latent;
  const double element = c.InCount(0) > 0 ? c.InBytes(0) / c.InCount(0) : 0;
  const double made = element * (expands ? cached * columns : 2 * tokens * s.heads * rank);
  c.cost.forward.flops += product;
  c.cost.horus_flops += product;
  c.cost.horus_linears += 1;
  c.Forward(expands ? 1 : 2, c.InBytes(2) + made, MatmulBlocks(1, expands ? cached : tokens, columns, rank));
  const bool backward = c.WantsAny(3);
  const double written = c.OutBytes(1) * s.queries / std::max(1.0, past + s.queries);
  const double skipped = top > 0 && past > top && s.queries == 1 ? c.InBytes(3) * (1 - top / past) : 0;
  AddScores(c, s, backward, c.AllInBytes() - c.InBytes(2) + made + c.OutBytes(0) + written - skipped);
  if (!backward) return;
  c.cost.backward.flops += 2 * product;
  c.Backward(2, 2 * (c.InBytes(2) + made), MatmulBlocks(1, tokens, rank, columns));
  c.SaveInputs(3);
  c.SaveExtra(made);
}

// horus.IndexAttention: heads score all keys, of one head, and the best are kept. Not trained with the rest.
void IndexAttention(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  const double past = PastAt(c, 3);
  const double queries = c.InDim(0, 1), tokens = c.InDim(0, 0) * queries;
  const double shared = std::max(1.0, c.Int("compressed", 1));  // tokens a key
  const double product = 2 * tokens * CausalKeys(queries, past, 0) / shared * c.InDim(0, 2);
  c.cost.forward.flops += product;
  c.cost.horus_flops += product;
  c.cost.horus_linears += 1;
  const double written = c.OutBytes(1) * queries / std::max(1.0, past + queries);
  c.Forward(2, c.AllInBytes() + written + c.OutBytes(0), MatmulBlocks(1, tokens, past + queries, 1));
}

// horus.LinearAttention: one token after the other where there is one, else in chunks that attend to themselves and to
// the state before. A delta rule also takes out of the state what it says of each key already.
void LinearAttention(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.HasOut(0)) return c.Unknown();
  constexpr double kChunk = 64;
  const auto of = [&c](const char* name) { return c.Int(name, 1); };
  double heads = of("num_heads"), key = of("key_size"), value = of("value_size");
  if (c.node().domain != kHorusDomain) {
    if (!c.Has(2)) return c.Unknown();
    heads = HeadsOf(c, "kv_num_heads");
    key = c.InDim(0, -1) / HeadsOf(c, "q_num_heads");
    value = c.InDim(2, -1) / heads;
  }
  const double batch = c.InDim(0, 0), queries = c.InDim(0, 1);
  const double parts = of("delta") > 0 && c.node().StringOr("update_rule", "delta").ends_with("delta") ? 2 : 1;
  const double chunk = queries > 1 ? 2 * parts * std::min(kChunk, queries) * (key + value) : 0;
  const double flops = batch * queries * heads * (chunk + 2 * (1 + parts) * key * value);
  c.cost.forward.flops += flops;
  c.cost.horus_flops += flops;
  c.cost.horus_linears += 1;
  c.Forward(queries > 1 ? 4 : 1, c.AllInBytes() + c.AllOutBytes(), batch * heads * (queries / kChunk + 1));
  if (!c.Wants(0)) return;
  c.cost.backward.flops += kBackwardProducts * flops;
  c.Backward(4, 2 * (c.AllInBytes() + c.AllOutBytes()), batch * heads * (queries / kChunk + 1));
  c.SaveInputs(2);
  c.SaveExtra(batch * heads * (queries / kChunk) * key * value * kStatisticBytes);  // a state before each chunk
}

// horus.CausalConv: each channel by itself.
void CausalConv(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1)) return c.Unknown();
  const double flops = 2 * c.InDim(1, -1) * c.OutCount(0);
  c.ForwardOver(c.OutCount(0), flops, c.AllInBytes() + c.AllOutBytes());
  if (!c.Wants(0)) return;
  c.BackwardOver(c.OutCount(0), 2 * flops, 2 * (c.AllInBytes() + c.AllOutBytes()), 2);
  c.SaveInput(0);
}

// com.microsoft.Attention: one product makes queries, keys and values of the input.
void PackedAttention(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.HasOut(0)) return c.Unknown();
  Scores s;
  s.batch = c.InDim(0, 0);
  s.queries = s.keys = c.InDim(0, 1);
  s.heads = HeadsOf(c, "num_heads");
  s.width = c.OutDim(0, 2);
  if (c.Has(4) && c.In(4).dims.size() == 5) s.keys += c.InDim(4, 3);  // of earlier steps
  const double rows = s.batch * s.queries;
  const double in = c.InDim(1, 0), out = c.InDim(1, 1);
  const double product = 2 * rows * in * out;
  const double projected = s.width > 0 ? c.OutBytes(0) * out / s.width : 0;
  c.cost.forward.flops += product;
  c.cost.horus_flops += rows * std::max(0.0, 2 * in - 1) * out;
  c.cost.horus_linears += 1;
  c.Forward(1, c.InBytes(0) + c.InBytes(1) + projected, MatmulBlocks(1, rows, out, in));
  const bool backward = c.Wants(0) || c.Wants(1);
  AddScores(c, s, backward);
  if (!backward) return;
  const double gradients = (c.Wants(0) ? 1 : 0) + (c.Wants(1) ? 1 : 0);
  c.cost.backward.flops += gradients * product;
  c.Backward(gradients, gradients * (c.InBytes(0) + c.InBytes(1) + projected), MatmulBlocks(1, in, out, rows));
  c.SaveInput(0);
  c.SaveExtra(projected);
}

// Queries [..., q, d], keys [..., d, k] and values [..., k, v], as the products of a decomposed attention take them.
void FusedAttention(CostContext& c, const CostRule&) {
  if (!c.Has(0) || !c.Has(1) || !c.Has(2)) return c.Unknown();
  const double depth = c.InDim(0, -1), columns = c.InDim(2, -1);
  Scores s;
  s.queries = c.InDim(0, -2);
  s.keys = c.InDim(2, -2);
  s.width = (depth + columns) / 2;
  s.batch = c.OutCount(0) / std::max(1.0, s.queries * columns);
  const bool backward = c.WantsAny(3);
  AddScores(c, s, backward);
  c.cost.product = {s.batch, s.queries, s.keys, depth, 1, backward, backward};
  if (backward) c.SaveInputs(3);
}

constexpr CostRule kAttentionCostRules[] = {
    {kFusedAttentionRule, OpClass::kAttention, FusedAttention},
    {"Attention com.microsoft::MultiHeadAttention", OpClass::kAttention, SplitAttention},
    {"com.microsoft::Attention", OpClass::kAttention, PackedAttention},
    {"com.microsoft::GroupQueryAttention", OpClass::kAttention, GroupQueryAttention},
    {"CausalConvWithState horus::CausalConv", OpClass::kElementwise, CausalConv},
    {"horus::IndexAttention", OpClass::kAttention, IndexAttention},
    {"horus::LatentAttention", OpClass::kAttention, LatentAttention},
    {"LinearAttention horus::LinearAttention", OpClass::kAttention, LinearAttention},
};

}  // namespace

std::span<const CostRule> AttentionCostRules() { return kAttentionCostRules; }

}  // namespace horus
