// SPDX-License-Identifier: Apache-2.0
// What steps of language models cost: prefill, decoding, experts, latent attention, collectives, adapters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "features/cost.h"
#include "features/memory.h"
#include "graph/from_config.h"

namespace horus {
namespace {

struct Step {
  ShapedGraph shaped;
  StepCost cost;
  StepMemory memory;
};

Step StepOf(std::string_view model, int64_t batch, int64_t seq, int64_t past, const ConfigOptions& options = {},
            std::vector<std::string> frozen = {}, std::optional<Framework> framework = {},
            Precision precision = Precision::kBf16) {
  Step step;
  const auto graph = GraphFromConfig(model, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
  RunSpec run{.mode = options.training ? RunMode::kTraining : RunMode::kInference, .precision = precision};
  run.frozen = std::move(frozen);
  run.framework = framework.value_or(options.training ? Framework::kPyTorch : Framework::kVllm);
  run.dims = {.batch = batch, .dims = {{"seq", seq}}};
  if (past > 0) run.dims.dims.emplace_back("past", past);
  step.shaped = BindShapes(*graph, run.dims).value();
  step.cost = CostOfStep(step.shaped, run);
  step.memory = MemoryOfStep(step.shaped, step.cost, run, 0);
  EXPECT_EQ(step.cost.coverage.ops_known, step.cost.coverage.ops);
  return step;
}

// Sum over the operators of a type.
template <typename Amount>
double SumOf(const Step& step, std::string_view type, Amount amount) {
  double sum = 0;
  for (size_t i = 0; i < step.shaped.ops.size(); ++i) {
    if (step.shaped.ops[i].node->op_type == type) sum += amount(step.cost.ops[i]);
  }
  return sum;
}
double FlopsOf(const Step& step, std::string_view type) {
  return SumOf(step, type, [](const OpCost& op) { return op.forward.flops; });
}
double BytesOf(const Step& step, std::string_view type) {
  return SumOf(step, type, [](const OpCost& op) { return op.forward.bytes; });
}

// Eager norms, rotations and adapters are many kernels; torch.compile and engines have one.
TEST(LanguageModel, EagerModeReadsAndWritesMore) {
  const ConfigOptions adapters{.training = true, .lora_rank = 8};
  const auto bytes = [&](Framework framework, const char* type) {
    return BytesOf(StepOf("llama-3.2-1b", 1, 256, 0, adapters, {}, framework), type);
  };
  for (const char* type : {"SimplifiedLayerNormalization", "RotaryEmbedding", "MatMul"}) {
    EXPECT_GT(bytes(Framework::kPyTorch, type), bytes(Framework::kPyTorchCompiled, type)) << type;
  }
  EXPECT_EQ(BytesOf(StepOf("llama-3.2-1b", 1, 256, 0), "MatMul"),
            BytesOf(StepOf("llama-3.2-1b", 1, 256, 0, {}, {}, Framework::kVllm), "MatMul"))
      << "without adapters nothing is dropped or cast";
}

TEST(LanguageModel, DecodingReadsEveryWeightOnceAndTheCache) {
  const Step step = StepOf("llama-3.1-8b", 1, 1, 4096);
  constexpr double kEmbedding = 128256.0 * 4096, kParameters = 8'030'261'248;
  const double weights = 2 * (kParameters - kEmbedding);
  EXPECT_NEAR(BytesOf(step, "MatMul") / weights, 1, 1e-3);
  EXPECT_NEAR(FlopsOf(step, "MatMul"), weights - 2 * 65 * 4096, 1);  // norms multiply elsewhere
  constexpr double kCache = 2.0 * 32 * 8 * 128 * 4096 * 2;
  EXPECT_NEAR(BytesOf(step, "GroupQueryAttention") / kCache, 1, 2e-3);
}

// DeepSeek-V4's layers: a window alone, keys of four tokens of which the best are read, keys of 128 tokens.
TEST(LanguageModel, KeysThatTokensShareAreReadAndHeldByTheirPart) {
  const auto step = [](const char* ratios, int64_t past) {
    return StepOf(R"({"model_type":"deepseek_v4","hidden_size":1024,"num_hidden_layers":2,"num_attention_heads":16,)"
                  R"("vocab_size":1000,"max_position_embeddings":262144,"q_lora_rank":256,"n_routed_experts":4,)"
                  R"("num_experts_per_tok":1,"moe_intermediate_size":256,"index_topk":512,"compress_ratios":)" +
                      std::string(ratios) + "}",
                  1, 1, past);
  };
  const auto flops = [&](const char* ratios, int64_t past) {
    return FlopsOf(step(ratios, past), "GroupQueryAttention");
  };
  constexpr double kToken = 4.0 * 16 * 512;  // FLOPs of one token's key
  EXPECT_EQ(flops("[0,0]", 65'536), 2 * kToken * 128);
  EXPECT_EQ(flops("[4,4]", 65'536), 2 * kToken * (128 + 512));
  EXPECT_EQ(flops("[4,4]", 131'072), flops("[4,4]", 65'536));
  EXPECT_NEAR(flops("[128,128]", 65'536), 2 * kToken * (128 + 512), kToken);
  constexpr int64_t kPast = 65'536, kElements = 2;  // bytes of one; index keys have one byte, and four of scale
  const auto held = [&](const char* ratios) {
    return step(ratios, kPast).memory.inputs - step(ratios, 128).memory.inputs;
  };
  EXPECT_EQ(held("[128,128]"), 2 * (kPast - 128) * (512 / 128) * kElements);
  EXPECT_EQ(held("[4,4]"), 2 * (kPast - 128) * (512 / 4 * kElements + (128 + 4) / 4));
}

TEST(LanguageModel, TheCacheIsHeldOnceAndItsBytesAreExact) {
  constexpr int64_t kToken = 2 * 32 * 8 * 128 * 2;  // keys and values, layers, heads, head size, bytes
  for (const auto& [batch, seq, past] : {std::array<int64_t, 3>{1, 1, 4095}, {1, 4096, 0}, {4, 512, 512}}) {
    const Step step = StepOf("llama-3.1-8b", batch, seq, past);
    const int64_t numbers = 2 * 8 * batch * seq;  // tokens and positions
    EXPECT_EQ(step.memory.inputs - numbers, batch * (seq + past) * kToken);
    EXPECT_EQ(step.cost.input_bytes, numbers);  // the cache is not copied from the host
  }
  const Step eight = StepOf("llama-3.1-8b", 1, 1, 4095, {.tensor_parallel = 4, .cache = "fp8"});
  EXPECT_EQ(eight.memory.inputs - 16, 4096 * kToken / 8);
}

TEST(LanguageModel, PyTorchByItselfHoldsTheCacheTwice) {
  constexpr int64_t kCache = int64_t{8} * 4096 * 2 * 32 * 8 * 128 * 2;
  const Step eager = StepOf("llama-3.1-8b", 8, 1, 4095, {}, {}, Framework::kPyTorch);
  const Step engine = StepOf("llama-3.1-8b", 8, 1, 4095, {}, {}, Framework::kVllm);
  EXPECT_EQ(eager.memory.allocator_slack - engine.memory.allocator_slack, kCache);
}

TEST(LanguageModel, PrefillIsCausal) {
  constexpr double kSeq = 1000, kPast = 24;
  const Step step = StepOf("llama-3.1-8b", 3, 1000, 24);
  double keys = 0;
  for (int i = 0; i < kSeq; ++i) keys += kPast + i + 1;
  EXPECT_NEAR(FlopsOf(step, "GroupQueryAttention") / (32 * 3 * 4 * keys * 4096), 1, 1e-12);
}

TEST(LanguageModel, OfASlidingWindowOnlyTheWindowCounts) {
  const Step within = StepOf("mistral-7b-v0.1", 1, 1, 4095), beyond = StepOf("mistral-7b-v0.1", 1, 1, 30000);
  EXPECT_EQ(FlopsOf(within, "GroupQueryAttention"), FlopsOf(beyond, "GroupQueryAttention"));
  EXPECT_NEAR(BytesOf(within, "GroupQueryAttention") / BytesOf(beyond, "GroupQueryAttention"), 1, 1e-3);
  double keys = 0;
  for (int i = 0; i < 6000; ++i) keys += std::min(1000 + i + 1, 4096);
  EXPECT_NEAR(FlopsOf(StepOf("mistral-7b-v0.1", 1, 6000, 1000), "GroupQueryAttention") / (32 * 4 * keys * 4096), 1,
              1e-12);
}

TEST(LanguageModel, ExpertsThatNoTokenGoesToAreNotRead) {
  constexpr double kExpert = 3.0 * 4096 * 14336;
  for (const int64_t tokens : {1, 4, 1000}) {
    const Step step = StepOf("mixtral-8x7b", tokens, 1, 1);
    const auto count = static_cast<double>(tokens);
    const double touched = 8 * (1 - std::pow(1 - 2.0 / 8, count));
    const double routed = 2 * (3 * 4096 + 2 * 2 * 14336 + 2 * 14336), whole = 2 * 4096 + 8;  // scores too
    const double activations = 32 * 2 * count * (routed + whole);
    EXPECT_NEAR((BytesOf(step, "MoE") - activations) / (32 * 2 * touched * kExpert), 1, 1e-9) << tokens;
    EXPECT_NEAR(FlopsOf(step, "MoE") / (32 * 2 * count * 2 * kExpert), 1, 1e-9);
    const Step part = StepOf("mixtral-8x7b", tokens, 1, 1, {.tensor_parallel = 8, .expert_parallel = 8});
    EXPECT_NEAR(8 * FlopsOf(part, "MoE") / FlopsOf(step, "MoE"), 1, 1e-9);
  }
}

TEST(LanguageModel, LatentAttentionTakesTheCheaperWay) {
  // Decoding: queries into the latent space of 512 (+ 64) and results out of it. Prefill: keys and values are made.
  constexpr double kLayers = 27, kHeads = 16, kProduct = 2.0 * 512 * kHeads * (128 + 128);
  EXPECT_NEAR(FlopsOf(StepOf("deepseek-v2-lite", 1, 1, 4095), "LatentAttention") /
                  (kLayers * (kProduct + 2 * kHeads * 4096.0 * (512 + 64 + 512))),
              1, 1e-9);
  constexpr double kKeys = 2048.0 * 2049 / 2;
  EXPECT_NEAR(FlopsOf(StepOf("deepseek-v2-lite", 1, 2048, 0), "LatentAttention") /
                  (kLayers * (2048 * kProduct + 2 * kHeads * kKeys * (128 + 64 + 128))),
              1, 1e-9);
  const Step step = StepOf("deepseek-v2-lite", 2, 1, 99);
  EXPECT_EQ(step.memory.inputs - 32, int64_t{27} * 2 * 100 * (512 + 64) * 2);
}

// A request of Qwen3.5-27B holds 153.9 MB of states and 65.5 KB a token (SGLang's cookbook of the same sizes).
TEST(LanguageModel, StatesDoNotGrowWithTheContext) {
  constexpr int64_t kStates = int64_t{48} * (48 * 128 * 128 * 4 + (2 * 16 + 48) * 128 * 3 * 2);
  constexpr int64_t kToken = int64_t{16} * 2 * 4 * 256 * 2;
  for (const auto& [batch, seq, past] : {std::array<int64_t, 3>{1, 1, 4095}, {1, 4096, 0}, {4, 512, 512}}) {
    const Step step = StepOf("qwen3.5-27b", batch, seq, past);
    EXPECT_EQ(step.memory.inputs - 2 * 8 * batch * seq, batch * (kStates + (seq + past) * kToken));
  }
  // A step of decoding reads each state and writes it, and all else of the linear layers is small.
  const Step step = StepOf("qwen3.5-27b", 64, 1, 64);
  EXPECT_NEAR(BytesOf(step, "LinearAttention") / (2 * 64 * 48.0 * 48 * 128 * 128 * 4), 1, 0.02);
}

TEST(LanguageModel, SparseAttentionReadsNoMoreThanTheIndexerChooses) {
  const Step within = StepOf("glm-5", 1, 1, 2047), beyond = StepOf("glm-5", 1, 1, 100'000);
  EXPECT_EQ(FlopsOf(within, "LatentAttention"), FlopsOf(beyond, "LatentAttention"));
  EXPECT_NEAR(BytesOf(within, "LatentAttention") / BytesOf(beyond, "LatentAttention"), 1, 2e-3);
  // The indexer scores all tokens; its keys have 128 bytes and a scale.
  EXPECT_EQ(FlopsOf(beyond, "IndexAttention"), 78 * 2.0 * 100'001 * 32 * 128);
  EXPECT_EQ(beyond.memory.inputs - 16, int64_t{78} * 100'001 * ((512 + 64) * 2 + 128 + 4));
}

TEST(LanguageModel, WeightsThatNobodyStatedFollowARunInFloat32) {
  const auto trained = [](Precision precision, const char* weights) {
    return StepOf("llama-3.2-1b", 1, 64, 0, {.training = true, .weights = weights}, {}, Framework::kPyTorch, precision)
        .memory;
  };
  const StepMemory two = trained(Precision::kBf16, "");
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kFp32Ieee}) {
    EXPECT_EQ(trained(precision, "").weights, 2 * two.weights);
    EXPECT_EQ(trained(precision, "").gradients, 2 * two.gradients);
    EXPECT_EQ(trained(precision, "bf16").weights, two.weights) << "stated";
  }
  EXPECT_EQ(trained(Precision::kAmpBf16, "").weights, two.weights) << "autocast keeps the type of the file";
  const auto cache = [](const char* stated) {
    return StepOf("llama-3.1-8b", 1, 1, 4095, {.cache = stated}, {}, Framework::kPyTorch, Precision::kFp32)
               .memory.inputs -
           16;
  };
  EXPECT_EQ(cache(""), 2 * cache("bf16"));
}

TEST(LanguageModel, AVisionTowerIsHeldAndNotComputed) {
  const Step text = StepOf("qwen3-8b", 1, 1, 100), both = StepOf("qwen3-vl-8b", 1, 1, 100);
  constexpr int64_t kTower = 8'767'123'696 - 8'190'735'360;
  EXPECT_EQ(both.cost.parameters - text.cost.parameters, kTower);
  EXPECT_EQ(both.cost.totals.forward.flops, text.cost.totals.forward.flops);
  EXPECT_EQ(both.cost.totals.forward.kernels, text.cost.totals.forward.kernels);
}

TEST(LanguageModel, PartsThatShareLayersAddUpTheirResults) {
  const Step step = StepOf("llama-3.1-8b", 4, 2, 8, {.tensor_parallel = 2}, {}, Framework::kPyTorch);
  EXPECT_EQ(BytesOf(step, "AllReduce"), (1 + 2 * 32) * 2 * (4 * 2 * 4096 * 2.0));  // embedding, and two a layer
  EXPECT_EQ(BytesOf(StepOf("llama-3.1-8b", 4, 2, 8), "AllReduce"), 0);
}

TEST(LanguageModel, AdaptersAloneAreTrained) {
  const std::vector<std::string> frozen = {"model.", "lm_head."};
  const Step step = StepOf("llama-3.1-8b", 1, 64, 0, {.training = true, .lora_rank = 16, .weights = "int4"}, frozen);
  constexpr double kRank = 16, kHidden = 4096, kKeys = 1024;
  EXPECT_EQ(step.cost.parameters, 32 * kRank * (2 * (kHidden + kHidden) + 2 * (kHidden + kKeys)));
  EXPECT_EQ(step.memory.gradients, static_cast<int64_t>(2 * step.cost.parameters));
  constexpr double kTables = 2.0 * 128256 * kHidden, kLinear = 8'030'261'248 - kTables;
  constexpr double kBits = 4 + 16.0 / 128;  // and a scale for each 128
  EXPECT_NEAR(static_cast<double>(step.memory.weights) / (2 * kTables + kLinear * kBits / 8), 1, 0.02);

  constexpr double kInner = 14336;
  const auto trained = [&](const char* targets) {
    return StepOf("llama-3.1-8b", 1, 64, 0, {.training = true, .lora_rank = 16, .lora_targets = targets}, frozen)
        .cost.parameters;
  };
  EXPECT_EQ(trained("all-linear"), step.cost.parameters + 32 * kRank * 3 * (kHidden + kInner));
  EXPECT_EQ(trained("q_proj,v_proj"), 32 * kRank * (kHidden + kHidden + kHidden + kKeys));
}

}  // namespace
}  // namespace horus
