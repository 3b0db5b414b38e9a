// SPDX-License-Identifier: Apache-2.0
// Rules of served models: what must hold whatever the figures are.
#include "predict/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "device/catalogue.h"
#include "graph/from_config.h"

namespace horus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::shared_ptr<const Catalogue>& Gpus() {
  static const std::shared_ptr<const Catalogue> gpus = Catalogue::Default();
  return gpus;
}

RunSpec Serving() {
  return {.mode = RunMode::kInference, .precision = Precision::kBf16, .framework = Framework::kVllm};
}

// A chat.
ServiceLoad Load(double requests_per_s) {
  return {.requests_per_s = requests_per_s, .tokens_in = 1024, .tokens_out = 256};
}

absl::StatusOr<std::vector<Service>> Serve(const ServiceLoad& load, const std::vector<std::string>& names,
                                           const char* net = "llama-3.1-8b", const RunSpec& run = Serving(),
                                           const ConfigOptions& options = {}) {
  std::vector<const GpuType*> types;
  for (const std::string& name : names) types.push_back(&Gpus()->at(*Gpus()->Find(name)));
  const auto graph = GraphFromConfig(net, options);
  if (!graph.ok()) return graph.status();
  return PredictServices(*Predictor::Default(), *graph, run, load, types);
}

Service On(const ServiceLoad& load, const std::string& gpu, const char* net = "llama-3.1-8b",
           const ConfigOptions& options = {}) {
  auto services = Serve(load, {gpu}, net, Serving(), options);
  EXPECT_TRUE(services.ok()) << services.status();
  return services.ok() ? services->front() : Service{};
}

TEST(ServiceTest, MoreRequestsNeverMakeAnythingFasterNorSmaller) {
  Service before = On(Load(0.01), "a100-80gb");
  for (const double rate : {0.1, 1.0, 4.0, 8.0}) {
    const Service service = On(Load(rate), "a100-80gb");
    ASSERT_EQ(service.verdict, ServiceVerdict::kServed) << rate;
    EXPECT_GE(service.running, before.running);
    EXPECT_GE(service.token.estimate_us, before.token.estimate_us);
    EXPECT_GE(service.first_token.upper_us, before.first_token.upper_us);
    EXPECT_GE(service.memory_mib(), before.memory_mib());
    EXPECT_GE(service.busy, before.busy);
    EXPECT_LE(service.largest_slowdown, before.largest_slowdown);
    before = service;
  }
}

// Little's law: those who run are those who come, times how long each stays.
TEST(ServiceTest, ThoseWhoRunAreThoseWhoComeTimesHowLongTheyStay) {
  const ServiceLoad load = Load(5);
  const Service service = On(load, "h100-sxm");
  const double request_us = service.first_token.estimate_us + load.tokens_out * service.token.estimate_us;
  EXPECT_NEAR(service.running, load.requests_per_s * request_us / 1e6, 1e-3 * service.running);
  EXPECT_DOUBLE_EQ(service.tokens_per_s, load.requests_per_s * load.tokens_out);
}

