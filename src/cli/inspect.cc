// SPDX-License-Identifier: Apache-2.0
// horus inspect: what one step of a model costs, what it demands of GPUs, and how large it may become there.
#include "cli/inspect.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vectors.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "graph/from_config.h"
#include "interference/host_model.h"
#include "predict/solve.h"

namespace horus::cli {
namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

// A chat's request where nobody says otherwise (Azure's traces of 2023 and 2024: 1,155 and 211 tokens on average).
constexpr double kDefaultTokensIn = 1024, kDefaultTokensOut = 256;
constexpr double kMostPromiseMs = 1e9;

constexpr char kInspectFooter[] = R"(
Examples:
  horus inspect resnet50.onnx --batch 64 --gpu a100-40gb
  horus inspect bert.onnx --batch 16 --dim seq=128 --optimizer adamw --precision amp --gpu v100-16gb --gpu t4
  horus inspect gpt2.onnx --batch 1 --dim seq=1024 --mode inference --json
  horus inspect resnet50.onnx --solve batch --gpu t4 --beside-mib 6000     the largest batch that fits
  horus inspect llama-3.1-8b --batch 8 --dim seq=1 --dim past=4096 --gpu h100-sxm     a step of decoding
  horus inspect llama-3.1-8b --requests-per-s 5 --first-token-ms 500 --token-ms 50     which GPUs serve it
  horus inspect llama-3.1-8b --first-token-ms 500 --token-ms 50 --solve load     the most requests/s of each GPU
  horus inspect bert.onnx --dim seq=128 --mode inference --gpu a100-80gb --beside resnet50.onnx --beside-mode training

Weights are neither needed nor read. Bounds ("at most") are what fits are decided by; estimates are what
places are compared by. `horus gpus` lists the GPU types.)";

struct InspectFlags {
  std::string model;
  int64_t batch = 0;
  std::vector<std::string> gpus;
  std::vector<std::string> dims;
  std::string mode;       // empty: not given
  std::string precision;  // empty: not given
  std::string optimizer = "sgd";
  std::string framework;  // "": vllm for a config that is served, else pytorch
  std::string layout = "nchw";
  int64_t checkpoint_segments = 0;
  int64_t replicas = 1;
  std::vector<std::string> frozen;
  size_t top = 10;
  std::vector<std::string> gpus_files;
  std::string bundle;
  bool features = false;
  bool explain = false;
  bool json = false;
  ConfigOptions config;
  std::string solve;  // empty: no search
  int64_t solve_max = kDefaultSolveMax;
  std::vector<int64_t> beside_mib;
  std::string beside;  // empty: one job
  int64_t beside_batch = 0;
  std::string beside_mode;
  std::vector<std::string> beside_dims;
  std::string beside_service;
  ServiceLoad load;  // of a service where users or requests/s are given
  double first_token_ms = 0, token_ms = 0, answer_ms = 0;
  std::vector<std::string> measured;

  // What of a service is to be found.
  [[nodiscard]] std::optional<ServiceUnknown> unknown() const {
    const auto word = std::ranges::find(kServiceUnknowns, solve);
    if (word == std::end(kServiceUnknowns)) return std::nullopt;
    return static_cast<ServiceUnknown>(word - std::begin(kServiceUnknowns));
  }
  [[nodiscard]] bool serves() const {
    return load.requests_per_s > 0 || load.concurrency > 0 ||
           (unknown().has_value() && (IsConfigPath(model) || answer_ms > 0));
  }
};

absl::StatusOr<std::pair<std::string, int64_t>> ParseDim(const std::string& text) {
  const size_t equals = text.find('=');
  int64_t size = 0;
  if (equals != std::string::npos && equals > 0 && CLI::detail::lexical_cast(text.substr(equals + 1), size) &&
      size >= 1 && size <= kMaxDim) {
    return std::pair(text.substr(0, equals), size);
  }
  return InvalidArgument("--dim: expected NAME=SIZE with a size from 1 to %d, found %s", kMaxDim, Quoted(text));
}

