// SPDX-License-Identifier: Apache-2.0
// horus compare: policies x workloads x seeds in a simulated cluster.
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/compare_runs.h"
#include "cli/grid_inputs.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/record.h"
#include "io/csv.h"
#include "io/json_text.h"
#include "lab/grid.h"

namespace horus::cli {
namespace {

// ---- Results of a comparison: CSV and JSON that depend on the grid alone, and tables for people.

struct Comparison {
  const Grid* grid = nullptr;
  std::vector<PlannedRun> runs;
  std::vector<MetricValues> values;  // by run
  size_t baseline = 0;               // policy
};

constexpr double kPct = 100;

// The shortest text that reads back as the same number, whole ones without a point; null for none.
Json Exact(double value) {
  constexpr double kMostWhole = 9007199254740992;  // 2^53: doubles hold every whole number up to it
  if (!std::isfinite(value)) return Json(nullptr);
  if (value == std::floor(value) && std::abs(value) <= kMostWhole) return Json(static_cast<int64_t>(value));
  return Json(value);
}

std::string NameColumns(const Grid& grid, const PlannedRun& one) {
  return absl::StrFormat("%s,%s,%d,%s", CsvField(grid.workloads[one.run.workload].name),
                         CsvField(grid.policies[one.run.policy].name), one.run.seed, one.key);
}

const char* BetterName(Better better) {
  return better == Better::kLower ? "lower" : better == Better::kHigher ? "higher" : "neither";
}

// The values of one metric over the seeds of a workload and a policy.
std::vector<double> OverSeeds(const Comparison& comparison, size_t workload, size_t policy, size_t metric) {
  const size_t seeds = comparison.grid->seeds.size();
  const size_t first = (workload * comparison.grid->policies.size() + policy) * seeds;
  std::vector<double> values;
  for (size_t seed = 0; seed < seeds; ++seed) values.push_back(comparison.values[first + seed][metric]);
  return values;
}

PairedMean Summary(const Comparison& comparison, size_t workload, size_t policy, size_t metric) {
  return ComparePaired(OverSeeds(comparison, workload, policy, metric),
                       OverSeeds(comparison, workload, comparison.baseline, metric));
}

Json SummaryJson(const Comparison& comparison) {
  const Grid& grid = *comparison.grid;
  Json rows = Json::array();
  for (size_t workload = 0; workload < grid.workloads.size(); ++workload) {
    for (size_t policy = 0; policy < grid.policies.size(); ++policy) {
      Json metrics = Json::object();
      for (size_t metric = 0; metric < GridMetrics().size(); ++metric) {
        const PairedMean paired = Summary(comparison, workload, policy, metric);
        metrics[std::string(GridMetrics()[metric].name)] = {
            {"mean", Exact(paired.mean)},
            {"difference", Exact(paired.difference)},
            {"difference_low", Exact(paired.difference - paired.half_width)},
            {"difference_high", Exact(paired.difference + paired.half_width)}};
      }
      rows.push_back({{"workload", grid.workloads[workload].name},
                      {"policy", grid.policies[policy].name},
                      {"metrics", std::move(metrics)}});
    }
  }
  return rows;
}

// "1234", and how far it is from the baseline's mean: "-12.3 ± 1.5 %", "–" where that is 0.
std::pair<std::string, std::string> Cells(const PairedMean& paired, bool is_baseline) {
  const std::string mean = std::isfinite(paired.mean) ? Plain(paired.mean) : "–";
  if (is_baseline) return {mean, ""};
  const std::optional<double> change = paired.OfBaseline(paired.difference);
  const std::optional<double> half_width = paired.OfBaseline(paired.half_width);
  if (!change || !half_width) return {mean, "–"};
  if (!std::isfinite(*half_width)) return {mean, absl::StrFormat("%+.1f %%", kPct * *change)};
  return {mean, absl::StrFormat("%+.1f ± %.1f %%", kPct * *change, kPct * *half_width)};
}

std::string ResultsCsv(const Comparison& comparison) {
  std::string csv = "workload,policy,seed,run";
  for (const GridMetric& metric : GridMetrics()) csv += "," + std::string(metric.name);
  csv += "\n";
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    csv += NameColumns(*comparison.grid, comparison.runs[i]);
    for (const double value : comparison.values[i]) csv += std::isfinite(value) ? "," + Exact(value).dump() : ",";
    csv += "\n";
  }
  return csv;
}

// Runs, and for each workload and policy the means over seeds and their paired differences to the baseline.
std::string ResultsJson(const Comparison& comparison) {
  const Grid& grid = *comparison.grid;
  Json metrics = Json::array();
  for (const GridMetric& metric : GridMetrics()) {
    metrics.push_back({{"name", metric.name}, {"better", BetterName(metric.better)}});
  }
  Json runs = Json::array();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const PlannedRun& one = comparison.runs[i];
    Json values = Json::object();
    for (size_t metric = 0; metric < GridMetrics().size(); ++metric) {
      values[std::string(GridMetrics()[metric].name)] = Exact(comparison.values[i][metric]);
    }
    runs.push_back({{"workload", grid.workloads[one.run.workload].name},
                    {"policy", grid.policies[one.run.policy].name},
                    {"seed", one.run.seed},
                    {"run", one.key},
                    {"metrics", std::move(values)}});
  }
  const Json document = {{"schema", "horus-compare"},
                         {"version", 1},
                         {"cluster", ClusterJson(*grid.catalogue, grid.nodes)},
                         {"baseline", grid.policies[comparison.baseline].name},
                         {"seeds", grid.seeds},
                         {"metrics", std::move(metrics)},
                         {"summary", SummaryJson(comparison)},
                         {"runs", std::move(runs)}};
  return JsonText(document, kJsonDense);
}

