// SPDX-License-Identifier: Apache-2.0
// Models by name or by file. Of those known by name: of each public config.json the fields that its family reads.
#include <filesystem>
#include <iterator>

#include "absl/strings/ascii.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "base/vectors.h"
#include "graph/architecture.h"
#include "graph/config_fields.h"
#include "graph/from_config.h"
#include "graph/reader.h"

namespace horus {
namespace {

// What several have.
constexpr std::pair<std::string_view, std::string_view> kShared[] = {
    {"@v3", R"("moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,)"
            R"("first_k_dense_replace":3)"},
    {"@latent",
     R"("q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128)"},
    {"@sparse",
     R"("q_lora_rank":2048,"kv_lora_rank":512,"qk_nope_head_dim":192,"qk_rope_head_dim":64,"v_head_dim":256,)"
     R"("index_n_heads":32,"index_head_dim":128,"index_topk":2048)"},
    {"@fp8", R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})"},
    {"@gemma3_tower",
     R"("vision_config":{"hidden_size":1152,"image_size":896,"intermediate_size":4304,"num_hidden_layers":27,)"
     R"("patch_size":14})"},
    {"@gemma4_tower",
     R"("vision_config":{"hidden_size":1152,"head_dim":72,"intermediate_size":4304,"num_hidden_layers":27,)"
     R"("patch_size":16,"standardize":true})"},
    {"@llama4_tower",
     R"("vision_config":{"hidden_size":1408,"image_size":336,"intermediate_size":5632,"num_hidden_layers":34,)"
     R"("patch_size":14,"projector_input_dim":4096,"projector_output_dim":4096,"vision_output_dim":4096})"},
    {"@qwen2_tower",
     R"("vision_config":{"depth":32,"hidden_size":1280,"intermediate_size":3420,"out_hidden_size":@hidden})"},
    {"@qwen3_tower",
     R"("vision_config":{"depth":27,"hidden_size":1152,"intermediate_size":4304,"out_hidden_size":@hidden})"},
    {"@qwen3_small_tower",
     R"("vision_config":{"depth":24,"hidden_size":1024,"intermediate_size":4096,"out_hidden_size":@hidden})"},
    {"@tied", R"("tie_word_embeddings":true)"},
    {"@fp16", R"("torch_dtype":"float16")"},
};

