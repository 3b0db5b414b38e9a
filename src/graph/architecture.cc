// SPDX-License-Identifier: Apache-2.0
// Families of language models: a table, and a function for each kind of layers. Names of fields and their defaults
// are those of the configuration classes of transformers 4.57 and 5.
// Bounded throughout: sizes and factors are at most 2^24, heads and experts 4,096, layers 1,024.
#include "graph/architecture.h"

#include <cmath>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "graph/config_fields.h"

namespace horus {
namespace {

using Mixer = Architecture::Mixer;
using QkNorm = Architecture::QkNorm;

constexpr int64_t kMostHeads = 4096, kMostExperts = 4096, kMostHeadDim = 4096;

// What a family has unless its file says otherwise, or always.
enum Trait : uint32_t {
  kTied = 1U << 0,         // tie_word_embeddings
  kQkvBias = 1U << 1,      // attention_bias: of queries, keys and values
  kOutBias = 1U << 2,      // and of the output
  kAllBias = 1U << 3,      // use_bias
  kHeadNorm = 1U << 4,     // of queries and keys
  kWholeNorm = 1U << 5,    // all heads at once
  kScaled = 1U << 6,       // the embedding
  kSandwich = 1U << 7,     // norms after attention and MLP, too
  kNormedAfter = 1U << 8,  // or there alone
  kLayerNorm = 1U << 9,    // subtracts a mean
  kNormBias = 1U << 10,    // and adds a bias
  kUngated = 1U << 11,     // the MLP
  kParallel = 1U << 12,    // attention and MLP after one norm
  kSwitched = 1U << 13,    // windows count where use_sliding_window says so
  kSharedGate = 1U << 14,  // of shared experts
  kRouterBias = 1U << 15,  // for choosing experts
  kDenseFirst = 1U << 16,  // the first layer has no experts
  kSinks = 1U << 17,       // of softmax
  kLogitsBias = 1U << 18,
  kGelu = 1U << 19,  // where the file names no activation
};
constexpr uint32_t kFirst = kLayerNorm | kNormBias | kUngated | kGelu;
bool Has(const Architecture& a, uint32_t traits) { return (a.traits & traits) != 0; }

void ReadActivation(ConfigFields& f, std::string_view key, std::string_view fallback, Architecture& a) {
  const std::string name = f.Text(key, fallback);
  if (name == "silu" || name == "swish" || name.starts_with("swiglu") || name == "situ") {
    a.activation = "Swish";
  } else if (name.starts_with("gelu")) {
    a.activation = "Gelu";
  } else {
    a.activation = "Relu";
    f.Expect(key, name == "relu" || name == "relu2" || name == "xielu", "silu, gelu (any form), relu or relu2");
  }
}

void ReadStretched(ConfigFields& f, Architecture& a) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    std::optional<ConfigFields> rope = f.Object(key);
    if (!rope) continue;
    const auto scaled = [&a](ConfigFields& one) {
      const std::string type = one.Text(one.Has("type") ? "type" : "rope_type", "default");
      a.stretched = a.stretched || (type != "default" && type != "mrope");
    };
    scaled(*rope);
    // Newer files have an object for each type of layer.
    for (const char* kind : {"full_attention", "sliding_attention", "main", "compress"}) {
      if (std::optional<ConfigFields> one = rope->Object(kind)) scaled(*one);
    }
  }
}

// What files leave out, as the configuration class of their family has it.
struct Unsaid {
  std::optional<int64_t> layers, heads, kv_heads, head_dim, vocab, context;
};

// What all have.
void ReadCommon(ConfigFields& f, Architecture& a, const Unsaid& unsaid = {}) {
  a.hidden = f.Size(f.Either({"hidden_size", "n_embd"}));
  a.layers = f.Size(f.Either({"num_hidden_layers", "n_layer"}), unsaid.layers, kMaxConfigLayers);
  a.heads = f.Size(f.Either({"num_attention_heads", "n_head"}), unsaid.heads, kMostHeads);
  a.kv_heads =
      f.Size(f.Either({"num_key_value_heads", "num_attention_groups"}), unsaid.kv_heads.value_or(a.heads), kMostHeads);
  a.head_dim = f.Size(f.Either({"attention_head_dim", "head_dim"}),
                      unsaid.head_dim.value_or(std::max<int64_t>(1, a.hidden / a.heads)), kMostHeadDim);
  a.vocab = f.Size("vocab_size", unsaid.vocab);
  a.context = f.Size(f.Either({"max_position_embeddings", "n_positions"}), unsaid.context);
  a.tied = f.Flag("tie_word_embeddings", Has(a, kTied));
  a.each.resize(static_cast<size_t>(a.layers));
  ReadStretched(f, a);
}

void ReadStateType(ConfigFields& f, std::string_view key, std::string unsaid, Architecture& a) {
  const std::string said = f.Text(key, std::move(unsaid));
  f.Expect(key, said.empty() || said == "float32" || said == "bfloat16" || said == "float16",
           "float32, bfloat16 or float16");
  if (!said.empty()) a.state = DTypeByName(said);
}

// Of each layer whether a list says `yes`, and not `no`; where there is none, what the rule says. Lists may go on with
// the layers that guess ahead.
std::vector<bool> ByLayer(ConfigFields& f, const Architecture& a, std::string_view key, std::string_view no,
                          std::string_view yes, auto rule) {
  const std::vector<std::string> said = f.Texts(key);
  const auto layers = static_cast<size_t>(a.layers);
  const auto ahead = static_cast<size_t>(f.Size("num_nextn_predict_layers", 0, kMaxConfigLayers));
  f.Expect(key, said.empty() || said.size() == layers || said.size() == layers + ahead, "one entry for each layer");
  std::vector<bool> is;
  for (size_t i = 0; i < layers; ++i) {
    const bool listed = i < said.size();
    is.push_back(listed ? said[i] == yes : rule(static_cast<int64_t>(i)));
    f.Expect(key, !listed || is.back() || said[i] == no, Formatted("%s or %s for each layer", no, yes));
  }
  return is;
}

