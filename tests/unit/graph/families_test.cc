// SPDX-License-Identifier: Apache-2.0
// Families of language models: parameters of published files, caches of each kind of layer, and where a file may say
// what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/architecture.h"
#include "graph/config_graphs.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "@3(a,b)" stands for "a,b,a,b,a,b".
std::string Expanded(std::string text) {
  for (size_t at = text.rfind('@'); at != std::string::npos; at = text.rfind('@')) {
    const size_t open = text.find('(', at), close = text.find(')', open);
    const std::string part = text.substr(open + 1, close - open - 1);
    std::string all;
    for (int i = std::stoi(text.substr(at + 1, open - at - 1)); i > 0; --i) all += part + (i > 1 ? "," : "");
    text.replace(at, close - at + 1, all);
  }
  return text;
}

ShapedGraph Read(std::string_view text, const ConfigOptions& options = {}, int64_t seq = 1, int64_t past = 0) {
  return Bound(Expanded(std::string(text)), options, seq, past);
}

std::string Refused(std::string_view text) { return std::string(GraphFromConfig(text).status().message()); }

struct Published {
  const char* name;
  int64_t parameters;
  const char* config;
};

// Fields that bear on sizes, of the files that the names' pages have; what transformers 5.24.0 makes of them, with the
// scores that choose experts, where no other source stands beside. Without layers that guess ahead.
constexpr Published kPublished[] = {
    {"OLMo-2-1124-7B", 7'298'617'344,
     R"({"model_type":"olmo2","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":32,"intermediate_size":11008,"vocab_size":100352,)"
     R"("max_position_embeddings":4096,"attention_bias":false,"tie_word_embeddings":false})"},
    {"Olmo-3-1025-7B", 7'298'011'136,
     R"({"model_type":"olmo3","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":32,"intermediate_size":11008,"vocab_size":100278,)"
     R"("max_position_embeddings":65536,"attention_bias":false,"tie_word_embeddings":false,)"
     R"("sliding_window":4096,"layer_types":[@8("sliding_attention","sliding_attention","sliding_attention",)"
     R"("full_attention")]})"},
    {"OLMoE-1B-7B-0924", 6'919'161'856,
     R"({"model_type":"olmoe","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":16,)"
     R"("num_key_value_heads":16,"intermediate_size":1024,"vocab_size":50304,"max_position_embeddings":4096,)"
     R"("num_experts":64,"num_experts_per_tok":8,"attention_bias":false,"tie_word_embeddings":false})"},
    {"granite-3.3-8b-instruct", 8'170'864'640,
     R"({"model_type":"granite","hidden_size":4096,"num_hidden_layers":40,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":12800,"vocab_size":49159,)"
     R"("max_position_embeddings":131072,"attention_bias":false,"mlp_bias":false,"tie_word_embeddings":true})"},
    {"granite-4.0-h-small", 32'207'337'984,
     R"({"hidden_size":4096,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,)"
     R"("intermediate_size":768,"mamba_n_heads":128,"num_local_experts":72,"num_experts_per_tok":10,)"
     R"("shared_intermediate_size":1536,"model_type":"granitemoehybrid","attention_bias":false,)"
     R"("mamba_conv_bias":true,"mamba_d_conv":4,"mamba_d_head":64,"mamba_d_state":128,"mamba_n_groups":1,)"
     R"("mamba_proj_bias":false,"max_position_embeddings":131072,"position_embedding_type":"nope",)"
     R"("vocab_size":100352,"tie_word_embeddings":true,"layer_types":[@4("mamba","mamba","mamba","mamba",)"
     R"("mamba","attention","mamba","mamba","mamba","mamba")]})"},
    {"granite-4.0-h-micro", 3'191'396'096,
     R"({"hidden_size":2048,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,)"
     R"("intermediate_size":8192,"mamba_n_heads":64,"num_local_experts":0,"num_experts_per_tok":0,)"
     R"("shared_intermediate_size":8192,"model_type":"granitemoehybrid","attention_bias":false,)"
     R"("mamba_conv_bias":true,"mamba_d_conv":4,"mamba_d_head":64,"mamba_d_state":128,"mamba_n_groups":1,)"
     R"("mamba_proj_bias":false,"max_position_embeddings":131072,"position_embedding_type":"nope",)"
     R"("vocab_size":100352,"tie_word_embeddings":true,"layer_types":[@4("mamba","mamba","mamba","mamba",)"
     R"("mamba","attention","mamba","mamba","mamba","mamba")]})"},
    {"SmolLM3-3B", 3'075'098'624,
     R"({"model_type":"smollm3","hidden_size":2048,"num_hidden_layers":36,"num_attention_heads":16,)"
     R"("num_key_value_heads":4,"intermediate_size":11008,"vocab_size":128256,)"
     R"("max_position_embeddings":65536,"attention_bias":false,"mlp_bias":false,"no_rope_layer_interval":4,)"
     R"("no_rope_layers":[@9(1,1,1,0)],"use_sliding_window":false,"tie_word_embeddings":true,)"
     R"("layer_types":[@36("full_attention")]})"},
    {"Falcon-H1-7B-Instruct", 7'585'519'712,
     R"({"model_type":"falcon_h1","hidden_size":3072,"num_hidden_layers":44,"num_attention_heads":12,)"
     R"("num_key_value_heads":2,"head_dim":128,"intermediate_size":12288,"vocab_size":130049,)"
     R"("max_position_embeddings":262144,"attention_bias":false,"mlp_bias":false,"projectors_bias":false,)"
     R"("mamba_conv_bias":true,"mamba_d_conv":4,"mamba_d_head":128,"mamba_d_ssm":3072,"mamba_d_state":256,)"
     R"("mamba_n_groups":1,"mamba_n_heads":24,"mamba_norm_before_gate":false,"mamba_proj_bias":false,)"
     R"("mamba_rms_norm":false,"mamba_use_mlp":true,"mlp_expansion_factor":8,"num_logits_to_keep":1,)"
     R"("tie_word_embeddings":false})"},
    {"Phi-4-mini-instruct", 3'836'021'760,
     R"({"model_type":"phi3","hidden_size":3072,"num_hidden_layers":32,"num_attention_heads":24,)"
     R"("num_key_value_heads":8,"intermediate_size":8192,"vocab_size":200064,)"
     R"("max_position_embeddings":131072,"original_max_position_embeddings":4096,"attention_bias":false,)"
     R"("mlp_bias":false,"sliding_window":262144,"tie_word_embeddings":true,"lm_head_bias":false})"},
    {"Phi-3.5-MoE-instruct", 41'873'153'344,
     R"({"model_type":"phimoe","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":6400,"vocab_size":32064,)"
     R"("max_position_embeddings":131072,"num_local_experts":16,"num_experts_per_tok":2,)"
     R"("attention_bias":true,"lm_head_bias":true,"sliding_window":131072,"tie_word_embeddings":false,)"
     R"("original_max_position_embeddings":4096})"},
    {"ERNIE-4.5-0.3B-PT", 360'748'032,
     R"({"model_type":"ernie4_5","hidden_size":1024,"num_hidden_layers":18,"num_attention_heads":16,)"
     R"("num_key_value_heads":2,"head_dim":128,"intermediate_size":3072,"vocab_size":103424,)"
     R"("max_position_embeddings":131072,"use_bias":false,"tie_word_embeddings":true})"},
    {"ERNIE-4.5-21B-A3B-PT", 21'825'437'888,
     R"({"model_type":"ernie4_5_moe","hidden_size":2560,"num_hidden_layers":28,"num_attention_heads":20,)"
     R"("num_key_value_heads":4,"intermediate_size":12288,"vocab_size":103424,)"
     R"("max_position_embeddings":131072,"use_bias":false,"tie_word_embeddings":true,"moe_num_experts":64,)"
     R"("moe_k":6,"moe_intermediate_size":1536,"moe_num_shared_experts":2,"moe_layer_start_index":1,)"
     R"("moe_layer_end_index":27,"moe_layer_interval":1,"moe_capacity":[64,64,64],"moe_gate":"topk",)"
     R"("moe_use_aux_free":true,"num_nextn_predict_layers":1})"},
    {"Seed-OSS-36B-Instruct", 36'151'104'512,
     R"({"model_type":"seed_oss","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":80,)"
     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":27648,"vocab_size":155136,)"
     R"("max_position_embeddings":524288,"attention_bias":true,"attention_out_bias":false,"mlp_bias":false,)"
     R"("tie_word_embeddings":false})"},
    {"Hunyuan-7B-Instruct", 7'504'568'320,
     R"({"model_type":"hunyuan_v1_dense","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":14336,"vocab_size":128167,)"
     R"("max_position_embeddings":32768,"attention_bias":false,"mlp_bias":false,"use_qk_norm":true,)"
     R"("use_cla":false,"tie_word_embeddings":true,"num_experts":1,"moe_topk":1,"attention_head_dim":128,)"
     R"("num_shared_expert":1})"},
    {"Hunyuan-A13B-Instruct", 80'393'183'232,  // card: 80 B
     R"({"model_type":"hunyuan_v1_moe","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"attention_head_dim":128,"intermediate_size":3072,)"
     R"("moe_intermediate_size":[@32(3072)],"vocab_size":128167,"max_position_embeddings":32768,)"
     R"("attention_bias":false,"mlp_bias":false,"use_qk_norm":true,"use_cla":false,)"
     R"("tie_word_embeddings":true,"num_experts":64,"moe_topk":[@32(8)],"num_shared_expert":[@32(1)],)"
     R"("use_mixed_mlp_moe":true,"moe_layer_num_skipped":0,"moe_drop_tokens":false,"org_vocab_size":128167})"},
    {"GLM-4.7-Flash", 29'943'393'920,
     R"({"model_type":"glm4_moe_lite","hidden_size":2048,"num_hidden_layers":47,"num_attention_heads":20,)"
     R"("num_key_value_heads":20,"intermediate_size":10240,"moe_intermediate_size":1536,"vocab_size":154880,)"
     R"("max_position_embeddings":202752,"n_routed_experts":64,"n_shared_experts":1,"num_experts_per_tok":4,)"
     R"("first_k_dense_replace":1,"q_lora_rank":768,"kv_lora_rank":512,"qk_nope_head_dim":192,)"
     R"("qk_rope_head_dim":64,"v_head_dim":256,"topk_method":"noaux_tc","num_nextn_predict_layers":1,)"
     R"("attention_bias":false,"tie_word_embeddings":false})"},
    {"Ling-mini-2.0", 16'255'643'392,  // card: 16 B
     R"({"model_type":"bailing_moe_v2","hidden_size":2048,"num_hidden_layers":20,"num_attention_heads":16,)"
     R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":5120,"moe_intermediate_size":512,)"
     R"("vocab_size":157184,"max_position_embeddings":32768,"num_experts":256,"num_shared_experts":1,)"
     R"("num_experts_per_tok":8,"first_k_dense_replace":1,"use_qk_norm":true,"use_bias":false,)"
     R"("use_qkv_bias":false,"moe_router_enable_expert_bias":true,"moe_shared_expert_intermediate_size":512,)"
     R"("num_nextn_predict_layers":0,"tie_word_embeddings":false,"rotary_dim":64})"},
    {"Ling-lite-1.5", 16'801'974'272,  // card: 16.8 B
     R"({"model_type":"bailing_moe","hidden_size":2048,"num_hidden_layers":28,"num_attention_heads":16,)"
     R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":5632,"moe_intermediate_size":1408,)"
     R"("vocab_size":126464,"max_position_embeddings":131072,"num_experts":64,"num_shared_experts":2,)"
     R"("num_experts_per_tok":6,"first_k_dense_replace":0,"use_bias":false,"use_qkv_bias":false,)"
     R"("tie_word_embeddings":false})"},
    {"LFM2-1.2B", 1'170'340'608,
     R"({"model_type":"lfm2","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,)"
     R"("num_heads":32,"num_key_value_heads":8,"block_ff_dim":12288,"block_auto_adjust_ff_dim":true,)"
     R"("block_dim":2048,"block_ffn_dim_multiplier":1.0,"block_multiple_of":256,"conv_L_cache":3,)"
     R"("conv_bias":false,"conv_dim":2048,"conv_dim_out":2048,"full_attn_idxs":[2,5,8,10,12,14],)"
     R"("vocab_size":65536,"max_position_embeddings":128000})"},
    {"LFM2-8B-A1B", 8'339'930'560,
     R"({"model_type":"lfm2_moe","hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":32,)"
     R"("num_key_value_heads":8,"intermediate_size":7168,"moe_intermediate_size":1792,"num_dense_layers":2,)"
     R"("num_experts":32,"num_experts_per_tok":4,"use_expert_bias":true,"conv_L_cache":3,"conv_bias":false,)"
     R"("layer_types":[@5("conv","conv","full_attention","conv"),"conv","full_attention","conv","conv"],)"
     R"("vocab_size":65536,"max_position_embeddings":128000})"},
    {"EXAONE-4.0-32B", 32'003'216'384,  // card: 32.0 B
     R"({"model_type":"exaone4","hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":40,)"
     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":27392,"vocab_size":102400,)"
     R"("max_position_embeddings":131072,"sliding_window":4096,"sliding_window_pattern":"LLLG",)"
     R"("layer_types":[@16("sliding_attention","sliding_attention","sliding_attention","full_attention")],)"
     R"("tie_word_embeddings":false})"},
    {"c4ai-command-a-03-2025", 111'057'580'032,
     R"({"model_type":"cohere2","hidden_size":12288,"num_hidden_layers":64,"num_attention_heads":96,)"
     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":36864,"vocab_size":256000,)"
     R"("max_position_embeddings":131072,"attention_bias":false,"sliding_window":4096,)"
     R"("sliding_window_pattern":4,"use_qk_norm":false,"position_embedding_type":"rope_gptj"})"},
    {"InternVL3-8B-hf", 7'944'373'760,  // card: 7.94 B
     R"({"model_type":"internvl","downsample_ratio":0.5,"image_seq_length":256,)"
     R"("text_config":{"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,)"
     R"("num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":151674,)"
     R"("max_position_embeddings":32768,"use_sliding_window":false,"tie_word_embeddings":false},)"
     R"("vision_config":{"model_type":"internvl_vision","hidden_size":1024,"intermediate_size":4096,)"
     R"("num_hidden_layers":24,"num_attention_heads":16,"num_channels":3,"image_size":[448,448],)"
     R"("patch_size":[14,14],"attention_bias":true,"use_qk_norm":false,"layer_scale_init_value":0.1,)"
     R"("use_mean_pooling":true,"use_mask_token":false,"use_absolute_position_embeddings":true,)"
     R"("norm_type":"layer_norm"}})"},
    {"MiniCPM3-4B", 4'073'875'968,
     R"({"model_type":"minicpm3","hidden_size":2560,"num_hidden_layers":62,"num_attention_heads":40,)"
     R"("num_key_value_heads":40,"intermediate_size":6400,"vocab_size":73448,)"
     R"("max_position_embeddings":32768,"q_lora_rank":768,"kv_lora_rank":256,"qk_nope_head_dim":64,)"
     R"("qk_rope_head_dim":32,"v_head_dim":64,"attention_bias":false,"tie_word_embeddings":true})"},
    {"dots.llm1.inst", 142'774'381'696,
     R"({"model_type":"dots1","hidden_size":4096,"num_hidden_layers":62,"num_attention_heads":32,)"
     R"("num_key_value_heads":32,"head_dim":128,"intermediate_size":10944,"moe_intermediate_size":1408,)"
     R"("vocab_size":152064,"max_position_embeddings":32768,"n_routed_experts":128,"n_shared_experts":2,)"
     R"("num_experts_per_tok":6,"first_k_dense_replace":1,"moe_layer_freq":1,"topk_method":"noaux_tc",)"
     R"("attention_bias":false,"use_sliding_window":false,"tie_word_embeddings":false})"},
    {"AFM-4.5B", 4'619'184'640,
     R"({"model_type":"arcee","hidden_size":2560,"num_hidden_layers":36,"num_attention_heads":20,)"
     R"("num_key_value_heads":4,"head_dim":128,"intermediate_size":18432,"vocab_size":128004,)"
     R"("max_position_embeddings":65536,"hidden_act":"relu2","attention_bias":false,"mlp_bias":false,)"
     R"("tie_word_embeddings":false})"},
    {"starcoder2-3b", 3'030'371'328,
     R"({"model_type":"starcoder2","hidden_size":3072,"num_hidden_layers":30,"num_attention_heads":24,)"
     R"("num_key_value_heads":2,"intermediate_size":12288,"vocab_size":49152,)"
     R"("max_position_embeddings":16384,"hidden_act":"gelu_pytorch_tanh","use_bias":true,)"
     R"("sliding_window":4096})"},
    {"Nemotron-Mini-4B", 4'190'509'056,
     R"({"model_type":"nemotron","hidden_size":3072,"num_hidden_layers":32,"num_attention_heads":24,)"
     R"("num_key_value_heads":8,"head_dim":128,"intermediate_size":9216,"vocab_size":256000,)"
     R"("max_position_embeddings":4096,"hidden_act":"relu2","attention_bias":false,"mlp_bias":false,)"
     R"("tie_word_embeddings":false})"},
    {"DeepSeek-V4-Flash", 284'332'240'471,
     R"({"compress_ratios":[0,0,@20(4,128),4,0],"hidden_size":4096,"index_topk":512,)"
     R"("moe_intermediate_size":2048,"n_routed_experts":256,"num_attention_heads":64,"num_hidden_layers":43,)"
     R"("o_groups":8,"q_lora_rank":1024,"model_type":"deepseek_v4","attention_bias":false,)"
     R"("expert_dtype":"fp4","hc_mult":4,"head_dim":512,"index_head_dim":128,"index_n_heads":64,)"
     R"("max_position_embeddings":1048576,"n_shared_experts":1,"num_experts_per_tok":6,"num_hash_layers":3,)"
     R"("num_key_value_heads":1,"num_nextn_predict_layers":1,"o_lora_rank":1024,"qk_rope_head_dim":64,)"
     R"("sliding_window":128,"tie_word_embeddings":false,"topk_method":"noaux_tc","vocab_size":129280})"},
    {"DeepSeek-V4-Pro", 1'572'997'201'763,
     R"({"compress_ratios":[128,@30(128,4),0],"hidden_size":7168,"index_topk":1024,)"
     R"("moe_intermediate_size":3072,"n_routed_experts":384,"num_attention_heads":128,)"
     R"("num_hidden_layers":61,"o_groups":16,"q_lora_rank":1536,"model_type":"deepseek_v4",)"
     R"("attention_bias":false,"expert_dtype":"fp4","hc_mult":4,"head_dim":512,"index_head_dim":128,)"
     R"("index_n_heads":64,"max_position_embeddings":1048576,"n_shared_experts":1,"num_experts_per_tok":6,)"
     R"("num_hash_layers":3,"num_key_value_heads":1,"num_nextn_predict_layers":1,"o_lora_rank":1024,)"
     R"("qk_rope_head_dim":64,"sliding_window":128,"tie_word_embeddings":false,"topk_method":"noaux_tc",)"
     R"("vocab_size":129280})"},
    {"MiniMax-M3", 427'040'140'160,  // the tensors that its file lists
     R"({"model_type":"minimax_m3_vl","text_config":{"hidden_size":6144,"intermediate_size":3072,)"
     R"("num_hidden_layers":60,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":128,)"
     R"("vocab_size":200064,"max_position_embeddings":1048576,"attention_output_gate":false,"rotary_dim":64,)"
     R"("hidden_act":"swigluoai","use_qk_norm":true,"tie_word_embeddings":false,)"
     R"("dense_intermediate_size":12288,"shared_intermediate_size":3072,"num_local_experts":128,)"
     R"("num_experts_per_tok":4,"n_shared_experts":1,"use_routing_bias":true,"moe_layer_freq":[0,0,0,)"
     R"(@57(1)],"qk_norm_type":"per_head","num_mtp_modules":7,"num_nextn_predict_layers":1,)"
     R"("sparse_attention_config":{"use_sparse_attention":true,"sparse_index_dim":128,)"
     R"("sparse_num_index_heads":4,"sparse_topk_blocks":16,"sparse_block_size":128,)"
     R"("sparse_disable_index_value":[0,0,0,@57(1)],"sparse_init_block":0,"sparse_local_block":1,)"
     R"("sparse_attention_freq":[0,0,0,@57(1)]}},"vision_config":{"hidden_size":1280,)"
     R"("num_attention_heads":16,"num_hidden_layers":32,"intermediate_size":5120,"patch_size":14,)"
     R"("image_size":2016,"projection_dim":6144,"position_embedding_type":"rope","num_channels":3,)"
     R"("vocab_size":32000,"model_type":"clip_vision_model","vision_segment_max_frames":4,)"
     R"("img_token_compression_config":{"image_token_compression_method":"patch_merge",)"
     R"("spatial_merge_size":2,"temporal_patch_size":2}},)"
     R"("img_token_compression_config":{"image_token_compression_method":"patch_merge",)"
     R"("spatial_merge_size":2,"temporal_patch_size":2},"image_seq_length":576,)"
     R"("multimodal_projector_bias":true,"num_reward_heads":0,"projector_hidden_size":6144})"},
    {"MiMo-V2-Flash", 308'778'780'864,
     R"({"model_type":"mimo_v2_flash","vocab_size":152576,"hidden_size":4096,"num_hidden_layers":48,)"
     R"("num_attention_heads":64,"num_key_value_heads":4,"head_dim":192,"v_head_dim":128,)"
     R"("swa_num_attention_heads":64,"swa_num_key_value_heads":8,"swa_head_dim":192,"swa_v_head_dim":128,)"
     R"("sliding_window":128,"sliding_window_size":128,"attention_chunk_size":128,)"
     R"("hybrid_layer_pattern":[@2(0,1,1,1,1),@6(1,0,1,1,1,1),1,0],"moe_layer_freq":[0,@47(1)],)"
     R"("add_swa_attention_sink_bias":true,"add_full_attention_sink_bias":false,"intermediate_size":16384,)"
     R"("n_routed_experts":256,"num_experts_per_tok":8,"moe_intermediate_size":2048,)"
     R"("topk_method":"noaux_tc","max_position_embeddings":262144,"attention_bias":false,)"
     R"("tie_word_embeddings":false,"quantization_config":{"activation_scheme":"dynamic",)"
     R"("quant_method":"fp8","weight_block_size":[128,128],)"
     R"("ignored_layers":["model.layers.0.self_attn.o_proj"]}})"},
    {"Step-3.5-Flash", 196'956'130'368,  // card: 196 B
     R"({"model_type":"step3p5","hidden_size":4096,"intermediate_size":11264,"num_hidden_layers":45,)"
     R"("num_attention_heads":64,"num_attention_groups":8,"head_dim":128,"vocab_size":128896,)"
     R"("max_position_embeddings":262144,"max_seq_len":262144,"moe_num_experts":288,"moe_top_k":8,)"
     R"("moe_intermediate_size":1280,"share_expert_dim":1280,"moe_layers_enum":"3,4,5,6,7,8,9,10,11,12,13,)"
     R"(14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44",)"
     R"("layer_types":[@12("full_attention","sliding_attention","sliding_attention","sliding_attention")],)"
     R"("sliding_window":512,"attention_other_setting":{"attention_type":"sliding_attention",)"
     R"("num_attention_heads":96,"num_attention_groups":8,"head_dim":128,"true_head_dim":128},)"
     R"("use_head_wise_attn_gate":true,"use_moe_router_bias":true,"use_qk_norm":true,)"
     R"("num_nextn_predict_layers":3,"tie_word_embeddings":false,"norm_expert_weight":true,)"
     R"("moe_router_activation":"sigmoid","moe_router_scaling_factor":3.0})"},
    {"Step-3.7-Flash", 198'937'145'152,
     R"({"model_type":"step3p7","understand_projector_stride":2,"projector_bias":false,)"
     R"("vision_config":{"model_type":"perception_encoder","image_size":728,"patch_size":14,"width":1536,)"
     R"("layers":47,"heads":16,"mlp_ratio":5.833333333333333,"ls_init_value":0.1,"use_cls_token":false,)"
     R"("use_ln_post":false},"text_config":{"model_type":"step3p5","hidden_size":4096,)"
     R"("intermediate_size":11264,"num_hidden_layers":45,"num_attention_heads":64,"num_attention_groups":8,)"
     R"("head_dim":128,"vocab_size":128896,"max_position_embeddings":262144,"max_seq_len":262144,)"
     R"("moe_num_experts":288,"moe_top_k":8,"moe_intermediate_size":1280,"share_expert_dim":1280,)"
     R"("moe_layers_enum":"3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,)"
     R"(32,33,34,35,36,37,38,39,40,41,42,43,44","layer_types":[@12("full_attention","sliding_attention",)"
     R"("sliding_attention","sliding_attention")],"sliding_window":512,)"
     R"("attention_other_setting":{"attention_type":"sliding_attention","num_attention_heads":96,)"
     R"("num_attention_groups":8,"head_dim":128,"true_head_dim":128},"use_head_wise_attn_gate":true,)"
     R"("use_moe_router_bias":true,"use_qk_norm":true,"num_nextn_predict_layers":3,)"
     R"("tie_word_embeddings":false,"norm_expert_weight":true,"moe_router_activation":"sigmoid",)"
     R"("moe_router_scaling_factor":3.0}})"},
    {"Kimi-Linear-48B-A3B", 49'122'681'728,
     R"({"model_type":"kimi_linear","mla_use_nope":true,"num_expert_group":1,"moe_layer_freq":1,)"
     R"("tie_word_embeddings":false,"hidden_size":2304,"num_hidden_layers":27,"vocab_size":163840,)"
     R"("num_attention_heads":32,"num_key_value_heads":32,"head_dim":72,"kv_lora_rank":512,)"
     R"("qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"num_experts":256,)"
     R"("num_experts_per_token":8,"num_shared_experts":1,"moe_intermediate_size":1024,)"
     R"("first_k_dense_replace":1,"intermediate_size":9216,"max_position_embeddings":1048576,)"
     R"("num_nextn_predict_layers":0,"linear_attn_config":{"full_attn_layers":[4,8,12,16,20,24,27],)"
     R"("kda_layers":[1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,23,25,26],"head_dim":128,"num_heads":32,)"
     R"("short_conv_kernel_size":4}})"},
    {"Kimi-K3", 2'779'931'837'184,  // the tensors that its file lists
     R"({"model_type":"kimi_k3","text_config":{"model_type":"kimi_linear","attn_res_block_size":12,)"
     R"("first_k_dense_replace":1,"hidden_act":"situ","hidden_size":7168,"intermediate_size":33792,)"
     R"("kv_lora_rank":512,"latent_moe_use_norm":true,"linear_attn_config":{"full_attn_layers":[4,8,12,16,)"
     R"(20,24,28,32,36,40,44,48,52,56,60,64,68,72,76,80,84,88,92,93],"gate_lower_bound":-5.0,"head_dim":128,)"
     R"("kda_layers":[1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,23,25,26,27,29,30,31,33,34,35,37,38,39,41,)"
     R"(42,43,45,46,47,49,50,51,53,54,55,57,58,59,61,62,63,65,66,67,69,70,71,73,74,75,77,78,79,81,82,83,85,)"
     R"(86,87,89,90,91],"num_heads":96,"short_conv_kernel_size":4,"use_full_rank_gate":true},)"
     R"("max_position_embeddings":1048576,"mla_use_nope":true,"mla_use_output_gate":true,)"
     R"("moe_intermediate_size":3072,"moe_layer_freq":1,"num_attention_heads":96,"num_expert_group":1,)"
     R"("num_experts":896,"num_experts_per_token":16,"num_hidden_layers":93,"num_key_value_heads":96,)"
     R"("num_nextn_predict_layers":0,"num_shared_experts":2,"q_lora_rank":1536,"qk_nope_head_dim":128,)"
     R"("qk_rope_head_dim":64,"routed_expert_hidden_size":3584,"tie_word_embeddings":false,)"
     R"("topk_method":"noaux_tc","v_head_dim":128,"vocab_size":163840,)"
     R"("quantization_config":{"config_groups":{"group_0":{"format":"mxfp4-pack-quantized",)"
     R"("targets":["Linear"],"weights":{"dynamic":false,"group_size":32,"num_bits":4,)"
     R"("scale_dtype":"torch.uint8","strategy":"group","symmetric":true,"type":"float"}}},)"
     R"("format":"mxfp4-pack-quantized","ignore":["re:.*self_attn.*","re:.*shared_experts.*",)"
     R"("re:.*mlp\\.(gate|up|gate_up|down)_proj.*","re:.*lm_head.*","re:.*vision_tower.*",)"
     R"("re:.*mm_projector.*"],"quant_method":"compressed-tensors"}},"vision_config":{"attn_bias":false,)"
     R"("init_pos_emb_height":64,"init_pos_emb_time":4,"init_pos_emb_width":64,"linear_bias":false,)"
     R"("merge_kernel_size":[2,2],"mm_hidden_size":1024,"mm_projector_type":"patchmergerv2",)"
     R"("norm_type":"rmsnorm","patch_embed_proj_bias":false,"patch_size":14,"qkv_hidden_size":1536,)"
     R"("text_hidden_size":7168,"vt_hidden_size":1024,"vt_intermediate_size":4096,)"
     R"("vt_num_attention_heads":12,"vt_num_hidden_layers":27}})"},
};