TEST(ServiceTest, TheMostThatIsServedIsServedAndMoreIsNot) {
  for (const double token_us : {0.0, 30'000.0}) {
    ServiceLoad load = Load(1);
    load.token_us = token_us;
    const double most = On(load, "h100-sxm").most_requests_per_s;
    ASSERT_GT(most, 1);
    load.requests_per_s = 0.99 * most;
    EXPECT_EQ(On(load, "h100-sxm").verdict, ServiceVerdict::kServed);
    load.requests_per_s = 1.05 * most;
    EXPECT_EQ(On(load, "h100-sxm").verdict, token_us > 0 ? ServiceVerdict::kLate : ServiceVerdict::kOverloaded);
  }
}

TEST(ServiceTest, BeyondTheMostTheFiguresAreThoseOfTheMost) {
  const Service service = On(Load(1000), "h100-sxm");
  EXPECT_EQ(service.verdict, ServiceVerdict::kOverloaded);
  EXPECT_NEAR(service.requests_per_s, service.most_requests_per_s, 0.05 * service.most_requests_per_s);
  EXPECT_LT(service.largest_slowdown, 1);
  EXPECT_LT(service.demand.slowdown_bound, 1) << "so that no place is found";
}

TEST(ServiceTest, TighterPromisesLeaveLessToOthers) {
  ServiceLoad load = Load(3);
  const Service free = On(load, "h100-sxm");
  EXPECT_LE(free.demand.slowdown_bound, 2) << "nothing is promised, and yet nobody may slow it without end";
  float before = 1e6F;
  for (const double token_us : {100'000.0, 50'000.0, 20'000.0}) {
    load.token_us = token_us;
    const Service service = On(load, "h100-sxm");
    EXPECT_LT(service.demand.slowdown_bound, before);
    EXPECT_GE(service.demand.slowdown_bound, 1);
    before = service.demand.slowdown_bound;
  }
  load.token_us = 1000;
  const Service late = On(load, "h100-sxm");
  EXPECT_EQ(late.verdict, ServiceVerdict::kLate);
  EXPECT_LT(late.demand.slowdown_bound, 1);
}

TEST(ServiceTest, MemoryIsTheSumOfItsPartsAndHoldsTheLongestRequest) {
  ServiceLoad load = Load(0.01);
  load.longest = 100'000;
  const Service service = On(load, "a100-80gb");
  EXPECT_GE(service.cache_tokens, load.longest);
  // 32 layers, keys and values of 8 heads of 128 in two bytes.
  EXPECT_NEAR(service.cache_mib, service.cache_tokens * 32 * 2 * 8 * 128 * 2 / 1048576, 1);
  EXPECT_NEAR(service.weights_mib, 8'030'261'248.0 * 2 / 1048576, 40);
  EXPECT_EQ(service.demand.mem_mib.upper, static_cast<int64_t>(std::ceil(service.memory_mib())));
  load.longest = 131'072;  // 16 GiB, beside as much of weights
  EXPECT_EQ(On(load, "v100-sxm2-32gb").verdict, ServiceVerdict::kNoRoom);
}

// Slowed twice, twice as many and more run at once: there must be cache for them, and the engine must admit them.
TEST(ServiceTest, HasRoomForTheRequestsThatNeighboursMakeWait) {
  const ServiceLoad load = Load(5);
  const Service service = On(load, "h100-sxm");
  ASSERT_EQ(service.demand.slowdown_bound, 2);
  EXPECT_GE(service.most_running, 2 * service.running);
  EXPECT_GE(service.cache_tokens, service.most_running * (load.tokens_in + load.tokens_out / 2));
  EXPECT_EQ(std::fmod(service.cache_tokens, 16), 0) << "whole blocks";
}

// What a load takes that nobody slows is all but that room.
TEST(ServiceTest, TellsTheRoomForNeighboursFromWhatTheLoadNeeds) {
  ServiceLoad load = Load(5);
  const Service free = On(load, "h100-sxm");
  EXPECT_GT(free.room_mib, 0.2 * free.cache_mib);
  EXPECT_LT(free.room_mib, free.cache_mib);
  EXPECT_EQ(free.largest_slowdown, free.demand.slowdown_bound) << "one figure in all places";
  load.token_us = 1.01 * free.token.upper_us;
  const Service tight = On(load, "h100-sxm");
  EXPECT_LT(tight.room_mib, 0.1 * tight.cache_mib);
  EXPECT_NEAR(tight.memory_mib() - tight.room_mib, free.memory_mib() - free.room_mib, 0.05 * free.memory_mib());
}

TEST(ServiceTest, FewerBitsOfTheCacheHoldMore) {
  const ServiceLoad load = Load(5);
  const Service whole = On(load, "h100-sxm"), half = On(load, "h100-sxm", "llama-3.1-8b", {.cache = "fp8"});
  EXPECT_NEAR(half.cache_mib / half.cache_tokens, whole.cache_mib / whole.cache_tokens / 2, 1e-6);
}

// Qwen3.5-27B: each request has states of 153.9 MB besides its tokens, 64 KiB each.
TEST(ServiceTest, EachRequestHasItsStates) {
  RunSpec run = Serving();
  const ServiceLoad load{.concurrency = 32, .tokens_in = 1024, .tokens_out = 256};
  for (const Framework engine : {Framework::kVllm, Framework::kSglang, Framework::kTensorRtLlm}) {
    run.framework = engine;
    const Service service = Serve(load, {"b200"}, "qwen3.5-27b", run)->front();
    ASSERT_EQ(service.verdict, ServiceVerdict::kServed);
    const double states_mib = service.cache_mib - service.cache_tokens / 16;
    const double exact = service.most_running * 153'944'064 / 1048576;
    EXPECT_GE(states_mib, 0.999 * exact) << Name(engine);
    EXPECT_LE(states_mib, 1.02 * exact) << Name(engine) << ": of vLLM's pages a little is empty";
    EXPECT_EQ(service.engine_arguments.find("--disable-radix-cache") != std::string::npos,
              engine == Framework::kSglang);
  }
  // Where states fill the memory, fewer run.
  const Service full = On({.concurrency = 1024, .tokens_in = 64, .tokens_out = 64}, "h100-sxm", "qwen3.5-27b");
  EXPECT_LT(full.most_running * 153'944'064 / 1048576, 80 * 1024 - full.weights_mib);
}

TEST(ServiceTest, GpusThatShareAModelHoldAPartEach) {
  const ServiceLoad load = Load(2);
  const Service one = On(load, "h100-sxm"), two = On(load, "h100-sxm", "llama-3.1-8b", {.tensor_parallel = 2});
  EXPECT_NEAR(two.weights_mib, one.weights_mib / 2, 0.02 * one.weights_mib);
  EXPECT_GT(two.engine_mib, one.engine_mib) << "buffers of collectives";
  EXPECT_LT(two.token.estimate_us, one.token.estimate_us);
}

// A model that does not fit must not be placed, however small its load.
TEST(ServiceTest, WhatDoesNotFitSaysSo) {
  const Service service = On(Load(0.1), "t4", "llama-3.1-70b");
  EXPECT_EQ(service.verdict, ServiceVerdict::kNoRoom);
  EXPECT_NE(service.demand.flags & kDemandTooLarge, 0U);
  EXPECT_GT(service.demand.mem_mib.upper, Gpus()->at(*Gpus()->Find("t4")).mem_mib);
}

TEST(ServiceTest, UsersWhoAskAgainAreAllServed) {
  ServiceLoad load{.concurrency = 32, .tokens_in = 1024, .tokens_out = 256};
  const Service service = On(load, "h100-sxm");
  EXPECT_EQ(service.running, 32);
  EXPECT_EQ(service.busy, 1);
  EXPECT_EQ(service.most_requests_per_s, 0);
  load.concurrency = 64;
  EXPECT_GT(On(load, "h100-sxm").tokens_per_s, service.tokens_per_s);
}

// A prompt is computed in chunks behind each other, and nobody waits for a prompt of his own.
TEST(ServiceTest, TheFirstTokenOfALoneUserTakesTheStepsOfItsChunks) {
  const auto graph = *GraphFromConfig("llama-3.1-8b", {});
  const auto step_us = [&graph](double seq, double past, const GpuType& gpu) {
    RunSpec run = Serving();
    run.dims.batch = 1;
    run.dims.dims = {{"seq", static_cast<int64_t>(seq)}, {"past", static_cast<int64_t>(past)}};
    if (past == 0) run.dims.dims.pop_back();
    return TimeOf(Analyse(graph, run)->engine, gpu).step_us;
  };
  for (const char* name : {"h100-sxm", "a100-80gb"}) {
    const GpuType& gpu = Gpus()->at(*Gpus()->Find(name));
    for (const double tokens : {1024.0, 4096.0, 16'384.0, 50'000.0, 120'000.0}) {
      constexpr double kEntryUs = 30'000;
      double sum_us = kEntryUs + step_us(1, tokens, gpu);
      for (double past = 0; past < tokens; past += ChunkTokens(gpu))
        sum_us += step_us(std::min(ChunkTokens(gpu), tokens - past), past, gpu);
      const Service users = On({.concurrency = 1, .tokens_in = tokens, .tokens_out = 256}, name);
      const Service idle = On({.requests_per_s = 0.001, .tokens_in = tokens, .tokens_out = 256}, name);
      EXPECT_NEAR(users.first_token.estimate_us, sum_us, 0.05 * sum_us) << name << " " << tokens;
      EXPECT_NEAR(idle.first_token.estimate_us, sum_us, 0.05 * sum_us) << name << " " << tokens;
    }
  }
}

// Of more users than the cache holds some wait for their first token, and nobody's tokens come later.
TEST(ServiceTest, WhoFindsNoRoomInTheCacheWaits) {
  ServiceLoad load{.concurrency = 64, .tokens_in = 8192, .tokens_out = 1024};
  const ConfigOptions options{.tensor_parallel = 2, .weights = "fp8"};
  const Service service = On(load, "h100-sxm", "llama-3.1-70b", options);
  EXPECT_LT(service.running, 40);
  EXPECT_GT(service.first_token.estimate_us, 10e6);
  load.concurrency = 128;
  const Service twice = On(load, "h100-sxm", "llama-3.1-70b", options);
  EXPECT_DOUBLE_EQ(twice.token.estimate_us, service.token.estimate_us);
  EXPECT_GT(twice.first_token.estimate_us, service.first_token.estimate_us);
}

TEST(ServiceTest, AnAnswerDoesNotDependOnTheOtherTypesAsked) {
  const ServiceLoad load = Load(3);
  const auto both = Serve(load, {"l40s", "h100-sxm"});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)[1].demand, On(load, "h100-sxm").demand);
  EXPECT_EQ((*both)[0].demand, On(load, "l40s").demand);
}

ServiceLoad Users(double users, std::vector<ServiceRun> measured = {}) {
  return {.concurrency = users, .tokens_in = 1024, .tokens_out = 256, .measured = std::move(measured)};
}

// Whoever asks again for what was measured is told that; elsewhere the same factor holds, on that GPU type alone.
TEST(ServiceTest, WhatWasMeasuredCorrectsTheTimes) {
  const Service plain = On(Users(8), "l40s"), loaded = On(Users(32), "l40s");
  const ServiceRun run{.gpu = "l40s",
                       .concurrency = 8,
                       .first_token_us = 3 * plain.first_token.estimate_us,
                       .token_us = 1.5 * plain.token.estimate_us};
  const Service corrected = On(Users(8, {run}), "l40s");
  EXPECT_NEAR(corrected.token.estimate_us, run.token_us, 1);
  EXPECT_NEAR(corrected.first_token.estimate_us / run.first_token_us, 1, 0.02) << "fewer prompts come";
  EXPECT_NEAR(On(Users(32, {run}), "l40s").token.estimate_us, 1.5 * loaded.token.estimate_us, 1);
  EXPECT_EQ(corrected.demand.profile_id, plain.demand.profile_id) << "it is the same service";
  // Some of so many wait for room in the cache, as they did when it was measured.
  const Service full = On(Users(900), "l40s");
  const ServiceRun crowd{.gpu = "l40s",
                         .concurrency = 900,
                         .first_token_us = full.first_token.estimate_us,
                         .token_us = full.token.estimate_us};
  EXPECT_LT(full.running, 900);
  EXPECT_NEAR(On(Users(8, {crowd}), "l40s").token.estimate_us, plain.token.estimate_us, 1);
  EXPECT_EQ(On(Users(8, {run}), "a100-80gb").token.estimate_us, On(Users(8), "a100-80gb").token.estimate_us);
}

TEST(ServiceTest, OfSeveralRunsTheMedianCountsAndThreeNarrowTheBoundOfTheFirstToken) {
  std::vector<ServiceRun> runs;
  for (const double factor : {1.2, 1.0, 7.0}) {
    const double users = 4 * (1 + static_cast<double>(runs.size()));
    runs.push_back({.gpu = "l40s",
                    .concurrency = users,
                    .first_token_us = factor * On(Users(users), "l40s").first_token.estimate_us});
  }
  const Service plain = On(Users(8), "l40s"), two = On(Users(8, {runs[0], runs[1]}), "l40s"),
                three = On(Users(8, runs), "l40s");
  EXPECT_NEAR(three.first_token.estimate_us / plain.first_token.estimate_us, 1.2, 0.01);
  const auto width = [](const Service& service) {
    return service.first_token.upper_us / service.first_token.estimate_us;
  };
  EXPECT_EQ(width(two), width(plain));
  EXPECT_LT(width(three), width(plain));
  EXPECT_EQ(three.token.upper_us, plain.token.upper_us);
}

TEST(ServiceTest, BoundsWidenWithTheLoadAndWithTheConfidence) {
  double before = 0;
  for (const double users : {1.0, 8.0, 64.0}) {
    const Service service = On(Users(users), "h100-sxm");
    const double width = service.first_token.upper_us / service.first_token.estimate_us;
    EXPECT_GT(width, before);
    before = width;
  }
  ServiceLoad load = Load(3);
  load.confidence = 0.5;
  const Service even = On(load, "h100-sxm");
  EXPECT_NEAR(even.first_token.upper_us, even.first_token.estimate_us, 1) << "the median stands for the mean";
  double upper_us = even.first_token.upper_us;
  for (const double confidence : {0.9, 0.99}) {
    load.confidence = confidence;
    const Service service = On(load, "h100-sxm");
    EXPECT_GT(service.first_token.upper_us, 1.5 * upper_us);
    upper_us = service.first_token.upper_us;
  }
}

TEST(ServiceTest, AMeasurementOfSomethingElseIsRefused) {
  const auto said = [](const ServiceRun& run) {
    return std::string(Serve(Users(8, {run}), {"l40s"}).status().message());
  };
  EXPECT_THAT(said({.gpu = "l40s", .concurrency = 8, .token_us = 15}),
              HasSubstr("measured[0]: a further token: expected within"));
  EXPECT_THAT(said({.gpu = "l40s", .concurrency = 8}), HasSubstr("expected first_token_us or token_us above 0"));
  EXPECT_THAT(said({.gpu = "l40s", .concurrency = 0, .token_us = 1e4}),
              HasSubstr("measured[0]: concurrency: expected 1"));
}

TEST(ServiceTest, OtherLoadsAreOtherProfiles) {
  EXPECT_NE(On(Load(3), "h100-sxm").demand.profile_id, On(Load(3.001), "h100-sxm").demand.profile_id);
  EXPECT_EQ(On(Load(3), "h100-sxm").demand.profile_id, On(Load(3), "h100-sxm").demand.profile_id);
}

struct BadLoad {
  const char* says;
  ServiceLoad load;
};
class BadLoads : public ::testing::TestWithParam<BadLoad> {};
TEST_P(BadLoads, AreRefusedWithTheFieldExpectedAndFound) {
  const auto services = Serve(GetParam().load, {"h100-sxm"});
  ASSERT_FALSE(services.ok());
  EXPECT_EQ(services.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(services.status().message(), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    All, BadLoads,
    ::testing::Values(
        BadLoad{"either requests_per_s or concurrency above 0, found 0 and 0", {.tokens_in = 1, .tokens_out = 1}},
        BadLoad{"found 1 and 2", {.requests_per_s = 1, .concurrency = 2, .tokens_in = 1, .tokens_out = 1}},
        BadLoad{"concurrency: expected 1 to 1e+06, found 0.5", {.concurrency = 0.5, .tokens_in = 1, .tokens_out = 1}},
        BadLoad{"tokens_in: expected 1 to 1.67772e+07, found 0", {.requests_per_s = 1, .tokens_out = 1}},
        BadLoad{"tokens_out: expected 1", {.requests_per_s = 1, .tokens_in = 1, .tokens_out = 1e9}},
        BadLoad{"longest: expected 20", {.requests_per_s = 1, .tokens_in = 10, .tokens_out = 10, .longest = 5}},
        BadLoad{"token_us: expected 0", {.requests_per_s = 1, .tokens_in = 1, .tokens_out = 1, .token_us = -1}},
        BadLoad{"confidence: expected 0.5", {.requests_per_s = 1, .tokens_in = 1, .tokens_out = 1, .confidence = 1}}));

TEST(ServiceTest, TheMostConfidenceMayComeAsAFloat) {
  ServiceLoad load = Load(1);
  load.confidence = static_cast<double>(0.999F);
  EXPECT_EQ(On(load, "h100-sxm").verdict, ServiceVerdict::kServed);
}

constexpr const char* kStretched =
    R"({"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,)"
    R"("num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":4096,)"
    R"("rope_scaling":{"rope_type":"linear","factor":8}})";

// A prompt as long as may be asked for: an answer that placement takes, and refuses.
TEST(ServiceTest, TheLongestRequestsHaveAnAnswer) {
  const Service service =
      On({.requests_per_s = 1, .tokens_in = kMostTokens, .tokens_out = kMostTokens}, "h100-sxm", kStretched);
  EXPECT_NE(service.verdict, ServiceVerdict::kServed);
  EXPECT_TRUE(ValidateDemand(service.demand).ok()) << ValidateDemand(service.demand);
  EXPECT_GT(service.demand.slowdown_bound, 0);
}

// An engine does not start with a longest request above the model's context.
TEST(ServiceTest, NoRequestIsLongerThanTheModelTakes) {
  constexpr double kContext = 131072;
  ServiceLoad load = {.requests_per_s = 0.1, .tokens_in = 60'000, .tokens_out = 1'000};
  EXPECT_EQ(On(load, "h100-sxm").longest, kContext);
  EXPECT_THAT(On(load, "h100-sxm").engine_arguments, HasSubstr("--max-model-len 131072"));
  load.longest = kContext + 1;
  EXPECT_THAT(Serve(load, {"t4"}).status().message(),
              HasSubstr("longest: expected at most the 131072 tokens that the model was made for, found 131073"));
  load = {.requests_per_s = 0.1, .tokens_in = kContext, .tokens_out = 1};
  EXPECT_THAT(Serve(load, {"t4"}).status().message(), HasSubstr("tokens_in and tokens_out: expected at most"));
  EXPECT_TRUE(Serve(load, {"t4"}, kStretched).ok());  // how far is unknown
}

TEST(ServiceTest, WhereTheEngineDoesNotRunItDoesNotServe) {
  RunSpec run = Serving();
  const auto on = [&run](const char* gpu) { return Serve(Load(0.1), {gpu}, "qwen2.5-1.5b", run)->front(); };
  const auto why = [&run](const char* gpu) { return WhyNot(run, Gpus()->at(*Gpus()->Find(gpu))); };
  EXPECT_EQ(on("p100").verdict, ServiceVerdict::kUnsupported);
  EXPECT_EQ(why("p100"), "vllm needs compute capability 7.0, found 6.0");
  EXPECT_EQ(on("v100").verdict, ServiceVerdict::kUnsupported);
  EXPECT_LT(on("v100").demand.slowdown_bound, 1) << "so that no place is found";
  EXPECT_THAT(why("v100"), HasSubstr("fp16"));
  EXPECT_EQ(on("a10").verdict, ServiceVerdict::kServed);
  run.precision = Precision::kFp16;
  EXPECT_EQ(on("v100").verdict, ServiceVerdict::kServed);
  run.framework = Framework::kTensorRtLlm;
  EXPECT_EQ(on("v100").verdict, ServiceVerdict::kUnsupported);
}

// A line that is copied starts the service that was asked about.
TEST(ServiceTest, TheEngineIsToldTypesAndGpus) {
  const ConfigOptions options{.tensor_parallel = 4, .weights = "fp8", .cache = "fp8"};
  RunSpec run = Serving();
  const auto told = [&] {
    return Serve(Load(1), {"h100-sxm"}, "llama-3.1-70b", run, options)->front().engine_arguments;
  };
  EXPECT_THAT(told(), HasSubstr(" --tensor-parallel-size 4 --quantization fp8 --kv-cache-dtype fp8"));
  EXPECT_LT(told().size(), 256) << "the C struct has no more";
  run.framework = Framework::kSglang;
  EXPECT_THAT(told(), HasSubstr(" --tp-size 4 --quantization fp8 --kv-cache-dtype fp8_e4m3"));
  run.framework = Framework::kTensorRtLlm;
  EXPECT_THAT(told(), HasSubstr(" --tp_size 4 kv_cache_config.dtype=fp8"));
  run = Serving();
  run.precision = Precision::kFp16;
  EXPECT_THAT(Serve(Load(1), {"v100-32gb"}, "llama-3.1-8b", run)->front().engine_arguments,
              HasSubstr(" --dtype float16"));
  EXPECT_THAT(On(Load(1), "h100-sxm").engine_arguments, Not(HasSubstr("type")));
}

TEST(ServiceTest, ARunThatNoEngineServesIsRefused) {
  RunSpec run = Serving();
  run.framework = Framework::kPyTorch;
  EXPECT_THAT(Serve(Load(1), {"t4"}, "llama-3.1-8b", run).status().message(),
              HasSubstr("framework: expected an engine (vllm, tensorrt-llm or sglang), found 'pytorch'"));
  run = Serving();
  run.dims.batch = 4;
  EXPECT_THAT(Serve(Load(1), {"t4"}, "llama-3.1-8b", run).status().message(),
              HasSubstr("batch: expected none (the load decides), found 4"));
  run = Serving();
  run.dims.dims = {{"past", 512}};
  EXPECT_THAT(Serve(Load(1), {"t4"}, "llama-3.1-8b", run).status().message(), HasSubstr("past: expected none"));
}

std::vector<const GpuType*> TypesOf(const std::vector<std::string>& names) {
  std::vector<const GpuType*> types;
  for (const std::string& name : names) types.push_back(&Gpus()->at(*Gpus()->Find(name)));
  return types;
}

struct Asked {
  const char* net;
  ServiceUnknown unknown;
  ServiceLoad load;
};
class Solved : public ::testing::TestWithParam<Asked> {
 protected:
  // The forward question at a value.
  static ServiceVerdict At(double value, const std::string& gpu) {
    ServiceLoad load = GetParam().load;
    switch (GetParam().unknown) {
      case ServiceUnknown::kLoad:
        (load.concurrency > 0 ? load.concurrency : load.requests_per_s) = value;
        break;
      case ServiceUnknown::kContext:
        load.longest = value;
        break;
      case ServiceUnknown::kReplicas:
        load.requests_per_s /= value;
        load.concurrency = std::ceil(load.concurrency / value);
        break;
    }
    return On(load, gpu, GetParam().net).verdict;
  }
};

// Whatever is to be found: it is served, and the next step is not.
TEST_P(Solved, TheForwardQuestionSaysTheSame) {
  const std::vector<std::string> names = {"h100-sxm", "l40s", "a10"};
  const auto graph = GraphFromConfig(GetParam().net, {});
  const auto found =
      SolveServices(*Predictor::Default(), *graph, Serving(), GetParam().load, GetParam().unknown, TypesOf(names));
  ASSERT_TRUE(found.ok()) << found.status();
  for (size_t i = 0; i < names.size(); ++i) {
    const ServiceSolution& one = (*found)[i];
    if (one.value > 0) {
      EXPECT_EQ(one.service.verdict, ServiceVerdict::kServed);
      EXPECT_EQ(At(one.value, names[i]), ServiceVerdict::kServed) << names[i] << ' ' << one.value;
    }
    if (one.next > 0) {
      EXPECT_NE(At(one.next, names[i]), ServiceVerdict::kServed) << names[i] << ' ' << one.next;
      EXPECT_EQ(At(one.next, names[i]), one.beyond.verdict);
    }
    EXPECT_TRUE(one.value > 0 || one.next > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Solved,
    ::testing::Values(
        Asked{"llama-3.1-8b", ServiceUnknown::kLoad, {.tokens_in = 1024, .tokens_out = 256}},
        Asked{"llama-3.1-8b",
              ServiceUnknown::kLoad,
              {.tokens_in = 1024, .tokens_out = 256, .first_token_us = 500'000, .token_us = 30'000}},
        Asked{"qwen2.5-7b",
              ServiceUnknown::kLoad,
              {.concurrency = 1, .tokens_in = 2000, .tokens_out = 500, .token_us = 4e4}},
        Asked{"llama-3.1-8b", ServiceUnknown::kContext, {.requests_per_s = 0.5, .tokens_in = 1024, .tokens_out = 256}},
        Asked{"llama-3.1-8b",
              ServiceUnknown::kReplicas,
              {.requests_per_s = 60, .tokens_in = 1024, .tokens_out = 256, .token_us = 30'000}},
        Asked{"llama-3.1-8b",
              ServiceUnknown::kReplicas,
              {.concurrency = 300, .tokens_in = 100, .tokens_out = 100, .token_us = 3e4}}));

TEST(ServiceTest, NothingIsFoundWhereNotEvenTheLeastIsServed) {
  const auto graph = GraphFromConfig("llama-3.1-70b", {});
  for (const ServiceUnknown unknown : {ServiceUnknown::kLoad, ServiceUnknown::kContext, ServiceUnknown::kReplicas}) {
    const auto found = SolveServices(*Predictor::Default(), *graph, Serving(), Load(1), unknown, TypesOf({"l40s"}));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->front().value, 0);
    EXPECT_EQ(found->front().service.verdict, ServiceVerdict::kNoRoom);
  }
}

std::shared_ptr<const Graph> Bert() {
  static const auto graph = ReadModel(std::string(HORUS_SOURCE_DIR) + "/examples/models/graphs/bert_base.onnx");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}
RunSpec Embedding(int64_t batch = 0) {
  RunSpec run{.mode = RunMode::kInference, .precision = Precision::kFp16};
  run.dims.batch = batch;
  run.dims.dims = {{"seq", 128}};
  return run;
}
Service Embed(double requests_per_s, const RunSpec& run, double answer_us = 0) {
  const auto found = PredictServices(*Predictor::Default(), Bert(), run,
                                     {.requests_per_s = requests_per_s, .first_token_us = answer_us}, TypesOf({"a10"}));
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? found->front() : Service{};
}

// A server that makes batches serves more, and each answer takes as long as before while few ask.
TEST(ServiceTest, WhatAnswersInOneStepIsServedInBatches) {
  const Service single = Embed(1, Embedding(1)), batched = Embed(1, Embedding());
  EXPECT_GT(batched.most_requests_per_s, 2 * single.most_requests_per_s);
  EXPECT_NEAR(batched.first_token.estimate_us, single.first_token.estimate_us, 0.05 * single.first_token.estimate_us);
  EXPECT_GT(batched.memory_mib(), single.memory_mib());
  EXPECT_EQ(batched.most_running, kUsualBatch);
  EXPECT_THAT(batched.engine_arguments, HasSubstr("max_batch_size: 32"));
  Service before = Embed(1, Embedding());
  for (const double rate : {10.0, 50.0, 100.0, 200.0}) {
    const Service service = Embed(rate, Embedding());
    EXPECT_GE(service.first_token.estimate_us, before.first_token.estimate_us);
    EXPECT_GE(service.busy, before.busy);
    EXPECT_LE(service.largest_slowdown, before.largest_slowdown);
    before = service;
  }
}

TEST(ServiceTest, AnAnswerThatIsPromisedBoundsTheSlowdown) {
  const Service free = Embed(10, Embedding());
  const Service tight = Embed(10, Embedding(), 1.5 * free.first_token.upper_us);
  EXPECT_EQ(tight.verdict, ServiceVerdict::kServed);
  EXPECT_GT(tight.demand.slowdown_bound, 1);
  EXPECT_LT(tight.demand.slowdown_bound, 1.6);
  EXPECT_EQ(Embed(10, Embedding(), 0.5 * free.first_token.upper_us).verdict, ServiceVerdict::kLate);
}

TEST(ServiceTest, WhatAnswersInOneStepHasNoTokens) {
  const auto said = [](const ServiceLoad& load) {
    return std::string(
        PredictServices(*Predictor::Default(), Bert(), Embedding(), load, TypesOf({"a10"})).status().message());
  };
  EXPECT_THAT(said(Load(1)), HasSubstr("expected no tokens, or a language model"));
  EXPECT_THAT(said({.requests_per_s = 1, .token_us = 1}), HasSubstr("token_us: expected none"));
  RunSpec training = Embedding();
  training.mode = RunMode::kTraining;
  EXPECT_THAT(PredictServices(*Predictor::Default(), Bert(), training, {.requests_per_s = 1}, TypesOf({"a10"}))
                  .status()
                  .message(),
              HasSubstr("mode: expected inference"));
}

}  // namespace
}  // namespace horus