void Set(Architecture& a, bool Architecture::Layer::* part, const std::vector<bool>& is) {
  for (size_t i = 0; i < a.each.size(); ++i) a.each[i].*part = is[i];
}
void Set(Architecture& a, Mixer mixer, const std::vector<bool>& is) {
  for (size_t i = 0; i < a.each.size(); ++i) a.each[i].mixer = is[i] ? mixer : Mixer::kAttention;
}

constexpr int64_t kEveryLayer = kMaxConfigLayers + 1;

// Each `every`-th layer has no window, the others slide; 0: none slides.
void SetWindows(ConfigFields& f, Architecture& a, int64_t every) {
  const int64_t window = f.Size(f.Either({"sliding_window", "sliding_window_size"}), 0);
  const bool used = !Has(a, kSwitched) || f.Flag("use_sliding_window", false);
  const int64_t first = Has(a, kSwitched) ? f.Size("max_window_layers", a.layers) : 0;
  const auto slides = [=](int64_t layer) { return used && layer >= first && every > 0 && (layer + 1) % every != 0; };
  const std::vector<bool> slid = ByLayer(f, a, "layer_types", "full_attention", "sliding_attention", slides);
  for (size_t i = 0; i < a.each.size(); ++i) a.each[i].window = slid[i] ? window : 0;
}

void ReadMlp(ConfigFields& f, Architecture& a) {
  a.intermediate = f.Size("intermediate_size");
  const std::string_view act = f.Either({"hidden_activation", "mlp_hidden_act", "hidden_act"});
  ReadActivation(f, act, Has(a, kGelu) ? "gelu" : "silu", a);
}

// Whatever the traits say, in the words of all families that have it.
void ReadTraits(ConfigFields& f, Architecture& a) {
  const bool all = f.Flag("use_bias", Has(a, kAllBias));
  a.qkv_bias = f.Flag(f.Either({"attention_bias", "use_qkv_bias", "qkv_bias"}), all || Has(a, kQkvBias));
  a.o_bias = f.Flag("attention_out_bias", Has(a, kOutBias) ? a.qkv_bias : all);
  a.mlp_bias = f.Flag("mlp_bias", all);
  a.logits_bias = f.Flag("lm_head_bias", Has(a, kLogitsBias));
  a.gated = !Has(a, kUngated);
  a.rms = !Has(a, kLayerNorm);
  a.norm_bias = Has(a, kNormBias);
  a.parallel = a.one_norm = Has(a, kParallel);
  a.pre_norms = !Has(a, kNormedAfter);
  a.post_norms = Has(a, kSandwich | kNormedAfter);
  a.scaled = Has(a, kScaled);
  const QkNorm norm = Has(a, kWholeNorm) ? QkNorm::kWhole : QkNorm::kHead;
  const bool normed = Has(a, kWholeNorm | kHeadNorm);
  if (f.Flag(f.Either({"use_qk_norm", "qk_layernorm"}), normed)) a.qk_norm = norm;
  for (Architecture::Layer& layer : a.each) layer.sinks = Has(a, kSinks);
}

void ReadDenseAs(ConfigFields& f, Architecture& a, int64_t every, const Unsaid& unsaid) {
  ReadCommon(f, a, unsaid);
  ReadMlp(f, a);
  ReadTraits(f, a);
  f.Known({"sliding_window_pattern"});  // of some a text, beside the list
  SetWindows(f, a, f.Has("layer_types") ? every : f.Size("sliding_window_pattern", every, kMaxConfigLayers));
}
template <int64_t every>
void ReadDense(ConfigFields& f, Architecture& a) {
  ReadDenseAs(f, a, every, {});
}

// ---- Experts, in the words of all families that have them.

// Of each layer whether it has experts.
std::vector<bool> SparseLayers(ConfigFields& f, const Architecture& a) {
  const int64_t dense = f.Size(f.Either({"first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"}),
                               Has(a, kDenseFirst) ? 1 : 0, kMaxConfigLayers);
  const int64_t end = f.Size("moe_layer_end_index", kMaxConfigLayers, kMaxConfigLayers);
  const int64_t step =
      f.Size(f.Either({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}), 1, kMaxConfigLayers);
  const int64_t each = f.IsList("moe_layer_freq") ? 1 : f.Size("moe_layer_freq", 1, kMaxConfigLayers);
  const std::vector<int64_t> without = f.Sizes("mlp_only_layers");
  std::vector<int64_t> with = f.Sizes("moe_layers");
  const std::string listed = f.Text("moe_layers_enum", "");
  const std::vector<std::string> numbers = absl::StrSplit(listed, ',', absl::SkipWhitespace());
  for (const std::string& one : numbers) {
    int64_t layer = 0;
    f.Expect("moe_layers_enum", absl::SimpleAtoi(one, &layer), "numbers of layers with commas between");
    with.push_back(layer);
  }
  const auto among = [](const std::vector<int64_t>& list, int64_t layer) {
    return std::find(list.begin(), list.end(), layer) != list.end();
  };
  const auto rule = [&](int64_t i) {
    if (!with.empty()) return among(with, i);
    return i >= dense && i <= end && i % each == 0 && (i + 1) % step == 0 && !among(without, i);
  };
  return f.IsList("moe_layer_freq") ? ByLayer(f, a, "moe_layer_freq", "0", "1", rule)
                                    : ByLayer(f, a, "mlp_layer_types", "dense", "sparse", rule);
}