absl::StatusOr<ServiceRun> ParseServiceRun(const std::string& text, const Catalogue& catalogue) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  double users = 0, token_ms = 0, first_ms = 0;
  if (parts.size() < 3 || parts.size() > 4 || !absl::SimpleAtod(parts[1], &users) || users < 1 ||
      !absl::SimpleAtod(parts[2], &token_ms) || (parts.size() == 4 && !absl::SimpleAtod(parts[3], &first_ms)))
    return InvalidArgument("--measured: expected GPU,USERS,TOKEN_MS[,FIRST_TOKEN_MS] with at least one user, found %s",
                           Quoted(text));
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(parts[0]));
  return ServiceRun{.gpu = catalogue.at(type).name,
                    .concurrency = users,
                    .first_token_us = first_ms * kUsPerMs,
                    .token_us = token_ms * kUsPerMs};
}

absl::StatusOr<RunSpec> ParseRun(const InspectFlags& options) {
  RunSpec run;
  const bool serves = IsConfigPath(options.model) && options.config.lora_rank == 0;
  HORUS_ASSIGN_OR_RETURN(run.mode, ParseRunMode(!options.mode.empty()        ? options.mode
                                                : serves || options.serves() ? "inference"
                                                                             : "training"));
  if (!options.precision.empty()) HORUS_SET_OR_RETURN(run.precision, ParsePrecision(options.precision));
  HORUS_ASSIGN_OR_RETURN(run.optimizer, ParseOptimizer(options.optimizer));
  if (!options.framework.empty()) {
    HORUS_ASSIGN_OR_RETURN(run.framework, ParseFramework(options.framework));
  } else if (serves && run.mode == RunMode::kInference) {
    run.framework = Framework::kVllm;
  }
  HORUS_ASSIGN_OR_RETURN(run.layout, ParseLayout(options.layout));
  run.dims.batch = options.batch;
  run.checkpoint_segments = options.checkpoint_segments;
  run.data_parallel = options.replicas;
  run.frozen = options.frozen;
  for (const std::string& text : options.dims) HORUS_SET_OR_RETURN(run.dims.dims.emplace_back(), ParseDim(text));
  return run;
}

// What the options name, read.
struct Inputs {
  RunSpec run;
  std::shared_ptr<const Catalogue> catalogue;
  std::vector<GpuType> types;  // those named; with a search and none named, the whole catalogue
  std::shared_ptr<const Predictor> predictor;
  std::shared_ptr<const Graph> graph;

  [[nodiscard]] std::vector<const GpuType*> Types() const {
    return VectorOf<const GpuType*>(types, [](const GpuType& type) { return &type; });
  }
};

absl::StatusOr<Inputs> ReadInputs(const InspectFlags& options) {
  Inputs inputs;
  HORUS_ASSIGN_OR_RETURN(inputs.run, ParseRun(options));
  HORUS_ASSIGN_OR_RETURN(inputs.catalogue, LoadCatalogue(options.gpus_files));
  const Catalogue* const catalogue = inputs.catalogue.get();
  for (const std::string& name : options.gpus) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, catalogue->Find(name));
    inputs.types.push_back(catalogue->at(id));
  }
  if ((!options.solve.empty() || options.serves()) && options.gpus.empty())
    inputs.types.assign(catalogue->types().begin(), catalogue->types().end());
  HORUS_ASSIGN_OR_RETURN(inputs.predictor, LoadPredictor(options.bundle));
  ConfigOptions config = options.config;
  config.training = inputs.run.mode == RunMode::kTraining;
  HORUS_ASSIGN_OR_RETURN(inputs.graph, ReadModel(options.model, config));
  if (options.precision.empty()) inputs.run.precision = PrecisionOf(*inputs.graph);
  // As engines take models of float32.
  if (options.precision.empty() && IsEngine(inputs.run.framework) && !IsHalf(inputs.run.precision))
    inputs.run.precision = Precision::kFp16;
  return inputs;
}

absl::Status InModel(const InspectFlags& options, const absl::Status& status) {
  return MakeError(status.code(), "%s: %s", options.model, std::string(status.message()));
}