// One table a workload with those metrics, by position.
std::string SummaryText(const Comparison& comparison, const std::vector<size_t>& metrics) {
  const Grid& grid = *comparison.grid;
  std::string text;
  for (size_t workload = 0; workload < grid.workloads.size(); ++workload) {
    text += absl::StrFormat("%s%s, mean of %d seed%s; change from %s with its paired 95 %% interval\n",
                            workload == 0 ? "" : "\n", Printable(grid.workloads[workload].name), grid.seeds.size(),
                            grid.seeds.size() == 1 ? "" : "s", Printable(grid.policies[comparison.baseline].name));
    std::vector<Column> columns = {Left("POLICY")};
    for (const size_t metric : metrics) {
      columns.push_back(Right(std::string(GridMetrics()[metric].name)));
      columns.push_back(Right("change"));
    }
    Table table(std::move(columns));
    for (size_t policy = 0; policy < grid.policies.size(); ++policy) {
      std::vector<std::string> row = {Printable(grid.policies[policy].name)};
      for (const size_t metric : metrics) {
        auto [mean, change] = Cells(Summary(comparison, workload, policy, metric), policy == comparison.baseline);
        row.push_back(std::move(mean));
        row.push_back(std::move(change));
      }
      table.AddRow(std::move(row));
    }
    text += table.Render("  ");
  }
  return text;
}

// How long each run took; not equal from machine to machine.
std::string TimingsCsv(const Comparison& comparison, const std::string& out) {
  std::string csv = "workload,policy,seed,run,seconds,decisions,decision_p50_us,decision_p99_us\n";
  for (const PlannedRun& one : comparison.runs) {
    const RunTiming timing = ReadTiming(out, one.key).value_or(RunTiming());
    csv +=
        NameColumns(*comparison.grid, one) + absl::StrFormat(",%.3f,%d,%.2f,%.2f\n", timing.seconds, timing.decisions,
                                                             timing.decision_p50_us, timing.decision_p99_us);
  }
  return csv;
}

constexpr char kFooter[] = R"(
Examples:
  horus compare grid.yaml --out results
  horus compare grid.yaml --out results --threads 8 --metrics jct_mean_s,wait_mean_s
  horus compare grid.yaml --out results --shard 3/8     one of eight parts, on as many machines
  horus compare grid.yaml --out results --merge         their results together

Each finished run is a file under OUT/runs, so that the same command goes on after Ctrl-C and runs again only what has
changed. Results (results.csv, results.json) depend on the grid alone: not on threads, shards or the machine; how long
it took is in timings.csv, and where in machine.json. docs/simulate.md has every key of the grid.)";

constexpr int64_t kMaxThreads = 1024;
constexpr size_t kMessageBytes = 400;
constexpr size_t kMaxProcBytes = size_t{1} << 24;

struct Options {
  std::string grid, out, shard;
  int64_t threads = 0;  // 0 = as many as the machine has
  std::vector<std::string> metrics = {"work_rate", "makespan_s", "jct_mean_s"};
  std::vector<std::string> gpus_files;
  bool merge = false;
  bool fresh = false;
  bool quiet = false;
};

absl::StatusOr<std::vector<size_t>> ShownMetrics(const std::vector<std::string>& names) {
  std::vector<size_t> shown;
  for (const std::string& name : names) {
    const std::optional<size_t> at = FindGridMetric(name);
    if (!at) {
      std::vector<std::string_view> known;
      for (const GridMetric& metric : GridMetrics()) known.push_back(metric.name);
      return InvalidArgument("--metrics: expected some of %s, found %s%s", Listed(known), Quoted(name),
                             DidYouMean(name, known));
    }
    shown.push_back(*at);
  }
  return shown;
}

size_t BaselineOf(const GridFile& file) {
  for (size_t i = 0; i < file.policies.size(); ++i) {
    if (file.policies[i].policy.name == file.baseline) return i;
  }
  return 0;
}

