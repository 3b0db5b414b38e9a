// SPDX-License-Identifier: Apache-2.0
// horus simulate: one run in a simulated cluster.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/grid_inputs.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "cli/record.h"
#include "io/csv.h"
#include "io/json_text.h"
#include "lab/grid.h"
#include "lab/io/grid_file.h"

namespace horus::cli {
namespace {

// ---- A grid of one workload, one policy and one seed, stated by options instead of a file.
// Cost: that of reading the cluster.

struct GridOptions {
  std::vector<std::string> trace;
  std::string cluster;
  std::vector<std::string> speeds;
  std::vector<std::string> speeds_gpus;  // NAME=TYPE
  std::string truth;                     // a model, instead of speeds
  std::string jobs, bundle, interference = "horus", interference_bundle, predictions;
  std::string policy = "horus", queue = "fifo", slowdown_bound;
  int64_t look_ahead = 0, sample = 0;
  double load = 0, clip_percentile = 100, horizon_h = 0;
  bool single_gpu = false, known_only = false, backlog = false;
  std::vector<std::string> gpus_files;
};

// YAML takes JSON as it is.
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
  app.add_option("--queue", options.queue, "Who goes first: docs/policies.md")
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--slowdown-bound", options.slowdown_bound, "Of every job, or none (default: the policy's)")
      ->type_name("FACTOR");
  app.add_option("--look-ahead", options.look_ahead, "Waiting jobs that are tried or compared (0: the queue's, or 50)")
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
  AddGpusFileOption(app, options.gpus_files);
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

// ---- What happened when in a simulation, as a CSV that is written while it runs.
// Cost: linear; a buffer is all it holds.

class Timeline {
 public:
  // UNAVAILABLE: the file cannot be written.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Timeline>> Open(const std::string& path, const Grid& grid);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void Add(const Trace& trace, const SimEvent& event);
  // UNAVAILABLE when something could not be written.
  [[nodiscard]] absl::Status Close();

 private:
  Timeline(std::FILE* file, std::string path, const Grid& grid);

  std::FILE* file_;
  std::string path_;
  struct Node {
    std::string name;                // as a field of the file
    std::vector<std::string> types;  // of its GPUs, likewise
  };
  std::map<NodeId, Node> nodes_;
};

constexpr auto kEvents =
    std::to_array<const char*>({"arrive", "start", "fail", "finish", "reject", "preempt", "out-of-memory", "migrate",
                                "interrupt", "profiled", "node-down", "node-up"});  // as the enum

std::string EventName(SimEventKind kind) {
  const auto at = static_cast<size_t>(kind);
  return at < kEvents.size() ? kEvents[at] : absl::StrCat("event-", at);
}

Timeline::Timeline(std::FILE* file, std::string path, const Grid& grid) : file_(file), path_(std::move(path)) {
  for (const NodeSpec& spec : grid.nodes) {
    Node& node = nodes_[spec.id];
    node.name = CsvField(NameOf(spec));
    for (const DeviceSpec& device : spec.devices) {
      node.types.push_back(CsvField(grid.catalogue->at(device.type).name));
    }
  }
  std::fputs("time_us,event,job,node,gpus,gpu_type,profile\n", file_);
}

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Open(const std::string& path, const Grid& grid) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file != nullptr) return std::unique_ptr<Timeline>(new Timeline(file, path, grid));
  return Unavailable("%s: cannot write: %s", path, std::string(std::strerror(errno)));
}

Timeline::~Timeline() {
  if (file_ != nullptr) std::fclose(file_);
}

void Timeline::Add(const Trace& trace, const SimEvent& event) {
  const TraceJob* const job = event.job == kNotStated ? nullptr : &trace.jobs[event.job];
  const std::string head =
      absl::StrFormat("%d,%s,%s,", event.time_us, EventName(event.kind), job == nullptr ? "" : absl::StrCat(job->id));
  const std::string tail = (job == nullptr ? "" : CsvField(ProfileOf(trace, *job))) + "\n";
  if (event.slots.empty()) {
    std::fputs((head + ",,," + tail).c_str(), file_);
    return;
  }
  std::map<std::pair<NodeId, std::string>, std::string> gpus;  // a job's slots may lie in any order
  for (const Slot& slot : event.slots) {
    const std::vector<std::string>& types = nodes_[slot.node].types;
    const bool has_type = slot.device != kNoDevice && static_cast<size_t>(slot.device) < types.size();
    std::string& list = gpus[{slot.node, has_type ? types[static_cast<size_t>(slot.device)] : std::string()}];
    if (slot.device != kNoDevice) absl::StrAppend(&list, list.empty() ? "" : " ", slot.device);
  }
  for (const auto& [place, list] : gpus) {
    std::fputs((head + nodes_[place.first].name + "," + list + "," + place.second + "," + tail).c_str(), file_);
  }
}

absl::Status Timeline::Close() {
  const bool failed = std::ferror(file_) != 0;
  if (std::fclose(std::exchange(file_, nullptr)) == 0 && !failed) return absl::OkStatus();
  return Unavailable("%s: cannot write all of it", path_);
}

constexpr char kFooter[] = R"(
Examples:
  horus simulate grid.yaml --workload backlog --policy horus --seed 2
  horus simulate grid.yaml --timeline events.csv --json
  horus simulate --trace jobs.trace --cluster cluster.yaml --speeds throughputs.json --jobs jobs.yaml --policy horus

One run of a grid file (docs/simulate.md), by default its first workload, policy and seed; or of a trace with options of
its own. --timeline writes what happened when while it runs: time_us, event, job, node, gpus, gpu_type, profile.)";

