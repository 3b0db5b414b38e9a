// SPDX-License-Identifier: Apache-2.0
// Actions of graphs and predictors: files and bytes that are graphs and that are none, costs, features, demands, the
// largest batch, learned and committed predictors.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "calls/arguments.h"
#include "calls/corrupt.h"
#include "calls/harness.h"

namespace horus::calls {
namespace {

using GraphHandle = Handle<horus_graph, horus_graph_free>;
constexpr size_t kMostPredictors = 2;
constexpr std::array<const char*, 4> kNets = {"gcn_cora", "autoencoder_ml20m", "dqn_atari", "no such net"};
const horus_catalogue* const kBuiltIn = nullptr;

std::string PathOf(const char* net) { return std::string(HORUS_CALLS_GRAPHS) + "/" + net + ".onnx"; }

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// NULL where the bytes are no graph any more, or libhorus reads none.
GraphHandle SomeGraph(Harness& harness) {
  Roomy<horus_graph_limits> limits{HORUS_GRAPH_LIMITS_INIT};
  MaybeCorrupt(harness.choices, harness.options.hostile, limits);
  const std::string path = PathOf(harness.choices.Of(kNets));
  horus_graph* out = nullptr;
  horus_status status = HORUS_OK;
  if (harness.choices.OneIn(2)) {
    status = HORUS_TRY(harness, kNone, horus_graph_from_file, path.c_str(), &limits.value, &out);
  } else {
    std::string bytes = ReadAll(path);
    while (!bytes.empty() && harness.choices.OneIn(2)) {
      bytes[harness.choices.Below(bytes.size())] = static_cast<char>(harness.choices.Below(256));
    }
    if (harness.choices.OneIn(16)) bytes.resize(harness.choices.Below(bytes.size() + 1));
    status = HORUS_TRY(harness, kNone, horus_graph_from_bytes, bytes.data(), bytes.size(), &limits.value, &out);
  }
  harness.Require((status == HORUS_OK) == (out != nullptr), "a graph comes with success alone");
  return GraphHandle(out);
}

// A known model, or its name damaged; small ones alone, for the time that binding takes.
GraphHandle SomeLanguageModel(Harness& harness) {
  static constexpr std::array<const char*, 3> kModels = {"gpt2", "qwen3-0.6b", "{\"model_type\":\"llama\"}"};
  static constexpr std::array<const char*, 4> kTypes = {nullptr, "fp8", "int4", "no such type"};
  Roomy<horus_config_options> options{HORUS_CONFIG_OPTIONS_INIT};
  options.value.training = static_cast<int32_t>(harness.choices.Below(2));
  options.value.tensor_parallel = static_cast<int64_t>(harness.choices.Below(4));
  options.value.pipeline_parallel = static_cast<int64_t>(harness.choices.Below(4));
  options.value.lora_rank = static_cast<int64_t>(harness.choices.Below(16));
  if (harness.choices.OneIn(8)) options.value.pipeline_stage = static_cast<int64_t>(harness.choices.HostileBits());
  options.value.weights = harness.choices.Of(kTypes);
  options.value.cache = harness.choices.Of(kTypes);
  options.value.lora_targets = harness.choices.OneIn(2) ? nullptr : "all-linear";
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  std::string text = harness.choices.Of(kModels);
  if (harness.choices.OneIn(8))
    text[harness.choices.Below(text.size())] = static_cast<char>(harness.choices.Below(256));
  horus_graph* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_graph_from_config, text.data(), text.size(), &options.value, &out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a graph comes with success alone");
  return GraphHandle(out);
}

struct RunArgument {
  Roomy<horus_run_spec> run{HORUS_RUN_SPEC_INIT};
  std::array<const char*, 2> dims = {"batch", "seq"}, frozen = {"conv", "fc"};
  std::array<int64_t, 2> sizes = {4, 16};
};

void MakeRun(Harness& harness, RunArgument& out) {
  horus_run_spec& run = out.run.value;
  run.mode = static_cast<int32_t>(harness.choices.Below(2));
  run.precision = static_cast<int32_t>(harness.choices.Below(7));
  run.optimizer = static_cast<int32_t>(harness.choices.Below(8));
  run.framework = static_cast<int32_t>(harness.choices.Below(4));
  run.layout = static_cast<int32_t>(harness.choices.Below(2));
  run.batch = static_cast<int64_t>(harness.choices.Below(64));
  if (harness.choices.OneIn(4)) run.dim_count = 1 + harness.choices.Below(out.dims.size());
  run.dim_names = out.dims.data();
  run.dim_sizes = out.sizes.data();
  if (harness.choices.OneIn(8)) out.sizes[0] = static_cast<int64_t>(harness.choices.HostileBits());
  if (run.mode == HORUS_MODE_TRAINING && harness.choices.OneIn(4)) {
    run.frozen_count = 1 + harness.choices.Below(out.frozen.size());
    run.frozen_prefixes = out.frozen.data();
    run.checkpoint_segments = static_cast<int64_t>(harness.choices.Below(8));
    run.data_parallel = static_cast<int64_t>(harness.choices.Below(8));
  }
  MaybeCorrupt(harness.choices, harness.options.hostile, out.run);
}

void LookAtGraph(Harness& harness) {
  const GraphHandle graph = harness.choices.OneIn(4) ? SomeLanguageModel(harness) : SomeGraph(harness);
  Roomy<horus_graph_info> info{HORUS_GRAPH_INFO_INIT};
  const horus_status told = HORUS_TRY(harness, kNone, horus_graph_get_info, graph.get(), &info.value);
  harness.Require((told == HORUS_OK) == (graph != nullptr), "what a graph is");
  harness.Require(graph == nullptr || horus_graph_dim_name(graph.get(), info.value.dims) == nullptr,
                  "no name past the last dimension");
  RunArgument run;
  MakeRun(harness, run);
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  if (HORUS_TRY(harness, kNone, horus_graph_cost, graph.get(), &run.run.value, &cost) == HORUS_OK) {
    harness.Require(std::isfinite(cost.forward_flops) && cost.forward_flops >= 0 && std::isfinite(cost.step_bytes) &&
                        cost.step_bytes >= 0 && cost.kernels >= 0 && cost.activations_bytes >= 0,
                    "what a step costs");
    harness.Note(std::bit_cast<uint64_t>(cost.training_flops));
  }
  const size_t columns = horus_feature_count();
  std::vector<float> values(columns + 1, -1);
  size_t count = 0;
  const size_t room = harness.choices.OneIn(4) ? harness.choices.Below(columns) : columns;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_graph_features, graph.get(), &run.run.value, room, values.data(), &count);
  harness.Require(values[room] == -1, "values beyond their room");
  if (status == HORUS_OK || status == HORUS_ERR_BUFFER_TOO_SMALL)
    harness.Require(count == columns, "features", columns, count);
}

void KeepPredictor(Harness& harness, horus_status status, horus_predictor* predictor) {
  harness.Require((status == HORUS_OK) == (predictor != nullptr), "a predictor comes with success alone");
  if (predictor == nullptr) return;
  harness.Require(horus_predictor_bytes_held(predictor) > 0, "a predictor without size");
  if (harness.predictors.size() >= kMostPredictors) harness.predictors.erase(harness.predictors.begin());
  harness.predictors.emplace_back(predictor);
}

// NULL where libhorus predicts nothing.
const horus_predictor* SomePredictor(Harness& harness) {
  if (harness.predictors.empty()) {
    horus_predictor* out = nullptr;
    const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_default, &out);
    KeepPredictor(harness, status, out);
  }
  return harness.predictors.empty() ? nullptr
                                    : harness.predictors[harness.choices.Below(harness.predictors.size())].get();
}