const char* ConfigOf(std::string_view name) {
  for (const Published& model : kPublished) {
    if (model.name == name) return model.config;
  }
  ADD_FAILURE() << name;
  return "";
}

TEST(Families, ParametersAreThosePublishedAndShapesAreKnown) {
  for (const Published& model : kPublished) {
    const ShapedGraph graph = Read(model.config, {}, 7, 256);
    EXPECT_EQ(Parameters(graph), model.parameters) << model.name;
    EXPECT_EQ(graph.coverage.ops_with_known_shapes, graph.coverage.ops) << model.name;
    EXPECT_TRUE(graph.coverage.unsupported.empty()) << model.name;
    EXPECT_GT(Parameters(Read(model.config, {.training = true})), 0) << model.name;
  }
}

TEST(Families, LayersHaveTheCachesOfTheirKind) {
  // A window of single tokens; keys of four tokens, of which an indexer chooses; keys of 128 tokens.
  const ShapedGraph v4 = Read(ConfigOf("DeepSeek-V4-Flash"), {}, 1, 1024);
  EXPECT_THAT(Named(v4, "past_key_values.0.window").dims, ElementsAre(1, 1, 128, 512));
  EXPECT_THAT(Named(v4, "past_key_values.2.compressed").dims, ElementsAre(1, 1, 1024, 512 / 4));
  EXPECT_THAT(Named(v4, "past_key_values.2.index").dims, ElementsAre(1, 1, 1024, (128 + 4) / 4));
  EXPECT_THAT(Named(v4, "past_key_values.3.compressed").dims, ElementsAre(1, 1, 1024, 512 / 128));
  EXPECT_EQ(Named(v4, "model.layers.0.mlp.experts.w13_weight").dtype, DType::kUint4);
  // Keys and values of different sizes, and as many heads as the layer's kind has.
  const ShapedGraph mimo = Read(ConfigOf("MiMo-V2-Flash"), {}, 1, 100);
  EXPECT_THAT(Named(mimo, "past_key_values.0.key").dims, ElementsAre(1, 4, 100, 192));
  EXPECT_THAT(Named(mimo, "past_key_values.0.value").dims, ElementsAre(1, 4, 100, 128));
  EXPECT_THAT(Named(mimo, "past_key_values.1.key").dims, ElementsAre(1, 8, 100, 192));
  const ShapedGraph step = Read(ConfigOf("Step-3.7-Flash"), {.tensor_parallel = 8}, 1, 100);
  EXPECT_THAT(Named(step, "model.layers.0.self_attn.o_proj.weight").dims, ElementsAre(64 * 128 / 8, 4096));
  EXPECT_THAT(Named(step, "model.layers.1.self_attn.o_proj.weight").dims, ElementsAre(96 * 128 / 8, 4096));
  const ShapedGraph kimi = Read(ConfigOf("Kimi-K3"), {}, 1, 100);
  EXPECT_THAT(Named(kimi, "past_key_values.0.state").dims, ElementsAre(1, 96, 128, 128));
  EXPECT_THAT(Named(kimi, "past_key_values.3.latent").dims, ElementsAre(1, 1, 100, 576));
  EXPECT_EQ(Named(kimi, "model.layers.1.mlp.experts.w2_weight").dtype, DType::kUint4);
  EXPECT_EQ(Named(kimi, "model.layers.1.mlp.shared_experts.down_proj.weight").dtype, DType::kBfloat16);
  EXPECT_EQ(Named(kimi, "model.layers.0.mlp.down_proj.weight").dtype, DType::kBfloat16);
  const ShapedGraph m3 = Read(ConfigOf("MiniMax-M3"), {}, 1, 100);
  EXPECT_THAT(Named(m3, "past_key_values.3.index").dims, ElementsAre(1, 1, 100, 128));
  const ShapedGraph conv = Read(ConfigOf("LFM2-1.2B"), {}, 1, 100);
  EXPECT_THAT(Named(conv, "past_key_values.0.conv").dims, ElementsAre(1, 2048, 2));
  EXPECT_THAT(Named(conv, "past_key_values.2.key").dims, ElementsAre(1, 8, 100, 64));
  const ShapedGraph both = Read(ConfigOf("Falcon-H1-7B-Instruct"), {}, 1, 100);
  EXPECT_THAT(Named(both, "past_key_values.0.key").dims, ElementsAre(1, 2, 100, 128));
  EXPECT_THAT(Named(both, "past_key_values.0.state").dims, ElementsAre(1, 24, 256, 128));
}