absl::StatusOr<std::string> Inspect(const InspectFlags& options) {
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  absl::StatusOr<JobProfile> profile = Analyse(inputs.graph, inputs.run);
  if (!profile.ok()) return InModel(options, profile.status());
  InspectReport report =
      MakeInspectReport(options.model, inputs.graph, *std::move(profile), *inputs.predictor, inputs.types, options.top);
  report.with_features = options.features;
  report.with_explanations = options.explain;
  return options.json ? InspectJson(report) : InspectText(report);
}

// ---- What `horus inspect --solve` found out, before it is printed as text or JSON.
// Cost: as SolveDimension.

struct SolveRow {
  GpuType type;
  Solution alone;
  Solution beside;  // = alone without residents
};

struct SolveReport {
  SolveRequest request;
  int64_t resident_mib = 0;  // sum of the residents' upper bounds
  std::vector<SolveRow> rows;
  int64_t bindings = 0;
  bool outside = false;  // the job lies outside what the prediction was made for
};

constexpr int kSolveJsonVersion = 1;
constexpr size_t kShownDimBytes = 24;
constexpr size_t kShownMessageBytes = 400;

std::string LimitText(const Solution& solution, std::vector<std::string>& messages) {
  switch (solution.end) {
    case SolveEnd::kMemory:
      return absl::StrFormat("memory: %d is %s over", solution.next, Mib(solution.short_mib));
    case SolveEnd::kMaximum:
      return "the maximum asked for";
    case SolveEnd::kGraph:
      break;
  }
  // The same few messages for every GPU: once, below the table.
  const std::string message = absl::StrFormat("%d: %s", solution.next, solution.message);
  if (std::find(messages.begin(), messages.end(), message) == messages.end()) messages.push_back(message);
  return absl::StrFormat("the graph refuses %d", solution.next);
}

Json SolutionJson(const Solution& solution) {
  const bool memory = solution.end == SolveEnd::kMemory;
  const bool graph = solution.end == SolveEnd::kGraph;
  return {{"largest", solution.largest},
          {"memory_upper_mib", solution.largest > 0 ? Json(solution.upper_mib) : Json(nullptr)},
          {"reason", std::string(SolveEndName(solution.end))},
          {"next", solution.next > 0 ? Json(solution.next) : Json(nullptr)},
          {"short_mib", memory ? Json(solution.short_mib) : Json(nullptr)},
          {"message", graph ? Json(solution.message) : Json(nullptr)}};
}

Json RowJson(const SolveReport& report, const SolveRow& row) {
  Json json = {{"gpu_type", row.type.name},
               {"display_name", row.type.display_name},
               {"gpu_memory_mib", row.type.mem_mib},
               {"free_mib", std::max<int64_t>(0, row.type.mem_mib - report.resident_mib)}};
  json.update(SolutionJson(row.beside));
  json["alone"] = SolutionJson(row.alone);
  return json;
}

absl::StatusOr<SolveReport> MakeSolveReport(const Inputs& inputs, const SolveRequest& request, int64_t resident_mib) {
  std::vector<SolveDevice> devices;
  for (size_t i = 0; i < inputs.types.size(); ++i) {
    devices.push_back({i, 0});
    if (resident_mib > 0) devices.push_back({i, resident_mib});
  }
  Progress progress;
  const auto tell = [&progress](size_t done, size_t all) {
    progress.Update("solving:", done, all);
    return true;
  };
  HORUS_ASSIGN_OR_RETURN(const Solved solved, SolveDimension(inputs.graph, inputs.run, request, *inputs.predictor,
                                                             inputs.types, devices, tell));
  SolveReport report{.request = request,
                     .resident_mib = resident_mib,
                     .bindings = solved.bindings,
                     .outside = (solved.flags & kDemandOutside) != 0};
  const size_t stride = resident_mib > 0 ? 2 : 1;
  for (size_t i = 0; i < inputs.types.size(); ++i)
    report.rows.push_back({inputs.types[i], solved.solutions[stride * i], solved.solutions[stride * (i + 1) - 1]});
  return report;
}