std::string CpuName() {
  constexpr std::string_view kKey = "model name";
  const std::string text = ReadFile("/proc/cpuinfo", kMaxProcBytes).value_or("");
  const size_t at = text.find(kKey);
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  return colon == std::string::npos ? "" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

std::string MachineJson(size_t threads) {
  struct utsname host = {};
  if (::uname(&host) != 0) host = {};
  Json document;
  AddRecord(document);
  document.update({{"threads", threads},
                   {"cores", std::thread::hardware_concurrency()},
                   {"cpu", CpuName()},
                   {"system", host.sysname},
                   {"release", host.release},
                   {"architecture", host.machine},
                   {"host", host.nodename}});
  return JsonText(document, kJsonDense);
}

// The metrics of every run, or how many are missing.
absl::StatusOr<Comparison> Collect(const Grid& grid, std::vector<PlannedRun> runs, size_t baseline,
                                   const std::string& out) {
  Comparison comparison{.grid = &grid, .runs = std::move(runs), .values = {}, .baseline = baseline};
  size_t missing = 0;
  for (const PlannedRun& run : comparison.runs) {
    HORUS_ASSIGN_OR_RETURN(std::optional<MetricValues> stored, ReadRun(out, run));
    missing += stored ? 0 : 1;
    if (stored) comparison.values.push_back(*std::move(stored));
  }
  if (missing == 0) return comparison;
  return FailedPrecondition("%s/runs: expected all %d runs of the grid, %d are missing", out, comparison.runs.size(),
                            missing);
}

absl::Status WriteResults(const Comparison& comparison, const Options& options, size_t threads) {
  const std::string& out = options.out;
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/results.csv", ResultsCsv(comparison)));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/results.json", ResultsJson(comparison)));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/timings.csv", TimingsCsv(comparison, out)));
  return WriteFileOrDevice(out + "/machine.json", MachineJson(threads));
}

absl::Status Compare(const Options& options) {
  Shard shard;
  if (!options.shard.empty()) {
    HORUS_ASSIGN_OR_RETURN(shard, ParseShard(options.shard));
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<size_t> shown, ShownMetrics(options.metrics));
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(options.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const GridFile file, ReadGridFile(options.grid, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(const LoadedGrid loaded, LoadGrid(file));
  for (const std::string& note : loaded.notes) absl::FPrintF(stderr, "horus: %s\n", Printable(note, kMessageBytes));
  std::vector<PlannedRun> runs = PlanRuns(loaded.grid);
  const size_t threads = options.threads > 0 ? static_cast<size_t>(options.threads)
                                             : std::max<size_t>(1, std::thread::hardware_concurrency());
  if (!options.merge) {
    HORUS_ASSIGN_OR_RETURN(const RunCounts counts,
                           SimulateMissing(loaded.grid, runs, shard, options.out, threads, options.fresh));
    absl::PrintF("%d runs, %d of them finished before\n", counts.asked, counts.finished);
    if (!options.shard.empty()) return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(const Comparison comparison,
                         Collect(loaded.grid, std::move(runs), BaselineOf(file), options.out));
  HORUS_RETURN_IF_ERROR(WriteResults(comparison, options, threads));
  if (!options.quiet) std::fputs(("\n" + SummaryText(comparison, shown)).c_str(), stdout);
  return absl::OkStatus();
}

int RunCompare(const Options& options) {
  const absl::Status status = Compare(options);
  if (status.ok()) return kExitDecided;
  const int code = Fail(status);
  // Whoever started it learns of the signal as if nobody had caught it.
  if (StoppedBy() != 0) std::raise(StoppedBy());
  return code;
}

}  // namespace

Command AddCompare(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("compare", "Compare policies in a simulated cluster, over workloads and seeds");
  AddOption(*app, "GRID", options->grid, "YAML file with cluster, truth, beliefs, workloads, policies and seeds",
            "FILE")
      ->required();
  AddOption(*app, "--out", options->out, "Folder of the results; made where it is missing", "DIR")->required();
  AddOption(*app, "--threads", options->threads, "Runs at a time (default: the machine's cores)", "N")
      ->check(CLI::Range(int64_t{1}, kMaxThreads));
  CLI::Option* shard =
      AddOption(*app, "--shard", options->shard, "Only part I of N of the runs, I from 0; no results", "I/N");
  app->add_flag("--merge", options->merge, "No runs: the results of shards whose files are all in OUT/runs")
      ->excludes(shard);
  app->add_flag("--fresh", options->fresh, "Run again what is finished, too");
  AddOption(*app, "--metrics", options->metrics, "What the tables show, of the columns of results.csv", "NAME,...")
      ->delimiter(',')
      ->capture_default_str();
  app->add_flag("--quiet", options->quiet, "No tables");
  AddGpusFileOption(*app, options->gpus_files);
  app->footer(kFooter);
  return {app, [options] { return RunCompare(*options); }};
}

}  // namespace horus::cli