void ReadExperts(ConfigFields& f, Architecture& a) {
  a.experts_field = f.Either({"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"});
  a.experts = f.Size(a.experts_field, std::nullopt, kMostExperts);
  a.top_k = f.Size(f.Either({"num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k"}),
                   std::nullopt, kMostExperts);
  a.expert_width = f.Size(f.Either({"moe_intermediate_size", "intermediate_size"}));
  const std::string_view width =
      f.Either({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                "moe_shared_expert_ffn_hidden_size", "share_expert_dim", "shared_intermediate_size"});
  const std::string_view count =
      f.Either({"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"});
  a.shared_width = f.Has(width) ? f.Size(width, 0) : f.Size(count, 0, kMostExperts) * a.expert_width;
  a.shared_gate = Has(a, kSharedGate) && a.shared_width > 0;
  a.router_bias = f.Flag(f.Either({"use_routing_bias", "moe_router_enable_expert_bias", "use_moe_router_bias",
                                   "use_expert_bias", "moe_use_aux_free"}),
                         Has(a, kRouterBias));
  f.Known({"moe_capacity", "moe_gate"});
  if (f.Has("topk_method")) a.router_bias = f.Text("topk_method", "") == "noaux_tc";
  Set(a, &Architecture::Layer::sparse, SparseLayers(f, a));
}

template <int64_t every>
void ReadMixture(ConfigFields& f, Architecture& a) {
  ReadDense<every>(f, a);
  ReadExperts(f, a);
}

// Dense files say how many experts there are, too: one.
void ReadHunyuan(ConfigFields& f, Architecture& a) {
  ReadDense<0>(f, a);
  if (f.Size("num_experts", 1, kMostExperts) > 1) ReadExperts(f, a);
  f.Expect("use_cla", !f.Flag("use_cla", false), "false");
  f.Expect("moe_layer_num_skipped", f.Size("moe_layer_num_skipped", 0, kMaxConfigLayers) == 0, "0");
  f.Known({"moe_topk", "num_shared_expert", "use_mixed_mlp_moe", "moe_drop_tokens", "moe_random_routing_dropped_token",
           "moe_intermediate_size", "org_vocab_size"});
}

// Experts of every layer with biases, as wide as intermediate_size says.
void ReadGptOss(ConfigFields& f, Architecture& a) {
  ReadMixture<2>(f, a);
  f.Known({"experts_per_token"});  // the same again
  a.expert_bias = true;
}

void ReadGemma3(ConfigFields& f, Architecture& a) { ReadDenseAs(f, a, 6, {{}, 8, 4, 256, 262'208, 131'072}); }

// Without per-layer embeddings and shared caches, as the larger ones are.
void ReadGemma4(ConfigFields& f, Architecture& a) {
  ReadDenseAs(f, a, 6, {{}, 8, 4, 256, 262'144, 131'072});
  const int64_t size = f.Size("global_head_dim", 512, kMostHeadDim);
  const bool one = f.Flag("attention_k_eq_v", false);
  const int64_t heads = f.Size("num_global_key_value_heads", 0, kMostHeads);
  for (Architecture::Layer& layer : a.each) {
    if (layer.window > 0) continue;
    layer.head_dim = layer.v_dim = size;
    layer.keys_are_values = one;
    layer.kv_heads = one && heads > 0 ? heads : a.kv_heads;
  }
  // Of the first a file that says nothing means 256.
  f.Expect("hidden_size_per_layer_input",
           f.Has("hidden_size_per_layer_input") && f.Size("hidden_size_per_layer_input", 0) == 0, "0");
  f.Expect("num_kv_shared_layers", f.Size("num_kv_shared_layers", 0) == 0, "0");
  f.Expect("use_bidirectional_attention", f.Text("use_bidirectional_attention", "") != "all", "vision or none");
  f.Known(
      {"vocab_size_per_layer_input", "use_double_wide_mlp", "num_experts", "top_k_experts", "moe_intermediate_size"});
  if (!f.Flag("enable_moe_block", false)) return;
  a.experts = f.Size("num_experts", std::nullopt, kMostExperts);
  a.top_k = f.Size("top_k_experts", std::nullopt, kMostExperts);
  a.expert_width = f.Size("moe_intermediate_size");
  for (Architecture::Layer& layer : a.each) layer.sparse = true;
  a.both = true;
}

