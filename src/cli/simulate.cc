// SPDX-License-Identifier: Apache-2.0
// horus simulate: one run in a simulated cluster.
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/grid_inputs.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "io/csv.h"

namespace horus::cli {
namespace {

// ---- What happened when in a simulation, as a CSV that is written while it runs.
// Cost: linear; a buffer is all it holds.

constexpr auto kEvents =
    std::to_array<const char*>({"arrive", "start", "fail", "finish", "reject", "preempt", "out-of-memory", "migrate",
                                "interrupt", "profiled", "node-down", "node-up"});  // as the enum

std::string EventName(SimEventKind kind) {
  const auto at = static_cast<size_t>(kind);
  return at < kEvents.size() ? kEvents[at] : absl::StrCat("event-", at);
}

class Timeline {
 public:
  Timeline(const std::string& path, const Grid& grid) : path_(path) {
    for (const NodeSpec& spec : grid.nodes) {
      Node& node = nodes_[spec.id];
      node.name = CsvField(NameOf(spec));
      for (const DeviceSpec& device : spec.devices)
        node.types.push_back(CsvField(grid.catalogue->at(device.type).name));
    }
  }

  // UNAVAILABLE: the file cannot be written.
  [[nodiscard]] absl::Status Open() {
    stream_.open(path_);
    if (!stream_) return Unavailable("%s: cannot write: %s", path_, std::strerror(errno));
    stream_ << "time_us,event,job,node,gpus,gpu_type,profile\n";
    return absl::OkStatus();
  }

  void Add(const Trace& trace, const SimEvent& event) {
    const TraceJob* const job = event.job == kNotStated ? nullptr : &trace.jobs[event.job];
    const std::string head =
        absl::StrFormat("%d,%s,%s,", event.time_us, EventName(event.kind), job == nullptr ? "" : absl::StrCat(job->id));
    const std::string tail = (job == nullptr ? "" : CsvField(ProfileOf(trace, *job))) + "\n";
    if (event.slots.empty()) {
      stream_ << head << ",,," << tail;
      return;
    }
    std::map<std::pair<NodeId, std::string>, std::string> gpus;  // a job's slots may lie in any order
    for (const Slot& slot : event.slots) {
      const std::vector<std::string>& types = nodes_[slot.node].types;
      const bool has_type = slot.device != kNoDevice && static_cast<size_t>(slot.device) < types.size();
      std::string& list = gpus[{slot.node, has_type ? types[static_cast<size_t>(slot.device)] : std::string()}];
      if (slot.device != kNoDevice) absl::StrAppend(&list, list.empty() ? "" : " ", slot.device);
    }
    for (const auto& [place, list] : gpus)
      stream_ << head << nodes_[place.first].name << "," << list << "," << place.second << "," << tail;
  }

  // UNAVAILABLE when something could not be written.
  [[nodiscard]] absl::Status Close() {
    stream_.close();
    return stream_ ? absl::OkStatus() : Unavailable("%s: cannot write all of it", path_);
  }

 private:
  std::string path_;
  std::ofstream stream_;
  struct Node {
    std::string name;                // as a field of the file
    std::vector<std::string> types;  // of its GPUs, likewise
  };
  std::map<NodeId, Node> nodes_;
};

constexpr char kSimulateFooter[] = R"(
Examples:
  horus simulate grid.yaml --workload backlog --policy horus --seed 2
  horus simulate grid.yaml --timeline events.csv --json

One run of a grid file (docs/simulate.md), by default its first workload, policy and seed. --timeline writes what
happened when while it runs: time_us, event, job, node, gpus, gpu_type, profile.)";

constexpr uint64_t kEventsPerUpdate = 256;

struct SimulateArguments {
  std::string grid, workload, policy, timeline;
  std::optional<uint64_t> seed;
  std::vector<std::string> gpus_files;
  bool json = false;
};

struct Chosen {
  LoadedGrid loaded;
  GridRun run;
};

absl::StatusOr<uint32_t> Named(const char* option, const std::string& name, const auto& entries) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) {
    if (entry.name == name) return static_cast<uint32_t>(names.size());
    names.push_back(entry.name);
  }
  return InvalidArgument("%s: %s", option, ExpectedOneOf(names, name));
}

absl::StatusOr<Chosen> Choose(const SimulateArguments& options) {
  Chosen chosen;
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(options.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const GridFile file, ReadGridFile(options.grid, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(chosen.loaded, LoadGrid(file));
  const Grid& grid = chosen.loaded.grid;
  if (!options.workload.empty())
    HORUS_SET_OR_RETURN(chosen.run.workload, Named("--workload", options.workload, grid.workloads));
  if (!options.policy.empty()) HORUS_SET_OR_RETURN(chosen.run.policy, Named("--policy", options.policy, grid.policies));
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
  for (const GridMetric& metric : GridMetrics())
    metrics[std::string(metric.name)] = NumberOrNull(metric.get(outcome.metrics));
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
  Table table("METRIC|>VALUE");
  for (const GridMetric& metric : GridMetrics()) {
    const double value = metric.get(outcome.metrics);
    table.AddRow({std::string(metric.name), std::isfinite(value) ? Plain(value) : "-"});
  }
  const Spread times = DecisionTimes(outcome.result);
  text += table.Render("  ");
  return text + absl::StrFormat("%d decisions, median %.1f us, 99 %% within %.1f us\n", outcome.result.decisions,
                                times.p50, times.p99);
}

absl::StatusOr<std::string> Simulate(const SimulateArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const Chosen chosen, Choose(options));
  for (const std::string& note : chosen.loaded.notes)
    absl::FPrintF(stderr, "horus: %s\n", Printable(note, kMessageBytes));
  Timeline timeline(options.timeline, chosen.loaded.grid);
  const bool tells = !options.timeline.empty();
  if (tells) HORUS_RETURN_IF_ERROR(timeline.Open());
  HORUS_ASSIGN_OR_RETURN(const GridOutcome outcome, Run(chosen, tells ? &timeline : nullptr));
  if (tells) HORUS_RETURN_IF_ERROR(timeline.Close());
  return options.json ? OutcomeJson(chosen, outcome) : OutcomeText(chosen, outcome);
}

}  // namespace

const bool kHasLaboratory = true;

Command AddSimulate(CLI::App& parser) {
  auto options = std::make_shared<SimulateArguments>();
  CLI::App* app = parser.add_subcommand("simulate", "One run of a policy in a simulated cluster");
  AddOption(*app, "GRID", options->grid, "YAML file of horus compare, of which one run is made", "FILE")->required();
  AddOption(*app, "--workload", options->workload, "By its name in GRID (default: the first)", "NAME");
  AddOption(*app, "--policy", options->policy, "Likewise", "NAME");
  AddOption(*app, "--seed", options->seed, "Of what is drawn (default: the grid's first)", "N");
  AddGpusFileOption(*app, options->gpus_files);
  AddOption(*app, "--timeline", options->timeline, "CSV file of what happened when", "FILE");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kSimulateFooter);
  return {app, [options] { return Print(Simulate(*options)); }};
}

}  // namespace horus::cli