std::string SolveText(const std::string& path, const Inputs& inputs, const SolveReport& report) {
  const std::string dim = Printable(report.request.dim, kShownDimBytes);
  std::string text = absl::StrFormat("%s - %s", Printable(path), RunText(inputs.run, inputs.run.dims.batch));
  text += absl::StrFormat("\nLargest %s whose upper bound of memory fits%s\n", dim,
                          report.resident_mib > 0 ? ", alone and beside " + Mib(report.resident_mib) : "");

  const bool beside = report.resident_mib > 0;
  Table table(beside ? "GPU|>MEMORY|>ALONE|>BESIDE|>AT MOST|~LIMIT" : "GPU|>MEMORY|>LARGEST|>AT MOST|~LIMIT");
  std::vector<std::string> messages;
  for (const SolveRow& row : report.rows) {
    std::vector<std::string> cells = {row.type.name, Mib(row.type.mem_mib), std::to_string(row.alone.largest)};
    if (beside) cells.push_back(std::to_string(row.beside.largest));
    cells.push_back(row.beside.largest > 0 ? Mib(row.beside.upper_mib) : "-");
    cells.push_back(LimitText(row.beside, messages));
    table.AddRow(std::move(cells));
  }
  text += table.Render("  ");
  for (const std::string& message : messages)
    text += Paragraph("refused: " + Printable(message, kShownMessageBytes), "  ");
  if (!inputs.predictor->calibrated())
    text += "  Analytical prediction without trained models: the bounds are wide on purpose.\n";
  if (report.outside) text += "  The job lies outside what the prediction was made for: the bounds may be too low.\n";
  return text;
}

std::string SolveJson(const std::string& path, const Inputs& inputs, const SolveReport& report) {
  const Json json = {{"schema", "horus-solve"},
                     {"version", kSolveJsonVersion},
                     {"model",
                      {{"path", path},
                       {"name", inputs.graph->name},
                       {"fingerprint", absl::StrFormat("%016x", inputs.graph->fingerprint)}}},
                     {"run", RunJson(inputs.run, inputs.run.dims.batch)},
                     {"dim", report.request.dim},
                     {"max_value", report.request.max_value},
                     {"resident_mib", report.resident_mib},
                     {"calibrated", inputs.predictor->calibrated()},
                     {"outside_training_data", report.outside},
                     {"bindings", report.bindings},
                     {"gpus", JsonList(report.rows, [&](const SolveRow& row) { return RowJson(report, row); })}};
  return JsonText(json);
}

absl::StatusOr<std::string> Solve(const InspectFlags& options) {
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  const SolveRequest request{.dim = options.solve, .max_value = options.solve_max};
  int64_t resident_mib = 0;
  for (const int64_t mib : options.beside_mib) {
    resident_mib += mib;  // each is checked, and so is the sum
    if (resident_mib > kMostResidentMib)
      return InvalidArgument("--beside-mib: expected at most %d MiB in sum, found more", kMostResidentMib);
  }
  const absl::StatusOr<SolveReport> report = MakeSolveReport(inputs, request, resident_mib);
  if (!report.ok()) return InModel(options, report.status());
  return options.json ? SolveJson(options.model, inputs, *report) : SolveText(options.model, inputs, *report);
}

// Fills in what is not said of the load, and refuses what such a model cannot have.
absl::StatusOr<ServiceLoad> LoadOf(const InspectFlags& options, const Inputs& inputs) {
  if (options.config.pipeline_parallel > 1) {
    return InvalidArgument("--pipeline-parallel: expected none of a service, found %d",
                           options.config.pipeline_parallel);
  }
  ServiceLoad load = options.load;
  const bool at_once = std::ranges::find(inputs.graph->symbols, "past") == inputs.graph->symbols.end();
  if (at_once && !AnswersAtOnce(load))
    return InvalidArgument("--tokens-in, --tokens-out: expected none of a model that answers in one step");
  if (!at_once && options.answer_ms > 0)
    return InvalidArgument("--answer-ms: expected --first-token-ms and --token-ms of a language model");
  if (!at_once && load.tokens_in == 0) load.tokens_in = kDefaultTokensIn;
  if (!at_once && load.tokens_out == 0) load.tokens_out = kDefaultTokensOut;
  load.first_token_us = (options.first_token_ms + options.answer_ms) * kUsPerMs;
  load.token_us = options.token_ms * kUsPerMs;
  for (const std::string& text : options.measured) {
    HORUS_ASSIGN_OR_RETURN(load.measured.emplace_back(), ParseServiceRun(text, *inputs.catalogue));
    const auto asked = [&](const GpuType& type) { return type.name == load.measured.back().gpu; };
    if (std::ranges::none_of(inputs.types, asked))
      return InvalidArgument("--measured: expected a type of --gpu, found %s", Quoted(load.measured.back().gpu));
  }
  return load;
}