// Two layers of 64 hidden, 4 heads of 16, vocabulary 100.
std::string Small(const std::string& type, const std::string& more) {
  return R"({"model_type":")" + type + R"(","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,)" +
         R"("vocab_size":100,"max_position_embeddings":128,"intermediate_size":96,)" + more + "}";
}

TEST(Families, ASearchedModelLeavesOutWhatItsBlocksLeaveOut) {
  const std::string text = Small(
      "nemotron-nas", R"("block_configs":[)"
                      R"({"attention":{"no_op":true,"n_heads_in_group":null},"ffn":{"ffn_mult":6.0,"no_op":false}},)"
                      R"({"attention":{"no_op":false,"n_heads_in_group":2},"ffn":{"no_op":true,"ffn_mult":null}}])");
  constexpr int64_t kWidth = 256;  // 2 * 6.0 * 64 / 3, to whole 256
  EXPECT_EQ(Parameters(Read(text)), 2 * 100 * 64 + 3 * 64 + 3 * 64 * kWidth + 64 * (64 + 2 * 32) + 64 * 64);
}

TEST(Families, ATextModelIsReadWhereverItStands) {
  const std::string fields = R"("hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,)"
                             R"("max_position_embeddings":128,"intermediate_size":96)";
  const int64_t plain = Parameters(Read(R"({"model_type":"llama",)" + fields + "}"));
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const std::string inner = R"({"model_type":"chat",")" + std::string(key) + R"(":{"model_type":"llama",)" + fields;
    EXPECT_EQ(Parameters(Read(inner + "}}")), plain) << key;
    EXPECT_THAT(Refused(inner + R"(},"audio_config":{"layers":3}})"), HasSubstr("'audio_config': expected none"));
    EXPECT_THAT(Refused(inner + R"(},"vision_config":{"layers":3}})"), HasSubstr("'vision_config': expected none"));
    EXPECT_EQ(Parameters(Read(R"({"model_type":"omni","thinker_config":)" + inner + "}}}")), plain) << key;
  }
}