// LayerNorm with biases, two products and an activation between them: GPT-2, OPT, GPT-NeoX and Falcon.
void ReadFirstGeneration(ConfigFields& f, Architecture& a) {
  constexpr int64_t kOffset = 2;  // OPTLearnedPositionalEmbedding
  const bool falcon = a.type == "falcon";
  ReadCommon(f, a, {.context = falcon ? std::optional<int64_t>(2048) : std::nullopt});
  a.intermediate = f.Size(f.Either({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"}), 4 * a.hidden);
  ReadActivation(f, f.Either({"hidden_act", "activation_function", "activation"}), a.type == "opt" ? "relu" : "gelu",
                 a);
  ReadTraits(f, a);
  a.qkv_bias = a.o_bias = f.Flag(f.Either({"enable_bias", "attention_bias", "bias"}), !falcon);
  a.mlp_bias = a.type == "gpt_neox" || a.qkv_bias;
  if (a.type == "gpt2" || a.type == "opt") a.positions = a.context + (a.type == "opt" ? kOffset : 0);
  f.Expect("word_embed_proj_dim", f.Size("word_embed_proj_dim", a.hidden) == a.hidden, "hidden_size");
  f.Expect("do_layer_norm_before", f.Flag("do_layer_norm_before", true), "true");
  f.Expect("alibi", !f.Flag("alibi", false), "false");
  a.parallel = f.Flag("use_parallel_residual", a.type == "gpt_neox");
  if (!falcon) return;
  const bool grouped = f.Flag("new_decoder_architecture", false), single = f.Flag("multi_query", true);
  const int64_t listed = f.Size("num_kv_heads", a.heads, kMostHeads);
  a.kv_heads = grouped ? listed : single ? 1 : a.heads;
  a.parallel = f.Flag("parallel_attn", true) || grouped;
  a.one_norm = a.parallel && !(grouped && f.Size("num_ln_in_parallel_attn", 2, 2) == 2);
}

// ---- Latent and sparse attention.

void ReadLatent(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  f.Expect("attention_bias", !f.Flag("attention_bias", false), "false");
  a.q_rank = f.Size("q_lora_rank", 0);
  a.kv_rank = f.Size("kv_lora_rank");
  a.nope = f.Size("qk_nope_head_dim", std::nullopt, kMostHeadDim);
  a.rope = f.Size("qk_rope_head_dim", std::nullopt, kMostHeadDim);
  a.v_dim = f.Size("v_head_dim", std::nullopt, kMostHeadDim);
  a.head_dim = a.nope + a.rope;
  a.scaled = Has(a, kScaled);
  f.Known({"qk_head_dim", "head_dim"});
}

void ReadDeepseek(ConfigFields& f, Architecture& a) {
  ReadLatent(f, a);
  ReadExperts(f, a);
}

void ReadIndexer(ConfigFields& f, Architecture& a, int64_t heads, int64_t top) {
  constexpr int64_t kIndexDim = 128;
  a.index_heads = f.Size(f.Either({"index_n_heads", "sparse_num_index_heads"}), heads, kMostHeads);
  a.index_dim = f.Size(f.Either({"index_head_dim", "sparse_index_dim"}), kIndexDim, kMostHeadDim);
  if (top > 0) a.index_top = f.Size("index_topk", top);
}

// DeepSeek's latent attention with an indexer, which "shared" layers of GLM leave to the one before.
void ReadSparseAttention(ConfigFields& f, Architecture& a) {
  ReadDeepseek(f, a);
  ReadIndexer(f, a, a.type == "glm_moe_dsa" ? 32 : 64, 2048);
  const int64_t each = f.Size("index_topk_freq", 1, kMaxConfigLayers);
  const int64_t offset = f.Size("index_skip_topk_offset", 2, kMaxConfigLayers);
  const auto full = [=](int64_t layer) { return std::max<int64_t>(layer - offset + 1, 0) % each == 0; };
  Set(a, &Architecture::Layer::indexed, ByLayer(f, a, "indexer_types", "shared", "full", full));
  f.Expect("q_lora_rank", a.q_rank > 0, "a size, since the indexer reads it");
  f.Expect("indexer_types", a.each.empty() || a.each.front().indexed, "full for the first layer");
  f.Expect("index_topk_pattern", !f.Has("index_topk_pattern"), "none: indexer_types or index_topk_freq");
  f.Known({"index_share_for_mtp_iteration"});
}

// M2, and M3 whose later layers read the blocks that an indexer chooses.
void ReadMinimax(ConfigFields& f, Architecture& a) {
  ReadMixture<0>(f, a);
  const std::string per = f.Text("qk_norm_type", a.qk_norm == QkNorm::kHead ? "per_head" : "per_layer");
  f.Expect("qk_norm_type", per == "per_layer" || per == "per_head", "per_layer or per_head");
  if (a.qk_norm != QkNorm::kNone) a.qk_norm = per == "per_head" ? QkNorm::kHead : QkNorm::kWhole;
  f.Expect("attention_output_gate", !f.Flag("attention_output_gate", false), "false");
  const std::vector<int64_t> full = f.Sizes("attn_type_list");  // 1: softmax attention
  f.Expect("attn_type_list", std::all_of(full.begin(), full.end(), [](int64_t one) { return one == 1; }), "1 alone");
  a.intermediate = f.Size("dense_intermediate_size", a.intermediate);
  std::optional<ConfigFields> inner = f.Object("sparse_attention_config");
  if (!inner) return;
  ReadIndexer(*inner, a, 4, 0);
  a.index_top = inner->Size("sparse_topk_blocks", 16) * inner->Size("sparse_block_size", 128);
  const auto all = [](int64_t) { return true; };
  Set(a, &Architecture::Layer::indexed, ByLayer(*inner, a, "sparse_attention_freq", "0", "1", all));
  inner->Known({"sparse_disable_index_value", "sparse_init_block", "sparse_local_block"});
  inner->RefuseUnknown();
  f.Take(*inner);
}

// Compressed attention: a window of single tokens, and before it keys that 4 tokens share, of which an indexer chooses,
// or that 128 do.
void ReadDeepseekV4(ConfigFields& f, Architecture& a) {
  constexpr int64_t kChosen = 4;
  ReadCommon(f, a, {.kv_heads = 1, .head_dim = 512});
  ReadActivation(f, "hidden_act", "silu", a);
  a.q_rank = f.Size("q_lora_rank");
  a.rope = f.Size("qk_rope_head_dim", a.head_dim / 8, kMostHeadDim);
  a.o_groups = f.Size("o_groups", 8, kMostHeads);
  a.o_rank = f.Size("o_lora_rank", 1024);
  ReadIndexer(f, a, 64, 512);
  ReadExperts(f, a);
  a.hashed = f.Size("num_hash_layers", 3, kMaxConfigLayers);
  a.streams = f.Size("hc_mult", 4, 64);
  const int64_t window = f.Size("sliding_window", 128);
  std::vector<int64_t> ratios = f.Sizes("compress_ratios");
  f.Expect("compress_ratios", ratios.size() >= a.each.size(), "one entry for each layer");
  ratios.resize(a.each.size());
  for (size_t i = 0; i < a.each.size(); ++i) {
    Architecture::Layer& layer = a.each[i];
    layer.window = window;
    layer.keys_are_values = layer.sinks = layer.sparse = true;
    layer.compressed = ratios[i];
    layer.indexed = ratios[i] == kChosen;
    f.Expect("compress_ratios", ratios[i] == 0 || a.head_dim % ratios[i] == 0, "divisors of head_dim");
  }
  const std::string type = f.Text("expert_dtype", "");
  f.Expect("expert_dtype", type.empty() || type == "fp4" || type == "fp8", "fp4 or fp8");
  if (type == "fp4") a.stored_experts = *StoredByName("expert_dtype", "mxfp4");
  f.Known({"qk_nope_head_dim", "kv_lora_rank"});
}

// ---- Layers of several kinds.

// Sizes that layers with a window have of their own, in the words of MiMo and Step.
void ReadMimoFlash(ConfigFields& f, Architecture& a) {
  ReadMixture<0>(f, a);
  a.v_dim = f.Size("v_head_dim", a.head_dim, kMostHeadDim);
  const int64_t window = f.Size("sliding_window");
  const std::vector<bool> slides =
      ByLayer(f, a, "hybrid_layer_pattern", "0", "1", [](int64_t layer) { return layer > 0 && (layer + 1) % 6 != 0; });
  Architecture::Layer slid{.heads = f.Size("swa_num_attention_heads", a.heads, kMostHeads),
                           .kv_heads = f.Size("swa_num_key_value_heads", a.kv_heads, kMostHeads),
                           .head_dim = f.Size("swa_head_dim", a.head_dim, kMostHeadDim),
                           .v_dim = f.Size("swa_v_head_dim", a.v_dim, kMostHeadDim),
                           .window = window,
                           .sinks = f.Flag("add_swa_attention_sink_bias", false)};
  const bool full_sinks = f.Flag("add_full_attention_sink_bias", false);
  for (size_t i = 0; i < a.each.size(); ++i) {
    const bool sparse = a.each[i].sparse;
    if (slides[i]) a.each[i] = slid;
    a.each[i].sparse = sparse;
    a.each[i].sinks = slides[i] ? slid.sinks : full_sinks;
  }
  f.Known({"hybrid_block_size", "attention_chunk_size"});
}

void ReadStep(ConfigFields& f, Architecture& a) {
  ReadMixture<0>(f, a);
  a.head_gate = f.Flag("use_head_wise_attn_gate", true);
  f.Known({"max_seq_len", "norm_expert_weight", "moe_router_scaling_factor", "moe_router_activation"});
  std::optional<ConfigFields> other = f.Object("attention_other_setting");
  if (!other) return;
  const std::string type = other->Text("attention_type", "sliding_attention");
  other->Expect("attention_type", type == "sliding_attention", "sliding_attention");
  for (Architecture::Layer& layer : a.each) {
    if (layer.window == 0) continue;
    layer.heads = other->Size("num_attention_heads", a.heads, kMostHeads);
    layer.kv_heads = other->Size("num_attention_groups", a.kv_heads, kMostHeads);
    layer.head_dim = layer.v_dim = other->Size("head_dim", a.head_dim, kMostHeadDim);
  }
  other->Known({"true_head_dim"});
  other->RefuseUnknown();
  f.Take(*other);
}

// Llama after a search: of each layer how many heads share a key, the MLP's width, and whether there is either.
void ReadDeciLm(ConfigFields& f, Architecture& a) {
  constexpr int64_t kRound = 256;
  ReadCommon(f, a);
  ReadActivation(f, "hidden_act", "silu", a);
  ReadTraits(f, a);
  f.Known({"intermediate_size"});
  std::vector<ConfigFields> blocks = f.Objects("block_configs");
  f.Expect("block_configs", blocks.size() == a.each.size(), "one entry for each layer");
  for (size_t i = 0; i < std::min(blocks.size(), a.each.size()); ++i) {
    Architecture::Layer& layer = a.each[i];
    for (const char* part : {"attention", "ffn"}) {
      std::optional<ConfigFields> one = blocks[i].Object(part);
      f.Expect("block_configs", one.has_value(), "attention and ffn in each entry");
      if (!one) return;
      one->Expect("replace_with_linear", !one->Flag("replace_with_linear", false), "false");
      const bool none = one->Flag("no_op", false), mlp = part[0] == 'f';
      if (mlp) {
        const double width = 2 * one->Real("ffn_mult", none ? 0 : -1) * static_cast<double>(a.hidden) / 3;
        layer.inner = none ? 0 : (static_cast<int64_t>(width) + kRound - 1) / kRound * kRound;
      } else if (none) {
        layer.mixer = Mixer::kNone;
      } else {
        const int64_t group = one->Size("n_heads_in_group", std::nullopt, kMostHeads);
        one->Expect("n_heads_in_group", a.heads % group == 0, "a divisor of num_attention_heads");
        layer.kv_heads = std::max<int64_t>(1, a.heads / group);
      }
      f.Take(*one);
    }
  }
}

// Qwen3-Next and Qwen3.5: gated delta nets, and gated attention on each so many layers.
void ReadQwenHybrid(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadActivation(f, "hidden_act", "silu", a);
  ReadTraits(f, a);
  a.attention_gate = f.Flag("attn_output_gate", true);
  a.linear_heads = f.Size("linear_num_value_heads", 32, kMostHeads);
  a.linear_key_heads = f.Size("linear_num_key_heads", 16, kMostHeads);
  a.linear_key_dim = f.Size("linear_key_head_dim", 128, kMostHeadDim);
  a.linear_value_dim = f.Size("linear_value_head_dim", 128, kMostHeadDim);
  a.convolved = f.Size("linear_conv_kernel_dim", 4, kMostHeadDim);
  ReadStateType(f, "mamba_ssm_dtype", "", a);
  const int64_t each = f.Size("full_attention_interval", 4, kMaxConfigLayers);
  const auto rule = [each](int64_t layer) { return (layer + 1) % each != 0; };
  Set(a, Mixer::kDeltaNet, ByLayer(f, a, "layer_types", "full_attention", "linear_attention", rule));
  if (a.type != "qwen3_5_text") ReadExperts(f, a);
  const bool dense = !std::ranges::all_of(a.each, &Architecture::Layer::sparse);
  a.intermediate = dense ? f.Size("intermediate_size") : f.Size("intermediate_size", 0);
  f.Known({"use_sliding_window"});
}

// Kimi's delta attention, and latent attention without rotation on the layers that a list counts from 1.
void ReadKimiLinear(ConfigFields& f, Architecture& a) {
  ReadDeepseek(f, a);
  a.rotary = !f.Flag("mla_use_nope", false);
  a.attention_gate = f.Flag("mla_use_output_gate", false);
  a.expert_latent = f.Size("routed_expert_hidden_size", 0);
  a.latent_norm = f.Flag("latent_moe_use_norm", false);
  a.residual_scores = f.Has("attn_res_block_size");
  std::optional<ConfigFields> linear = f.Object("linear_attn_config");
  f.Expect("linear_attn_config", linear.has_value(), "an object");
  if (!linear) return;
  a.linear_heads_field = a.linear_key_heads_field = "linear_attn_config.num_heads";
  a.linear_heads = a.linear_key_heads = linear->Size("num_heads", std::nullopt, kMostHeads);
  a.linear_key_dim = a.linear_value_dim = linear->Size("head_dim", std::nullopt, kMostHeadDim);
  a.convolved = linear->Size("short_conv_kernel_size", 4, kMostHeadDim);
  a.whole_gate = linear->Flag("use_full_rank_gate", false);
  a.state = DType::kFloat32;
  const std::vector<int64_t> full = linear->Sizes("full_attn_layers");
  linear->Expect("full_attn_layers", !full.empty(), "layers, counted from 1");
  for (size_t i = 0; i < a.each.size(); ++i) {
    if (std::ranges::find(full, static_cast<int64_t>(i) + 1) == full.end()) a.each[i].mixer = Mixer::kKimiDelta;
  }
  linear->Known({"kda_layers"});
  linear->RefuseUnknown();
  f.Take(*linear);
}

// Mamba-2, in the words of Nemotron and of Granite and Falcon.
void ReadMamba(ConfigFields& f, Architecture& a) {
  a.linear_heads_field = f.Either({"mamba_num_heads", "mamba_n_heads"});
  a.linear_key_heads_field = f.Either({"n_groups", "mamba_n_groups"});
  a.linear_heads = f.Size(a.linear_heads_field, std::nullopt, kMostHeads);
  a.linear_key_heads = f.Size(a.linear_key_heads_field, a.linear_key_heads_field == "n_groups" ? 8 : 1, kMostHeads);
  a.linear_key_dim = f.Size(f.Either({"ssm_state_size", "mamba_d_state"}), 128, kMostHeadDim);
  a.linear_value_dim = f.Size(f.Either({"mamba_head_dim", "mamba_d_head"}), 64, kMostHeadDim);
  a.convolved = f.Size(f.Either({"conv_kernel", "mamba_d_conv"}), 4, kMostHeadDim);
  a.conv_bias = f.Flag(f.Either({"use_conv_bias", "mamba_conv_bias"}), true);
  for (const char* bias : {"use_bias", "mamba_proj_bias", "projectors_bias"})
    f.Expect(bias, !f.Flag(bias, false), "false");
  f.Known({"mamba_hidden_act", "use_mamba_kernels", "mamba_dt_min", "mamba_dt_max", "mamba_dt_limit",
           "mamba_dt_init_floor", "mamba_expand", "mamba_chunk_size", "expand", "chunk_size", "num_logits_to_keep",
           "mamba_d_ssm", "mamba_norm_before_gate", "mamba_use_mlp", "ssm_multipliers", "ssm_in_multiplier",
           "ssm_out_multiplier", "mlp_multipliers", "mlp_expansion_factor"});
}

// Attention and Mamba-2 read the same hidden state.
void ReadFalconH1(ConfigFields& f, Architecture& a) {
  ReadDense<0>(f, a);
  ReadMamba(f, a);
  ReadStateType(f, "mamba_ssm_cache_dtype", "", a);
  a.mixer_norm = f.Flag("mamba_rms_norm", false);
  for (Architecture::Layer& layer : a.each) layer.mamba = true;
}

// Granite 4: Mamba-2 or attention, then experts and a shared MLP, or that alone.
void ReadGraniteHybrid(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  ReadTraits(f, a);
  a.rotary = f.Text("position_embedding_type", "nope") == "rope";
  const std::vector<bool> mamba = ByLayer(f, a, "layer_types", "attention", "mamba", [](int64_t) { return true; });
  Set(a, Mixer::kMamba2, mamba);
  if (std::ranges::find(mamba, true) != mamba.end()) ReadMamba(f, a);
  if (f.Size("num_local_experts", 0, kMostExperts) > 0) {
    ReadExperts(f, a);
  } else {
    a.intermediate = f.Size("shared_intermediate_size");
  }
  f.Known({"num_experts_per_tok", "mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_head", "mamba_d_conv",
           "mamba_expand", "mamba_chunk_size", "mamba_conv_bias"});
}

// LFM2: gated short convolutions, and attention in some layers.
void ReadLfm2(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadTraits(f, a);
  a.intermediate = f.Size(f.Either({"intermediate_size", "block_ff_dim"}));
  if (f.Flag("block_auto_adjust_ff_dim", a.type == "lfm2")) {
    const int64_t round = f.Size("block_multiple_of", 256);
    const double width =
        std::floor(2.0 * static_cast<double>(a.intermediate) / 3) * f.Real("block_ffn_dim_multiplier", 1);
    a.intermediate = (static_cast<int64_t>(width) + round - 1) / round * round;
  }
  a.convolved = f.Size("conv_L_cache", 3, kMostHeadDim);
  f.Expect("conv_bias", !f.Flag("conv_bias", false), "false");
  if (f.Has("num_experts")) ReadExperts(f, a);
  const std::vector<int64_t> full = f.Sizes("full_attn_idxs");
  const auto rule = [&full](int64_t i) { return std::find(full.begin(), full.end(), i) == full.end(); };
  Set(a, Mixer::kShortConv, ByLayer(f, a, "layer_types", "full_attention", "conv", rule));
  f.Known({"conv_dim", "conv_dim_out", "block_dim", "block_mlp_init_scale", "block_norm_eps", "num_heads",
           "conv_use_xavier_init", "block_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier"});
}

// Nemotron-H: each layer is a Mamba-2 mixer (M), attention (*), an MLP (-) or experts (E).
void ReadNemotronHybrid(ConfigFields& f, Architecture& a) {
  std::string pattern = f.Text("hybrid_override_pattern", "");
  for (const std::string& type : f.Texts("layers_block_type")) {
    pattern += type == "mamba" || type == "linear_attention"     ? 'M'
               : type == "attention" || type == "full_attention" ? '*'
               : type == "mlp"                                   ? '-'
               : type == "moe"                                   ? 'E'
                                                                 : '?';
  }
  f.Expect(
      f.Has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern",
      !pattern.empty() && pattern.size() <= kMaxConfigLayers && pattern.find_first_not_of("M*-E") == std::string::npos,
      "mamba (M), attention (*), mlp (-) or moe (E) for each layer");
  ReadCommon(f, a, {.layers = static_cast<int64_t>(std::max<size_t>(1, pattern.size())), .head_dim = 128});
  f.Expect("num_hidden_layers", static_cast<size_t>(a.layers) == pattern.size(), "as many as the pattern has");
  a.layers = static_cast<int64_t>(pattern.size());
  a.each.resize(pattern.size());
  ReadTraits(f, a);
  a.rotary = a.gated = false;
  a.one_part = true;
  ReadActivation(f, "mlp_hidden_act", "relu2", a);
  a.intermediate = f.Size("intermediate_size");
  ReadMamba(f, a);
  ReadStateType(f, "mamba_ssm_cache_dtype", "float32", a);
  if (pattern.find('E') != std::string::npos) {
    ReadExperts(f, a);
    a.expert_latent = f.Size("moe_latent_size", 0);
  }
  for (size_t i = 0; i < pattern.size(); ++i) {
    a.each[i].mixer = pattern[i] == 'M' ? Mixer::kMamba2 : pattern[i] == '*' ? Mixer::kAttention : Mixer::kNone;
    a.each[i].sparse = pattern[i] == 'E';
    a.each[i].inner = pattern[i] == '-' ? Architecture::kAsModel : 0;
  }
  f.Known({"mtp_hybrid_override_pattern", "mtp_layers_block_type", "moe_shared_expert_overlap", "n_shared_experts",
           "moe_intermediate_size"});
}

// Chunks of the context count as windows.
void ReadLlama4(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadActivation(f, "hidden_act", "silu", a);
  ReadTraits(f, a);
  ReadExperts(f, a);
  a.shared_width = a.expert_width;
  a.intermediate = f.Size("intermediate_size_mlp");
  const std::vector<int64_t> turned = f.Sizes("no_rope_layers");  // 0: without rope
  const int64_t chunk = f.Size("attention_chunk_size", 8192);
  const bool listed = turned.size() == a.each.size();
  f.Expect("no_rope_layers", turned.empty() || listed, "one for each layer");
  for (size_t i = 0; i < a.each.size(); ++i)
    a.each[i].window = (listed ? turned[i] == 0 : (i + 1) % 4 == 0) ? 0 : chunk;
  f.Known({"layer_types"});  // says the same again
}

constexpr Family kFamilies[] = {
    {"apertus", ReadDense<0>, kOutBias | kHeadNorm | kUngated},
    {"arcee", ReadDense<0>, kOutBias | kUngated},
    {"bailing_moe", ReadMixture<0>},
    {"bailing_moe_v2", ReadMixture<0>, kHeadNorm | kRouterBias},
    {"cohere", ReadDense<0>, kTied | kOutBias | kLayerNorm | kParallel},
    {"cohere2", ReadDense<4>, kTied | kOutBias | kLayerNorm | kParallel},
    {"deepseek_ref", ReadDeepseekV4, kRouterBias},
    {"deepseek_v2", ReadDeepseek},
    {"deepseek_v3", ReadDeepseek, kRouterBias},
    {"deepseek_v32", ReadSparseAttention, kRouterBias},
    {"deepseek_v4", ReadDeepseekV4, kRouterBias},
    {"dots1", ReadMixture<0>, kOutBias | kHeadNorm | kRouterBias},
    {"ernie4_5", ReadDense<0>, kTied},
    {"ernie4_5_moe", ReadMixture<0>, kTied | kRouterBias},
    {"exaone4", ReadDense<0>, kHeadNorm | kNormedAfter},
    {"falcon", ReadFirstGeneration, kFirst | kTied},
    {"falcon_h1", ReadFalconH1, kOutBias},
    {"gemma", ReadDense<0>, kTied | kOutBias | kScaled | kGelu},
    {"gemma2", ReadDense<2>, kTied | kOutBias | kScaled | kGelu | kSandwich},
    {"gemma3_text", ReadGemma3, kTied | kOutBias | kScaled | kGelu | kSandwich | kHeadNorm},
    {"gemma4_text", ReadGemma4, kTied | kOutBias | kScaled | kGelu | kSandwich | kHeadNorm},
    {"glm4", ReadDense<0>, kQkvBias | kSandwich},
    {"glm4_moe", ReadMixture<0>, kRouterBias | kDenseFirst},
    {"glm4_moe_lite", ReadDeepseek, kRouterBias | kDenseFirst},
    {"glm_moe_dsa", ReadSparseAttention, kRouterBias},
    {"gpt2", ReadFirstGeneration, kFirst | kTied},
    {"gpt_neox", ReadFirstGeneration, kFirst},
    {"gpt_oss", ReadGptOss, kQkvBias | kOutBias | kRouterBias | kSinks},
    {"granite", ReadDense<0>, kOutBias | kScaled},
    {"granitemoe", ReadMixture<0>, kTied | kOutBias | kScaled},
    {"granitemoehybrid", ReadGraniteHybrid, kTied | kOutBias | kScaled},
    {"hunyuan_v1_dense", ReadHunyuan, kOutBias | kHeadNorm},
    {"hunyuan_v1_moe", ReadHunyuan, kOutBias | kHeadNorm},
    {"kimi_k2", ReadDeepseek, kRouterBias},
    {"kimi_linear", ReadKimiLinear, kRouterBias},
    {"lfm2", ReadLfm2, kTied | kHeadNorm},
    {"lfm2_moe", ReadLfm2, kTied | kHeadNorm},
    {"llama", ReadDense<0>, kOutBias},
    {"llama4_text", ReadLlama4, kOutBias},
    {"mimo", ReadDense<kEveryLayer>, kQkvBias | kSwitched},
    {"mimo_v2", ReadMimoFlash, kRouterBias},
    {"mimo_v2_flash", ReadMimoFlash, kRouterBias},
    {"minicpm", ReadDense<0>, kTied | kOutBias | kScaled},
    {"minicpm3", ReadLatent, kTied | kScaled},
    {"minimax_m2", ReadMinimax, kOutBias | kWholeNorm | kRouterBias},
    {"minimax_m3", ReadMinimax, kOutBias | kHeadNorm | kRouterBias},
    {"ministral3", ReadDense<kEveryLayer>, kOutBias},
    {"mistral", ReadDense<kEveryLayer>, kOutBias},
    {"mixtral", ReadMixture<kEveryLayer>, kOutBias},
    {"nemotron", ReadDense<0>, kOutBias | kLayerNorm | kNormBias | kUngated},
    {"nemotron-nas", ReadDeciLm, kOutBias},
    {"nemotron_h", ReadNemotronHybrid, kOutBias | kRouterBias},
    {"olmo2", ReadDense<0>, kOutBias | kWholeNorm | kNormedAfter},
    {"olmo3", ReadDense<4>, kOutBias | kWholeNorm | kNormedAfter},
    {"olmoe", ReadMixture<0>, kOutBias | kWholeNorm},
    {"opt", ReadFirstGeneration, kFirst | kTied},
    {"phi3", ReadDense<kEveryLayer>, kOutBias},
    {"phimoe", ReadMixture<kEveryLayer>, kOutBias | kLayerNorm | kNormBias},
    {"qwen2", ReadDense<kEveryLayer>, kQkvBias | kSwitched},
    {"qwen2_5_vl_text", ReadDense<kEveryLayer>, kQkvBias | kSwitched},
    {"qwen2_moe", ReadMixture<kEveryLayer>, kQkvBias | kSwitched | kSharedGate},
    {"qwen3", ReadDense<kEveryLayer>, kOutBias | kHeadNorm | kSwitched},
    {"qwen3_5_moe_text", ReadQwenHybrid, kOutBias | kHeadNorm | kSharedGate},
    {"qwen3_5_text", ReadQwenHybrid, kOutBias | kHeadNorm},
    {"qwen3_moe", ReadMixture<kEveryLayer>, kOutBias | kHeadNorm | kSwitched},
    {"qwen3_next", ReadQwenHybrid, kOutBias | kHeadNorm | kSharedGate},
    {"qwen3_vl_moe_text", ReadMixture<kEveryLayer>, kOutBias | kHeadNorm | kSwitched},
    {"qwen3_vl_text", ReadDense<kEveryLayer>, kOutBias | kHeadNorm | kSwitched},
    {"seed_oss", ReadDense<0>, kQkvBias},
    {"smollm3", ReadDense<0>, kTied | kOutBias},
    {"starcoder2", ReadDense<kEveryLayer>, kTied | kAllBias | kLayerNorm | kNormBias | kUngated},
    {"step3p5", ReadStep, kHeadNorm | kRouterBias},
};

}  // namespace

std::span<const Family> Families() { return kFamilies; }

}  // namespace horus
