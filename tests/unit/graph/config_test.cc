// SPDX-License-Identifier: Apache-2.0
// Graphs from config.json: published sizes, parts of a model, stored types, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "graph/architecture.h"
#include "graph/bind_model.h"
#include "graph/config_graphs.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t Parameters(std::string_view text, const ConfigOptions& options = {}) {
  return Parameters(Bound(text, options));
}

// Llama-2-7B with other fields before its own: the last of two equal keys holds.
std::string Llama(const std::string& more) {
  return R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":2,"num_attention_heads":32,)"
         R"("intermediate_size":11008,"vocab_size":32000,"max_position_embeddings":4096)" +
         (more.empty() ? "}" : "," + more + "}");
}

std::string Refused(std::string_view text, const ConfigOptions& options = {}) {
  return std::string(GraphFromConfig(text, options).status().message());
}

struct Published {
  const char* name;
  int64_t parameters;
};

// "Model size" of the model's page on the Hugging Face hub, which adds up the shapes in the headers of its safetensors
// files; equal to metadata.total_size of model.safetensors.index.json divided by the bytes of its dtype.
constexpr Published kPublished[] = {
    {"llama-2-7b", 6'738'415'616},          // meta-llama/Llama-2-7b-hf
    {"llama-2-13b", 13'015'864'320},        // meta-llama/Llama-2-13b-hf
    {"llama-2-70b", 68'976'648'192},        // meta-llama/Llama-2-70b-hf
    {"llama-3.1-8b", 8'030'261'248},        // meta-llama/Llama-3.1-8B
    {"llama-3.1-70b", 70'553'706'496},      // meta-llama/Llama-3.1-70B
    {"llama-3.1-405b", 405'853'388'800},    // meta-llama/Llama-3.1-405B
    {"llama-3.2-1b", 1'235'814'400},        // meta-llama/Llama-3.2-1B
    {"llama-3.2-3b", 3'212'749'824},        // meta-llama/Llama-3.2-3B
    {"tinyllama-1.1b", 1'100'048'384},      // TinyLlama/TinyLlama-1.1B-Chat-v1.0
    {"mistral-7b-v0.1", 7'241'732'096},     // mistralai/Mistral-7B-v0.1
    {"mistral-nemo", 12'247'782'400},       // mistralai/Mistral-Nemo-Base-2407
    {"mixtral-8x7b", 46'702'792'704},       // mistralai/Mixtral-8x7B-v0.1
    {"qwen2-7b", 7'615'616'512},            // Qwen/Qwen2-7B
    {"qwen2.5-0.5b", 494'032'768},          // Qwen/Qwen2.5-0.5B
    {"qwen2.5-1.5b", 1'543'714'304},        // Qwen/Qwen2.5-1.5B
    {"qwen2.5-3b", 3'085'938'688},          // Qwen/Qwen2.5-3B
    {"qwen2.5-14b", 14'770'033'664},        // Qwen/Qwen2.5-14B
    {"qwen2.5-32b", 32'763'876'352},        // Qwen/Qwen2.5-32B
    {"qwen2.5-72b", 72'706'203'648},        // Qwen/Qwen2.5-72B
    {"qwen1.5-moe-a2.7b", 14'315'784'192},  // Qwen/Qwen1.5-MoE-A2.7B
    {"qwen3-0.6b", 596'049'920},            // Qwen/Qwen3-0.6B, without the copy of the tied embedding that its file has
    {"qwen3-8b", 8'190'735'360},            // Qwen/Qwen3-8B
    {"qwen3-32b", 32'762'123'264},          // Qwen/Qwen3-32B
    {"qwen3-30b-a3b", 30'532'122'624},      // Qwen/Qwen3-30B-A3B
    {"qwen3-235b-a22b", 235'093'634'560},   // Qwen/Qwen3-235B-A22B
    {"gemma-2b", 2'506'172'416},            // google/gemma-2b
    {"gemma-2-2b", 2'614'341'888},          // google/gemma-2-2b
    {"gemma-2-9b", 9'241'705'984},          // google/gemma-2-9b
    {"gemma-2-27b", 27'227'128'320},        // google/gemma-2-27b
    {"gemma-3-1b", 999'885'952},            // google/gemma-3-1b-pt
    {"phi-3-mini-4k", 3'821'079'552},       // microsoft/Phi-3-mini-4k-instruct
    {"deepseek-v2-lite", 15'706'484'224},   // deepseek-ai/DeepSeek-V2-Lite
    {"deepseek-v3", 671'026'419'200},       // deepseek-ai/DeepSeek-V3, without scales and the layer that guesses ahead
    {"gpt2", 124'439'808},                  // openai-community/gpt2, without the masks that its file has
    {"gpt-neox-20b", 20'554'567'680},       // EleutherAI/gpt-neox-20b: the paper, arXiv:2204.06745, table 1
    {"gpt-oss-20b", 20'914'757'184},        // openai/gpt-oss-20b: model card, arXiv:2508.10925, table 1: 20.91 B
    {"gpt-oss-120b", 116'829'156'672},      // openai/gpt-oss-120b: the same: 116.83 B
    // With their vision towers.
    {"gemma-3-4b", 4'300'079'472},              // google/gemma-3-4b-it
    {"gemma-3-12b", 12'187'325'040},            // google/gemma-3-12b-it
    {"gemma-3-27b", 27'432'406'640},            // google/gemma-3-27b-it
    {"llama-4-scout", 108'641'793'536},         // meta-llama/Llama-4-Scout-17B-16E-Instruct
    {"mistral-small-3.1-24b", 24'011'361'280},  // mistralai/Mistral-Small-3.1-24B-Instruct-2503
    {"qwen2.5-vl-3b", 3'754'622'976},           // Qwen/Qwen2.5-VL-3B-Instruct
    {"qwen2.5-vl-7b", 8'292'166'656},           // Qwen/Qwen2.5-VL-7B-Instruct
    {"qwen3-vl-2b", 2'127'532'032},             // Qwen/Qwen3-VL-2B-Instruct
    {"qwen3-vl-4b", 4'437'815'808},             // Qwen/Qwen3-VL-4B-Instruct
    {"qwen3-vl-8b", 8'767'123'696},             // Qwen/Qwen3-VL-8B-Instruct
    {"qwen3-vl-30b-a3b", 31'070'754'032},       // Qwen/Qwen3-VL-30B-A3B-Instruct
    // Less the layer that guesses ahead: one more of the last kind, a product of [2 hidden, hidden] and three norms.
    {"glm-4.5-air", 110'468'824'832 - 3'616'573'568},         // zai-org/GLM-4.5-Air; and its copies of both embeddings
    {"glm-4.5", 358'337'791'296 - 5'539'962'272},             // zai-org/GLM-4.5, the same
    {"glm-5", 753'864'139'008 - 9'952'920'576},               // zai-org/GLM-5
    {"glm-5.2", 753'329'959'936 - 76 * 256 - 9'952'920'576},  // zai-org/GLM-5.2: total_size / 2; biases have 4 bytes
    {"qwen3-next-80b-a3b", 81'324'862'720 - 1'650'471'424},   // Qwen/Qwen3-Next-80B-A3B-Instruct
    {"qwen3.5-9b", 9'653'104'368 - 243'290'624},              // Qwen/Qwen3.5-9B
    {"qwen3.5-27b", 27'781'427'952 - 424'699'392},            // Qwen/Qwen3.5-27B
    {"qwen3.5-35b-a3b", 35'951'822'704 - 844'640'768},        // Qwen/Qwen3.5-35B-A3B
    // By the file, which the model cards round.
    {"deepseek-v3.2", 671'877'944'064},           // deepseek-ai/DeepSeek-V3.2: V3 and 61 indexers
    {"gemma-4-26b-a4b", 25'805'936'176},          // google/gemma-4-26B-A4B-it: 25.2 B, and its tower
    {"gemma-4-31b", 31'273'088'816},              // google/gemma-4-31B-it: 30.7 B, and its tower
    {"glm-4-9b", 9'400'279'040},                  // zai-org/GLM-4-9B-0414
    {"llama-4-maverick", 401'583'781'376},        // meta-llama/Llama-4-Maverick-17B-128E-Instruct: 402 B
    {"mimo-7b", 7'622'619'136},                   // XiaomiMiMo/MiMo-7B-Base: 7.83 B with the layer that guesses ahead
    {"nemotron-3-nano-30b-a3b", 31'577'940'288},  // nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16: 31.6 B
    {"nemotron-3-super-120b-a12b", 120'668'707'840},  // nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16: 120.6 B
};

TEST(Config, ParametersAreThosePublished) {
  for (const Published& model : kPublished) EXPECT_EQ(Parameters(model.name), model.parameters) << model.name;
}

TEST(Config, EveryKnownModelIsUnderstoodWhole) {
  size_t count = 0;
  for (; !KnownModelName(count).empty(); ++count) {
    const std::string name(KnownModelName(count));
    const ShapedGraph graph = Bound(name, {}, 7, 9);
    EXPECT_EQ(graph.coverage.ops_with_known_shapes, graph.coverage.ops) << name;
    EXPECT_TRUE(graph.coverage.unsupported.empty()) << name;
  }
  EXPECT_GE(count, std::size(kPublished));
}

TEST(Config, ATextModelInsideAFileIsReadAsIfItStoodThere) {
  const std::string tower = R"("vision_config":{"depth":27,"hidden_size":1152,"intermediate_size":4304,)"
                            R"("out_hidden_size":4096},"vision_start_token_id":1,"tie_word_embeddings":false)";
  const std::string text = R"("hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,"head_dim":128,)"
                           R"("num_key_value_heads":8,"intermediate_size":12288,"vocab_size":151936,)"
                           R"("max_position_embeddings":262144)";
  const std::string file = R"({"model_type":"qwen3_vl",)" + tower;
  EXPECT_EQ(Parameters(file + R"(,"text_config":{"model_type":"qwen3_vl_text",)" + text + "}}"), 8'767'123'696);
  EXPECT_EQ(Parameters(file + "," + text + "}"), 8'767'123'696);
  EXPECT_EQ(Parameters(R"({"model_type":"qwen3_vl_text",)" + text + "}"), Parameters("qwen3-8b"));
  // The names of layers that checkpoints write.
  const ShapedGraph stored =
      Bound(file + "," + text + R"(,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128],)" +
            R"("modules_to_not_convert":["model.language_model.layers.0.mlp.down_proj","model.visual.blocks.0"]}})");
  EXPECT_EQ(Named(stored, "model.layers.0.mlp.down_proj.weight").dtype, DType::kBfloat16);
  EXPECT_EQ(Named(stored, "model.layers.1.mlp.down_proj.weight").dtype, DType::kFloat8E4M3Fn);
  EXPECT_EQ(Named(stored, "model.visual.weight").dtype, DType::kBfloat16);
}

TEST(Config, LayersHaveTheCachesOfTheirKind) {
  const ShapedGraph delta = Bound("qwen3.5-27b", {}, 1, 100), part = Bound("qwen3.5-27b", {.tensor_parallel = 4});
  EXPECT_THAT(Named(delta, "past_key_values.0.state").dims, ElementsAre(1, 48, 128, 128));
  EXPECT_EQ(Named(delta, "past_key_values.0.state").dtype, DType::kFloat32);
  EXPECT_THAT(Named(delta, "past_key_values.0.conv").dims, ElementsAre(1, 2 * 16 * 128 + 48 * 128, 3));
  EXPECT_THAT(Named(delta, "past_key_values.3.key").dims, ElementsAre(1, 4, 100, 256));
  EXPECT_THAT(Named(part, "past_key_values.0.state").dims, ElementsAre(1, 12, 128, 128));
  // Of Gemma 4 layers without a window have other heads, and keys that are values.
  const ShapedGraph two = Bound("gemma-4-31b", {}, 1, 100);
  EXPECT_THAT(Named(two, "past_key_values.0.key").dims, ElementsAre(1, 16, 100, 256));
  EXPECT_THAT(Named(two, "past_key_values.5.value").dims, ElementsAre(1, 4, 100, 512));
  const ShapedGraph mamba = Bound("nemotron-3-nano-30b-a3b", {}, 1, 100);
  EXPECT_THAT(Named(mamba, "past_key_values.0.state").dims, ElementsAre(1, 64, 128, 64));
  EXPECT_THAT(Named(mamba, "past_key_values.5.key").dims, ElementsAre(1, 2, 100, 128));
}

TEST(Config, TensorParallelPartsAddUp) {
  // What every part has whole: two norms a layer and the last one; of fewer heads than parts a copy of keys and values.
  constexpr int64_t kWhole = 8'030'261'248, kNorms = (2 * 32 + 1) * 4096;
  constexpr int64_t kKeys = int64_t{32} * 2 * 8 * 128 * 4096;
  for (const int64_t t : {2, 4, 8}) {
    EXPECT_EQ(t * Parameters("llama-3.1-8b", {.tensor_parallel = t}), kWhole + (t - 1) * kNorms) << t;
  }
  EXPECT_EQ(16 * Parameters("llama-3.1-8b", {.tensor_parallel = 16}), kWhole + 15 * kNorms + kKeys);
}

TEST(Config, StagesAddUp) {
  int64_t sum = 0;
  for (int64_t stage = 0; stage < 5; ++stage) {
    sum += Parameters("llama-3.1-8b", {.pipeline_parallel = 5, .pipeline_stage = stage});
  }
  EXPECT_EQ(sum, 8'030'261'248);
}

TEST(Config, ExpertsAreSplitWholeOrInSlices) {
  const int64_t slices = Parameters("mixtral-8x7b", {.tensor_parallel = 8});
  EXPECT_EQ(Parameters("mixtral-8x7b", {.tensor_parallel = 8, .expert_parallel = 8}), slices);
  const ShapedGraph whole = Bound("mixtral-8x7b", {.tensor_parallel = 8, .expert_parallel = 4});
  EXPECT_THAT(Named(whole, "model.layers.0.mlp.experts.w13_weight").dims, ElementsAre(2, 14336, 4096));
}

TEST(Config, OneGraphServesPrefillAndDecode) {
  const ShapedGraph prefill = Bound("qwen3-8b", {}, 512), decode = Bound("qwen3-8b", {}, 1, 4096);
  EXPECT_EQ(prefill.graph->fingerprint, decode.graph->fingerprint);
  EXPECT_THAT(prefill.tensors[prefill.outputs.back().value()].dims, ElementsAre(1, 1, 151936));
  EXPECT_THAT(Named(prefill, "past_key_values.0.key").dims, ElementsAre(1, 8, 0, 128));
  EXPECT_THAT(Named(decode, "past_key_values.35.value").dims, ElementsAre(1, 8, 4096, 128));
  EXPECT_THAT(decode.tensors[decode.outputs[0].value()].dims, ElementsAre(1, 8, 4097, 128));
  const ShapedGraph training = Bound("qwen3-8b", {.training = true}, 512);
  EXPECT_THAT(training.tensors[training.outputs.back().value()].dims, ElementsAre(1, 512, 151936));
}

TEST(Config, WindowsHoldForTheLayersThatSlide) {
  const auto windows = [](std::string_view text) {
    std::vector<int64_t> found;
    const auto graph = GraphFromConfig(text).value();
    for (const Node& node : graph->main().nodes) {
      if (node.op_type == "GroupQueryAttention") found.push_back(node.IntOr("local_window_size", 0));
    }
    return found;
  };
  EXPECT_THAT(windows(Llama(R"("model_type":"mistral","sliding_window":64)")), ElementsAre(64, 64));
  EXPECT_THAT(windows(Llama(R"("model_type":"gemma2","sliding_window":64)")), ElementsAre(64, -1));
  EXPECT_THAT(windows(Llama(R"("model_type":"qwen2","sliding_window":64,"use_sliding_window":false)")),
              ElementsAre(-1, -1));
  EXPECT_THAT(windows(Llama(R"("model_type":"qwen3","sliding_window":64,)"
                            R"("layer_types":["full_attention","sliding_attention"])")),
              ElementsAre(-1, 64));
}

struct Quantised {
  const char* config;
  DType type;
  int64_t bytes, scales;  // of down_proj, 11008 x 4096
};

TEST(Config, QuantisedWeightsAreStoredAsTheFileSays) {
  constexpr int64_t kIn = 11008, kOut = 4096;
  const Quantised cases[] = {
      {R"("quant_method":"fp8")", DType::kFloat8E4M3Fn, kIn * kOut, 1},
      {R"("quant_method":"fp8","weight_block_size":[128,128])", DType::kFloat8E4M3Fn, kIn * kOut, 86 * 32},
      {R"("quant_method":"gptq","bits":4,"group_size":128)", DType::kUint4, kIn * kOut / 2, 86 * kOut},
      {R"("quant_method":"gptq","bits":8,"group_size":-1)", DType::kInt8, kIn * kOut, kOut},
      {R"("quant_method":"awq","w_bit":4,"q_group_size":64)", DType::kUint4, kIn * kOut / 2, 172 * kOut},
      {R"("quant_method":"bitsandbytes","load_in_4bit":true)", DType::kUint4, kIn * kOut / 2, 172 * kOut},
      {R"("quant_method":"bitsandbytes","load_in_8bit":true)", DType::kInt8, kIn * kOut, kOut},
      {R"("quant_method":"modelopt","quant_algo":"NVFP4")", DType::kUint4, kIn * kOut / 2, 688 * kOut},
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float",
          "strategy":"channel"}}})",
       DType::kFloat8E4M3Fn, kIn * kOut, kOut},
      {R"("quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int",
          "group_size":128}}})",
       DType::kUint4, kIn * kOut / 2, 86 * kOut},
  };
  const int64_t plain = Parameters(Llama(""));
  for (const Quantised& one : cases) {
    const ShapedGraph graph = Bound(Llama(R"("quantization_config":{)" + std::string(one.config) + "}"));
    const Tensor& weight = Named(graph, "model.layers.0.mlp.down_proj.weight");
    EXPECT_EQ(weight.dtype, one.type) << one.config;
    EXPECT_EQ(weight.bytes(), one.bytes) << one.config;
    EXPECT_EQ(Named(graph, "model.layers.0.mlp.down_proj.weight_scale").elements(), one.scales) << one.config;
    EXPECT_EQ(Named(graph, "lm_head.weight").dtype, DType::kBfloat16) << one.config;
    EXPECT_EQ(Parameters(graph), plain) << one.config;  // scales are none
  }
}

TEST(Config, LayersThatAreNotQuantisedKeepTheirType) {
  const ShapedGraph graph = Bound(
      Llama(R"("quantization_config":{"quant_method":"fp8","modules_to_not_convert":["re:.*down_proj$","lm_head"]})"));
  EXPECT_EQ(Named(graph, "model.layers.1.mlp.down_proj.weight").dtype, DType::kBfloat16);
  EXPECT_EQ(Named(graph, "model.layers.1.mlp.gate_up_proj.weight").dtype, DType::kFloat8E4M3Fn);
}

TEST(Config, PatternsOfLayersNameWholeWords) {
  const auto type = [](std::string_view pattern, std::string_view layer) {
    const ShapedGraph graph = Bound(
        Llama(R"("quantization_config":{"quant_method":"fp8","ignored_layers":[")" + std::string(pattern) + R"("]})"));
    return Named(graph, "model.layers.1." + std::string(layer) + ".weight").dtype;
  };
  EXPECT_EQ(type("re:.*mlp.gate$", "mlp.gate_up_proj"), DType::kFloat8E4M3Fn);  // the router of other models
  EXPECT_EQ(type("model.layers.1.self_attn.q_proj", "self_attn.qkv_proj"), DType::kBfloat16);
  EXPECT_EQ(type("model.layers.0.self_attn.q_proj", "self_attn.qkv_proj"), DType::kFloat8E4M3Fn);
  EXPECT_EQ(type("model.layers.*.mlp", "mlp.down_proj"), DType::kBfloat16);
  EXPECT_EQ(type("re:.*up_proj", "mlp.gate_up_proj"), DType::kBfloat16);
  EXPECT_THAT(Refused(Llama(R"("quantization_config":{"quant_method":"fp8","ignored_layers":["re:.*[02]\\.mlp"]})")),
              HasSubstr("quantization_config.ignored_layers: expected names of layers"));
}

TEST(Config, OptionsReplaceTypes) {
  const ShapedGraph graph = Bound("llama-3.1-8b", {.weights = "int4", .cache = "fp8"}, 1, 16);
  EXPECT_EQ(Named(graph, "model.layers.0.mlp.down_proj.weight").dtype, DType::kUint4);
  EXPECT_EQ(Named(graph, "past_key_values.0.key").dtype, DType::kFloat8E4M3Fn);
  EXPECT_EQ(graph.tensors[graph.outputs[0].value()].dtype, DType::kFloat8E4M3Fn);
  EXPECT_EQ(Named(Bound("deepseek-v3", {.weights = "bf16"}), "lm_head.weight").dtype, DType::kBfloat16);
  EXPECT_EQ(ComputeTypeOf(*Bound("llama-3.1-8b", {.weights = "fp16"}).graph), "float16");
}

TEST(Config, RefusalsNameTheFieldExpectedAndFound) {
  const std::pair<std::string, const char*> cases[] = {
      {Llama(R"("model_type":"mamba")"), "model_type: expected one of"},
      {Llama(R"("hidden_size":null)"), "hidden_size: expected an integer from 1 to 16777216, found none"},
      {Llama(R"("hidden_size":-1)"), "hidden_size: expected an integer from 1 to 16777216, found '-1'"},
      {Llama(R"("hidden_size":"big")"), R"(hidden_size: expected an integer from 1 to 16777216, found '"big"')"},
      {Llama(R"("hidden_size":4096.0)"), "hidden_size: expected an integer"},
      {Llama(R"("num_hidden_layers":1000000000000000000)"), "num_hidden_layers: expected an integer from 1 to 1024"},
      {Llama(R"("num_hidden_layers":1e30)"), "num_hidden_layers: expected an integer"},
      {Llama(R"("num_key_value_heads":5)"), "num_key_value_heads: expected a divisor of 32 heads, found 5"},
      {Llama(R"("hidden_act":"tanh")"), "hidden_act: expected silu"},
      {Llama(R"("torch_dtype":"int8")"), "torch_dtype: expected bfloat16, float16 or float32, found"},
      {Llama(R"("num_experts":8)"), "'num_experts': expected none in this model_type"},
      {Llama(R"("mamba_d_state":16)"), "'mamba_d_state': expected none"},
      {Llama(R"("vision_config":{"depth":3})"), "'vision_config': expected none"},
      {Llama(R"("layer_types":["linear_attention","full_attention"])"), "layer_types: expected full_attention or"},
      {Llama(R"("model_type":"qwen3_vl")"), "vision_config: expected an object, found none"},
      {Llama(R"("model_type":"mistral3","vision_config":{"hidden_size":8})"), "vision_config.patch_size: expected an"},
      {Llama(R"("model_type":"mistral3","vision_config":{"hidden_size":8,"patch_size":2,"num_hidden_layers":1,)"
             R"("intermediate_size":8,"window_size":4})"),
       "vision_config.'window_size': expected none"},
      {R"({"model_type":"llama4","text_config":{"hidden_size":-1}})", "text_config.hidden_size: expected an integer"},
      {R"({"model_type":"gemma3","text_config":{"model_type":"mamba"}})", "text_config.model_type: expected one of"},
      {Llama(R"("model_type":"qwen3_next","layer_types":["linear_attention","mamba"])"),
       "layer_types: expected full_attention or linear_attention"},
      {Llama(R"("model_type":"nemotron_h","hybrid_override_pattern":"M?")"),
       "hybrid_override_pattern: expected mamba (M), attention (*), mlp (-) or moe (E)"},
      {Llama(R"("model_type":"nemotron_h","hybrid_override_pattern":"M*-")"), "num_hidden_layers: expected as many as"},
      {Llama(R"("quantization_config":{"quant_method":"aqlm"})"), "quantization_config.quant_method: expected fp8"},
      {Llama(R"("quantization_config":{"quant_method":"gptq","bits":3})"), "bits: expected 4 or 8, found '3'"},
      {Llama(R"("model_type":"mixtral","num_local_experts":4,"num_experts_per_tok":5)"),
       "num_experts_per_tok: expected at most 4 experts, found 5"},
      {"llama-3.1-8bb", "did you mean 'llama-3.1-8b'?"},
      {"meta-llama/Llama-3.1-8B", "did you mean 'llama-3.1-8b'?"},
      {"deepseek-ai/DeepSeek-V3.2-Exp", "did you mean 'deepseek-v3.2'?"},
      {"{", "expected JSON"},
      {"[{}]", "expected a JSON object"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(Refused(text), HasSubstr(message)) << text;
  EXPECT_TRUE(GraphFromConfig(Llama(R"("num_beams":1,"author":"nobody","rope_theta":5e5)")).ok());
}

TEST(Config, PartsThatDoNotDivideAreRefusedByName) {
  EXPECT_THAT(Refused("gpt2", {.tensor_parallel = 2}), HasSubstr("vocab_size: expected a multiple of 2 parts"));
  EXPECT_THAT(Refused("qwen2-7b", {.tensor_parallel = 8}), HasSubstr("num_attention_heads: expected a multiple of 8"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.tensor_parallel = 0}), HasSubstr("tensor_parallel: expected 1 to"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.pipeline_parallel = 2, .pipeline_stage = 2}), HasSubstr("pipeline_stage"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.tensor_parallel = 2, .expert_parallel = 2}), HasSubstr("without experts"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.weights = "fp5"}), HasSubstr("weights: expected one of"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.lora_rank = 8, .lora_targets = "q_proj,w1"}),
              HasSubstr("lora_targets: expected all-linear, or q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.lora_targets = "all-linear"}), HasSubstr("expected a lora_rank beside it"));
  EXPECT_THAT(Refused("gpt2", {.training = true, .lora_rank = 8, .lora_targets = "gate_proj"}),
              HasSubstr("lora_targets: expected a layer that this model has"));
  EXPECT_THAT(Refused("llama-3.1-8b", {.cache = "int4"}), HasSubstr("cache: expected a type of at least 8 bits"));
}

TEST(Config, HostileTextsAreRefusedSoon) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string open(1 << 19, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += R"({"a":)";
    return text;
  }();
  for (const std::string& text :
       {open, R"({"a":)" + open, objects, std::string(2 << 20, ' ') + "{}",
        Llama(R"("vocab_size":16777216,"intermediate_size":16777216,"hidden_size":16777216)"),
        Llama(R"("num_hidden_layers":184467440737095516160)"), std::string("{\"\xFF\":1}"), std::string("{\0}", 3)}) {
    const auto graph = GraphFromConfig(text);
    if (!graph.ok()) continue;  // sizes within limits of their own may still be too much together
    EXPECT_FALSE(BindShapes(*graph, {.dims = {{"seq", 1}}}).ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace horus