// The fewest GPUs of each type: in copies, each on as many GPUs as do best.
absl::StatusOr<std::vector<ServedOn>> FewestGpus(const InspectFlags& options, const Inputs& inputs,
                                                 const ServiceLoad& load) {
  const std::vector<const GpuType*> types = inputs.Types();
  constexpr int64_t kMostParallel = 8;  // of a usual node
  std::vector<ServedOn> rows;
  ConfigOptions config = options.config;
  const auto gpus_of = [](const ServiceSolution& one) {
    return one.value > 0 ? one.value * static_cast<double>(one.service.gpus) : std::numeric_limits<double>::max();
  };
  const bool divides = IsConfigPath(options.model) && config.tensor_parallel == 1;
  for (int64_t parts = config.tensor_parallel; parts <= (divides ? kMostParallel : config.tensor_parallel);
       parts *= 2) {
    std::shared_ptr<const Graph> graph = inputs.graph;
    if (parts > config.tensor_parallel) {
      config.tensor_parallel = parts;
      const auto divided = ReadModel(options.model, config);
      if (!divided.ok()) break;  // heads or sizes that do not divide
      graph = *divided;
    }
    HORUS_ASSIGN_OR_RETURN(const auto found,
                           SolveServices(*inputs.predictor, graph, inputs.run, load, ServiceUnknown::kReplicas, types));
    for (size_t i = 0; i < types.size(); ++i) {
      if (i == rows.size()) rows.push_back({*types[i], found[i].service, found[i]});
      if (rows[i].solved->value == 0 || gpus_of(found[i]) < gpus_of(*rows[i].solved))
        rows[i] = {*types[i], found[i].service, found[i]};
    }
  }
  std::ranges::stable_sort(rows, {},
                           [&](const ServedOn& row) { return std::pair(gpus_of(*row.solved), row.gpu.mem_mib); });
  return rows;
}

absl::StatusOr<std::vector<ServedOn>> ServicesOf(const Inputs& inputs, const ServiceLoad& load,
                                                 std::optional<ServiceUnknown> unknown) {
  const std::vector<const GpuType*> types = inputs.Types();
  std::vector<ServedOn> found;
  if (unknown.has_value()) {
    HORUS_ASSIGN_OR_RETURN(const auto solved,
                           SolveServices(*inputs.predictor, inputs.graph, inputs.run, load, *unknown, types));
    for (size_t i = 0; i < types.size(); ++i) found.push_back({*types[i], solved[i].service, solved[i]});
    return found;
  }
  HORUS_ASSIGN_OR_RETURN(const auto services,
                         PredictServices(*inputs.predictor, inputs.graph, inputs.run, load, types));
  for (size_t i = 0; i < types.size(); ++i) found.push_back({*types[i], services[i], std::nullopt});
  return found;
}

absl::StatusOr<std::string> Serve(const InspectFlags& options) {
  const std::optional<ServiceUnknown> unknown = options.unknown();
  if (!options.solve.empty() && !unknown.has_value())
    return InvalidArgument("--solve: %s", ExpectedOneOf(kServiceUnknowns, options.solve));
  if (!options.beside_mib.empty() || options.solve_max != kDefaultSolveMax)
    return InvalidArgument("--beside-mib, --solve-max: expected none of a service");
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  ServicesReport report{.path = options.model, .run = inputs.run, .unknown = unknown, .all = options.gpus.empty()};
  HORUS_ASSIGN_OR_RETURN(report.load, LoadOf(options, inputs));
  const auto rows = unknown == ServiceUnknown::kReplicas ? FewestGpus(options, inputs, report.load)
                                                         : ServicesOf(inputs, report.load, unknown);
  if (!rows.ok()) return InModel(options, rows.status());
  report.rows = *rows;
  if (options.json) return ServicesJson(report);
  const std::string text = ServicesText(report);
  return SaidOf(*inputs.graph, "vision").empty() ? text : text + "\n  Images and their tokens are not counted.\n";
}

