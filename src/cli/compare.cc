// SPDX-License-Identifier: Apache-2.0
// horus compare: policies x workloads x seeds in a simulated cluster.
#include <sys/utsname.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
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
#include "cli/compare_report.h"
#include "cli/compare_runs.h"
#include "cli/exit_code.h"
#include "cli/grid_inputs.h"
#include "cli/inputs.h"
#include "cli/record.h"
#include "cli/table.h"
#include "io/json_text.h"
#include "lab/grid_metrics.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus compare grid.yaml --out results
  horus compare grid.yaml --out results --threads 8 --metrics jct_mean_s,wait_mean_s
  horus compare grid.yaml --out results --shard 3/8     one of eight parts, on as many machines
  horus compare grid.yaml --out results --merge         their results together

Each finished run is a file under OUT/runs, so that the same command goes on after Ctrl-C and runs again only what has
changed. Results (results.csv, results.json) depend on the grid alone: not on threads, shards or the machine; how long
it took is in timings.csv, and where in machine.json. docs/compare.md has every key of the grid.)";

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
  nlohmann::ordered_json document;
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
  return MakeError(absl::StatusCode::kFailedPrecondition, "%s/runs: expected all %d runs of the grid, %d are missing",
                   out, comparison.runs.size(), missing);
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
  app->add_option("GRID", options->grid, "YAML file with cluster, truth, beliefs, workloads, policies and seeds")
      ->required()
      ->type_name("FILE");
  app->add_option("--out", options->out, "Folder of the results; made where it is missing")
      ->required()
      ->type_name("DIR");
  app->add_option("--threads", options->threads, "Runs at a time (default: the machine's cores)")
      ->check(CLI::Range(int64_t{1}, kMaxThreads))
      ->type_name("N");
  CLI::Option* shard = app->add_option("--shard", options->shard, "Only part I of N of the runs, I from 0; no results")
                           ->type_name("I/N");
  app->add_flag("--merge", options->merge, "No runs: the results of shards whose files are all in OUT/runs")
      ->excludes(shard);
  app->add_flag("--fresh", options->fresh, "Run again what is finished, too");
  app->add_option("--metrics", options->metrics, "What the tables show, of the columns of results.csv")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("NAME,...");
  app->add_flag("--quiet", options->quiet, "No tables");
  app->add_option("--gpus-file", options->gpus_files, "YAML file with GPU types of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app->footer(kFooter);
  return {app, [options] { return RunCompare(*options); }};
}

}  // namespace horus::cli