void PredictDemand(Harness& harness) {
  const GraphHandle graph = SomeGraph(harness);
  RunArgument run;
  MakeRun(harness, run);
  constexpr size_t kTypes = 3;
  std::array<const char*, kTypes> types = {};
  std::array<horus_demand, kTypes> demands;
  std::array<horus_demand*, kTypes> pointers = {};
  for (size_t i = 0; i < kTypes; ++i) {
    types[i] = harness.choices.OneIn(32) ? HostileText(harness.choices) : harness.choices.Of(kGpuTypes);
    demands[i] = HORUS_DEMAND_INIT;
    pointers[i] = &demands[i];
  }
  const size_t count = harness.choices.Below(kTypes + 1);
  const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_demand, SomePredictor(harness), kBuiltIn,
                                        graph.get(), &run.run.value, count, types.data(), pointers.data());
  for (size_t i = 0; i < count; ++i) {
    const horus_demand& d = demands[i];
    if (status != HORUS_OK) {
      harness.Require(d.profile_id == 0 && d.mem_mib == 0, "demands of a call that failed", i);
      continue;
    }
    harness.Require(d.gpu_util_pct >= 0 && d.gpu_util_pct <= 100 && d.gpu_util_pct_upper >= d.gpu_util_pct &&
                        d.mem_mib >= 0 && d.mem_mib_upper >= d.mem_mib && d.step_time_us >= 0 && d.profile_id != 0,
                    "a demand with its bounds", i);
    harness.Note(static_cast<uint64_t>(d.mem_mib_upper));
  }
}

int32_t GoOnMostly(void* user, double) { return static_cast<Harness*>(user)->choices.OneIn(64) ? 1 : 0; }