TEST(Families, AStretchedRopeIsSeenInBothForms) {
  const auto says_context = [](const std::string& rope) {
    return !SaidOf(*GraphFromConfig(Small("llama", R"("rope_parameters":)" + rope)).value(), "context").empty();
  };
  EXPECT_TRUE(says_context(R"({"rope_type":"default","rope_theta":1e4})"));
  EXPECT_FALSE(says_context(R"({"rope_type":"yarn","factor":4.0})"));
  EXPECT_FALSE(says_context(R"({"full_attention":{"rope_type":"yarn"},"sliding_attention":{"rope_type":"default"}})"));
}

struct Quantised {
  const char* config;
  DType type;  // of down_proj, 11008 x 4096
  int64_t bytes, scales;
};

std::string Wide(const std::string& quantised) {
  return R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":2,"num_attention_heads":32,)"
         R"("intermediate_size":11008,"vocab_size":32000,"max_position_embeddings":4096,"quantization_config":{)" +
         quantised + "}}";
}

TEST(Families, QuantisationsOfTodayHaveTheirBytes) {
  constexpr int64_t kIn = 11008, kOut = 4096;
  const Quantised cases[] = {
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,
          "type":"float","group_size":16,"strategy":"tensor_group","scale_dtype":"torch.float8_e4m3fn"}}})",
       DType::kUint4, kIn * kOut / 2, kIn / 16 * kOut},
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,
          "type":"float","group_size":32,"strategy":"group","scale_dtype":"torch.uint8"}}})",
       DType::kUint4, kIn * kOut / 2, kIn / 32 * kOut},
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":8,
          "type":"int","strategy":"channel"}}})",
       DType::kInt8, kIn * kOut, kOut},
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["re:.*self_attn.*"],"weights":{
          "num_bits":8,"type":"float"}},"group_1":{"targets":["re:.*mlp.*(gate|up|down)_proj$"],"weights":{"num_bits":4,
          "type":"int","group_size":128}}})",
       DType::kUint4, kIn * kOut / 2, kIn / 128 * kOut},
      {R"("producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]})",
       DType::kFloat8E4M3Fn, kIn * kOut, 1},
      {R"("quant_method":"modelopt","quant_algo":"W4A16_AWQ")", DType::kUint4, kIn * kOut / 2, kIn / 128 * kOut},
      {R"("quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"model.layers.0.mlp.down_proj":
          {"quant_algo":"NVFP4"}})",
       DType::kUint4, kIn * kOut / 2, kIn / 16 * kOut},
      {R"("quant_method":"mxfp8")", DType::kFloat8E4M3Fn, kIn * kOut, kIn / 32 * kOut},
  };
  for (const Quantised& one : cases) {
    const ShapedGraph graph = Read(Wide(one.config));
    const Tensor& weight = Named(graph, "model.layers.0.mlp.down_proj.weight");
    EXPECT_EQ(weight.dtype, one.type) << one.config;
    EXPECT_EQ(weight.bytes(), one.bytes) << one.config;
    EXPECT_EQ(Named(graph, "model.layers.0.mlp.down_proj.weight_scale").elements(), one.scales) << one.config;
  }
  // Zero points have half a byte a group, unless weights are symmetric.
  const auto zeros = [](const char* config) {
    int64_t elements = 0;
    for (const Tensor& tensor : Read(Wide(config)).tensors) {
      if (tensor.name == "model.layers.0.mlp.down_proj.zero_point") elements = tensor.elements();
    }
    return elements;
  };
  EXPECT_EQ(zeros(R"("quant_method":"awq","bits":4,"group_size":128,"zero_point":true)"), kIn / 128 * kOut / 2);
  EXPECT_EQ(zeros(R"("quant_method":"gptq","bits":4,"group_size":128,"sym":true)"), 0);
}