// A service in the words of jobs.yaml.
absl::StatusOr<ServiceLoad> ParseService(const std::string& text, const std::string& model,
                                         const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(
      const std::vector<JobRequest> jobs,
      ParseJobsFile(
          "--beside-service",
          absl::StrFormat("{version: 1, jobs: [{kind: inference, model: %s, service: %s}]}", Json(model).dump(), text),
          catalogue));
  return *jobs.at(0).model->service;
}

absl::StatusOr<BesideJob> BesideJobOf(const InspectFlags& options, const Inputs& inputs,
                                      const std::optional<ServiceLoad>& load) {
  BesideJob job = {.path = options.model, .engine = inputs.run.framework};
  if (!load.has_value()) {
    HORUS_ASSIGN_OR_RETURN(const JobProfile profile, Analyse(inputs.graph, inputs.run));
    job.run = RunText(profile.run, profile.shaped->batch);
    for (const GpuType& type : inputs.types) job.demands.push_back(inputs.predictor->Predict(profile, type));
    return job;
  }
  job.run = RunText(inputs.run, inputs.run.dims.batch);
  job.load = LoadText(*load);
  HORUS_ASSIGN_OR_RETURN(job.services,
                         PredictServices(*inputs.predictor, inputs.graph, inputs.run, *load, inputs.Types()));
  for (const Service& service : job.services) job.demands.push_back(service.demand);
  return job;
}

absl::StatusOr<std::string> Beside(InspectFlags options) {
  std::array<BesideJob, 2> jobs;
  Inputs inputs;
  const std::string service = options.beside_service;
  for (size_t i = 0; i < 2; ++i) {
    std::optional<ServiceLoad> load;
    if (i == 1 && !service.empty()) options.load.requests_per_s = 1;  // serves, whatever the load
    HORUS_ASSIGN_OR_RETURN(inputs, ReadInputs(options));
    if (i == 0 && options.serves()) {
      HORUS_ASSIGN_OR_RETURN(load, LoadOf(options, inputs));
    } else if (i == 1 && !service.empty())
      HORUS_SET_OR_RETURN(load, ParseService(service, options.model, *inputs.catalogue));
    absl::StatusOr<BesideJob> job = BesideJobOf(options, inputs, load);
    if (!job.ok()) return InModel(options, job.status());
    jobs[i] = *std::move(job);
    options.model = options.beside;
    // What stands here of the first is its own: how it is served, and in which parts and types.
    options.batch = options.beside_batch;
    options.mode = options.beside_mode;
    options.dims = options.beside_dims;
    options.config = {};
    options.load = {};
    options.answer_ms = 0;
    if (IsEngine(inputs.run.framework) && !(IsConfigPath(options.beside) && !service.empty()))
      options.framework.clear();
  }
  std::vector<GpuTypeId> types;
  for (const GpuType& type : inputs.types) types.push_back(*inputs.catalogue->FindKnown(type.name));
  HORUS_ASSIGN_OR_RETURN(const auto model, MakeInterferenceModel(kDefaultInterferenceModel));
  return BesideReport(jobs, types, *inputs.catalogue, *WithHostTime(model), options.json);
}

int RunInspect(const InspectFlags& options) {
  if (!options.serves() && (options.first_token_ms > 0 || options.token_ms > 0 || options.answer_ms > 0 ||
                            options.load.longest > 0 || !options.measured.empty())) {
    return Fail(InvalidArgument(
        "expected --requests-per-s or --users above 0 beside promises or times of a service, found none"));
  }
  const absl::StatusOr<std::string> text = !options.beside.empty() ? Beside(options)
                                           : options.serves()      ? Serve(options)
                                           : options.solve.empty() ? Inspect(options)
                                                                   : Solve(options);
  return Print(text);
}

