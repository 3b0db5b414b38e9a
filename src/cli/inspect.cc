// SPDX-License-Identifier: Apache-2.0
// horus inspect: what one step of a model costs, what it demands of GPUs, and how large it may become there.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/inspect_report.h"
#include "cli/solve_report.h"
#include "graph/reader.h"

namespace horus::cli {
namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

constexpr char kFooter[] = R"(
Examples:
  horus inspect resnet50.onnx --batch 64 --gpu a100-40gb
  horus inspect bert.onnx --batch 16 --dim seq=128 --optimizer adamw --precision amp --gpu v100-16gb --gpu t4
  horus inspect gpt2.onnx --batch 1 --dim seq=1024 --mode inference --json
  horus inspect resnet50.onnx --solve batch --gpu t4 --beside-mib 6000     the largest batch that fits

Weights are neither needed nor read. Bounds ("at most") are what fits are decided by; estimates are what
places are compared by. `horus gpus` lists the GPU types.)";

struct Options {
  std::string model;
  int64_t batch = 0;
  std::vector<std::string> gpus;
  std::vector<std::string> dims;
  std::string mode = "training";
  std::string precision = "fp32";
  std::string optimizer = "sgd";
  std::string framework = "pytorch";
  int64_t checkpoint_segments = 0;
  int64_t replicas = 1;
  std::vector<std::string> frozen;
  size_t top = 10;
  std::vector<std::string> gpus_files;
  std::string bundle;
  bool features = false;
  bool explain = false;
  bool json = false;
  std::string solve;  // empty: no search
  int64_t solve_max = kDefaultSolveMax;
  std::vector<int64_t> beside_mib;
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

absl::StatusOr<RunSpec> ParseRun(const Options& options) {
  RunSpec run;
  HORUS_ASSIGN_OR_RETURN(run.mode, ParseRunMode(options.mode));
  HORUS_ASSIGN_OR_RETURN(run.precision, ParsePrecision(options.precision));
  HORUS_ASSIGN_OR_RETURN(run.optimizer, ParseOptimizer(options.optimizer));
  HORUS_ASSIGN_OR_RETURN(run.framework, ParseFramework(options.framework));
  run.dims.batch = options.batch;
  run.checkpoint_segments = options.checkpoint_segments;
  run.data_parallel = options.replicas;
  run.frozen = options.frozen;
  for (const std::string& text : options.dims) {
    HORUS_ASSIGN_OR_RETURN(auto dim, ParseDim(text));
    run.dims.dims.push_back(std::move(dim));
  }
  return run;
}

// What the options name, read.
struct Inputs {
  RunSpec run;
  std::vector<GpuType> types;  // those named; with a search and none named, the whole catalogue
  std::shared_ptr<const Predictor> predictor;
  std::shared_ptr<const Graph> graph;
};

absl::StatusOr<Inputs> ReadInputs(const Options& options) {
  Inputs inputs;
  HORUS_ASSIGN_OR_RETURN(inputs.run, ParseRun(options));
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  for (const std::string& name : options.gpus) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, catalogue->Find(name));
    inputs.types.push_back(catalogue->at(id));
  }
  if (!options.solve.empty() && options.gpus.empty()) {
    inputs.types.assign(catalogue->types().begin(), catalogue->types().end());
  }
  HORUS_ASSIGN_OR_RETURN(inputs.predictor, LoadPredictor(options.bundle));
  HORUS_ASSIGN_OR_RETURN(inputs.graph, ReadOnnxFile(options.model));
  return inputs;
}

absl::Status InModel(const Options& options, const absl::Status& status) {
  return MakeError(status.code(), "%s: %s", options.model, std::string(status.message()));
}

absl::StatusOr<std::string> Inspect(const Options& options) {
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  absl::StatusOr<JobProfile> profile = Analyse(inputs.graph, inputs.run);
  if (!profile.ok()) return InModel(options, profile.status());
  InspectReport report =
      MakeInspectReport(options.model, inputs.graph, *std::move(profile), *inputs.predictor, inputs.types, options.top);
  report.with_features = options.features;
  report.with_explanations = options.explain;
  return options.json ? InspectJson(report) : InspectText(report);
}