TEST(Families, RefusalsNameTheField) {
  const std::string vision = R"("vision_config":{"vt_hidden_size":64,"patch_size":14,"init_pos_emb_height":8,)"
                             R"("init_pos_emb_width":8,"merge_kernel_size":[3,3]})";
  const std::pair<std::string, const char*> cases[] = {
      {Small("qwen3_next", R"("mamba_ssm_dtype":"float8","num_experts":2,"num_experts_per_tok":1,)"
                           R"("moe_intermediate_size":8)"),
       "mamba_ssm_dtype: expected float32, bfloat16 or float16, found"},
      {R"({"model_type":"kimi_k25",)" + vision + R"(,"text_config":)" +
           Small("kimi_k2", R"("kv_lora_rank":8,"qk_nope_head_dim":8,"qk_rope_head_dim":8,"v_head_dim":8,)"
                            R"("n_routed_experts":2,"num_experts_per_tok":1,"moe_intermediate_size":8)") +
           "}",
       "vision_config.merge_kernel_size: expected [2, 2]"},
      {Small("nemotron-nas", R"("block_configs":[])"), "block_configs: expected one entry for each layer"},
      {Small("nemotron-nas", R"("block_configs":[{"attention":{"replace_with_linear":true},"ffn":{}},{}])"),
       "block_configs[0].attention.replace_with_linear: expected false"},
      {Small("deepseek_v4", R"("q_lora_rank":8,"head_dim":16,"n_routed_experts":2,"num_experts_per_tok":1,)"
                            R"("moe_intermediate_size":8,"compress_ratios":[0])"),
       "compress_ratios: expected one entry for each layer"},
      {Small("step3p5", R"("moe_num_experts":2,"moe_top_k":1,"moe_layers_enum":"1,x")"),
       "moe_layers_enum: expected numbers of layers"},
      {Small("hunyuan_v1_dense", R"("use_cla":true)"), "use_cla: expected false"},
      {Small("minimax_m3", R"("num_local_experts":2,"num_experts_per_tok":1,"attention_output_gate":true)"),
       "attention_output_gate: expected false"},
      {Wide(R"("quant_method":"modelopt","quant_algo":"W3")"), "quantization_config.quant_algo: expected FP8"},
      {Wide(R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["re:.*[0-3].mlp"],)"
            R"("weights":{"num_bits":8}}})"),
       "config_groups.group_0.targets: expected names of layers"},
      {Wide(R"("quant_method":"gptq","bits":4,"dynamic":{"-:.*":{}})"), "dynamic: expected none"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(Refused(text), HasSubstr(message)) << text;
}

}  // namespace
}  // namespace horus