void AddConfig(CLI::App& app, ConfigOptions& config) {
  const auto count = [&app](const char* name, int64_t& value, int64_t least, const char* what) {
    AddRanged(app, name, value, std::string("Of a config.json: ") + what, "N", least, kMostParts);
  };
  count("--tensor-parallel", config.tensor_parallel, 1, "GPUs that share every layer");
  count("--pipeline-parallel", config.pipeline_parallel, 1, "stages");
  count("--pipeline-stage", config.pipeline_stage, 0, "the stage to look at, from 0");
  count("--expert-parallel", config.expert_parallel, 1, "groups of those GPUs that share out whole experts");
  count("--lora-rank", config.lora_rank, 0, "train adapters of this rank; all else is frozen");
  AddOption(app, "--lora-targets", config.lora_targets,
            "Which layers have adapters: all-linear, or q_proj,v_proj and others (default: those of attention)",
            "LAYERS")
      ->needs("--lora-rank");
  AddOption(app, "--weights", config.weights, "Of a config.json: bf16, fp16, fp32, fp8, int8, int4, nvfp4 or mxfp4",
            "TYPE");
  AddOption(app, "--cache", config.cache, "Of a config.json: keys and values in bf16, fp16, fp32, fp8 or int8", "TYPE");
}

void AddSolve(CLI::App& app, InspectFlags& options) {
  CLI::Option* solve =
      AddOption(app, "--solve", options.solve,
                "Find the largest batch, or named dimension, that fits each GPU; of a service the largest load, the "
                "longest context (tokens in and out), or the fewest gpus",
                "NAME")
          ->check(CLI::Validator([](std::string& name) { return name.empty() ? "expected a name" : ""; }, ""))
          ->excludes("--top")
          ->excludes("--features")
          ->excludes("--explain");
  AddRepeated(app, "--beside-mib", options.beside_mib,
              "With --solve: upper bound of a resident's memory; may be repeated, the sum counts", "N")
      ->needs(solve)
      ->check(CLI::Range(int64_t{0}, kMostResidentMib));
  AddOption(app, "--solve-max", options.solve_max, "With --solve: the largest value to try", "N")
      ->needs(solve)
      ->check(CLI::Range(int64_t{1}, kMostSolveMax))
      ->capture_default_str();
}

void AddService(CLI::App& app, InspectFlags& options) {
  const auto number = [&app](const char* name, double& value, double least, double most, const char* what) {
    return AddRanged(app, name, value, what, "X", least, most);
  };
  CLI::Option* rate = number("--requests-per-s", options.load.requests_per_s, 0, kMostServiceRate,
                             "Requests of independent users: how each GPU type serves them");
  number("--users", options.load.concurrency, 1, kMostServiceRate, "Or users who ask again once they are answered")
      ->excludes(rate);
  number("--tokens-in", options.load.tokens_in, 1, kMostTokens, "Tokens of a prompt, mean (default: 1024)");
  number("--tokens-out", options.load.tokens_out, 1, kMostTokens, "Tokens of an answer, mean (default: 256)");
  number("--longest", options.load.longest, 0, 2 * kMostTokens,
         "Tokens of the longest request (default: 4 x the mean)");
  number("--first-token-ms", options.first_token_ms, 0, kMostPromiseMs, "Promised time to the first token");
  number("--token-ms", options.token_ms, 0, kMostPromiseMs, "Promised time of each further token");
  number(
      "--answer-ms", options.answer_ms, 0, kMostPromiseMs,
      "Promised time to the answer of a model that answers in one step; --batch is the largest that its server makes")
      ->excludes("--first-token-ms");
  number("--confidence", options.load.confidence, kLeastServiceConfidence, kMostServiceConfidence,
         "Share of the requests that must keep them")
      ->capture_default_str();
  app.add_option(
         "--measured", options.measured,
         "Times that you measured with so many users at once, which correct the predicted ones on that GPU type; "
         "may be repeated")
      ->allow_extra_args(false)
      ->type_name("GPU,USERS,TOKEN_MS[,FIRST_TOKEN_MS]");
}