void SolveBatch(Harness& harness) {
  const GraphHandle graph = SomeGraph(harness);
  RunArgument run;
  MakeRun(harness, run);
  if (!harness.choices.OneIn(8)) run.run.value.batch = 0;
  const std::array<int64_t, 2> resident = {
      static_cast<int64_t>(harness.choices.Below(40'000)),
      static_cast<int64_t>(harness.choices.OneIn(8) ? harness.choices.HostileBits() : 0)};
  Roomy<horus_solve_options> options{HORUS_SOLVE_OPTIONS_INIT};
  options.value.max_value = static_cast<int64_t>(1 + harness.choices.Below(4'096));
  options.value.resident_mib = resident.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  const std::array<const char*, 2> types = {harness.choices.Of(kGpuTypes), "k80"};
  std::array<horus_solution, 2> solutions = {};
  std::array<horus_solution*, 2> pointers = {};
  for (size_t i = 0; i < solutions.size(); ++i) {
    solutions[i] = HORUS_SOLUTION_INIT;
    pointers[i] = &solutions[i];
  }
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_predictor_solve, SomePredictor(harness), kBuiltIn, graph.get(), &run.run.value,
                &options.value, solutions.size(), types.data(), GoOnMostly, &harness, pointers.data());
  for (const horus_solution& s : solutions) {
    if (status != HORUS_OK) {
      harness.Require(s.reason == 0 && s.largest == 0, "solutions of a call that failed");
      continue;
    }
    harness.Require(s.reason >= HORUS_SOLVED_MEMORY && s.reason <= HORUS_SOLVED_MAXIMUM && s.largest >= 0,
                    "why a range ends");
    harness.Require((s.reason == HORUS_SOLVED_MAXIMUM) == (s.next == 0), "what comes behind the largest");
    harness.Require((s.reason == HORUS_SOLVED_MEMORY) == (s.short_mib > 0), "what the next lacks");
    harness.Require((s.reason == HORUS_SOLVED_GRAPH) == (s.message[0] != '\0'), "why the graph refuses");
  }
}

void ServeModel(Harness& harness) {
  static const std::array<const char*, 3> kModels = {"gpt2", "tinyllama-1.1b", "qwen3-0.6b"};
  const std::string model = harness.choices.Of(kModels);
  horus_graph* made = nullptr;
  if (HORUS_TRY(harness, kNone, horus_graph_from_config, model.data(), model.size(),
                static_cast<const horus_config_options*>(nullptr), &made) != HORUS_OK)
    return;
  const GraphHandle graph(made);
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  run.mode = HORUS_MODE_INFERENCE;
  run.precision = HORUS_PRECISION_FP16;
  run.framework = harness.choices.OneIn(8) ? HORUS_FRAMEWORK_PYTORCH : HORUS_FRAMEWORK_VLLM;
  Roomy<horus_service_load> load{HORUS_SERVICE_LOAD_INIT};
  load.value.requests_per_s = static_cast<double>(harness.choices.Below(50));
  if (load.value.requests_per_s == 0) load.value.concurrency = static_cast<double>(harness.choices.Below(500));
  load.value.tokens_in = static_cast<double>(harness.choices.Below(3'000));
  load.value.tokens_out = static_cast<double>(harness.choices.Below(1'000));
  load.value.token_us = static_cast<int64_t>(harness.choices.Below(100'000));
  MaybeCorrupt(harness.choices, harness.options.hostile, load);
  const char* const type = harness.choices.Of(kGpuTypes);
  horus_service service = HORUS_SERVICE_INIT;
  horus_demand demand = HORUS_DEMAND_INIT;
  horus_service* const services[] = {&service};
  horus_demand* const demands[] = {&demand};
  const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_service, SomePredictor(harness), kBuiltIn,
                                        graph.get(), &run, &load.value, size_t{1}, &type, services, demands);
  if (status != HORUS_OK) {
    harness.Require(service.weights_mib == 0 && demand.mem_mib == 0, "services of a call that failed");
    return;
  }
  harness.Require(service.token_us_upper >= service.token_us && service.token_us > 0, "the bound of a token's time");
  harness.Require(service.first_token_us_upper >= service.first_token_us, "the bound of the first token's time");
  harness.Require((service.verdict == HORUS_SERVICE_SERVED) <= (service.largest_slowdown >= 1), "who is served alone");
  harness.Require(service.busy > 0 && service.busy <= 1 && demand.mem_mib > 0, "a share and a size");
}

void CommitPredictor(Harness& harness) {
  horus_predictor* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_commit, SomePredictor(harness),
                                        static_cast<const horus_observations*>(harness.observations.get()), &out);
  KeepPredictor(harness, status, out);
  if (out != nullptr) harness.Note(horus_predictor_epoch(out));
}

void SavePredictor(Harness& harness) {
  const horus_predictor* predictor = SomePredictor(harness);
  constexpr std::array<const char*, 5> kQuantities = {"gpu_util_pct", "mem_mib", "step_time_us", "power_w", "no such"};
  horus_prediction_quality quality = HORUS_PREDICTION_QUALITY_INIT;
  if (HORUS_TRY(harness, kNone, horus_predictor_get_quality, predictor,
                harness.choices.OneIn(8) ? HostileText(harness.choices) : harness.choices.Of(kQuantities),
                &quality) == HORUS_OK) {
    harness.Require(quality.observed >= 0 && quality.observed <= 1 && quality.rows > 0, "a quality");
  }
  size_t size = 0;
  const horus_status room = HORUS_TRY(harness, kNone, horus_predictor_to_bytes, predictor, size_t{0}, nullptr, &size);
  if (room != HORUS_OK) return;
  std::string bytes(size, '\0'), again(size, '\0');
  harness.Require(HORUS_TRY(harness, kNone, horus_predictor_to_bytes, predictor, size, bytes.data(), &size) == HORUS_OK,
                  "a bundle into enough room");
  const bool damaged = harness.choices.OneIn(2);
  if (damaged) bytes[harness.choices.Below(size)] ^= static_cast<char>(1 + harness.choices.Below(255));
  horus_predictor* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_from_bytes, bytes.data(), bytes.size(), &out);
  harness.Require(damaged ? status != HORUS_OK : status == HORUS_OK, "damage is seen, and nothing else");
  if (out != nullptr) {
    harness.Require(HORUS_TRY(harness, kNone, horus_predictor_to_bytes, out, size, again.data(), &size) == HORUS_OK &&
                        again == bytes,
                    "a bundle's bytes come back");
  }
  KeepPredictor(harness, status, out);
}

// A handful of rows; with trees only now and then, they take a millisecond each.
void FitPredictor(Harness& harness) {
  if (harness.fits++ >= harness.options.max_fits) return;
  constexpr size_t kRows = 10;
  const GraphHandle graph = SomeGraph(harness);
  std::array<const horus_graph*, kRows> graphs = {};
  std::array<const char*, kRows> types = {}, families = {};
  std::array<double, kRows> util = {}, mem = {};
  std::array<RunArgument, kRows> runs;
  std::array<const horus_run_spec*, kRows> specs = {};
  for (size_t i = 0; i < kRows; ++i) {
    graphs[i] = harness.choices.OneIn(256) ? nullptr : graph.get();
    types[i] = harness.choices.Of(kGpuTypes);
    families[i] = harness.choices.OneIn(64) ? HostileText(harness.choices) : i % 2 == 0 ? "a" : "b";
    util[i] = static_cast<double>(harness.choices.Below(101));
    mem[i] = static_cast<double>(1 + harness.choices.Below(16'384));
    runs[i].run.value.batch = static_cast<int64_t>(1 + i);
    specs[i] = &runs[i].run.value;
  }
  if (harness.choices.OneIn(8)) util[0] = std::bit_cast<double>(harness.choices.HostileBits());
  if (harness.choices.OneIn(8)) mem[1] = std::bit_cast<double>(harness.choices.HostileBits());
  Roomy<horus_training_data> data{HORUS_TRAINING_DATA_INIT};
  data.value.count = kRows;
  data.value.graphs = graphs.data();
  data.value.runs = specs.data();
  data.value.gpu_types = types.data();
  data.value.families = families.data();
  data.value.gpu_util_pct = util.data();
  data.value.mem_mib = mem.data();
  MaybeCorrupt(harness.choices, harness.options.hostile, data);
  Roomy<horus_training_options> options{HORUS_TRAINING_OPTIONS_INIT};
  options.value.rounds = harness.choices.OneIn(8) ? 2 : -1;
  options.value.promise = 0.5;
  MaybeCorrupt(harness.choices, harness.options.hostile, options);
  options.value.rounds = std::min(options.value.rounds, 2);
  if (options.value.rounds == 0) options.value.rounds = -1;  // the default would be a hundred
  horus_predictor* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_predictor_fit, kBuiltIn, &data.value, &options.value,
                                        GoOnMostly, static_cast<void*>(&harness), &out);
  KeepPredictor(harness, status, out);
}

}  // namespace

std::vector<Action> PredictActions() {
  return {{LookAtGraph, 1},     {PredictDemand, 1}, {SolveBatch, 1},  {ServeModel, 1},
          {CommitPredictor, 1}, {SavePredictor, 1}, {FitPredictor, 1}};
}

}  // namespace horus::calls
