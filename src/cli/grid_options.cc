// SPDX-License-Identifier: Apache-2.0
// Options become the text of a grid file, so that one reader checks both.
#include "cli/grid_options.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

// YAML takes JSON as it is.
using Json = nlohmann::ordered_json;

void Put(Json& map, const char* key, const std::string& text) {
  if (!text.empty()) map[key] = text;
}

absl::StatusOr<Json> TruthOf(const GridOptions& options) {
  if (options.speeds.empty() == options.truth.empty()) {
    return InvalidArgument("expected one of --speeds and --truth, found %s", options.truth.empty() ? "none" : "both");
  }
  if (!options.truth.empty()) return Json{{"interference", options.truth}};
  Json gpus = Json::object();
  for (const std::string& one : options.speeds_gpus) {
    const size_t equals = one.rfind('=');
    if (equals == std::string::npos) {
      return InvalidArgument("--speeds-gpu: expected NAME=TYPE, found %s", Quoted(one));
    }
    gpus[one.substr(0, equals)] = one.substr(equals + 1);
  }
  Json speeds = Json::array();
  for (const std::string& file : options.speeds) speeds.push_back({{"file", file}});
  speeds[0]["gpus"] = gpus;
  return Json{{"speeds", speeds}};
}

Json WorkloadOf(const GridOptions& options) {
  Json workload = {{"name", "trace"}, {"files", options.trace}};
  if (options.single_gpu) workload["single_gpu"] = true;
  if (options.known_only) workload["known_only"] = true;
  if (options.backlog) workload["backlog"] = true;
  if (options.sample > 0) workload["sample"] = options.sample;
  if (options.load != 0) workload["load"] = options.load;
  if (options.clip_percentile != 100) workload["clip_percentile"] = options.clip_percentile;
  if (options.horizon_h != 0) workload["horizon_h"] = options.horizon_h;
  return workload;
}

// A grid is YAML, which holds no other text: a path in it would become another one.
absl::Status CheckUtf8(const Json& value) {
  for (const Json& below : value.is_structured() ? value : Json::array()) HORUS_RETURN_IF_ERROR(CheckUtf8(below));
  if (!value.is_string()) return absl::OkStatus();
  const std::string& text = value.get_ref<const std::string&>();
  size_t length = 1;
  for (size_t at = 0; at < text.size(); at += length) {
    length = Utf8Length(std::string_view(text).substr(at));
    if (length == 0) return InvalidArgument("options: expected names and paths in UTF-8, found %s", Quoted(text));
  }
  return absl::OkStatus();
}

Json PolicyOf(const GridOptions& options) {
  Json policy = {{"policy", options.policy}, {"queue", options.queue}};
  if (options.look_ahead > 0) policy["look_ahead"] = options.look_ahead;
  if (options.slowdown_bound.empty()) return policy;
  double bound = 0;
  const bool is_number = CLI::detail::lexical_cast(options.slowdown_bound, bound);
  policy["slowdown_bound"] = is_number ? Json(bound) : Json(options.slowdown_bound);
  return policy;
}

}  // namespace

void AddGridOptions(CLI::App& app, GridOptions& options) {
  app.add_option("--trace", options.trace, "Trace files, or a folder of them")->type_name("PATH...");
  app.add_option("--cluster", options.cluster, "YAML file with nodes and GPUs")->type_name("FILE");
  app.add_option("--speeds", options.speeds, "The truth: measured speeds (Gavel's JSON); may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--speeds-gpu", options.speeds_gpus, "Which GPU type a name of --speeds is; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=TYPE");
  app.add_option("--truth", options.truth, "The truth: an interference model, instead of --speeds")->type_name("NAME");
  app.add_option("--jobs", options.jobs, "Demands by profile: a job table (CSV) or jobs.yaml")->type_name("FILE");
  app.add_option("--bundle", options.bundle, "Trained models that refine the demands")->type_name("FILE");
  app.add_option("--interference", options.interference, "What the policy believes")
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--interference-bundle", options.interference_bundle, "Where that model comes from")
      ->type_name("FILE");
  app.add_option("--predictions", options.predictions, "Slowdowns by name that it believes first")->type_name("FILE");
  app.add_option("--queue", options.queue, "Who goes first: docs/queue.md")->capture_default_str()->type_name("NAME");
  app.add_option("--slowdown-bound", options.slowdown_bound, "Of every job, or none (default: the policy's)")
      ->type_name("FACTOR");
  app.add_option("--look-ahead", options.look_ahead, "Waiting jobs that are tried until one fits (0: the queue's)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_flag("--single-gpu", options.single_gpu, "Only jobs on one GPU");
  app.add_flag("--known-only", options.known_only, "Only jobs whose profile has a truth and a belief");
  app.add_option("--clip", options.clip_percentile, "Longer jobs than this percentile are cut to it")
      ->capture_default_str()
      ->type_name("PERCENTILE");
  app.add_option("--sample", options.sample, "So many jobs, drawn by the seed")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_flag("--backlog", options.backlog, "All jobs are there at the start");
  app.add_option("--load", options.load, "Arrivals stretched to this share of the cluster's GPUs")->type_name("X");
  app.add_option("--horizon-h", options.horizon_h, "Hours from the first submission to the end")->type_name("HOURS");
  app.add_option("--gpus-file", options.gpus_files, "YAML file with GPU types of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
}

absl::StatusOr<GridFile> GridOf(const GridOptions& options, uint64_t seed) {
  const std::pair<const char*, bool> needed[] = {
      {"--trace", options.trace.empty()}, {"--cluster", options.cluster.empty()}, {"--jobs", options.jobs.empty()}};
  for (const auto& [option, missing] : needed) {
    if (missing) return InvalidArgument("expected a grid file, or %s, found none", option);
  }
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(options.gpus_files));
  HORUS_ASSIGN_OR_RETURN(Json truth, TruthOf(options));
  Json beliefs = {{"jobs", options.jobs}};
  Put(beliefs, "bundle", options.bundle);
  Put(beliefs, "interference", options.interference);
  Put(beliefs, "interference_bundle", options.interference_bundle);
  Put(beliefs, "predictions", options.predictions);
  const Json grid = {{"version", 1},
                     {"cluster", {{"file", options.cluster}}},
                     {"truth", std::move(truth)},
                     {"beliefs", std::move(beliefs)},
                     {"workloads", Json::array({WorkloadOf(options)})},
                     {"policies", Json::array({PolicyOf(options)})},
                     {"seeds", Json::array({seed})}};
  HORUS_RETURN_IF_ERROR(CheckUtf8(grid));
  return ParseGridFile("options", JsonText(grid, kJsonDense), std::move(catalogue));
}

}  // namespace horus::cli