void AddBeside(CLI::App& app, InspectFlags& options) {
  CLI::Option* beside = AddOption(app, "--beside", options.beside,
                                  "How the model and this one slow each other on each GPU, in each sharing mode; "
                                  "the options of the run hold for both, but for those that follow",
                                  "FILE")
                            ->excludes("--solve")
                            ->excludes("--features")
                            ->excludes("--explain")
                            ->needs("--gpu");
  AddOption(app, "--beside-batch", options.beside_batch, "--batch of the other one", "N")
      ->needs(beside)
      ->check(CLI::Range(int64_t{1}, kMaxDim));
  AddOption(app, "--beside-mode", options.beside_mode, "--mode of the other one", "MODE")->needs(beside);
  AddRepeated(app, "--beside-dim", options.beside_dims, "--dim of the other one; may be repeated", "NAME=SIZE")
      ->needs(beside);
  AddOption(app, "--beside-service", options.beside_service,
            "The other one's traffic, as jobs.yaml has it: '{requests_per_s: 2, tokens_in: 1024, tokens_out: 256}'",
            "SERVICE")
      ->needs(beside);
}

}  // namespace

Command AddInspect(CLI::App& parser) {
  auto options = std::make_shared<InspectFlags>();
  CLI::App* app = parser.add_subcommand("inspect", "What one step of a model costs and demands of GPUs");
  AddOption(*app, "MODEL", options->model,
            "ONNX file, config.json of a language model, or a name that `horus models` lists; without weights", "FILE")
      ->required();
  AddRanged(*app, "--batch", options->batch, "Samples per GPU and step (default: as the file says, else 1)", "N",
            int64_t{1}, kMaxDim);
  AddRepeated(*app, "--gpu", options->gpus,
              "GPU types to predict for, such as t4,a100; may be repeated (--solve without: all)", "TYPE")
      ->delimiter(',');
  AddRepeated(*app, "--dim", options->dims, "Size of a named dimension, such as seq=128; may be repeated", "NAME=SIZE");
  AddOption(*app, "--mode", options->mode, "training or inference (default: training; of a config.json inference)",
            "MODE");
  AddOption(*app, "--precision", options->precision,
            "fp32 (convolutions in TF32 where the GPU has it), tf32, amp, amp-bf16, fp16, bf16 or fp32-ieee "
            "(default: fp32; of a config.json its dtype)",
            "NAME");
  AddRanged(*app, "--checkpoint", options->checkpoint_segments,
            "Training with activation checkpointing in so many segments; 0 and 1: none", "N", int64_t{0}, kMaxDim);
  AddRepeated(*app, "--freeze", options->frozen,
              "Training without the parameters whose names begin so; may be repeated", "PREFIX");
  AddRanged(*app, "--replicas", options->replicas, "Training on so many GPUs that average their gradients", "N",
            int64_t{1}, kMaxDim);
  AddOption(*app, "--optimizer", options->optimizer,
            "sgd, momentum, adam, adamw, adafactor, adam-8bit, rmsprop, adagrad or adamw-bf16", "NAME")
      ->capture_default_str();
  AddOption(*app, "--framework", options->framework,
            "pytorch (2 and later), pytorch-1, tensorflow, pytorch-compiled (torch.compile); of inference vllm, "
            "tensorrt-llm, sglang (vllm of a config where none is given, else pytorch)",
            "NAME");
  AddOption(*app, "--layout", options->layout, "Of images in memory: nchw, or nhwc (channels_last)", "NAME")
      ->capture_default_str();
  AddRanged(*app, "--top", options->top, "How many of the costliest operators to list", "N", size_t{0}, size_t{100000})
      ->capture_default_str();
  AddGpusFileOption(*app, options->gpus_files);
  AddOption(*app, "--bundle", options->bundle,
            "Trained models that refine the prediction: a file, builtin (the default), or none", "BUNDLE");
  app->add_flag("--features", options->features, "Also print the feature row");
  app->add_flag("--explain", options->explain,
                "Also print what moved the prediction away from the roofline, and by how much");
  app->add_flag("--json", options->json, "Print JSON");
  AddConfig(*app, options->config);
  AddSolve(*app, *options);
  AddBeside(*app, *options);
  AddService(*app, *options);
  app->footer(kInspectFooter);
  return {app, [options] { return RunInspect(*options); }};
}

}  // namespace horus::cli
