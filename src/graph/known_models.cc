// SPDX-License-Identifier: Apache-2.0
// Models that are known by name: of each public config.json the fields that its family reads.
#include <algorithm>

#include "graph/architecture.h"

namespace horus {
namespace {

// A model with other weights of the same sizes (instructed, distilled) goes by the same name.
constexpr KnownModel kModels[] = {
    {"deepseek-v2-lite",
     R"({"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,"num_attention_heads":16,)"
     R"("intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,)"
     R"("num_experts_per_tok":6,"first_k_dense_replace":1,"kv_lora_rank":512,"qk_nope_head_dim":128,)"
     R"("qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":102400,"max_position_embeddings":163840})"},
    {"deepseek-v3",
     R"({"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":128,)"
     R"("intermediate_size":18432,"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,)"
     R"("num_experts_per_tok":8,"first_k_dense_replace":3,"q_lora_rank":1536,"kv_lora_rank":512,)"
     R"("qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":129280,)"
     R"("max_position_embeddings":163840,"quantization_config":{"quant_method":"fp8",)"
     R"("weight_block_size":[128,128]}})"},
    {"falcon-7b", R"({"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,)"
                  R"("multi_query":true,"parallel_attn":true,"bias":false,"vocab_size":65024})"},
    {"gemma-2-27b", R"({"model_type":"gemma2","hidden_size":4608,"num_hidden_layers":46,"num_attention_heads":32,)"
                    R"("num_key_value_heads":16,"head_dim":128,"intermediate_size":36864,"vocab_size":256000,)"
                    R"("max_position_embeddings":8192,"sliding_window":4096})"},
    {"gemma-2-2b", R"({"model_type":"gemma2","hidden_size":2304,"num_hidden_layers":26,"num_attention_heads":8,)"
                   R"("num_key_value_heads":4,"head_dim":256,"intermediate_size":9216,"vocab_size":256000,)"
                   R"("max_position_embeddings":8192,"sliding_window":4096})"},
    {"gemma-2-9b", R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,"num_attention_heads":16,)"
                   R"("num_key_value_heads":8,"head_dim":256,"intermediate_size":14336,"vocab_size":256000,)"
                   R"("max_position_embeddings":8192,"sliding_window":4096})"},
    {"gemma-2b", R"({"model_type":"gemma","hidden_size":2048,"num_hidden_layers":18,"num_attention_heads":8,)"
                 R"("num_key_value_heads":1,"head_dim":256,"intermediate_size":16384,"vocab_size":256000,)"
                 R"("max_position_embeddings":8192})"},
    {"gemma-3-1b", R"({"model_type":"gemma3_text","hidden_size":1152,"num_hidden_layers":26,"num_attention_heads":4,)"
                   R"("num_key_value_heads":1,"head_dim":256,"intermediate_size":6912,"vocab_size":262144,)"
                   R"("max_position_embeddings":32768,"sliding_window":512,"sliding_window_pattern":6})"},
    {"gpt-neox-20b",
     R"({"model_type":"gpt_neox","hidden_size":6144,"num_hidden_layers":44,"num_attention_heads":64,)"
     R"("intermediate_size":24576,"vocab_size":50432,"max_position_embeddings":2048,"torch_dtype":"float16"})"},
    {"gpt-oss-120b",
     R"({"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":36,"num_attention_heads":64,)"
     R"("num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"num_local_experts":128,)"
     R"("num_experts_per_tok":4,"vocab_size":201088,"max_position_embeddings":131072,"sliding_window":128,)"
     R"("quantization_config":{"quant_method":"mxfp4"}})"},
    {"gpt-oss-20b",
     R"({"model_type":"gpt_oss","hidden_size":2880,"num_hidden_layers":24,"num_attention_heads":64,)"
     R"("num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"num_local_experts":32,)"
     R"("num_experts_per_tok":4,"vocab_size":201088,"max_position_embeddings":131072,"sliding_window":128,)"
     R"("quantization_config":{"quant_method":"mxfp4"}})"},
    {"gpt2", R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,"vocab_size":50257,)"
             R"("torch_dtype":"float32"})"},
    {"kimi-k2", R"({"model_type":"kimi_k2","hidden_size":7168,"num_hidden_layers":61,"num_attention_heads":64,)"
                R"("intermediate_size":18432,"moe_intermediate_size":2048,"n_routed_experts":384,"n_shared_experts":1,)"
                R"("num_experts_per_tok":8,"first_k_dense_replace":1,"q_lora_rank":1536,"kv_lora_rank":512,)"
                R"("qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":163840,)"
                R"("max_position_embeddings":131072,"quantization_config":{"quant_method":"fp8",)"
                R"("weight_block_size":[128,128]}})"},
    {"llama-2-13b",
     R"({"model_type":"llama","hidden_size":5120,"num_hidden_layers":40,"num_attention_heads":40,)"
     R"("intermediate_size":13824,"vocab_size":32000,"max_position_embeddings":4096,"torch_dtype":"float16"})"},
    {"llama-2-70b",
     R"({"model_type":"llama","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,)"
     R"("num_key_value_heads":8,"intermediate_size":28672,"vocab_size":32000,"max_position_embeddings":4096,)"
     R"("torch_dtype":"float16"})"},
    {"llama-2-7b",
     R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("intermediate_size":11008,"vocab_size":32000,"max_position_embeddings":4096,"torch_dtype":"float16"})"},
    {"llama-3.1-405b",
     R"({"model_type":"llama","hidden_size":16384,"num_hidden_layers":126,"num_attention_heads":128,)"
     R"("num_key_value_heads":8,"intermediate_size":53248,"vocab_size":128256,"max_position_embeddings":131072})"},
    {"llama-3.1-70b",
     R"({"model_type":"llama","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,)"
     R"("num_key_value_heads":8,"intermediate_size":28672,"vocab_size":128256,"max_position_embeddings":131072})"},
    {"llama-3.1-8b",
     R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":131072})"},
    {"llama-3.2-1b", R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,)"
                     R"("num_key_value_heads":8,"head_dim":64,"intermediate_size":8192,"vocab_size":128256,)"
                     R"("max_position_embeddings":131072,"tie_word_embeddings":true})"},
    {"llama-3.2-3b", R"({"model_type":"llama","hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":24,)"
                     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":8192,"vocab_size":128256,)"
                     R"("max_position_embeddings":131072,"tie_word_embeddings":true})"},
    {"minimax-m2", R"({"model_type":"minimax_m2","hidden_size":3072,"num_hidden_layers":62,"num_attention_heads":48,)"
                   R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":1536,"num_local_experts":256,)"
                   R"("num_experts_per_tok":8,"vocab_size":200064,"max_position_embeddings":196608,)"
                   R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})"},
    {"mistral-7b-v0.1",
     R"({"model_type":"mistral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"max_position_embeddings":32768,)"
     R"("sliding_window":4096})"},
    {"mistral-nemo", R"({"model_type":"mistral","hidden_size":5120,"num_hidden_layers":40,"num_attention_heads":32,)"
                     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":14336,"vocab_size":131072,)"
                     R"("max_position_embeddings":131072})"},
    {"mixtral-8x22b",
     R"({"model_type":"mixtral","hidden_size":6144,"num_hidden_layers":56,"num_attention_heads":48,)"
     R"("num_key_value_heads":8,"intermediate_size":16384,"num_local_experts":8,"num_experts_per_tok":2,)"
     R"("vocab_size":32000,"max_position_embeddings":65536})"},
    {"mixtral-8x7b",
     R"({"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":14336,"num_local_experts":8,"num_experts_per_tok":2,)"
     R"("vocab_size":32000,"max_position_embeddings":32768})"},
    {"opt-6.7b",
     R"({"model_type":"opt","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"ffn_dim":16384,)"
     R"("vocab_size":50272,"max_position_embeddings":2048,"torch_dtype":"float16"})"},
    {"phi-3-mini-4k",
     R"({"model_type":"phi3","hidden_size":3072,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":32,"intermediate_size":8192,"vocab_size":32064,"max_position_embeddings":4096,)"
     R"("sliding_window":2047})"},
    {"qwen1.5-moe-a2.7b",
     R"({"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":16,)"
     R"("num_key_value_heads":16,"intermediate_size":5632,"moe_intermediate_size":1408,)"
     R"("shared_expert_intermediate_size":5632,"num_experts":60,"num_experts_per_tok":4,"vocab_size":151936,)"
     R"("max_position_embeddings":8192})"},
    {"qwen2-7b",
     R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,)"
     R"("num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":131072})"},
    {"qwen2.5-0.5b",
     R"({"model_type":"qwen2","hidden_size":896,"num_hidden_layers":24,"num_attention_heads":14,)"
     R"("num_key_value_heads":2,"intermediate_size":4864,"vocab_size":151936,"max_position_embeddings":32768,)"
     R"("tie_word_embeddings":true})"},
    {"qwen2.5-1.5b",
     R"({"model_type":"qwen2","hidden_size":1536,"num_hidden_layers":28,"num_attention_heads":12,)"
     R"("num_key_value_heads":2,"intermediate_size":8960,"vocab_size":151936,"max_position_embeddings":131072,)"
     R"("tie_word_embeddings":true})"},
    {"qwen2.5-14b",
     R"({"model_type":"qwen2","hidden_size":5120,"num_hidden_layers":48,"num_attention_heads":40,)"
     R"("num_key_value_heads":8,"intermediate_size":13824,"vocab_size":152064,"max_position_embeddings":131072})"},
    {"qwen2.5-32b",
     R"({"model_type":"qwen2","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":40,)"
     R"("num_key_value_heads":8,"intermediate_size":27648,"vocab_size":152064,"max_position_embeddings":131072})"},
    {"qwen2.5-3b",
     R"({"model_type":"qwen2","hidden_size":2048,"num_hidden_layers":36,"num_attention_heads":16,)"
     R"("num_key_value_heads":2,"intermediate_size":11008,"vocab_size":151936,"max_position_embeddings":32768,)"
     R"("tie_word_embeddings":true})"},
    {"qwen2.5-72b",
     R"({"model_type":"qwen2","hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,)"
     R"("num_key_value_heads":8,"intermediate_size":29568,"vocab_size":152064,"max_position_embeddings":131072})"},
    {"qwen2.5-7b",
     R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,)"
     R"("num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":131072})"},
    {"qwen3-0.6b", R"({"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,"num_attention_heads":16,)"
                   R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":3072,"vocab_size":151936,)"
                   R"("max_position_embeddings":40960,"tie_word_embeddings":true})"},
    {"qwen3-235b-a22b",
     R"({"model_type":"qwen3_moe","hidden_size":4096,"num_hidden_layers":94,"num_attention_heads":64,)"
     R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":12288,"moe_intermediate_size":1536,)"
     R"("num_experts":128,"num_experts_per_tok":8,"vocab_size":151936,"max_position_embeddings":40960})"},
    {"qwen3-30b-a3b",
     R"({"model_type":"qwen3_moe","hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,)"
     R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,"moe_intermediate_size":768,)"
     R"("num_experts":128,"num_experts_per_tok":8,"vocab_size":151936,"max_position_embeddings":40960})"},
    {"qwen3-32b", R"({"model_type":"qwen3","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":64,)"
                  R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":25600,"vocab_size":151936,)"
                  R"("max_position_embeddings":40960})"},
    {"qwen3-8b", R"({"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,)"
                 R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"vocab_size":151936,)"
                 R"("max_position_embeddings":40960})"},
    {"tinyllama-1.1b",
     R"({"model_type":"llama","hidden_size":2048,"num_hidden_layers":22,"num_attention_heads":32,)"
     R"("num_key_value_heads":4,"intermediate_size":5632,"vocab_size":32000,"max_position_embeddings":2048})"},
};

}  // namespace

std::string_view KnownModelName(size_t index) {
  return index < std::size(kModels) ? kModels[index].name : std::string_view();
}

const KnownModel* FindKnownModel(std::string_view name) {
  const auto* found = std::find_if(std::begin(kModels), std::end(kModels),
                                   [name](const KnownModel& model) { return model.name == name; });
  return found == std::end(kModels) ? nullptr : found;
}

}  // namespace horus