absl::StatusOr<std::string> Solve(const Options& options) {
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(options));
  const SolveRequest request{.dim = options.solve, .max_value = options.solve_max};
  int64_t resident_mib = 0;
  for (const int64_t mib : options.beside_mib) {
    resident_mib += mib;  // each is checked, and so is the sum
    if (resident_mib > kMostResidentMib) {
      return InvalidArgument("--beside-mib: expected at most %d MiB in sum, found more", kMostResidentMib);
    }
  }
  const absl::StatusOr<SolveReport> report =
      MakeSolveReport(options.model, inputs.graph, inputs.run, request, resident_mib, *inputs.predictor, inputs.types);
  if (!report.ok()) return InModel(options, report.status());
  return options.json ? SolveJson(*report) : SolveText(*report);
}

int RunInspect(const Options& options) {
  const absl::StatusOr<std::string> text = options.solve.empty() ? Inspect(options) : Solve(options);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDecided;
}

void AddSolve(CLI::App& app, Options& options) {
  CLI::Option* solve =
      app.add_option("--solve", options.solve, "Find the largest batch, or named dimension, that fits each GPU")
          ->check(CLI::Validator([](std::string& name) { return name.empty() ? "expected a name" : ""; }, ""))
          ->excludes("--top")
          ->excludes("--features")
          ->excludes("--explain")
          ->type_name("NAME");
  app.add_option("--beside-mib", options.beside_mib,
                 "With --solve: upper bound of a resident's memory; may be repeated, the sum counts")
      ->needs(solve)
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{0}, kMostResidentMib))
      ->type_name("N");
  app.add_option("--solve-max", options.solve_max, "With --solve: the largest value to try")
      ->needs(solve)
      ->check(CLI::Range(int64_t{1}, kMostSolveMax))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

Command AddInspect(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("inspect", "What one step of an ONNX model costs and demands of GPUs");
  app->add_option("MODEL", options->model, "ONNX file; weights are not needed")->required()->type_name("FILE");
  app->add_option("--batch", options->batch, "Samples per GPU and step (default: as the file says, else 1)")
      ->check(CLI::Range(int64_t{1}, kMaxDim))
      ->type_name("N");
  app->add_option("--gpu", options->gpus, "GPU type to predict for; may be repeated (--solve without: all)")
      ->allow_extra_args(false)
      ->type_name("TYPE");
  app->add_option("--dim", options->dims, "Size of a named dimension, such as seq=128; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app->add_option("--mode", options->mode, "training or inference")->capture_default_str()->type_name("MODE");
  app->add_option("--precision", options->precision, "fp32, tf32, amp, amp-bf16, fp16 or bf16")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--checkpoint", options->checkpoint_segments,
                  "Training with activation checkpointing in so many segments; 0 and 1: none")
      ->check(CLI::Range(int64_t{0}, kMaxDim))
      ->type_name("N");
  app->add_option("--freeze", options->frozen, "Training without the parameters whose names begin so; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PREFIX");
  app->add_option("--replicas", options->replicas, "Training on so many GPUs that average their gradients")
      ->check(CLI::Range(int64_t{1}, kMaxDim))
      ->type_name("N");
  app->add_option("--optimizer", options->optimizer, "sgd, momentum, adam, adamw, adafactor or adam-8bit")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--framework", options->framework, "pytorch (2 and later), pytorch-1 or tensorflow")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--top", options->top, "How many of the costliest operators to list")
      ->check(CLI::Range(size_t{0}, size_t{100000}))
      ->capture_default_str()
      ->type_name("N");
  app->add_option("--gpus-file", options->gpus_files, "YAML file with GPU types of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app->add_option("--bundle", options->bundle,
                  "Trained models that refine the prediction: a file, builtin (the default), or none")
      ->type_name("BUNDLE");
  app->add_flag("--features", options->features, "Also print the feature row");
  app->add_flag("--explain", options->explain,
                "Also print what moved the prediction away from the roofline, and by how much");
  app->add_flag("--json", options->json, "Print JSON");
  AddSolve(*app, *options);
  app->footer(kFooter);
  return {app, [options] { return RunInspect(*options); }};
}

}  // namespace horus::cli
