// SPDX-License-Identifier: Apache-2.0
// A step in an engine: which operators are found, and what the step can never undercut.
#include "predict/engine_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/catalogue.h"
#include "graph/from_config.h"
#include "predict/predictor.h"
#include "predict/roofline.h"

namespace horus {
namespace {

RunSpec Serving(int64_t batch, int64_t seq, int64_t past, Framework framework = Framework::kVllm) {
  RunSpec run{.mode = RunMode::kInference, .precision = Precision::kBf16, .framework = framework};
  run.dims.batch = batch;
  run.dims.dims = {{"seq", seq}};
  if (past > 0) run.dims.dims.emplace_back("past", past);
  return run;
}

JobProfile Job(const char* net, const RunSpec& run, const ConfigOptions& options = {}) {
  return *Analyse(*GraphFromConfig(net, options), run);
}

const GpuType& Gpu(const char* name) {
  static const auto catalogue = Catalogue::Default();
  return catalogue->at(*catalogue->Find(name));
}

double Count(const EngineStep& step, OperatorKind kind, NumberType type = NumberType::kBf16) {
  double count = 0;
  for (const auto& [op, times] : step.operators) count += op.kind == kind && op.type == type ? times : 0;
  return count;
}

TEST(EngineStep, EnginesTakeWhatIsMadeFromAConfig) {
  Graph exported = **GraphFromConfig("qwen2.5-0.5b", {});
  exported.producer = "pytorch";
  const auto job = Analyse(std::make_shared<const Graph>(exported), Serving(1, 1, 16));
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(job.status().message().find("made from no config, found vllm"), std::string::npos) << job.status();
}

TEST(Configs, AGraphThatServesIsNotTrained) {
  RunSpec run{.mode = RunMode::kTraining, .precision = Precision::kBf16};
  run.dims = {.batch = 1, .dims = {{"seq", 64}}};
  for (const int64_t rank : {0, 16}) {
    const auto job = Analyse(*GraphFromConfig("qwen2.5-0.5b", {.lora_rank = rank}), run);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(job.status().message().find("horus_config_options.training = 1"), std::string::npos) << job.status();
    EXPECT_TRUE(Analyse(*GraphFromConfig("qwen2.5-0.5b", {.training = true, .lora_rank = rank}), run).ok());
  }
}

// What adapters leave as it is has no gradient and no state, unless the run says what has none.
TEST(Adapters, FreezeAllElseWhereNobodySaysOtherwise) {
  RunSpec run{.mode = RunMode::kTraining, .precision = Precision::kBf16};
  run.dims = {.batch = 1, .dims = {{"seq", 64}}};
  const ConfigOptions lora{.training = true, .lora_rank = 16};
  const JobProfile unsaid = Job("qwen2.5-0.5b", run, lora);
  run.frozen = {"model.", "lm_head."};
  const JobProfile said = Job("qwen2.5-0.5b", run, lora);
  EXPECT_EQ(unsaid.profile_id, said.profile_id);
  EXPECT_EQ(unsaid.memory.gradients, said.memory.gradients);
  run.frozen = {"lm_head."};
  EXPECT_GT(Job("qwen2.5-0.5b", run, lora).memory.gradients, 10 * said.memory.gradients);
}

// The trees know no such net: they do not speed it up.
TEST(LanguageTraining, IsNoFasterThanTheRoofline) {
  for (const int64_t seq : {128, 1024, 8192}) {
    RunSpec run{.mode = RunMode::kTraining, .precision = Precision::kBf16, .optimizer = Optimizer::kAdamW};
    run.dims = {.batch = 1, .dims = {{"seq", seq}}};
    const JobProfile job = Job("llama-3.2-3b", run, {.training = true, .lora_rank = 16});
    for (const char* name : {"a100-80gb", "l40s", "h100-sxm"}) {
      const Demand demand = Predictor::Default()->Predict(job, Gpu(name));
      const double roofline_us = RooflineOf(job.cost, job.run, Gpu(name)).step_time_us;
      EXPECT_GE(static_cast<double>(demand.step_time_us.estimate) + 1, roofline_us) << name << " " << seq;
      EXPECT_GT(demand.step_time_us.upper, demand.step_time_us.estimate);
    }
  }
}

// Llama-3.1-8B: 32 layers of four products and one attention, and the logits.
TEST(EngineStep, FindsTheOperatorsOfADenseNet) {
  const EngineStep decode = Job("llama-3.1-8b", Serving(8, 1, 1024)).engine;
  EXPECT_EQ(Count(decode, OperatorKind::kProduct), 4 * 32 + 1);
  EXPECT_EQ(Count(decode, OperatorKind::kDecode), 32);
  EXPECT_EQ(Count(Job("llama-3.1-8b", Serving(1, 512, 0)).engine, OperatorKind::kPrefill), 32);
  // Of parts: sums between the GPUs, twice a layer and of the embedding.
  const EngineStep part = Job("llama-3.1-8b", Serving(8, 1, 1024), {.tensor_parallel = 4}).engine;
  EXPECT_EQ(Count(part, OperatorKind::kAllReduce), 2 * 32 + 1);
}

TEST(EngineStep, FindsExpertsLatentAttentionAndTypes) {
  const EngineStep latent = Job("deepseek-v2-lite", Serving(8, 1, 1024)).engine;
  EXPECT_EQ(Count(latent, OperatorKind::kLatentDecode), 27);
  EXPECT_EQ(Count(latent, OperatorKind::kExperts), 26);
  EXPECT_EQ(Count(Job("llama-3.1-8b", Serving(8, 1, 1024), {.weights = "fp8"}).engine, OperatorKind::kProduct,
                  NumberType::kFp8),
            4 * 32);
  EXPECT_EQ(Count(Job("llama-3.1-8b", Serving(8, 1, 1024), {.weights = "nvfp4"}).engine, OperatorKind::kProduct,
                  NumberType::kNvfp4),
            4 * 32);
  EXPECT_EQ(Count(Job("llama-3.1-8b", Serving(8, 1, 1024), {.weights = "int4"}).engine, OperatorKind::kProduct,
                  NumberType::kInt4Weights),
            4 * 32);
}

// Qwen3-Next: 36 delta nets and 12 attentions.
TEST(EngineStep, FindsLinearAttention) {
  const EngineStep decode = Job("qwen3-next-80b-a3b", Serving(8, 1, 1024)).engine;
  EXPECT_EQ(Count(decode, OperatorKind::kLinearDecode), 36);
  EXPECT_EQ(Count(decode, OperatorKind::kConvolution), 36);
  EXPECT_EQ(Count(decode, OperatorKind::kDecode), 12);
  EXPECT_EQ(Count(Job("qwen3-next-80b-a3b", Serving(1, 512, 0)).engine, OperatorKind::kLinearPrefill), 36);
  EXPECT_EQ(Count(Job("nemotron-3-nano-30b-a3b", Serving(8, 1, 1024)).engine, OperatorKind::kLinearDecode), 23);
}

struct Stepped {
  const char *net, *weights;
  int64_t batch, seq, past;
};

// Nothing is faster than FLOPs over the peak of their type, nor than bytes over the bandwidth, as `inspect` shows both:
// whatever trees and what is known of engines make of a law. A bound lies clearly above.
TEST(EngineStep, NoOperatorIsFasterThanTheHardware) {
  constexpr Stepped kSteps[] = {{"llama-3.1-8b", "", 1, 1, 128},         {"llama-3.1-8b", "", 1, 8192, 57344},
                                {"llama-3.1-8b", "int8", 1, 1, 1000},    {"tinyllama-1.1b", "", 1, 32768, 0},
                                {"gemma-2b", "", 1, 8192, 57344},        {"qwen3-30b-a3b", "int8", 32, 1, 1000},
                                {"mixtral-8x7b", "int4", 8, 1, 1000},    {"qwen3-next-80b-a3b", "", 1024, 1, 1000},
                                {"deepseek-v2-lite", "", 1, 8192, 57344}};
  for (const Stepped& one : kSteps) {
    for (const Framework engine : {Framework::kVllm, Framework::kTensorRtLlm}) {
      const JobProfile job = Job(one.net, Serving(one.batch, one.seq, one.past, engine), {.weights = one.weights});
      for (const char* name : {"a100-80gb", "h100-sxm", "l40s", "b200", "rtx-4090", "rtx-5090", "l4"}) {
        const GpuType& gpu = Gpu(name);
        const std::vector<double> times = OperatorTimesOf(*job.shaped, job.cost, job.run, gpu);
        const bool int8 = std::string_view(one.weights) == "int8";
        const auto peak = static_cast<double>(int8 ? gpu.int8_gops : gpu.bf16_gflops) * 1e3;
        for (size_t i = 0; i < times.size(); ++i) {
          const PassCost& cost = job.cost.ops[i].forward;
          if (cost.kernels <= 0) continue;
          EXPECT_GE(times[i] * 1.000001, cost.AllFlops() / peak) << one.net << " " << name << " operator " << i;
          EXPECT_GE(times[i] * 1.000001, cost.bytes / static_cast<double>(gpu.mem_bandwidth_mb_s))
              << one.net << " " << name << " operator " << i;
        }
        const EngineTime time = TimeOf(job.engine, gpu);
        EXPECT_GE(time.step_upper_us, 1.05 * time.step_us) << one.net << " " << name;
      }
    }
  }
}

// A net reads at each step what L2 cannot hold, in every framework; of experts those that a token chooses. Where a
// floor lifts the estimate, the bound rises with it.
TEST(LanguageInference, IsNoFasterThanReadingTheWeights) {
  for (const Framework framework : {Framework::kPyTorch, Framework::kPyTorchCompiled}) {
    RunSpec run = Serving(1, 1, 200, framework);
    const JobProfile dense = Job("llama-3.1-8b", run), experts = Job("mixtral-8x7b", run);
    run.dims.dims = {{"seq", 2048}};
    const JobProfile prompt = Job("mixtral-8x7b", run);
    for (const char* name : {"a100-80gb", "h100-sxm", "l4", "rtx-4090"}) {
      const GpuType& gpu = Gpu(name);
      const double weights_us = 2 * 7.5e9 / static_cast<double>(gpu.mem_bandwidth_mb_s);
      const Demand demand = Predictor::Default()->Predict(dense, gpu);
      EXPECT_GE(static_cast<double>(demand.step_time_us.estimate), weights_us) << name;
      GpuType cached = gpu;
      cached.l2_kib = int64_t{32} << 20;
      EXPECT_LT(FloorUs(dense.cost, dense.run, cached), weights_us / 2) << name;
      const double all_us = 2 * 46.7e9 / static_cast<double>(gpu.mem_bandwidth_mb_s);
      EXPECT_LT(FloorUs(experts.cost, experts.run, gpu), 0.35 * all_us) << name;
      EXPECT_GT(FloorUs(experts.cost, experts.run, gpu), 0.25 * all_us) << name;
      for (const JobProfile* job : {&dense, &experts, &prompt}) {
        const BoundedInt step = Predictor::Default()->Predict(*job, gpu).step_time_us;
        EXPECT_GE(static_cast<double>(step.upper), 1.1 * static_cast<double>(step.estimate)) << name;
      }
    }
  }
}

TEST(EngineStep, MoreSequencesAndLongerContextsTakeLonger) {
  const GpuType& gpu = Gpu("h100-sxm");
  const auto step_us = [&gpu](int64_t batch, int64_t past) {
    return TimeOf(Job("llama-3.1-8b", Serving(batch, 1, past)).engine, gpu).step_us;
  };
  EXPECT_LT(step_us(1, 1024), step_us(64, 1024));
  EXPECT_LT(step_us(64, 1024), step_us(64, 8192));
  EXPECT_LT(step_us(64, 1024), 64 * step_us(1, 1024) / 8);  // weights are read once for all
}

TEST(EngineStep, ADemandSaysTheStepOfTheEngine) {
  const JobProfile job = Job("llama-3.1-8b", Serving(16, 1, 2048));
  const Demand demand = Predictor::Default()->Predict(job, Gpu("h100-sxm"));
  const EngineTime time = TimeOf(job.engine, Gpu("h100-sxm"));
  EXPECT_NEAR(static_cast<double>(demand.step_time_us.estimate), time.step_us, 1 + 0.001 * time.step_us);
  EXPECT_GE(demand.step_time_us.upper, demand.step_time_us.estimate);
}

// Qwen-7B of 2023, whose 32 layers are Llama 2's but for the vocabulary, generated 40.93 tokens a second on an A100.
TEST(EngineStep, EagerPyTorchTakesTheHostsTimeForEachLayer) {
  RunSpec run = Serving(1, 1, 1024);
  run.framework = Framework::kPyTorch;
  const Demand demand =
      Predictor::Default()->Predict(*Analyse(*GraphFromConfig("llama-2-7b", {}), run), Gpu("a100-80gb"));
  EXPECT_NEAR(static_cast<double>(demand.step_time_us.estimate) / 1e6, 1 / 40.93, 0.1 / 40.93);
  EXPECT_LT(demand.gpu_util_pct.estimate, 50);  // the weights take a third of it to read
  EXPECT_GE(demand.step_time_us.upper, demand.step_time_us.estimate);
}

// A longer cache is made at each step: it is read twice and written once.
TEST(EngineStep, EagerPyTorchCopiesTheCache) {
  RunSpec run = Serving(64, 1, 4096);
  const double engine = static_cast<double>(Analyse(*GraphFromConfig("llama-3.1-8b", {}), run)->cost.StepBytes());
  run.framework = Framework::kPyTorch;
  const auto job = Analyse(*GraphFromConfig("llama-3.1-8b", {}), run);
  EXPECT_NEAR((job->cost.StepBytes() - engine) / job->cost.cache_bytes, 2, 0.1);
}

TEST(EngineStep, EnginesDoNotTrain) {
  RunSpec run = Serving(1, 128, 0);
  run.mode = RunMode::kTraining;
  const auto job = Analyse(*GraphFromConfig("gpt2", {.training = true}), run);
  ASSERT_FALSE(job.ok());
  EXPECT_NE(std::string(job.status().message()).find("vllm"), std::string::npos) << job.status();
}

}  // namespace
}  // namespace horus
