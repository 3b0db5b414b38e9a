// SPDX-License-Identifier: Apache-2.0
// llm: times of language models' operators against those that engines were measured to take, for shapes and GPU types
// that the model was not trained on; and what an answer costs.
// `bench_llm --train FILE --data DIR` writes the bundle of the operators' model (scripts/train-default calls it); with
// `--only KIND,KIND` those kinds alone are trained, and the others stay as FILE has them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "bench/must.h"
#include "bench/quality/operator_fit.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "graph/from_config.h"
#include "horus/version.h"
#include "interference/registry.h"
#include "io/csv.h"
#include "place/placer.h"
#include "place/policies/policies.h"
#include "predict/predictor.h"
#include "predict/service.h"

namespace horus::bench {
namespace {

constexpr double kPromise = 0.9;  // coverage of one operator's bound
constexpr uint64_t kFolds = 5;    // of shapes; the first is left out

// A row of a table by the names of its columns.
class Fields {
 public:
  Fields(const std::map<std::string, size_t>& columns, const std::vector<std::string>& fields)
      : columns_(columns), fields_(fields) {}
  [[nodiscard]] std::string Text(const char* column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? "" : fields_[found->second];
  }
  [[nodiscard]] double Number(const char* column) const {
    double value = 0;
    return absl::SimpleAtod(Text(column), &value) && std::isfinite(value) ? value : 0;
  }