constexpr size_t kMessageBytes = 400;
constexpr uint64_t kEventsPerUpdate = 256;

struct Options {
  std::string grid, workload, timeline;
  std::optional<uint64_t> seed;
  GridOptions own;
  bool policy_given = false;
  bool json = false;
};

struct Chosen {
  LoadedGrid loaded;
  GridRun run;
};

template <typename Entries>
absl::StatusOr<uint32_t> Named(const char* option, const std::string& name, const Entries& entries) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) {
    if (entry.name == name) return static_cast<uint32_t>(names.size());
    names.push_back(entry.name);
  }
  return InvalidArgument("%s: %s", option, ExpectedOneOf(names, name));
}

absl::StatusOr<Chosen> Choose(const Options& options) {
  constexpr uint64_t kDefaultSeed = 1;
  Chosen chosen;
  if (options.grid.empty()) {
    HORUS_ASSIGN_OR_RETURN(const GridFile file, GridOf(options.own, options.seed.value_or(kDefaultSeed)));
    HORUS_ASSIGN_OR_RETURN(chosen.loaded, LoadGrid(file));
    chosen.run.seed = chosen.loaded.grid.seeds.front();
    return chosen;
  }
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(options.own.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const GridFile file, ReadGridFile(options.grid, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(chosen.loaded, LoadGrid(file));
  const Grid& grid = chosen.loaded.grid;
  if (!options.workload.empty()) {
    HORUS_ASSIGN_OR_RETURN(chosen.run.workload, Named("--workload", options.workload, grid.workloads));
  }
  if (options.policy_given) {
    HORUS_ASSIGN_OR_RETURN(chosen.run.policy, Named("--policy", options.own.policy, grid.policies));
  }
  chosen.run.seed = options.seed.value_or(grid.seeds.front());
  return chosen;
}

// Jobs that are through, on the terminal, and the timeline.
absl::StatusOr<GridOutcome> Run(const Chosen& chosen, Timeline* timeline) {
  Progress progress;
  uint64_t events = 0, through = 0;
  return RunOne(chosen.loaded.grid, chosen.run, [&](const Trace& trace, const SimEvent& event) {
    through += event.kind == SimEventKind::kFinish || event.kind == SimEventKind::kReject ? 1 : 0;
    if (++events % kEventsPerUpdate == 0) progress.UpdateBar("simulating jobs", through, trace.jobs.size());
    if (timeline != nullptr) timeline->Add(trace, event);
    return true;
  });
}

std::string OutcomeJson(const Chosen& chosen, const GridOutcome& outcome) {
  const Grid& grid = chosen.loaded.grid;
  Json metrics = Json::object();
  for (const GridMetric& metric : GridMetrics()) {
    metrics[std::string(metric.name)] = NumberOrNull(metric.get(outcome.metrics));
  }
  const Spread times = DecisionTimes(outcome.result);
  Json document = {{"schema", "horus-simulate"}, {"version", 1}};
  AddRecord(document);
  document.update({{"cluster", ClusterWithNodesJson(*grid.catalogue, grid.nodes)},
                   {"workload", grid.workloads[chosen.run.workload].name},
                   {"policy", grid.policies[chosen.run.policy].name},
                   {"seed", chosen.run.seed},
                   {"metrics", std::move(metrics)},
                   {"decisions", outcome.result.decisions},
                   {"decision_p50_us", times.p50},
                   {"decision_p99_us", times.p99}});
  return JsonText(document);
}

std::string OutcomeText(const Chosen& chosen, const GridOutcome& outcome) {
  const Grid& grid = chosen.loaded.grid;
  std::string text =
      absl::StrFormat("workload %s, policy %s, seed %d\n", Printable(grid.workloads[chosen.run.workload].name),
                      Printable(grid.policies[chosen.run.policy].name), chosen.run.seed);
  Table table({Left("METRIC"), Right("VALUE")});
  for (const GridMetric& metric : GridMetrics()) {
    const double value = metric.get(outcome.metrics);
    table.AddRow({std::string(metric.name), std::isfinite(value) ? Plain(value) : "-"});
  }
  const Spread times = DecisionTimes(outcome.result);
  text += table.Render("  ");
  return text + absl::StrFormat("%d decisions, median %.1f us, 99 %% within %.1f us\n", outcome.result.decisions,
                                times.p50, times.p99);
}

absl::StatusOr<std::string> Simulate(const Options& options) {
  HORUS_ASSIGN_OR_RETURN(const Chosen chosen, Choose(options));
  for (const std::string& note : chosen.loaded.notes) {
    absl::FPrintF(stderr, "horus: %s\n", Printable(note, kMessageBytes));
  }
  std::unique_ptr<Timeline> timeline;
  if (!options.timeline.empty()) {
    HORUS_ASSIGN_OR_RETURN(timeline, Timeline::Open(options.timeline, chosen.loaded.grid));
  }
  HORUS_ASSIGN_OR_RETURN(const GridOutcome outcome, Run(chosen, timeline.get()));
  if (timeline != nullptr) HORUS_RETURN_IF_ERROR(timeline->Close());
  return options.json ? OutcomeJson(chosen, outcome) : OutcomeText(chosen, outcome);
}

}  // namespace

const bool kHasLaboratory = true;

Command AddSimulate(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("simulate", "One run of a policy in a simulated cluster");
  app->add_option("GRID", options->grid, "YAML file of horus compare, of which one run is made")->type_name("FILE");
  app->add_option("--workload", options->workload, "With GRID: by name (default: the first)")->type_name("NAME");
  CLI::Option* policy = app->add_option("--policy", options->own.policy,
                                        "With GRID: by its name there (default: the first); else docs/policies.md")
                            ->type_name("NAME");
  app->add_option("--seed", options->seed, "Of what is drawn (default: the grid's first, or 1)")->type_name("N");
  AddGridOptions(*app, options->own);
  app->add_option("--timeline", options->timeline, "CSV file of what happened when")->type_name("FILE");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kFooter);
  return {app, [options, policy] {
            options->policy_given = policy->count() > 0;
            return Print(Simulate(*options));
          }};
}

}  // namespace horus::cli