// A model with other weights of the same sizes (instructed, distilled) goes by the same name.
constexpr KnownModel kModels[] = {
    // name, model_type, hidden, layers, heads, key heads, head size, intermediate, vocabulary, context, more
    {"deepseek-v2-lite", "deepseek_v2", 2048, 27, 16, 0, 0, 10'944, 102'400, 163'840,
     R"("moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,)"
     R"("first_k_dense_replace":1,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,)"
     R"("v_head_dim":128)"},
    {"deepseek-v3", "deepseek_v3", 7168, 61, 128, 0, 0, 18'432, 129'280, 163'840, "@v3,@latent,@fp8"},
    {"deepseek-v3.2", "deepseek_v32", 7168, 61, 128, 0, 0, 18'432, 129'280, 163'840,
     R"(@v3,@latent,"index_n_heads":64,"index_head_dim":128,"index_topk":2048,@fp8)"},
    {"falcon-7b", "falcon", 4544, 32, 71, 0, 0, 0, 65'024, 0,
     R"("multi_query":true,"parallel_attn":true,"bias":false)"},
    {"gemma-2-27b", "gemma2", 4608, 46, 32, 16, 128, 36'864, 256'000, 8192, R"("sliding_window":4096)"},
    {"gemma-2-2b", "gemma2", 2304, 26, 8, 4, 256, 9216, 256'000, 8192, R"("sliding_window":4096)"},
    {"gemma-2-9b", "gemma2", 3584, 42, 16, 8, 256, 14'336, 256'000, 8192, R"("sliding_window":4096)"},
    {"gemma-2b", "gemma", 2048, 18, 8, 1, 256, 16'384, 256'000, 8192},
    {"gemma-3-12b", "gemma3", 3840, 48, 16, 8, 256, 15'360, 262'208, 131'072, R"("sliding_window":1024,@gemma3_tower)"},
    {"gemma-3-1b", "gemma3_text", 1152, 26, 4, 1, 256, 6912, 262'144, 32'768,
     R"("sliding_window":512,"sliding_window_pattern":6)"},
    {"gemma-3-27b", "gemma3", 5376, 62, 32, 16, 128, 21'504, 262'208, 131'072,
     R"("sliding_window":1024,@gemma3_tower)"},
    {"gemma-3-4b", "gemma3", 2560, 34, 8, 4, 256, 10'240, 262'208, 131'072, R"("sliding_window":1024,@gemma3_tower)"},
    {"gemma-4-26b-a4b", "gemma4", 2816, 30, 16, 8, 256, 2112, 262'144, 262'144,
     R"("sliding_window":1024,"global_head_dim":512,"num_global_key_value_heads":2,"attention_k_eq_v":true,)"
     R"("hidden_size_per_layer_input":0,"enable_moe_block":true,"num_experts":128,"top_k_experts":8,)"
     R"("moe_intermediate_size":704,@gemma4_tower)"},
    {"gemma-4-31b", "gemma4", 5376, 60, 32, 16, 256, 21'504, 262'144, 262'144,
     R"("sliding_window":1024,"global_head_dim":512,"num_global_key_value_heads":4,"attention_k_eq_v":true,)"
     R"("hidden_size_per_layer_input":0,@gemma4_tower)"},
    {"glm-4-9b", "glm4", 4096, 40, 32, 2, 128, 13'696, 151'552, 32'768},
    {"glm-4.5", "glm4_moe", 5120, 92, 96, 8, 128, 12'288, 151'552, 131'072,
     R"("attention_bias":true,"use_qk_norm":true,"moe_intermediate_size":1536,"n_routed_experts":160,)"
     R"("n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3)"},
    {"glm-4.5-air", "glm4_moe", 4096, 46, 96, 8, 128, 10'944, 151'552, 131'072,
     R"("attention_bias":true,"moe_intermediate_size":1408,"n_routed_experts":128,"n_shared_experts":1,)"
     R"("num_experts_per_tok":8,"first_k_dense_replace":1)"},
    {"glm-5", "glm_moe_dsa", 6144, 78, 64, 0, 0, 12'288, 154'880, 202'752, "@v3,@sparse"},
    {"glm-5.2", "glm_moe_dsa", 6144, 78, 64, 0, 0, 12'288, 154'880, 1'048'576,
     R"(@v3,@sparse,"index_topk_freq":4,"index_skip_topk_offset":3)"},
    {"gpt-neox-20b", "gpt_neox", 6144, 44, 64, 0, 0, 24'576, 50'432, 2048, "@fp16"},
    {"gpt-oss-120b", "gpt_oss", 2880, 36, 64, 8, 64, 2880, 201'088, 131'072,
     R"("num_local_experts":128,"num_experts_per_tok":4,"sliding_window":128,)"
     R"("quantization_config":{"quant_method":"mxfp4"})"},
    {"gpt-oss-20b", "gpt_oss", 2880, 24, 64, 8, 64, 2880, 201'088, 131'072,
     R"("num_local_experts":32,"num_experts_per_tok":4,"sliding_window":128,)"
     R"("quantization_config":{"quant_method":"mxfp4"})"},
    {"gpt2", "gpt2", 0, 0, 0, 0, 0, 0, 50'257, 0,
     R"("n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,"torch_dtype":"float32")"},
    {"kimi-k2", "kimi_k2", 7168, 61, 64, 0, 0, 18'432, 163'840, 131'072,
     R"("moe_intermediate_size":2048,"n_routed_experts":384,"n_shared_experts":1,"num_experts_per_tok":8,)"
     R"("first_k_dense_replace":1,@latent,@fp8)"},
    {"llama-2-13b", "llama", 5120, 40, 40, 0, 0, 13'824, 32'000, 4096, "@fp16"},
    {"llama-2-70b", "llama", 8192, 80, 64, 8, 0, 28'672, 32'000, 4096, "@fp16"},
    {"llama-2-7b", "llama", 4096, 32, 32, 0, 0, 11'008, 32'000, 4096, "@fp16"},
    {"llama-3.1-405b", "llama", 16'384, 126, 128, 8, 0, 53'248, 128'256, 131'072},
    {"llama-3.1-70b", "llama", 8192, 80, 64, 8, 0, 28'672, 128'256, 131'072},
    {"llama-3.1-8b", "llama", 4096, 32, 32, 8, 0, 14'336, 128'256, 131'072},
    {"llama-3.2-1b", "llama", 2048, 16, 32, 8, 64, 8192, 128'256, 131'072, "@tied"},
    {"llama-3.2-3b", "llama", 3072, 28, 24, 8, 128, 8192, 128'256, 131'072, "@tied"},
    {"llama-4-maverick", "llama4", 5120, 48, 40, 8, 128, 8192, 202'048, 1'048'576,
     R"("intermediate_size_mlp":16384,"num_local_experts":128,"num_experts_per_tok":1,)"
     R"("interleave_moe_layer_step":2,"attention_chunk_size":8192,@llama4_tower)"},
    {"llama-4-scout", "llama4", 5120, 48, 40, 8, 128, 8192, 202'048, 10'485'760,
     R"("intermediate_size_mlp":16384,"num_local_experts":16,"num_experts_per_tok":1,)"
     R"("interleave_moe_layer_step":1,"attention_chunk_size":8192,@llama4_tower)"},
    {"mimo-7b", "mimo", 4096, 36, 32, 8, 128, 11'008, 151'680, 32'768},
    {"minimax-m2", "minimax_m2", 3072, 62, 48, 8, 128, 1536, 200'064, 196'608,
     R"("num_local_experts":256,"num_experts_per_tok":8,@fp8)"},
    {"mistral-7b-v0.1", "mistral", 4096, 32, 32, 8, 0, 14'336, 32'000, 32'768, R"("sliding_window":4096)"},
    {"mistral-nemo", "mistral", 5120, 40, 32, 8, 128, 14'336, 131'072, 131'072},
    {"mistral-small-3.1-24b", "mistral3", 5120, 40, 32, 8, 128, 32'768, 131'072, 131'072,
     R"("vision_config":{"hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"patch_size":14})"},
    {"mixtral-8x22b", "mixtral", 6144, 56, 48, 8, 0, 16'384, 32'000, 65'536,
     R"("num_local_experts":8,"num_experts_per_tok":2)"},
    {"mixtral-8x7b", "mixtral", 4096, 32, 32, 8, 0, 14'336, 32'000, 32'768,
     R"("num_local_experts":8,"num_experts_per_tok":2)"},
    {"nemotron-3-nano-30b-a3b", "nemotron_h", 2688, 52, 32, 2, 128, 1856, 131'072, 262'144,
     R"("hybrid_override_pattern":"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME","mamba_num_heads":64,)"
     R"("n_routed_experts":128,"num_experts_per_tok":6,"moe_intermediate_size":1856,)"
     R"("moe_shared_expert_intermediate_size":3712)"},
    {"nemotron-3-super-120b-a12b", "nemotron_h", 4096, 88, 32, 2, 128, 2688, 131'072, 262'144,
     R"("hybrid_override_pattern":"MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME",)"
     R"("mamba_num_heads":128,"n_routed_experts":512,"num_experts_per_tok":22,"moe_intermediate_size":2688,)"
     R"("moe_shared_expert_intermediate_size":5376,"moe_latent_size":1024)"},
    {"opt-6.7b", "opt", 4096, 32, 32, 0, 0, 0, 50'272, 2048, R"("ffn_dim":16384,@fp16)"},
    {"phi-3-mini-4k", "phi3", 3072, 32, 32, 32, 0, 8192, 32'064, 4096, R"("sliding_window":2047)"},
    {"qwen1.5-moe-a2.7b", "qwen2_moe", 2048, 24, 16, 16, 0, 5632, 151'936, 8192,
     R"("moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,)"
     R"("num_experts_per_tok":4)"},
    {"qwen2-7b", "qwen2", 3584, 28, 28, 4, 0, 18'944, 152'064, 131'072},
    {"qwen2.5-0.5b", "qwen2", 896, 24, 14, 2, 0, 4864, 151'936, 32'768, "@tied"},
    {"qwen2.5-1.5b", "qwen2", 1536, 28, 12, 2, 0, 8960, 151'936, 131'072, "@tied"},
    {"qwen2.5-14b", "qwen2", 5120, 48, 40, 8, 0, 13'824, 152'064, 131'072},
    {"qwen2.5-32b", "qwen2", 5120, 64, 40, 8, 0, 27'648, 152'064, 131'072},
    {"qwen2.5-3b", "qwen2", 2048, 36, 16, 2, 0, 11'008, 151'936, 32'768, "@tied"},
    {"qwen2.5-72b", "qwen2", 8192, 80, 64, 8, 0, 29'568, 152'064, 131'072},
    {"qwen2.5-7b", "qwen2", 3584, 28, 28, 4, 0, 18'944, 152'064, 131'072},
    {"qwen2.5-vl-3b", "qwen2_5_vl", 2048, 36, 16, 2, 0, 11'008, 151'936, 128'000, "@tied,@qwen2_tower"},
    {"qwen2.5-vl-7b", "qwen2_5_vl", 3584, 28, 28, 4, 0, 18'944, 152'064, 128'000, "@qwen2_tower"},
    {"qwen3-0.6b", "qwen3", 1024, 28, 16, 8, 128, 3072, 151'936, 40'960, "@tied"},
    {"qwen3-235b-a22b", "qwen3_moe", 4096, 94, 64, 4, 128, 12'288, 151'936, 40'960,
     R"("moe_intermediate_size":1536,"num_experts":128,"num_experts_per_tok":8)"},
    {"qwen3-30b-a3b", "qwen3_moe", 2048, 48, 32, 4, 128, 6144, 151'936, 40'960,
     R"("moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8)"},
    {"qwen3-32b", "qwen3", 5120, 64, 64, 8, 128, 25'600, 151'936, 40'960},
    {"qwen3-8b", "qwen3", 4096, 36, 32, 8, 128, 12'288, 151'936, 40'960},
    {"qwen3-next-80b-a3b", "qwen3_next", 2048, 48, 16, 2, 256, 5120, 151'936, 262'144,
     R"("moe_intermediate_size":512,"shared_expert_intermediate_size":512,"num_experts":512,)"
     R"("num_experts_per_tok":10)"},
    {"qwen3-vl-235b-a22b", "qwen3_vl_moe", 4096, 94, 64, 4, 128, 12'288, 151'936, 262'144,
     R"("moe_intermediate_size":1536,"num_experts":128,"num_experts_per_tok":8,@qwen3_tower)"},
    {"qwen3-vl-2b", "qwen3_vl", 2048, 28, 16, 8, 128, 6144, 151'936, 262'144, "@tied,@qwen3_small_tower"},
    {"qwen3-vl-30b-a3b", "qwen3_vl_moe", 2048, 48, 32, 4, 128, 6144, 151'936, 262'144,
     R"("moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,@qwen3_tower)"},
    {"qwen3-vl-32b", "qwen3_vl", 5120, 64, 64, 8, 128, 25'600, 151'936, 262'144, "@qwen3_tower"},
    {"qwen3-vl-4b", "qwen3_vl", 2560, 36, 32, 8, 128, 9728, 151'936, 262'144, "@tied,@qwen3_small_tower"},
    {"qwen3-vl-8b", "qwen3_vl", 4096, 36, 32, 8, 128, 12'288, 151'936, 262'144, "@qwen3_tower"},
    {"qwen3.5-122b-a10b", "qwen3_5_moe", 3072, 48, 32, 2, 256, 0, 248'320, 262'144,
     R"("moe_intermediate_size":1024,"shared_expert_intermediate_size":1024,"num_experts":256,)"
     R"("num_experts_per_tok":8,"linear_num_value_heads":64,"mamba_ssm_dtype":"float32",@qwen3_tower)"},
    {"qwen3.5-27b", "qwen3_5", 5120, 64, 24, 4, 256, 17'408, 248'320, 262'144,
     R"("linear_num_value_heads":48,"mamba_ssm_dtype":"float32",@qwen3_tower)"},
    {"qwen3.5-35b-a3b", "qwen3_5_moe", 2048, 40, 16, 2, 256, 0, 248'320, 262'144,
     R"("moe_intermediate_size":512,"shared_expert_intermediate_size":512,"num_experts":256,)"
     R"("num_experts_per_tok":8,"linear_num_value_heads":32,"mamba_ssm_dtype":"float32",@qwen3_tower)"},
    {"qwen3.5-397b-a17b", "qwen3_5_moe", 4096, 60, 32, 2, 256, 0, 248'320, 262'144,
     R"("moe_intermediate_size":1024,"shared_expert_intermediate_size":1024,"num_experts":512,)"
     R"("num_experts_per_tok":10,"linear_num_value_heads":64,"mamba_ssm_dtype":"float32",@qwen3_tower)"},
    {"qwen3.5-9b", "qwen3_5", 4096, 32, 16, 4, 256, 12'288, 248'320, 262'144,
     R"("linear_num_value_heads":32,"mamba_ssm_dtype":"float32",@qwen3_tower)"},
    {"tinyllama-1.1b", "llama", 2048, 22, 32, 4, 0, 5632, 32'000, 2048},
};

bool HasFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

std::string NearKnownModel(std::string_view name) {
  std::string model(name.substr(name.rfind('/') + 1));
  absl::AsciiStrToLower(&model);
  std::string_view within;  // the longest, which says most
  for (const KnownModel& known : kModels) {
    if (known.name.size() > within.size() && model.find(known.name) != std::string::npos) within = known.name;
  }
  return DidYouMean(within.empty() ? std::string_view(model) : within,
                    VectorOf<std::string_view>(kModels, &KnownModel::name));
}

std::string_view KnownModelName(size_t index) {
  return index < std::size(kModels) ? kModels[index].name : std::string_view();
}

const KnownModel* FindKnownModel(std::string_view name) {
  const auto* found = std::ranges::find(kModels, name, &KnownModel::name);
  return found == std::end(kModels) ? nullptr : found;
}

std::string ConfigOf(const KnownModel& model) {
  std::string text = Formatted(R"({"model_type":"%s")", model.type);
  const std::pair<std::string_view, int64_t> sizes[] = {
      {"hidden_size", model.hidden},        {"num_hidden_layers", model.layers},
      {"num_attention_heads", model.heads}, {"num_key_value_heads", model.kv_heads},
      {"head_dim", model.head_dim},         {"intermediate_size", model.intermediate},
      {"vocab_size", model.vocab},          {"max_position_embeddings", model.context}};
  for (const auto& [field, size] : sizes) {
    if (size > 0) AppendFormatted(&text, R"(,"%s":%d)", field, size);
  }
  text += (model.more.empty() ? "" : ",") + std::string(model.more) + "}";
  const auto replace = [&text](std::string_view name, std::string_view by) {
    if (const size_t at = text.find(name); at != std::string::npos) text.replace(at, name.size(), by);
  };
  for (const auto& [name, part] : kShared) replace(name, part);
  replace("@hidden", std::to_string(model.hidden));
  return text;
}

bool IsConfigPath(const std::string& path) {
  return path.ends_with(".json") || (FindKnownModel(path) != nullptr && !HasFile(path));
}

absl::StatusOr<std::shared_ptr<const Graph>> ReadModel(const std::string& path, const ConfigOptions& options) {
  if (IsConfigPath(path)) {
    std::string text = path;
    if (path.ends_with(".json")) HORUS_SET_OR_RETURN(text, ReadFile(path, kMaxConfigBytes));
    auto graph = GraphFromConfig(text, options);
    if (!graph.ok()) return MakeError(graph.status().code(), "%s: %s", path, graph.status().message());
    return graph;
  }
  const std::string near = NearKnownModel(path);
  ConfigOptions untouched{.training = options.training};
  if (options != untouched) {
    return InvalidArgument(
        "%s: expected a config.json or a known model with options of parts and types, found neither%s", path, near);
  }
  auto graph = ReadOnnxFile(path);
  if (graph.ok() || HasFile(path) || near.empty()) return graph;
  return MakeError(graph.status().code(), "%s%s", graph.status().message(), near);
}

}  // namespace horus
