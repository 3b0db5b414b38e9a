// SPDX-License-Identifier: Apache-2.0
// Reads a config.json, one function a kind of family. Names of fields and their defaults are those of the configuration
// classes of transformers 4.57.
#include "graph/architecture.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "graph/config_fields.h"

namespace horus {
namespace {

constexpr int64_t kMostHeads = 4096, kMostExperts = 4096, kMostHeadDim = 4096;

DType DTypeByName(std::string_view name) {
  if (name == "bfloat16" || name == "bf16") return DType::kBfloat16;
  if (name == "float16" || name == "fp16") return DType::kFloat16;
  if (name == "float32" || name == "fp32") return DType::kFloat32;
  return DType::kUndefined;
}

void ReadActivation(ConfigFields& f, std::string_view key, std::string_view fallback, Architecture& a) {
  const std::string name = f.Text(key, fallback);
  if (name == "silu" || name == "swish" || name == "swiglu") {
    a.activation = "Swish";
  } else if (name.starts_with("gelu")) {
    a.activation = "Gelu";
  } else {
    a.activation = "Relu";
    f.Expect(key, name == "relu" || name == "relu2", "silu, gelu (any form), relu or relu2");
  }
}

// What files leave out, as the configuration class of their family has it.
struct Unsaid {
  std::optional<int64_t> heads, kv_heads, head_dim, vocab, context;
};

// What Llama and all that follow it have.
void ReadCommon(ConfigFields& f, Architecture& a, const Unsaid& unsaid = {}) {
  a.hidden = f.Size("hidden_size");
  a.layers = f.Size("num_hidden_layers", std::nullopt, kMaxConfigLayers);
  a.heads = f.Size("num_attention_heads", unsaid.heads, kMostHeads);
  a.kv_heads = f.Size("num_key_value_heads", unsaid.kv_heads.value_or(a.heads), kMostHeads);
  a.head_dim = f.Size("head_dim", unsaid.head_dim.value_or(std::max<int64_t>(1, a.hidden / a.heads)), kMostHeadDim);
  a.vocab = f.Size("vocab_size", unsaid.vocab);
  a.context = f.Size("max_position_embeddings", unsaid.context);
  a.tied = f.Flag("tie_word_embeddings", false);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    std::optional<ConfigFields> rope = f.Object(key);
    if (!rope) continue;
    const std::string type = rope->Text(rope->Has("type") ? "type" : "rope_type", "default");
    a.stretched = a.stretched || (type != "default" && type != "mrope");
  }
}

void ReadStateType(ConfigFields& f, std::string_view key, std::string unsaid, Architecture& a) {
  const std::string said = f.Text(key, std::move(unsaid));
  f.Expect(key, said.empty() || said == "float32" || said == "bfloat16" || said == "float16",
           "float32, bfloat16 or float16");
  if (!said.empty()) a.state = DTypeByName(said);
}

// Experts from layer `dense` on, on each `step`-th.
void SetSparse(Architecture& a, int64_t dense, int64_t step) {
  a.sparse.clear();
  for (int64_t i = 0; i < a.layers; ++i) a.sparse.push_back(i >= dense && i % step == 0);
}

// Of each layer whether a list says `yes`, and not `no`; where there is none, what the rule says.
std::vector<bool> ByLayer(ConfigFields& f, const Architecture& a, std::string_view key, std::string_view no,
                          std::string_view yes, auto rule) {
  const std::vector<std::string> said = f.Texts(key);
  f.Expect(key, said.empty() || said.size() == static_cast<size_t>(a.layers), "one entry for each layer");
  std::vector<bool> is;
  for (size_t i = 0; i < static_cast<size_t>(a.layers); ++i) {
    const bool listed = i < said.size();
    is.push_back(listed ? said[i] == yes : rule(static_cast<int64_t>(i)));
    f.Expect(key, !listed || is.back() || said[i] == no, Formatted("%s or %s for each layer", no, yes));
  }
  return is;
}

void SetWindows(ConfigFields& f, Architecture& a, auto slides) {
  const int64_t window = f.Size("sliding_window", 0);
  for (const bool slid : ByLayer(f, a, "layer_types", "full_attention", "sliding_attention", slides)) {
    a.windows.push_back(slid ? window : 0);
  }
}

// As Qwen does: the field is there always, and another says whether it counts.
void SetSwitchedWindows(ConfigFields& f, Architecture& a) {
  const bool used = f.Flag("use_sliding_window", false);
  const int64_t first = f.Size("max_window_layers", a.layers);
  SetWindows(f, a, [=](int64_t layer) { return used && layer >= first; });
}

void ReadMlp(ConfigFields& f, Architecture& a) {
  a.intermediate = f.Size("intermediate_size");
  ReadActivation(f, "hidden_act", "silu", a);
}

void ReadLlama(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.mlp_bias = f.Flag("mlp_bias", false);
  SetWindows(f, a, [&a](int64_t) { return a.type != "llama"; });  // Mistral's and Phi-3's hold for every layer
}

void ReadPhi3(ConfigFields& f, Architecture& a) {
  f.Known({"original_max_position_embeddings"});
  ReadLlama(f, a);
}

void ReadQwen2(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  a.qkv_bias = true;
  SetSwitchedWindows(f, a);
}

void ReadQwen3(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.qk_norm = Architecture::QkNorm::kHead;
  SetSwitchedWindows(f, a);
}

void ReadGemma(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a, a.type == "gemma3_text" ? Unsaid{8, 4, 256, 262'208, 131'072} : Unsaid());
  a.tied = f.Flag("tie_word_embeddings", true);
  a.intermediate = f.Size("intermediate_size");
  ReadActivation(f, f.Has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu", a);
  f.Known({"hidden_act"});
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.scaled = true;
  a.post_norms = a.type != "gemma";
  if (a.type == "gemma3_text") a.qk_norm = Architecture::QkNorm::kHead;
  const bool third = a.type == "gemma3_text";
  const int64_t pattern = third ? f.Size("sliding_window_pattern", 6, kMaxConfigLayers) : 2;
  f.Known({"query_pre_attn_scalar", "cache_implementation", "sliding_window_size", "_sliding_window_pattern"});
  SetWindows(f, a, [&](int64_t layer) { return a.post_norms && (layer + 1) % pattern != 0; });
}

// Without per-layer embeddings and shared caches, as the larger ones are.
void ReadGemma4(ConfigFields& f, Architecture& a) {
  constexpr int64_t kPattern = 6;
  ReadCommon(f, a, {.heads = 8, .kv_heads = 4, .head_dim = 256, .vocab = 262'144, .context = 131'072});
  a.tied = f.Flag("tie_word_embeddings", true);
  a.intermediate = f.Size("intermediate_size");
  ReadActivation(f, "hidden_activation", "gelu", a);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.scaled = a.post_norms = true;
  a.qk_norm = Architecture::QkNorm::kHead;
  SetWindows(f, a, [](int64_t layer) { return (layer + 1) % kPattern != 0; });
  a.whole_head_dim = f.Size("global_head_dim", 512, kMostHeadDim);
  a.keys_are_values = f.Flag("attention_k_eq_v", false);
  const int64_t whole = f.Size("num_global_key_value_heads", 0, kMostHeads);
  a.whole_kv_heads = a.keys_are_values && whole > 0 ? whole : a.kv_heads;
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
  a.sparse.assign(static_cast<size_t>(a.layers), true);
  a.both = true;
}

// LayerNorm with biases, two products and an activation between them.
void OfFirstGeneration(Architecture& a) {
  a.rms = a.gated = false;
  a.qkv_bias = a.o_bias = a.mlp_bias = true;
}

void ReadGpt2(ConfigFields& f, Architecture& a) {
  OfFirstGeneration(a);
  a.hidden = f.Size("n_embd");
  a.layers = f.Size("n_layer", std::nullopt, kMaxConfigLayers);
  a.heads = a.kv_heads = f.Size("n_head", std::nullopt, kMostHeads);
  a.head_dim = std::max<int64_t>(1, a.hidden / a.heads);
  a.vocab = f.Size("vocab_size");
  a.context = a.positions = f.Size("n_positions");
  // Bounded: sizes are at most 2^24, of at most 4,096 experts.
  a.intermediate = f.Size("n_inner", 4 * a.hidden);
  a.tied = f.Flag("tie_word_embeddings", true);
  ReadActivation(f, "activation_function", "gelu_new", a);
}

void ReadOpt(ConfigFields& f, Architecture& a) {
  OfFirstGeneration(a);
  ReadCommon(f, a);
  a.tied = f.Flag("tie_word_embeddings", true);
  a.intermediate = f.Size("ffn_dim");
  constexpr int64_t kOffset = 2;  // OPTLearnedPositionalEmbedding
  a.positions = a.context + kOffset;
  a.qkv_bias = a.o_bias = a.mlp_bias = f.Flag("enable_bias", true);
  ReadActivation(f, "activation_function", "relu", a);
  f.Expect("word_embed_proj_dim", f.Size("word_embed_proj_dim", a.hidden) == a.hidden, "hidden_size");
  f.Expect("do_layer_norm_before", f.Flag("do_layer_norm_before", true), "true");
}

void ReadNeox(ConfigFields& f, Architecture& a) {
  OfFirstGeneration(a);
  ReadCommon(f, a);
  a.intermediate = f.Size("intermediate_size");
  ReadActivation(f, "hidden_act", "gelu", a);
  a.parallel = f.Flag("use_parallel_residual", true);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", true);
}

void ReadFalcon(ConfigFields& f, Architecture& a) {
  OfFirstGeneration(a);
  a.hidden = f.Size("hidden_size");
  a.layers = f.Size("num_hidden_layers", std::nullopt, kMaxConfigLayers);
  a.heads = f.Size("num_attention_heads", std::nullopt, kMostHeads);
  a.head_dim = std::max<int64_t>(1, a.hidden / a.heads);
  a.vocab = f.Size("vocab_size");
  a.context = f.Size("max_position_embeddings", 2048);
  // Bounded: sizes are at most 2^24, of at most 4,096 experts.
  a.intermediate = f.Size("ffn_hidden_size", 4 * a.hidden);
  a.tied = f.Flag("tie_word_embeddings", true);
  ReadActivation(f, "activation", "gelu", a);
  a.qkv_bias = a.o_bias = a.mlp_bias = f.Flag("bias", false);
  const bool grouped = f.Flag("new_decoder_architecture", false), single = f.Flag("multi_query", true);
  const int64_t listed = f.Size("num_kv_heads", a.heads, kMostHeads);
  a.kv_heads = grouped ? listed : single ? 1 : a.heads;
  a.parallel = f.Flag("parallel_attn", true) || grouped;
  a.one_norm = a.parallel && !(grouped && f.Size("num_ln_in_parallel_attn", 2, 2) == 2);
  f.Expect("alibi", !f.Flag("alibi", false), "false");
}

// Experts on every `decoder_sparse_step`-th layer, as Qwen's.
void ReadQwenExperts(ConfigFields& f, Architecture& a) {
  a.experts = f.Size("num_experts", std::nullopt, kMostExperts);
  a.top_k = f.Size("num_experts_per_tok", std::nullopt, kMostExperts);
  a.expert_width = f.Size("moe_intermediate_size");
  const bool shared = a.type == "qwen2_moe" || a.type == "qwen3_next" || a.type == "qwen3_5_moe_text";
  a.shared_width = shared ? f.Size("shared_expert_intermediate_size") : 0;
  a.shared_gate = a.shared_width > 0;
  const int64_t step = f.Size("decoder_sparse_step", 1, kMaxConfigLayers);
  const std::vector<int64_t> dense = f.Sizes("mlp_only_layers");
  for (int64_t i = 0; i < a.layers; ++i) {
    a.sparse.push_back((i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end());
  }
}

void ReadQwen2Moe(ConfigFields& f, Architecture& a) {
  ReadQwen2(f, a);
  ReadQwenExperts(f, a);
}

void ReadQwen3Moe(ConfigFields& f, Architecture& a) {
  ReadQwen3(f, a);
  ReadQwenExperts(f, a);
}

// Experts on every layer, as wide as intermediate_size says.
void ReadLocalExperts(ConfigFields& f, Architecture& a) {
  a.experts_field = "num_local_experts";
  a.experts = f.Size(a.experts_field, std::nullopt, kMostExperts);
  a.top_k = f.Size("num_experts_per_tok", std::nullopt, kMostExperts);
  a.expert_width = a.intermediate;
  a.sparse.assign(static_cast<size_t>(a.layers), true);
}

void ReadMixtral(ConfigFields& f, Architecture& a) {
  ReadLlama(f, a);
  ReadLocalExperts(f, a);
}

void ReadMinimaxM2(ConfigFields& f, Architecture& a) {
  ReadLlama(f, a);
  ReadLocalExperts(f, a);
  a.router_bias = f.Flag("use_routing_bias", true);
  if (f.Flag("use_qk_norm", true)) a.qk_norm = Architecture::QkNorm::kWhole;
  f.Expect("qk_norm_type", f.Text("qk_norm_type", "per_layer") == "per_layer", "per_layer");
  const std::vector<int64_t> full = f.Sizes("attn_type_list");  // 1: softmax attention
  f.Expect("attn_type_list", std::all_of(full.begin(), full.end(), [](int64_t one) { return one == 1; }), "1 alone");
  f.Expect("shared_intermediate_size", f.Size("shared_intermediate_size", 0) == 0, "0");
  f.Known(
      {"rotary_dim", "num_mtp_modules", "mtp_transformer_layers"});  // the latter two guess ahead: no part of a step
}

void ReadGptOss(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  ReadLocalExperts(f, a);
  f.Known({"experts_per_token"});  // the same again
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", true);
  a.router_bias = a.expert_bias = a.sinks = true;
  SetWindows(f, a, [](int64_t layer) { return layer % 2 == 0; });
}

// As DeepSeek's: experts that a router chooses, and some that every token goes to.
void ReadRoutedExperts(ConfigFields& f, Architecture& a) {
  a.experts_field = "n_routed_experts";
  a.experts = f.Size(a.experts_field, std::nullopt, kMostExperts);
  a.top_k = f.Size("num_experts_per_tok", std::nullopt, kMostExperts);
  a.expert_width = f.Size("moe_intermediate_size");
  // Bounded: sizes are at most 2^24, of at most 4,096 experts.
  a.shared_width = f.Size("n_shared_experts", 0, kMostExperts) * a.expert_width;
  f.Known({"num_experts"});  // the same again
}

void ReadDeepseek(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  f.Expect("attention_bias", !f.Flag("attention_bias", false), "false");
  a.q_rank = f.Size("q_lora_rank", 0);
  a.kv_rank = f.Size("kv_lora_rank");
  a.nope = f.Size("qk_nope_head_dim", std::nullopt, kMostHeadDim);
  a.rope = f.Size("qk_rope_head_dim", std::nullopt, kMostHeadDim);
  a.v_dim = f.Size("v_head_dim", std::nullopt, kMostHeadDim);
  a.head_dim = a.nope + a.rope;
  ReadRoutedExperts(f, a);
  a.router_bias = f.Text("topk_method", a.type == "deepseek_v2" ? "greedy" : "noaux_tc") == "noaux_tc";
  SetSparse(a, f.Size("first_k_dense_replace", 0, kMaxConfigLayers), f.Size("moe_layer_freq", 1, kMaxConfigLayers));
  f.Known({"num_nextn_predict_layers", "qk_head_dim", "head_dim"});  // the first guesses ahead: no part of a step
}

// DeepSeek's latent attention with an indexer, which "shared" layers of GLM leave to the one before.
void ReadSparseAttention(ConfigFields& f, Architecture& a) {
  ReadDeepseek(f, a);
  const bool glm = a.type == "glm_moe_dsa";
  constexpr int64_t kGlmHeads = 32, kDeepseekHeads = 64, kIndexDim = 128, kIndexTop = 2048;
  a.index_heads = f.Size("index_n_heads", glm ? kGlmHeads : kDeepseekHeads, kMostHeads);
  a.index_dim = f.Size("index_head_dim", kIndexDim, kMostHeadDim);
  a.index_top = f.Size("index_topk", kIndexTop);
  const int64_t each = f.Size("index_topk_freq", 1, kMaxConfigLayers);
  const int64_t offset = f.Size("index_skip_topk_offset", 2, kMaxConfigLayers);
  a.indexed = ByLayer(f, a, "indexer_types", "shared", "full",
                      [=](int64_t layer) { return std::max<int64_t>(layer - offset + 1, 0) % each == 0; });
  f.Expect("q_lora_rank", a.q_rank > 0, "a size, since the indexer reads it");
  f.Expect("indexer_types", a.indexed.empty() || a.indexed.front(), "full for the first layer");
  f.Expect("index_topk_pattern", !f.Has("index_topk_pattern"), "none: indexer_types or index_topk_freq");
  f.Known({"index_share_for_mtp_iteration"});
}

void ReadGlm4(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadMlp(f, a);
  a.qkv_bias = f.Flag("attention_bias", a.type == "glm4");
  a.post_norms = a.type == "glm4";
  if (a.type == "glm4") return;
  if (f.Flag("use_qk_norm", false)) a.qk_norm = Architecture::QkNorm::kHead;
  ReadRoutedExperts(f, a);
  a.router_bias = true;
  SetSparse(a, f.Size("first_k_dense_replace", 1, kMaxConfigLayers), 1);
  f.Known({"num_nextn_predict_layers"});
}

void ReadMimo(ConfigFields& f, Architecture& a) {
  ReadQwen2(f, a);
  a.qkv_bias = f.Flag("attention_bias", true);
  f.Known({"num_nextn_predict_layers"});
}

// Chunks of the context count as windows.
void ReadLlama4(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadActivation(f, "hidden_act", "silu", a);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.experts_field = "num_local_experts";
  a.experts = f.Size(a.experts_field, std::nullopt, kMostExperts);
  a.top_k = f.Size("num_experts_per_tok", std::nullopt, kMostExperts);
  a.expert_width = a.shared_width = f.Size("intermediate_size");
  a.intermediate = f.Size("intermediate_size_mlp");
  const int64_t step = f.Size("interleave_moe_layer_step", 1, kMaxConfigLayers);
  const std::vector<int64_t> sparse = f.Sizes("moe_layers"), turned = f.Sizes("no_rope_layers");  // 0: without rope
  const int64_t chunk = f.Size("attention_chunk_size", 8192);
  f.Expect("no_rope_layers", turned.empty() || turned.size() == static_cast<size_t>(a.layers), "one for each layer");
  for (int64_t i = 0; i < a.layers; ++i) {
    const bool listed = std::find(sparse.begin(), sparse.end(), i) != sparse.end();
    a.sparse.push_back(sparse.empty() ? (i + 1) % step == 0 : listed);
    const bool whole =
        turned.size() == static_cast<size_t>(a.layers) ? turned[static_cast<size_t>(i)] == 0 : (i + 1) % 4 == 0;
    a.windows.push_back(whole ? 0 : chunk);
  }
  f.Known({"layer_types"});  // says the same again
}

// Qwen3-Next and Qwen3.5: gated delta nets, and gated attention on each so many layers.
void ReadQwenHybrid(ConfigFields& f, Architecture& a) {
  ReadCommon(f, a);
  ReadActivation(f, "hidden_act", "silu", a);
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.qk_norm = Architecture::QkNorm::kHead;
  a.attention_gate = f.Flag("attn_output_gate", true);
  a.linear_heads = f.Size("linear_num_value_heads", 32, kMostHeads);
  a.linear_key_heads = f.Size("linear_num_key_heads", 16, kMostHeads);
  a.linear_key_dim = f.Size("linear_key_head_dim", 128, kMostHeadDim);
  a.linear_value_dim = f.Size("linear_value_head_dim", 128, kMostHeadDim);
  a.convolved = f.Size("linear_conv_kernel_dim", 4, kMostHeadDim);
  ReadStateType(f, "mamba_ssm_dtype", "", a);
  const int64_t each = f.Size("full_attention_interval", 4, kMaxConfigLayers);
  const auto linear = [each](int64_t layer) { return (layer + 1) % each != 0; };
  for (const bool is : ByLayer(f, a, "layer_types", "full_attention", "linear_attention", linear)) {
    a.mixers.push_back(is ? Architecture::Mixer::kDeltaNet : Architecture::Mixer::kAttention);
  }
  if (a.type != "qwen3_5_text") ReadQwenExperts(f, a);
  const bool dense = a.sparse.empty() || std::find(a.sparse.begin(), a.sparse.end(), false) != a.sparse.end();
  a.intermediate = dense ? f.Size("intermediate_size") : f.Size("intermediate_size", 0);
  f.Known({"mtp_num_hidden_layers", "use_sliding_window"});  // the first guesses ahead
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
  a.hidden = f.Size("hidden_size");
  a.layers = f.Size("num_hidden_layers", static_cast<int64_t>(std::max<size_t>(1, pattern.size())), kMaxConfigLayers);
  f.Expect("num_hidden_layers", static_cast<size_t>(a.layers) == pattern.size(), "as many as the pattern has");
  a.layers = static_cast<int64_t>(pattern.size());
  a.heads = f.Size("num_attention_heads", std::nullopt, kMostHeads);
  a.kv_heads = f.Size("num_key_value_heads", a.heads, kMostHeads);
  a.head_dim = f.Size(f.Has("attention_head_dim") ? "attention_head_dim" : "head_dim", 128, kMostHeadDim);
  a.vocab = f.Size("vocab_size");
  a.context = f.Size("max_position_embeddings");
  a.tied = f.Flag("tie_word_embeddings", false);
  a.rotary = a.gated = false;
  a.one_part = true;
  ReadActivation(f, "mlp_hidden_act", "relu2", a);
  a.intermediate = f.Size("intermediate_size");
  a.qkv_bias = a.o_bias = f.Flag("attention_bias", false);
  a.mlp_bias = f.Flag("mlp_bias", false);
  a.linear_heads_field = "mamba_num_heads", a.linear_key_heads_field = "n_groups";
  a.linear_heads = f.Size(a.linear_heads_field, std::nullopt, kMostHeads);
  a.linear_key_heads = f.Size(a.linear_key_heads_field, 8, kMostHeads);
  a.linear_key_dim = f.Size("ssm_state_size", 128, kMostHeadDim);
  a.linear_value_dim = f.Size("mamba_head_dim", 64, kMostHeadDim);
  a.convolved = f.Size("conv_kernel", 4, kMostHeadDim);
  f.Expect("use_conv_bias", f.Flag("use_conv_bias", true), "true");
  for (const char* bias : {"use_bias", "mamba_proj_bias"}) f.Expect(bias, !f.Flag(bias, false), "false");
  ReadStateType(f, "mamba_ssm_cache_dtype", "float32", a);
  if (pattern.find('E') != std::string::npos) {
    ReadRoutedExperts(f, a);
    a.shared_width = f.Size("moe_shared_expert_intermediate_size", 0);
    a.expert_latent = f.Size("moe_latent_size", 0);
    a.router_bias = true;
  }
  for (const char part : pattern) {
    a.mixers.push_back(part == 'M'   ? Architecture::Mixer::kMamba2
                       : part == '*' ? Architecture::Mixer::kAttention
                                     : Architecture::Mixer::kNone);
    a.sparse.push_back(part == 'E');
  }
  f.Known({"num_nextn_predict_layers", "mtp_hybrid_override_pattern", "mtp_layers_block_type", "mamba_hidden_act",
           "use_mamba_kernels", "num_logits_to_keep", "moe_shared_expert_overlap", "n_shared_experts", "mamba_dt_min",
           "mamba_dt_max", "mamba_dt_limit", "mamba_dt_init_floor", "expand", "chunk_size", "moe_intermediate_size",
           "mamba_chunk_size"});
}

struct Family {
  std::string_view type;
  void (*read)(ConfigFields&, Architecture&);
};

constexpr Family kFamilies[] = {
    {"deepseek_v2", ReadDeepseek},
    {"deepseek_v3", ReadDeepseek},
    {"deepseek_v32", ReadSparseAttention},
    {"falcon", ReadFalcon},
    {"gemma", ReadGemma},
    {"gemma2", ReadGemma},
    {"gemma3_text", ReadGemma},
    {"gemma4_text", ReadGemma4},
    {"glm4", ReadGlm4},
    {"glm4_moe", ReadGlm4},
    {"glm_moe_dsa", ReadSparseAttention},
    {"gpt2", ReadGpt2},
    {"gpt_neox", ReadNeox},
    {"gpt_oss", ReadGptOss},
    {"kimi_k2", ReadDeepseek},
    {"llama", ReadLlama},
    {"llama4_text", ReadLlama4},
    {"mimo", ReadMimo},
    {"minimax_m2", ReadMinimaxM2},
    {"ministral3", ReadLlama},
    {"mistral", ReadLlama},
    {"mixtral", ReadMixtral},
    {"nemotron_h", ReadNemotronHybrid},
    {"opt", ReadOpt},
    {"phi3", ReadPhi3},
    {"qwen2", ReadQwen2},
    {"qwen2_5_vl_text", ReadQwen2},
    {"qwen2_moe", ReadQwen2Moe},
    {"qwen3", ReadQwen3},
    {"qwen3_5_moe_text", ReadQwenHybrid},
    {"qwen3_5_text", ReadQwenHybrid},
    {"qwen3_moe", ReadQwen3Moe},
    {"qwen3_next", ReadQwenHybrid},
    {"qwen3_vl_moe_text", ReadQwen3Moe},
    {"qwen3_vl_text", ReadQwen3},
};

// Files of a text model beside a vision tower: the text model's type where the file does not say it.
constexpr std::pair<std::string_view, std::string_view> kTowers[] = {
    {"gemma3", "gemma3_text"},     {"gemma4", "gemma4_text"},
    {"kimi_k25", "kimi_k2"},       {"llama4", "llama4_text"},
    {"mistral3", "mistral"},       {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen3_5", "qwen3_5_text"},   {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"qwen3_vl", "qwen3_vl_text"}, {"qwen3_vl_moe", "qwen3_vl_moe_text"},
};

// ---- Quantisation.

constexpr int64_t kBlock = 128;  // of DeepSeek's fp8, both ways

// A pattern of layers as exporters write it, to whole words of a name: "re:.*lm_head$" is "lm_head", and
// "model.layers.*.mlp.gate" is "mlp.gate". False for one that says more than that.
bool PlainPattern(std::string_view pattern, std::string* words) {
  if (pattern.starts_with("re:")) pattern.remove_prefix(3);
  const auto is_one_of = [](char c, std::string_view these) { return these.find(c) != std::string_view::npos; };
  while (!pattern.empty() && is_one_of(pattern.back(), ".*$")) pattern.remove_suffix(1);
  const size_t star = pattern.rfind('*');
  if (star != std::string_view::npos) {
    const std::string_view before = pattern.substr(0, star);
    if (std::any_of(before.begin(), before.end(), [&](char c) { return is_one_of(c, "0123456789([+?|"); }))
      return false;
    pattern.remove_prefix(star + 1);
  }
  for (const char c : pattern) {
    if (!is_one_of(c, "^\\")) *words += c;
    if (is_one_of(c, "()[]{}+?|*")) return false;
  }
  while (words->starts_with('.')) words->erase(0, 1);
  for (const std::string_view prefix : {"model.language_model.", "language_model.model.", "backbone."}) {
    if (words->starts_with(prefix)) words->replace(0, prefix.size(), "model.");
  }
  // Engines merge these.
  constexpr std::pair<std::string_view, std::string_view> kMerged[] = {
      {"q_proj", "qkv_proj"},        {"k_proj", "qkv_proj"},      {"v_proj", "qkv_proj"},
      {"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"}, {"in_proj_qkv", "in_proj_qkvz"},
      {"in_proj_z", "in_proj_qkvz"}, {"in_proj_b", "in_proj_ba"}, {"in_proj_a", "in_proj_ba"}};
  const size_t last = words->rfind('.') + 1;  // 0 where there is none
  for (const auto& [part, merged] : kMerged) {
    if (std::string_view(*words).substr(last) != part) continue;
    words->replace(last, part.size(), merged);
    break;
  }
  return !words->empty();
}

void ReadIgnored(ConfigFields& f, std::string_view key, Architecture& a) {
  for (const std::string& pattern : f.Texts(key)) {
    std::string part;
    const bool fits = PlainPattern(pattern, &part);
    f.Expect(key, fits, "names of layers, or patterns that end or begin with .*");
    if (fits) a.plain.push_back(std::move(part));
  }
}

Stored OfBits(int64_t bits, int64_t group) {
  if (bits == 4) return {.type = DType::kUint4, .scale = DType::kFloat16, .group_in = group};
  return {.type = DType::kInt8, .scale = DType::kFloat16, .group_in = group};
}

void ReadCompressedTensors(ConfigFields& f, Architecture& a) {
  std::optional<ConfigFields> groups = f.Object("config_groups");
  f.Expect("config_groups", groups.has_value(), "an object");
  if (!groups) return;
  std::optional<ConfigFields> group = groups->Object("group_0");
  f.Expect("config_groups", group && !groups->Has("group_1"), "group_0 alone");
  std::optional<ConfigFields> weights = group ? group->Object("weights") : std::nullopt;
  f.Expect("config_groups", weights.has_value(), "group_0 with weights");
  if (!weights) return;
  const int64_t bits = weights->Size("num_bits");
  weights->Expect("num_bits", bits == 4 || bits == 8, "4 or 8");
  const int64_t size = weights->Group("group_size");
  a.stored = OfBits(bits, size);
  const bool real = weights->Text("type", "int") == "float";
  if (real && bits == 8) a.stored = {.type = DType::kFloat8E4M3Fn, .group_in = size};
  if (real && bits == 4) a.stored.scale = DType::kFloat8E4M3Fn;
  if (weights->Text("strategy", "") == "tensor") a.stored.group_out = 0;
  if (weights->Has("block_structure")) {
    const std::vector<int64_t> block = weights->Sizes("block_structure");
    weights->Expect("block_structure", block.size() == 2, "two sizes");
    if (block.size() == 2) a.stored.group_out = block[0], a.stored.group_in = block[1];
  }
  f.Take(*weights);
  ReadIgnored(f, "ignore", a);
  if (std::optional<ConfigFields> cache = f.Object("kv_cache_scheme")) {
    const bool eight = cache->Size("num_bits") == 8 && cache->Text("type", "") == "float";
    cache->Expect("num_bits", eight, "8, of type float");
    a.cache = DType::kFloat8E4M3Fn;
    f.Take(*cache);
  }
}

void ReadQuantisation(ConfigFields& f, Architecture& a) {
  std::string method = f.Text("quant_method", "");
  if (method.empty() && f.Has("quant_algo")) method = "modelopt";
  if (method == "fp8" || method == "fbgemm_fp8") {
    a.stored = {.type = DType::kFloat8E4M3Fn,
                .group_out = f.Has("weight_block_size") || method == "fbgemm_fp8" ? 1 : 0};
    const std::vector<int64_t> block = f.Sizes("weight_block_size");
    f.Expect("weight_block_size", block.empty() || block.size() == 2, "two sizes");
    if (block.size() == 2) a.stored.group_out = block[0], a.stored.group_in = block[1];
    ReadIgnored(f, f.Has("ignored_layers") ? "ignored_layers" : "modules_to_not_convert", a);
  } else if (method == "compressed-tensors") {
    ReadCompressedTensors(f, a);
  } else if (method == "gptq" || method == "awq") {
    const std::string_view key = f.Has("w_bit") ? "w_bit" : "bits";
    const int64_t bits = f.Size(key);
    f.Expect(key, bits == 4 || bits == 8, "4 or 8");
    a.stored = OfBits(bits, f.Group(f.Has("q_group_size") ? "q_group_size" : "group_size"));
    f.Expect("lm_head", !f.Flag("lm_head", false), "false");
    f.Expect("dynamic", !f.Has("dynamic"), "none: the same bits for all layers");
    ReadIgnored(f, "modules_to_not_convert", a);
  } else if (method == "bitsandbytes") {
    constexpr int64_t kBitsandbytesBlock = 64;
    const bool four = f.Flag("load_in_4bit", false), eight = f.Flag("load_in_8bit", false);
    f.Expect("load_in_4bit", four != eight, "either load_in_4bit or load_in_8bit");
    a.stored = OfBits(four ? 4 : 8, four ? kBitsandbytesBlock : 0);
    a.stored.scale = DType::kFloat32;
    ReadIgnored(f, "llm_int8_skip_modules", a);
  } else if (method == "mxfp4") {
    a.stored = *StoredByName("quant_method", "mxfp4");
    a.stored.experts_only = true;
  } else if (method == "modelopt") {
    const std::string algorithm = f.Text("quant_algo", "");
    f.Expect("quant_algo", algorithm == "FP8" || algorithm == "NVFP4", "FP8 or NVFP4");
    a.stored = *StoredByName("quant_algo", algorithm == "FP8" ? "fp8" : "nvfp4");
    ReadIgnored(f, "ignore", a);
    if (f.Text("kv_cache_quant_algo", "") == "FP8") a.cache = DType::kFloat8E4M3Fn;
  } else {
    f.Expect("quant_method", false, "fp8, fbgemm_fp8, compressed-tensors, gptq, awq, bitsandbytes, mxfp4 or modelopt");
  }
}

absl::Status Check(const Architecture& a) {
  const bool whole = a.whole_kv_heads > 0 && a.heads % a.whole_kv_heads != 0;
  if ((a.heads % a.kv_heads != 0 && a.kv_rank == 0) || whole) {
    return InvalidArgument("config field %s: expected a divisor of %d heads, found %d",
                           whole ? "num_global_key_value_heads" : "num_key_value_heads", a.heads,
                           whole ? a.whole_kv_heads : a.kv_heads);
  }
  if (a.top_k > a.experts) {
    return InvalidArgument("config field num_experts_per_tok: expected at most %d experts, found %d", a.experts,
                           a.top_k);
  }
  if (a.convolved > 0 && a.linear_heads % a.linear_key_heads != 0) {
    return InvalidArgument("config field %s: expected a divisor of %d heads, found %d", a.linear_key_heads_field,
                           a.linear_heads, a.linear_key_heads);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Stored> StoredByName(std::string_view option, std::string_view name) {
  constexpr int64_t kNvfp4Group = 16, kMxfp4Group = 32;
  if (name == "fp8") return Stored{.type = DType::kFloat8E4M3Fn};
  if (name == "int8") return Stored{.type = DType::kInt8};
  if (name == "int4") return OfBits(4, kBlock);
  // No type of four-bit floats is known to graphs: integers of as many bits stand for them.
  if (name == "nvfp4") {
    return Stored{.type = DType::kUint4, .scale = DType::kFloat8E4M3Fn, .group_in = kNvfp4Group};
  }
  if (name == "mxfp4") return Stored{.type = DType::kUint4, .scale = DType::kUint8, .group_in = kMxfp4Group};
  if (const DType dtype = DTypeByName(name); dtype != DType::kUndefined) return Stored{.type = dtype};
  constexpr std::string_view kNames[] = {"bf16", "fp16", "fp32", "fp8", "int8", "int4", "nvfp4", "mxfp4"};
  return InvalidArgument("%s: %s", option, ExpectedOneOf(kNames, name));
}

absl::StatusOr<Architecture> ReadArchitecture(std::string_view text) {
  const KnownModel* known = FindKnownModel(text);
  HORUS_ASSIGN_OR_RETURN(const ConfigValue json, ParseConfig(known == nullptr ? std::string(text) : ConfigOf(*known)));
  ConfigFields file(json, "");
  const std::string type = file.Text("model_type", "");
  const auto* tower =
      std::find_if(std::begin(kTowers), std::end(kTowers), [&type](const auto& one) { return one.first == type; });
  const bool sees = tower != std::end(kTowers);
  std::optional<ConfigFields> inner = sees ? file.Object("text_config") : std::nullopt;
  ConfigFields& fields = inner ? *inner : file;
  Architecture a;
  a.type = inner ? inner->Text("model_type", tower->second) : sees ? std::string(tower->second) : type;
  HORUS_RETURN_IF_ERROR(file.status());
  const auto* family =
      std::find_if(std::begin(kFamilies), std::end(kFamilies), [&a](const Family& one) { return one.type == a.type; });
  if (family == std::end(kFamilies)) {
    std::vector<std::string_view> types;
    for (const Family& one : kFamilies) types.push_back(one.type);
    for (const auto& one : kTowers) types.push_back(one.first);
    return MakeError(absl::StatusCode::kUnimplemented, "config field %smodel_type: %s", inner ? "text_config." : "",
                     ExpectedOneOf(types, a.type));
  }
  family->read(fields, a);
  a.type = type;
  a.name = known == nullptr ? a.type : std::string(known->name);
  if (inner && !inner->Has("tie_word_embeddings")) a.tied = file.Flag("tie_word_embeddings", a.tied);
  ConfigFields& typed = fields.Has("dtype") || fields.Has("torch_dtype") ? fields : file;
  const std::string_view key = typed.Has("dtype") ? "dtype" : "torch_dtype";
  a.dtype = DTypeByName(typed.Text(key, "bfloat16"));
  typed.Expect(key, a.dtype != DType::kUndefined, "bfloat16, float16 or float32");
  ConfigFields& stored = fields.Has("quantization_config") ? fields : file;
  if (std::optional<ConfigFields> quantised = stored.Object("quantization_config")) {
    ReadQuantisation(*quantised, a);
    stored.Take(*quantised);
  }
  if (sees) {
    std::optional<ConfigFields> vision = file.Object("vision_config");
    file.Expect("vision_config", vision.has_value(), "an object");
    if (vision) {
      a.vision = VisionParameters(type, *vision, file, a);
      vision->RefuseUnknown();
      file.Take(*vision);
    }
    // What the text model says may be said again; tokens that stand for images.
    if (inner) file.KnownAs(*inner);
    file.Known({"vision_start_token_id", "vision_end_token_id", "vision_token_id", "vision_feature_layer",
                "vision_feature_select_strategy", "use_unified_vision_chunk", "vision_soft_tokens_per_image"});
  }
  for (ConfigFields* one : {&fields, &file}) {
    // Said by every config of some age, and without meaning here; the rope's numbers change no size.
    one->Known({"torch_dtype", "dtype", "chunk_size_feed_forward", "num_labels", "num_beams", "num_beam_groups",
                "num_return_sequences", "top_k", "rope_scaling", "n_ctx", "max_window_layers", "sliding_window",
                "router_aux_loss_coef", "ep_size", "shared_moe_mode", "output_router_logits", "partial_rotary_factor",
                "num_attention_heads", "moe_router_dtype"});
    one->RefuseUnknown();
    HORUS_RETURN_IF_ERROR(one->status());
  }
  HORUS_RETURN_IF_ERROR(Check(a));
  return a;
}

}  // namespace horus
