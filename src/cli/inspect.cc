// SPDX-License-Identifier: Apache-2.0
// horus inspect: what one step of a model costs, and what it demands of GPUs.
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
#include "graph/reader.h"

namespace horus::cli {
namespace {

constexpr int64_t kMaxDim = std::numeric_limits<int32_t>::max();

constexpr char kFooter[] = R"(
Examples:
  horus inspect resnet50.onnx --batch 64 --gpu a100-40gb
  horus inspect bert.onnx --batch 16 --dim seq=128 --optimizer adamw --precision amp --gpu v100-16gb --gpu t4
  horus inspect gpt2.onnx --batch 1 --dim seq=1024 --mode inference --json

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
  size_t top = 10;
  std::vector<std::string> gpus_files;
  std::string bundle;
  bool features = false;
  bool json = false;
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
  run.dims.batch = options.batch;
  for (const std::string& text : options.dims) {
    HORUS_ASSIGN_OR_RETURN(auto dim, ParseDim(text));
    run.dims.dims.push_back(std::move(dim));
  }
  return run;
}

absl::StatusOr<InspectReport> Inspect(const Options& options) {
  HORUS_ASSIGN_OR_RETURN(const RunSpec run, ParseRun(options));
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  std::vector<GpuType> types;
  for (const std::string& name : options.gpus) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, catalogue->Find(name));
    types.push_back(catalogue->at(id));
  }
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(options.bundle));
  HORUS_ASSIGN_OR_RETURN(const std::shared_ptr<const Graph> graph, ReadOnnxFile(options.model));
  absl::StatusOr<JobProfile> profile = Analyse(graph, run);
  if (!profile.ok()) {
    return MakeError(profile.status().code(), "%s: %s", options.model, std::string(profile.status().message()));
  }
  InspectReport report = MakeInspectReport(options.model, graph, *std::move(profile), *predictor, types, options.top);
  report.with_features = options.features;
  return report;
}

int RunInspect(const Options& options) {
  const absl::StatusOr<InspectReport> report = Inspect(options);
  if (!report.ok()) return Fail(report.status());
  std::fputs((options.json ? InspectJson(*report) : InspectText(*report)).c_str(), stdout);
  return kExitDecided;
}

}  // namespace

Command AddInspect(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("inspect", "What one step of an ONNX model costs and demands of GPUs");
  app->add_option("MODEL", options->model, "ONNX file; weights are not needed")->required()->type_name("FILE");
  app->add_option("--batch", options->batch, "Samples per GPU and step (default: as the file says, else 1)")
      ->check(CLI::Range(int64_t{1}, kMaxDim))
      ->type_name("N");
  app->add_option("--gpu", options->gpus, "GPU type to predict for; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TYPE");
  app->add_option("--dim", options->dims, "Size of a named dimension, such as seq=128; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
  app->add_option("--mode", options->mode, "training or inference")->capture_default_str()->type_name("MODE");
  app->add_option("--precision", options->precision, "fp32, tf32, amp, amp-bf16, fp16 or bf16")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--optimizer", options->optimizer, "sgd, momentum, adam, adamw, adafactor or adam-8bit")
      ->capture_default_str()
      ->type_name("NAME");
  app->add_option("--top", options->top, "How many of the costliest operators to list")
      ->check(CLI::Range(size_t{0}, size_t{100000}))
      ->capture_default_str()
      ->type_name("N");
  app->add_option("--gpus-file", options->gpus_files, "YAML file with GPU types of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app->add_option("--bundle", options->bundle, "Trained models that refine the prediction")->type_name("FILE");
  app->add_flag("--features", options->features, "Also print the feature row");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kFooter);
  return {app, [options] { return RunInspect(*options); }};
}

}  // namespace horus::cli
