// SPDX-License-Identifier: Apache-2.0
// horus simulate: one run in a simulated cluster.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/grid_inputs.h"
#include "cli/grid_options.h"
#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "cli/table.h"
#include "cli/timeline.h"
#include "io/json_text.h"
#include "lab/grid_metrics.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus simulate grid.yaml --workload backlog --policy horus --seed 2
  horus simulate grid.yaml --timeline events.csv --json
  horus simulate --trace jobs.trace --cluster cluster.yaml --speeds throughputs.json --jobs jobs.yaml --policy horus

One run of a grid file (docs/compare.md), by default its first workload, policy and seed; or of a trace with options of
its own. --timeline writes what happened when while it runs: time_us, event, job, node, gpus, gpu_type, profile.)";

constexpr size_t kMessageBytes = 400;
constexpr uint64_t kEventsPerUpdate = 256;

using Json = nlohmann::ordered_json;

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
    const double value = metric.get(outcome.metrics);
    metrics[std::string(metric.name)] = std::isfinite(value) ? Json(value) : Json(nullptr);
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
  Table table({{"METRIC"}, Right("VALUE")});
  for (const GridMetric& metric : GridMetrics()) {
    const double value = metric.get(outcome.metrics);
    table.AddRow({std::string(metric.name), std::isfinite(value) ? Plain(value) : "-"});
  }
  const Spread times = DecisionTimes(outcome.result);
  text += table.Render("  ");
  return text + absl::StrFormat("%d decisions, median %.1f us, 99 %% within %.1f us\n", outcome.result.decisions,
                                times.p50, times.p99);
}

absl::Status Simulate(const Options& options) {
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
  std::fputs((options.json ? OutcomeJson(chosen, outcome) : OutcomeText(chosen, outcome)).c_str(), stdout);
  return absl::OkStatus();
}

int RunSimulate(const Options& options) {
  const absl::Status status = Simulate(options);
  return status.ok() ? kExitDecided : Fail(status);
}

}  // namespace

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
            return RunSimulate(*options);
          }};
}

}  // namespace horus::cli