 private:
  const std::map<std::string, size_t>& columns_;
  const std::vector<std::string>& fields_;
};

std::optional<NumberType> TypeOf(const std::string& name) {
  static const std::map<std::string, NumberType> types = {
      {"bfloat16", NumberType::kBf16},       {"", NumberType::kBf16},       {"fp8", NumberType::kFp8},
      {"fp8_block", NumberType::kFp8Block},  {"nvfp4", NumberType::kNvfp4}, {"int4_wo", NumberType::kInt4Weights},
      {"int8_wo", NumberType::kInt8Weights}, {"sq", NumberType::kInt8},     {"w4a16_mxfp4", NumberType::kInt4Weights}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

// One table of the public data; the row's operator, but for engine and GPU type. False: not of this kind.
struct Table {
  const char* file;
  OperatorKind kind;
  bool (*read)(const Fields&, Operator*);
};

bool ReadAttention(const Fields& f, Operator* op) {
  const bool decode = op->kind == OperatorKind::kDecode || op->kind == OperatorKind::kLatentDecode;
  const std::optional<NumberType> type = TypeOf(f.Text("attn_dtype"));
  op->type = op->kind == OperatorKind::kPrefill && type.has_value() ? *type : NumberType::kBf16;
  op->cache_fp8 = f.Text("kv_dtype") == "fp8";
  op->batch = f.Number("batch_size");
  op->queries = decode ? 1 : f.Number("isl");
  op->keys = f.Number("step") + op->queries;
  op->heads = f.Number("num_heads");
  op->key_heads = f.Number("num_key_value_heads") > 0 ? f.Number("num_key_value_heads") : op->heads;
  op->head_size = f.Number("head_dim");
  op->window = f.Number("window_size");
  return true;
}
bool ReadProduct(const Fields& f, Operator* op) {
  const std::optional<NumberType> type = TypeOf(f.Text("gemm_dtype"));
  if (!type.has_value()) return false;
  op->type = *type;
  op->m = f.Number("m"), op->n = f.Number("n"), op->k = f.Number("k");
  return true;
}
bool ReadExperts(const Fields& f, Operator* op) {
  const std::optional<NumberType> type = TypeOf(f.Text("moe_dtype"));
  if (!type.has_value()) return false;
  op->type = *type;
  op->m = f.Number("num_tokens"), op->n = f.Number("inter_size"), op->k = f.Number("hidden_size");
  op->experts = f.Number("num_experts"), op->top_k = f.Number("topk");
  op->tensor_parallel = f.Number("moe_tp_size"), op->expert_parallel = f.Number("moe_ep_size");
  op->balanced = f.Text("distribution") == "balanced";
  return true;
}
bool ReadAllReduce(const Fields& f, Operator* op) {
  constexpr double kElementBytes = 2;
  if (!f.Text("backend").ends_with("_graph")) return false;
  op->bytes = f.Number("message_size") * kElementBytes, op->ranks = f.Number("num_gpus");
  return true;
}
// Of decoding and convolutions vLLM's rows alone: the others say more bytes than the memory moves, of states (float32,
// read and written) 3.9 TB/s on an H100, of convolutions 14 TB/s. mamba2.csv has nothing but a convolution that takes
// one sequence after the other, which is never the fastest.
bool ReadLinear(const Fields& f, Operator* op) {
  const bool convolves = f.Text("kernel_source").starts_with("causal_conv1d"),
             decodes = f.Text("phase") == "generation";
  if (convolves != (op->kind == OperatorKind::kConvolution)) return false;
  if (!convolves && decodes != (op->kind == OperatorKind::kLinearDecode)) return false;
  if (!f.Text("engine").starts_with("vllm") && op->kind != OperatorKind::kLinearPrefill) return false;
  if (!decodes && f.Number("seq_len") < 2) return false;  // prompts of one token, by the kernels of longer ones
  op->batch = f.Number("batch_size"), op->queries = op->keys = decodes ? 1 : f.Number("seq_len");
  op->heads = f.Number("num_v_heads"), op->head_size = f.Number("head_v_dim");
  op->key_heads = f.Number("num_k_heads"), op->key_size = f.Number("head_k_dim");
  if (!convolves) return true;
  op->head_size = op->heads * op->head_size + 2 * op->key_heads * op->key_size;
  op->heads = op->key_heads = 1, op->key_size = 0;
  return true;
}
constexpr Table kTables[] = {
    {"gemm.csv", OperatorKind::kProduct, ReadProduct},
    {"moe.csv", OperatorKind::kExperts, ReadExperts},
    {"context_attention.csv", OperatorKind::kPrefill, ReadAttention},
    {"generation_attention.csv", OperatorKind::kDecode, ReadAttention},
    {"encoder_attention.csv", OperatorKind::kEncoder, ReadAttention},
    {"context_mla.csv", OperatorKind::kLatentPrefill, ReadAttention},
    {"generation_mla.csv", OperatorKind::kLatentDecode, ReadAttention},
    {"custom_allreduce.csv", OperatorKind::kAllReduce, ReadAllReduce},
    {"gdn.csv", OperatorKind::kLinearPrefill, ReadLinear},
    {"gdn.csv", OperatorKind::kLinearDecode, ReadLinear},
    {"gdn.csv", OperatorKind::kConvolution, ReadLinear},
};

uint64_t ShapeOf(const Operator& op) {
  uint64_t hash = static_cast<uint64_t>(op.kind);
  const auto add = [&hash](double value) { hash = CombineHash(hash, static_cast<uint64_t>(value)); };
  if (op.kind == OperatorKind::kAllReduce) return add(op.bytes), hash;
  if (op.kind == OperatorKind::kProduct || op.kind == OperatorKind::kExperts) {
    add(op.n), add(op.k), add(op.experts), add(op.top_k);
  } else {
    add(op.heads), add(op.key_heads), add(op.head_size);
  }
  return hash;
}

// Rows of one operator, engine and GPU type, of several versions, count once: their median.
std::vector<MeasuredOperator> Merged(std::vector<MeasuredOperator> rows) {
  std::sort(rows.begin(), rows.end(), [](const MeasuredOperator& a, const MeasuredOperator& b) {
    return std::tie(a.gpu->name, a.op, a.us) < std::tie(b.gpu->name, b.op, b.us);
  });
  std::vector<MeasuredOperator> merged;
  for (size_t i = 0, end = 0; i < rows.size(); i = end) {
    while (end < rows.size() && rows[end].gpu == rows[i].gpu && rows[end].op == rows[i].op) ++end;
    merged.push_back(rows[i + (end - i) / 2]);
  }
  return merged;
}

// Rows of a table as the caller reads them; none where it is absent.
void ForRows(const std::string& path, const std::function<void(const Fields&)>& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "bench llm: no %s: left out\n", path.c_str());
    return;
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::map<std::string, size_t> columns;
  Must(ScanCsv(bytes, path, ',', [&](const CsvLine& line) {
    if (columns.empty()) {
      for (size_t i = 0; i < line.fields.size(); ++i) columns[line.fields[i]] = i;
    } else if (line.broken == nullptr && line.fields.size() == columns.size()) {
      visit(Fields(columns, line.fields));
    }
    return absl::OkStatus();
  }));
}

std::vector<MeasuredOperator> ReadTable(const std::string& folder, const Table& table, const Catalogue& gpus) {
  std::vector<MeasuredOperator> rows;
  std::map<std::string, size_t> unknown;
  ForRows(absl::StrCat(folder, "/", table.file), [&](const Fields& fields) {
    MeasuredOperator row;
    row.op.kind = table.kind, row.op.repeated = true, row.us = fields.Number("latency_us");
    const std::string engine = fields.Text("engine");
    if (engine.starts_with("trtllm")) row.op.engine = ServingEngine::kTensorRtLlm;
    if (engine.starts_with("sglang")) row.op.engine = ServingEngine::kSglang;
    const auto gpu = gpus.Find(fields.Text("gpu"));
    if (!gpu.ok()) {
      ++unknown[fields.Text("gpu")];
      return;
    }
    if (!(row.us > 0) || !table.read(fields, &row.op)) return;
    row.gpu = &gpus.at(*gpu);
    // Eight GPUs on one host's PCIe reached 1.4 GB/s: the table's own README calls it pathological.
    constexpr double kMostPcieRanks = 4;
    if (table.kind == OperatorKind::kAllReduce && row.gpu->nvlink_mb_s == 0 && row.op.ranks > kMostPcieRanks) return;
    row.shape = ShapeOf(row.op);
    rows.push_back(row);
  });
  for (const auto& [name, count] : unknown) {
    std::fprintf(stderr, "bench llm: %s: %zu rows of %s, which the catalogue does not know\n", table.file, count,
                 name.c_str());
  }
  return Merged(std::move(rows));
}

using Rows = std::vector<const MeasuredOperator*>;

template <typename Keep>
Rows Where(const std::vector<MeasuredOperator>& all, const Keep& keep) {
  Rows rows;
  for (const MeasuredOperator& row : all) {
    if (keep(row)) rows.push_back(&row);
  }
  return rows;
}

struct Judged {
  std::vector<double> errors;  // relative, absolute
  std::vector<double> scores;  // ln(measured / predicted)
};

// Trained on the one, judged on the other.
Judged Judge(OperatorKind kind, const Rows& train, const Rows& test, bool gpu_seen) {
  Judged judged;
  if (train.empty() || test.empty()) return judged;
  const TrainedOperators trained = Must(TrainOperators(kind, train));
  const std::vector<double> answers = Must(AnswersOf(trained, test, gpu_seen));
  for (size_t i = 0; i < test.size(); ++i) {
    judged.errors.push_back(std::abs(answers[i] / test[i]->us - 1));
    judged.scores.push_back(std::log(test[i]->us / answers[i]));
  }
  return judged;
}

// Shapes whose hash falls into the first fold are left out.
Judged JudgeShapes(OperatorKind kind, const std::vector<MeasuredOperator>& all) {
  const auto out = [](const MeasuredOperator& row) { return Mix64(row.shape) % kFolds == 0; };
  return Judge(kind, Where(all, [&](const auto& row) { return !out(row); }), Where(all, out), true);
}

std::map<std::string, Judged> JudgeGpus(OperatorKind kind, const std::vector<MeasuredOperator>& all) {
  std::map<std::string, Judged> judged;
  for (const MeasuredOperator& row : all) judged.try_emplace(row.gpu->name);
  for (auto& [name, one] : judged) {
    const auto out = [&name = name](const MeasuredOperator& row) { return row.gpu->name == name; };
    one = Judge(kind, Where(all, [&](const auto& row) { return !out(row); }), Where(all, out), false);
  }
  return judged;
}

struct Aim {
  OperatorKind kind;
  double shape_mean, shape_median, gpu_median;  // per cent; 0 = none
};
constexpr Aim kAims[] = {{OperatorKind::kProduct, 15, 6, 14},      {OperatorKind::kExperts, 0, 10, 0},
                         {OperatorKind::kPrefill, 0, 10, 0},       {OperatorKind::kDecode, 7, 4, 14},
                         {OperatorKind::kEncoder, 0, 10, 0},       {OperatorKind::kLatentPrefill, 0, 10, 0},
                         {OperatorKind::kLatentDecode, 0, 10, 0},  {OperatorKind::kAllReduce, 0, 10, 0},
                         {OperatorKind::kLinearPrefill, 0, 10, 0}, {OperatorKind::kLinearDecode, 0, 10, 0},
                         {OperatorKind::kConvolution, 0, 10, 0}};

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// What the operators of one net on every type of the catalogue cost to answer.
void TimeAnswers(std::vector<Row>* rows) {
  const std::vector<Operator> net = {
      {.kind = OperatorKind::kProduct, .m = 64, .n = 6144, .k = 4096},
      {.kind = OperatorKind::kProduct, .m = 64, .n = 4096, .k = 4096},
      {.kind = OperatorKind::kProduct, .m = 64, .n = 28672, .k = 4096},
      {.kind = OperatorKind::kProduct, .m = 64, .n = 4096, .k = 14336},
      {.kind = OperatorKind::kProduct, .m = 64, .n = 128256, .k = 4096},
      {.kind = OperatorKind::kDecode, .batch = 64, .keys = 4096, .heads = 32, .key_heads = 8, .head_size = 128}};
  const auto gpus = Catalogue::Default();
  const OperatorModel& model = OperatorModel::Default();
  std::vector<double> ms;
  double sum = 0;
  for (int run = 0; run < 20; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (const GpuType& gpu : gpus->types()) {
      for (const Operator& op : net) sum += model.TimeOf(op, gpu).us;
    }
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  rows->push_back({.metric = "operators_of_a_net_on_every_gpu_type",
                   .value = Quantile(ms, 0.5),
                   .unit = "ms",
                   .aim = 1,
                   .protocol = absl::StrCat(gpus->types().size(), " GPU types, 6 unlike operators; sum ",
                                            sum > 0 ? ">" : "=", " 0")});
}

// ---- Whole steps: Llama-3.1-8B layer by layer in vLLM on an RTX 4090, Llama-2-70B on A100 and H100.

constexpr double kNone = 0;

EngineTime StepOf(const char* net, const ConfigOptions& options, int64_t batch, int64_t seq, int64_t past,
                  const char* gpu, Framework engine = Framework::kVllm) {
  const auto gpus = Catalogue::Default();
  RunSpec run{.mode = RunMode::kInference, .precision = Precision::kBf16, .framework = engine};
  run.dims.batch = batch;
  run.dims.dims = {{"seq", seq}};
  if (past > 0) run.dims.dims.emplace_back("past", past);
  const JobProfile job = Must(Analyse(Must(GraphFromConfig(net, options)), run));
  return TimeOf(job.engine, gpus->at(Must(gpus->Find(gpu))));
}

struct Compared {
  std::vector<double> errors, ratios;
  void Add(double predicted, double measured) {
    errors.push_back(std::abs(predicted / measured - 1));
    ratios.push_back(predicted / measured);
  }
  void Report(const std::string& metric, double aim, std::vector<Row>* rows) const {
    if (errors.empty()) return;
    rows->push_back({.metric = metric,
                     .value = 100 * Mean(errors),
                     .unit = "%",
                     .aim = aim,
                     .baseline = absl::StrCat("predicted over measured ", static_cast<int>(100 * Quantile(ratios, 0.5)),
                                              " % in the median"),
                     .protocol = absl::StrCat(errors.size(), " rows, mean")});
  }
};

void MeasureLayers(const std::string& folder, std::vector<Row>* rows) {
  constexpr const char* kNet = "llama-3.1-8b";
  constexpr const char* kGpu = "rtx-4090";
  constexpr double kLayers = 32, kContext = 1024;
  const struct {
    const char* layer;
    double n, k;
  } products[] = {
      {"qkv_proj", 6144, 4096}, {"o_proj", 4096, 4096}, {"gate_up_proj", 28672, 4096}, {"down_proj", 4096, 14336}};
  const auto gpus = Catalogue::Default();
  const GpuType& gpu = gpus->at(Must(gpus->Find(kGpu)));
  Compared layers;
  std::map<double, double> step_us;  // by sequences
  ForRows(folder + "/vllm_layers_dense.csv", [&](const Fields& f) {
    for (const auto& product : products) {
      if (f.Text("layer") != product.layer) continue;
      const Operator op{.kind = OperatorKind::kProduct, .m = f.Number("tokens"), .n = product.n, .k = product.k};
      layers.Add(OperatorModel::Default().TimeOf(op, gpu).us, f.Number("time_us"));
    }
    const std::string layer = f.Text("layer");
    const bool once = layer == "embedding" || layer == "final_layernorm";
    step_us[f.Number("tokens")] += f.Number("time_us") * (once ? 1 : layer == "layernorm" ? 2 * kLayers : kLayers);
  });
  ForRows(folder + "/vllm_layers_per_sequence.csv",
          [&](const Fields& f) { step_us[f.Number("sequences")] += f.Number("time_us"); });
  std::map<double, double> complete;
  ForRows(folder + "/vllm_layers_attention.csv", [&](const Fields& f) {
    const double decoding = f.Number("n_decode"), chunk = f.Number("prefill_chunk");
    if (decoding > 0 && chunk > 0) return;  // both in one kernel
    Operator op{.kind = OperatorKind::kDecode,
                .batch = decoding,
                .keys = f.Number("kv_decode"),
                .heads = 32,
                .key_heads = 8,
                .head_size = 128};
    if (chunk > 0) {
      op.kind = OperatorKind::kPrefill, op.batch = 1, op.queries = chunk, op.keys = chunk + f.Number("kv_prefill");
    }
    layers.Add(OperatorModel::Default().TimeOf(op, gpu).us, f.Number("time_us"));
    if (chunk == 0 && f.Number("kv_decode") == kContext) complete[decoding] = f.Number("time_us") * kLayers;
  });
  layers.Report("llama_3_1_8b_rtx_4090_layer", 15, rows);
  Compared steps;
  for (const auto& [sequences, attention_us] : complete) {
    if (step_us.count(sequences) == 0) continue;
    const EngineTime time =
        StepOf(kNet, {}, static_cast<int64_t>(sequences), 1, static_cast<int64_t>(kContext) - 1, kGpu);
    steps.Add(time.device_us, step_us[sequences] + attention_us);
  }
  steps.Report("llama_3_1_8b_rtx_4090_step", 10, rows);
}

void MeasureSplitwise(const std::string& folder, std::vector<Row>* rows) {
  for (const char* gpu : {"a100-80gb", "h100-80gb"}) {
    Compared prompts, tokens, floors;
    ForRows(folder + "/splitwise_tp.csv", [&](const Fields& f) {
      if (f.Text("hardware") != gpu) return;
      constexpr double kMs = 1e3;
      const char* const type = f.Text("hardware") == "h100-80gb" ? "h100-sxm" : gpu;
      const ConfigOptions options{.tensor_parallel = static_cast<int64_t>(f.Number("tensor_parallel"))};
      const auto prompt = static_cast<int64_t>(f.Number("prompt_size")),
                 batch = static_cast<int64_t>(f.Number("batch_size"));
      prompts.Add(StepOf("llama-2-70b", options, batch, prompt, 0, type).step_us / kMs, f.Number("prompt_ms"));
      const auto half = static_cast<int64_t>(f.Number("token_size") / 2);
      tokens.Add(StepOf("llama-2-70b", options, batch, 1, prompt + half, type).step_us / kMs, f.Number("token_ms"));
    });
    prompts.Report(absl::StrCat("llama_2_70b_", gpu, "_prompt"), 15, rows);
    tokens.Report(absl::StrCat("llama_2_70b_", gpu, "_token"), kNone, rows);
  }
}

// ---- Whole engines: nets that users ask again and again, all requests on the same GPUs.

struct ServedRow {
  std::string net;    // net, GPU type, number type, engine
  std::string curve;  // and parts, tokens: what differs is how many ask at once
  double users = 0;
  double token_ms = 0, first_ms = 0;  // measured
  Service service;
  std::string gpu;
  std::function<absl::StatusOr<Service>(const std::vector<ServiceRun>& measured)> again;
  double burst_ms = 0;
};

// What a campaign adds to the first token: all users begin at once, and ask ten times each (inferred from how measured
// times grow with the users; MiniMax-M2 and Llama-3.1-70B).
constexpr double kBurstShare = 0.1;
constexpr double kPackedTokens = 16384;

std::optional<ServedRow> Served(const Fields& f, const Catalogue& gpus) {
  static const std::map<std::string, const char*> nets = {{"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
                                                          {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
                                                          {"Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"},
                                                          {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
                                                          {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
                                                          {"MiniMaxAI/MiniMax-M2.5", "minimax-m2"},
                                                          {"moonshotai/Kimi-K2.5", "kimi-k2"}};
  static const std::map<std::string, const char*> weights = {
      {"fp8", "fp8"}, {"fp4", "nvfp4"}, {"int4", "int4"}, {"bf16", ""}, {"", ""}};
  const auto net = nets.find(f.Text("model_path"));
  const auto type = weights.find(f.Text("precision"));
  const double tp = f.Number("tp_size"), experts = std::max(1.0, f.Number("moe_ep_size"));
  if (f.Text("mode") != "agg" || net == nets.end() || type == weights.end() || f.Number("attention_dp_size") > 1 ||
      f.Number("pp_size") > 1 || tp > 8)
    return std::nullopt;
  // In blocks, as the nets that were trained so are published.
  const bool published = f.Text("precision") == "fp8" && std::strcmp(net->second, "llama-3.1-70b") != 0 &&
                         std::strncmp(net->second, "qwen", 4) != 0;
  const std::string gpu = f.Text("system") == "b200_sxm" ? "b200" : "h100-sxm";
  const ConfigOptions options{.tensor_parallel = static_cast<int64_t>(tp),
                              .expert_parallel = static_cast<int64_t>(experts),
                              .weights = published ? "" : type->second};
  const Framework engine = f.Text("backend") == "trtllm"   ? Framework::kTensorRtLlm
                           : f.Text("backend") == "sglang" ? Framework::kSglang
                                                           : Framework::kVllm;
  ServedRow row{.users = f.Number("batch_size"),
                .token_ms = f.Number("silicon_tpot_ms"),
                .first_ms = f.Number("silicon_ttft_ms")};
  if (!(row.token_ms > 0 && row.first_ms > 0 && row.users >= 1)) return std::nullopt;
  row.net = absl::StrCat(net->second, "_", gpu, "_", f.Text("precision").empty() ? "bf16" : f.Text("precision"), "_",
                         f.Text("backend"));
  row.curve = absl::StrCat(row.net, "/", tp, "/", experts, "/", f.Text("isl"), "/", f.Text("osl"));
  const double in = f.Number("isl");
  const ServiceLoad load{
      .concurrency = row.users, .tokens_in = in, .tokens_out = f.Number("osl"), .longest = in + f.Number("osl")};
  const auto graph = Must(GraphFromConfig(net->second, options));
  const RunSpec run{.mode = RunMode::kInference, .precision = Precision::kBf16, .framework = engine};
  row.gpu = gpu;
  row.again = [graph, run, load, type = &gpus.at(Must(gpus.Find(gpu)))](
                  const std::vector<ServiceRun>& measured) -> absl::StatusOr<Service> {
    ServiceLoad asked = load;
    asked.measured = measured;
    HORUS_ASSIGN_OR_RETURN(const std::vector<Service> told,
                           PredictServices(*Predictor::Default(), graph, run, asked, std::span(&type, 1)));
    return told.front();
  };
  row.service = Must(row.again({}));
  const double prompts = std::max(1.0, std::floor(kPackedTokens / in));
  constexpr double kMs = 1e3;
  row.burst_ms =
      kBurstShare * row.users / prompts / kMs *
      StepOf(net->second, options, static_cast<int64_t>(prompts), static_cast<int64_t>(in), 0, gpu.c_str(), engine)
          .device_us;
  return row;
}

// By one that keeps a bound: the largest number of users on the grid that was measured.
int LargestWithin(const std::vector<double>& token_ms, double bound) {
  int largest = -1;
  for (size_t i = 0; i < token_ms.size(); ++i) {
    if (token_ms[i] <= bound) largest = static_cast<int>(i);
  }
  return largest;
}

// Each row predicted anew with three others of its load and parts, drawn, as ServiceLoad::measured.
struct CorrectedRows {
  std::vector<double> token_errors, first_errors;
  size_t first_kept = 0;
};
void AddCorrected(const std::vector<const ServedRow*>& curve, CorrectedRows& to) {
  constexpr double kMs = 1e3;
  constexpr size_t kRuns = 3;
  if (curve.size() <= kRuns) return;
  std::mt19937_64 draw(1);  // fixed
  for (size_t at = 0; at < curve.size(); ++at) {
    std::vector<const ServedRow*> others = curve;
    std::swap(others[at], others.back());
    others.pop_back();
    std::vector<ServiceRun> runs;
    for (size_t i = 0; i < kRuns; ++i) {
      std::swap(others[i], others[i + draw() % (others.size() - i)]);
      const ServedRow& seen = *others[i];
      runs.push_back({.gpu = seen.gpu,
                      .concurrency = seen.users,
                      .first_token_us = std::max(0.0, kMs * (seen.first_ms - seen.burst_ms)),
                      .token_us = kMs * seen.token_ms});
    }
    const ServedRow& row = *curve[at];
    const absl::StatusOr<Service> told = row.again(runs);
    if (!told.ok()) continue;  // a row that no prediction comes near (kMostCorrection)
    to.token_errors.push_back(std::abs(told->token.estimate_us / kMs / row.token_ms - 1));
    to.first_errors.push_back(std::abs((told->first_token.estimate_us / kMs + row.burst_ms) / row.first_ms - 1));
    to.first_kept += row.first_ms <= told->first_token.upper_us / kMs + row.burst_ms ? 1 : 0;
  }
}

void MeasureServed(const std::string& folder, std::vector<Row>* rows) {
  constexpr double kMs = 1e3;
  const auto gpus = Catalogue::Default();
  std::map<std::string, std::vector<ServedRow>> nets;
  ForRows(folder + "/serving.csv", [&](const Fields& f) {
    if (std::optional<ServedRow> row = Served(f, *gpus)) nets[row->net].push_back(*std::move(row));
  });
  std::vector<double> token_errors, first_errors, first_ranks, repeats;
  CorrectedRows corrected;
  size_t token_kept = 0, first_kept = 0, all = 0, near = 0, asked = 0;
  for (const auto& [net, served] : nets) {
    std::vector<double> errors, told, measured;
    std::map<std::string, std::map<double, std::vector<const ServedRow*>>> curves;
    for (const ServedRow& row : served) {
      const double first_ms = row.service.first_token.estimate_us / kMs + row.burst_ms;
      errors.push_back(std::abs(row.service.token.estimate_us / kMs / row.token_ms - 1));
      first_errors.push_back(std::abs(first_ms / row.first_ms - 1));
      told.push_back(first_ms);
      measured.push_back(row.first_ms);
      token_kept += row.token_ms <= row.service.token.upper_us / kMs ? 1 : 0;
      first_kept += row.first_ms <= row.service.first_token.upper_us / kMs + row.burst_ms ? 1 : 0;
      ++all;
      curves[row.curve][row.users].push_back(&row);
    }
    token_errors.insert(token_errors.end(), errors.begin(), errors.end());
    first_ranks.push_back(RankCorrelation(told, measured));
    for (const auto& [curve, points] : curves) {
      std::vector<const ServedRow*> of_curve;
      for (const auto& [users, same] : points) of_curve.insert(of_curve.end(), same.begin(), same.end());
      AddCorrected(of_curve, corrected);
      std::vector<double> seen, predicted;
      for (const auto& [users, same] : points) {
        std::vector<double> times;
        for (const ServedRow* row : same) times.push_back(row->token_ms);
        seen.push_back(Median(times));
        predicted.push_back(same.front()->service.token.estimate_us / kMs);
        for (const double time : times) {
          if (times.size() > 1) repeats.push_back(std::abs(time / seen.back() - 1));
        }
      }
      constexpr size_t kLeastPoints = 3;
      if (seen.size() < kLeastPoints) continue;
      for (const double bound : seen) {
        near += std::abs(LargestWithin(seen, bound) - LargestWithin(predicted, bound)) <= 1 ? 1 : 0;
        ++asked;
      }
    }
    rows->push_back({.metric = "served_" + net,
                     .value = 100 * Median(errors),
                     .unit = "%",
                     .aim = 18,
                     .protocol = absl::StrCat(errors.size(), " rows, time per token, median")});
  }
  if (all == 0) return;
  const auto add = [&](const char* metric, double value, const char* unit, double aim, const std::string& protocol,
                       bool higher) {
    rows->push_back(
        {.metric = metric, .value = value, .unit = unit, .aim = aim, .lower_is_better = !higher, .protocol = protocol});
  };
  const std::string floor = absl::StrCat("; rows that repeat differ by ", static_cast<int>(100 * Mean(repeats)),
                                         " % on average (", repeats.size(), " rows)");
  const double count = static_cast<double>(all);
  add("served_token_median", 100 * Median(token_errors), "%", 18, absl::StrCat(all, " rows", floor), false);
  add("served_first_token_median", 100 * Median(first_errors), "%", 35, "the burst of the campaign added", false);
  const std::string three =
      absl::StrCat(corrected.token_errors.size(), " rows, each corrected by three others of its load");
  add("served_token_three_runs", 100 * Median(corrected.token_errors), "%", 12, three, false);
  add("served_first_token_three_runs", 100 * Median(corrected.first_errors), "%", 25, three, false);
  add("served_first_token_three_runs_bounds_kept",
      100 * static_cast<double>(corrected.first_kept) /
          static_cast<double>(std::max<size_t>(1, corrected.first_errors.size())),
      "%", 90, three, true);
  add("served_first_token_rank", Median(first_ranks), "", 0.93, "Spearman's in a net, median of nets", true);
  add("served_token_bounds_kept", 100 * static_cast<double>(token_kept) / count, "%", 90, "rows at or below the bound",
      true);
  add("served_first_token_bounds_kept", 100 * static_cast<double>(first_kept) / count, "%", 90,
      "rows at or below the bound", true);
  add("served_largest_concurrency", 100 * static_cast<double>(near) / static_cast<double>(std::max<size_t>(1, asked)),
      "%", 75, absl::StrCat("within one step of the grid, ", asked, " bounds"), true);
}

// ---- A fleet: 40 services of ten models on 16 GPUs under MPS, memory as their engines are told to take.

void PlanFleet(std::vector<Row>* rows) {
  constexpr int kServices = 40;
  const char* const models[] = {"llama-3.1-8b", "qwen2.5-7b",   "qwen2.5-1.5b",  "mistral-7b-v0.1", "gemma-2-9b",
                                "qwen3-8b",     "llama-3.2-3b", "phi-3-mini-4k", "qwen2.5-14b",     "llama-3.2-1b"};
  const auto gpus = Catalogue::Default();
  const GpuTypeId ids[] = {Must(gpus->Find("a100-80gb")), Must(gpus->Find("h100-sxm"))};
  const GpuType* const types[] = {&gpus->at(ids[0]), &gpus->at(ids[1])};
  Cluster cluster(gpus);
  for (NodeId node = 1; node <= 2; ++node) {
    NodeSpec spec{.id = node, .cpu_milli = 64'000, .mem_mib = 512 * 1024};
    spec.devices.assign(8, DeviceSpec{.type = ids[node - 1], .mode = SharingMode::kMps});
    Must(cluster.AddNode(spec));
  }
  std::vector<JobSpec> jobs;
  for (int i = 0; i < kServices; ++i) {
    const ServiceLoad load{.requests_per_s = 0.1 * (1 + i % 7),
                           .tokens_in = 200.0 * (1 + i % 5),
                           .tokens_out = 100.0 * (1 + i % 3),
                           .first_token_us = 1e6,
                           .token_us = 80e3};
    const RunSpec run{.mode = RunMode::kInference, .precision = Precision::kBf16, .framework = Framework::kVllm};
    const auto graph = Must(GraphFromConfig(models[static_cast<size_t>(i) % std::size(models)], {}));
    const std::vector<Service> services = Must(PredictServices(*Predictor::Default(), graph, run, load, types));
    JobSpec job{.id = static_cast<JobId>(i + 1), .kind = JobKind::kInference};
    for (size_t t = 0; t < std::size(ids); ++t) job.demands.push_back({ids[t], services[t].demand});
    jobs.push_back(std::move(job));
  }
  std::vector<double> ms;
  size_t placed = 0;
  for (int round = 0; round < 20; ++round) {
    const auto placer =
        Must(Placer::Create(Must(MakeInterferenceModel(kDefaultInterferenceModel)), Must(MakePolicy("horus"))));
    const auto begin = std::chrono::steady_clock::now();
    const Plan plan = Must(placer->MakePlan(cluster, jobs));
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    placed = 0;
    for (const Decision& decision : plan.decisions) placed += decision.verdict == Verdict::kPlace ? 1 : 0;
  }
  rows->push_back({.metric = "plan_of_a_fleet",
                   .value = Quantile(ms, 0.5),
                   .unit = "ms",
                   .aim = 20,
                   .protocol = absl::StrCat(kServices, " services on 16 GPUs, a placer that knows nothing yet; ",
                                            placed, " placed")});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  TimeAnswers(rows);
  PlanFleet(rows);
  if (options.data.empty()) {
    std::fprintf(stderr, "bench llm: no --data DIR: errors are not measured\n");
    return;
  }
  if (options.only.empty() || options.only == "steps") {
    MeasureLayers(options.data + "/llm_ops", rows);
    MeasureSplitwise(options.data + "/llm_ops", rows);
    MeasureServed(options.data + "/llm_ops", rows);
  }
  const auto gpus = Catalogue::Default();
  for (size_t at = 0; at < std::size(kTables); ++at) {
    const Table& table = kTables[at];
    const std::string name(Name(table.kind));
    if (!options.only.empty() && options.only != name) continue;
    const std::vector<MeasuredOperator> all = ReadTable(options.data + "/llm_ops", table, *gpus);
    const auto add = [&](const std::string& what, double value, double aim, const std::string& protocol) {
      rows->push_back({.metric = absl::StrCat(name, "_", what),
                       .value = 100 * value,
                       .unit = "%",
                       .aim = aim,
                       .protocol = protocol});
    };
    const Judged shapes = JudgeShapes(table.kind, all);
    if (!shapes.errors.empty()) {
      const std::string how = absl::StrCat("a fifth of the shapes left out, ", shapes.errors.size(), " rows");
      add("shape_unseen_mean", Mean(shapes.errors), kAims[at].shape_mean, how);
      add("shape_unseen_median", Quantile(shapes.errors, 0.5), kAims[at].shape_median, how);
    }
    for (const auto& [gpu, judged] : JudgeGpus(table.kind, all)) {
      if (judged.errors.empty()) continue;
      add(absl::StrCat(gpu, "_left_out_median"), Quantile(judged.errors, 0.5), kAims[at].gpu_median,
          absl::StrCat("mean ", static_cast<int>(100 * Mean(judged.errors)), " %, ", judged.errors.size(), " rows"));
    }
  }
}

void Train(const std::string& data, const std::string& out, const std::string& only) {
  const auto gpus = Catalogue::Default();
  const std::vector<std::string> asked = absl::StrSplit(only, ',');
  Bundle before;
  if (!only.empty()) {
    std::ifstream file(out, std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    before = Must(ReadBundle(bytes));
  }
  Bundle bundle{
      .schema_hash = OperatorSchemaHash(),
      .library_version = absl::StrCat(HORUS_VERSION_MAJOR, ".", HORUS_VERSION_MINOR, ".", HORUS_VERSION_PATCH)};
  bundle.data_fingerprint = before.data_fingerprint;
  std::map<std::string, size_t> seen;
  for (const Table& table : kTables) {
    const BundleTarget* kept = before.FindTarget(Name(table.kind));
    if (kept != nullptr && std::find(asked.begin(), asked.end(), Name(table.kind)) == asked.end()) {
      bundle.targets.push_back(*kept);
      continue;
    }
    const std::vector<MeasuredOperator> all = ReadTable(data + "/llm_ops", table, *gpus);
    TrainedOperators trained{.kind = table.kind};
    if (!all.empty()) {
      const Rows rows = Where(all, [](const auto&) { return true; });
      trained = Must(TrainOperators(table.kind, rows));
      const Judged shapes = JudgeShapes(table.kind, all);
      trained.margin = shapes.scores.empty() ? 0 : std::max(0.0, Quantile(shapes.scores, kPromise));
      // Every type left out weighs the same.
      constexpr size_t kOfEach = 1000;
      std::vector<double> pooled;
      for (auto& [gpu, judged] : JudgeGpus(table.kind, all)) {
        std::sort(judged.scores.begin(), judged.scores.end());
        for (size_t i = 0; i < kOfEach && !judged.scores.empty(); ++i) {
          pooled.push_back(judged.scores[i * judged.scores.size() / kOfEach]);
        }
      }
      if (!pooled.empty()) trained.unseen_gpu_margin = Quantile(pooled, kPromise);
      trained.unseen_gpu_margin = std::max(trained.unseen_gpu_margin, trained.margin);
    }
    for (const MeasuredOperator& row : all) {
      ++seen[row.gpu->name];
      bundle.data_fingerprint =
          CombineHash(bundle.data_fingerprint, CombineHash(row.shape, static_cast<uint64_t>(row.us * 1e3)));
    }
    std::fprintf(stderr, "bench llm: %s: %zu rows, %zu nodes, margins %.3f and %.3f\n",
                 std::string(Name(table.kind)).c_str(), all.size(), trained.forest.nodes.size(), trained.margin,
                 trained.unseen_gpu_margin);
    bundle.targets.push_back(ToBundle(trained));
  }
  bundle.series = before.series;
  for (const auto& [gpu, count] : seen) {
    if (FindSeries(before.series, "gpus." + gpu) == nullptr)
      bundle.series.push_back({"gpus." + gpu, {static_cast<double>(count)}});
  }
  bundle.training_summary = "operators of language models: ai-dynamo/aiconfigurator@095f58a5";
  const std::string bytes = Must(WriteBundle(bundle));
  std::ofstream(out, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) {
  const bool some = argc == 7 && std::strcmp(argv[5], "--only") == 0;
  if ((argc == 5 || some) && std::strcmp(argv[1], "--train") == 0 && std::strcmp(argv[3], "--data") == 0) {
    horus::bench::Train(argv[4], argv[2], some ? argv[6] : "");
    return 0;
  }
  return horus::bench::Main(argc, argv, horus::bench::Measure);
}
