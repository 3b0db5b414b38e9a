// SPDX-License-Identifier: Apache-2.0
// horus compare: policies x workloads x seeds in a simulated cluster.
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vectors.h"
#include "cli/commands.h"
#include "cli/grid_inputs.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "io/csv.h"

namespace horus::cli {
namespace {

// ---- The runs: which are finished on disk, and the missing ones simulated by several threads. A finished run is one
// file, runs/<key>.json, whole or not at all; beside it timings/<key>.json.

// By GridMetrics(); NaN where a value is none.
using MetricValues = std::vector<double>;

// A run of the grid and the file that holds or will hold its result.
struct PlannedRun {
  GridRun run;
  std::string key;
  std::string content;
};

constexpr const char* kRunSchema = "horus-run";
constexpr int kRunVersion = 1;
constexpr size_t kMaxRunBytes = size_t{1} << 24;
constexpr std::chrono::milliseconds kTick{100};

std::string RunPath(const std::string& out, const std::string& key) { return out + "/runs/" + key + ".json"; }
std::string TimingPath(const std::string& out, const std::string& key) { return out + "/timings/" + key + ".json"; }

std::string RunText(const std::string& content, const SimMetrics& metrics) {
  Json values = Json::object();
  for (const GridMetric& metric : GridMetrics()) values[std::string(metric.name)] = NumberOrNull(metric.get(metrics));
  const Json document = {{"schema", kRunSchema}, {"version", kRunVersion}, {"run", content}, {"metrics", values}};
  return JsonText(document, kJsonDense);
}

std::string TimingText(const SimResult& result, double seconds) {
  const Spread times = DecisionTimes(result);
  const Json document = {{"seconds", seconds},
                         {"decisions", result.decisions},
                         {"decision_p50_us", times.p50},
                         {"decision_p99_us", times.p99}};
  return JsonText(document, kJsonDense);
}

// Set by Ctrl-C and by what ends batch jobs; read by every thread.
std::atomic<int> g_stop = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler of signals takes no lock");

class StopOnSignal {
 public:
  StopOnSignal() {
    g_stop = 0;
    struct sigaction action = {};
    action.sa_handler = [](int signal) { g_stop = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the process at once
    sigaction(SIGINT, &action, &before_int_);
    sigaction(SIGTERM, &action, &before_term_);
  }
  ~StopOnSignal() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
};

// Work that threads take from; the first error stops all of them.
class Pool {
 public:
  Pool(const Grid& grid, std::vector<const PlannedRun*> todo, std::string out)
      : grid_(grid), todo_(std::move(todo)), out_(std::move(out)) {}

  absl::Status Go(size_t threads, size_t finished_before) {
    const StopOnSignal signal;
    std::vector<std::thread> pool;
    HORUS_RETURN_IF_ERROR(Begin(std::min(threads, todo_.size()), pool));
    Wait(finished_before);
    for (std::thread& thread : pool) thread.join();
    return status_;
  }

 private:
  bool Stopped() const { return g_stop != 0 || failed_.load(std::memory_order_relaxed); }

  // As many threads as the system lets begin; results do not depend on their number.
  absl::Status Begin(size_t threads, std::vector<std::thread>& pool) {
    pool.reserve(threads);
    while (pool.size() < threads) {
      try {
        pool.emplace_back([this] { Work(); });
      } catch (const std::system_error& error) {
        if (!pool.empty()) return absl::OkStatus();
        return ResourceExhausted("expected to begin a thread, found: %s", error.what());
      }
    }
    return absl::OkStatus();
  }

  // The main thread draws until the others are done.
  void Wait(size_t finished_before) {
    Progress progress;
    std::unique_lock lock(mutex_);
    while (done_ < todo_.size() && !Stopped()) {
      progress.UpdateBar("simulating", finished_before + done_, finished_before + todo_.size());
      changed_.wait_for(lock, kTick);
    }
    if (g_stop != 0 && status_.ok() && done_ < todo_.size())
      status_ = absl::CancelledError("interrupted: finished runs are kept; the same command goes on");
  }

  void Work() {
    for (size_t next = next_++; next < todo_.size() && !Stopped(); next = next_++) {
      const absl::Status status = RunAndStore(*todo_[next]);
      const std::lock_guard lock(mutex_);
      if (status.ok()) {
        ++done_;
      } else if (status_.ok() && g_stop == 0) {
        status_ = status;
        failed_ = true;
      }
      changed_.notify_one();
    }
  }

  absl::Status RunAndStore(const PlannedRun& run) {
    const auto begin = std::chrono::steady_clock::now();
    HORUS_ASSIGN_OR_RETURN(const GridOutcome outcome,
                           RunOne(grid_, run.run, [this](const Trace&, const SimEvent&) { return !Stopped(); }));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // The run's own file comes last: it says that all is there.
    HORUS_RETURN_IF_ERROR(WriteFileOrDevice(TimingPath(out_, run.key), TimingText(outcome.result, took.count())));
    return WriteFileOrDevice(RunPath(out_, run.key), RunText(run.content, outcome.metrics));
  }

  const Grid& grid_;
  std::vector<const PlannedRun*> todo_;
  std::string out_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0;      // guarded, as the next
  absl::Status status_;  // the first error
};

absl::Status MakeFolders(const std::string& out) {
  for (const char* name : {"runs", "timings"}) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(out) / name, error);
    if (error) return Unavailable("%s/%s: cannot make the folder: %s", out, name, error.message());
  }
  return absl::OkStatus();
}

// In the grid's order. Several runs of equal content have one key.
std::vector<PlannedRun> PlanRuns(const Grid& grid) {
  std::vector<PlannedRun> runs;
  for (const GridRun& run : RunsOf(grid)) {
    std::string content = ContentOf(grid, run);
    std::string key = KeyOf(content);
    runs.push_back({run, std::move(key), std::move(content)});
  }
  return runs;
}

// The `index`-th of `count` parts: every count-th run.
struct Shard {
  size_t index = 0, count = 1;
};
// "3/8": INVALID_ARGUMENT unless 0 <= 3 < 8.
absl::StatusOr<Shard> ParseShard(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size() - 1);
  const auto index = ParseNumber<size_t>(text.substr(0, slash)), count = ParseNumber<size_t>(text.substr(slash + 1));
  if (index && count && *index < *count) return Shard{*index, *count};
  return InvalidArgument("--shard: expected I/N with I from 0 to N - 1, found %s", Quoted(text));
}

// The stored metrics; nullopt where there is no such file. INVALID_ARGUMENT: it is damaged, or of another run.
absl::StatusOr<std::optional<MetricValues>> ReadRun(const std::string& out, const PlannedRun& run) {
  const std::string path = RunPath(out, run.key);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxRunBytes));
  const Json document = Json::parse(text, nullptr, false);
  const auto text_of = [&](const char* name) {
    const auto at = document.find(name);
    return at != document.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  if (!document.is_object() || text_of("schema") != kRunSchema || !document.contains("metrics") ||
      !document["metrics"].is_object()) {
    return InvalidArgument("%s: expected a finished run, found something else; delete it and try again", path);
  }
  if (text_of("run") != run.content)
    return InvalidArgument("%s: expected the run that its name says, found another one; delete it and try again", path);
  MetricValues values;
  for (const GridMetric& metric : GridMetrics()) {
    const auto at = document["metrics"].find(std::string(metric.name));
    const bool known = at != document["metrics"].end() && at->is_number();
    values.push_back(known ? at->get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

// Empty where nothing is known.
Json ReadTiming(const std::string& out, const std::string& key) {
  Json document = Json::parse(ReadFile(TimingPath(out, key), kMaxRunBytes).value_or(""), nullptr, false);
  return document.is_object() ? document : Json::object();
}

struct RunCounts {
  size_t asked = 0;     // of this shard, equal ones once
  size_t finished = 0;  // before
};

// Simulates what is missing of the shard, or with `fresh` all of it. The first error ends it, and so does SIGINT or
// SIGTERM (CANCELLED); runs that finished stay.
absl::StatusOr<RunCounts> SimulateMissing(const Grid& grid, const std::vector<PlannedRun>& runs, const Shard& shard,
                                          const std::string& out, size_t threads, bool fresh) {
  HORUS_RETURN_IF_ERROR(MakeFolders(out));
  RunCounts counts;
  std::vector<const PlannedRun*> todo;
  std::set<std::string_view> seen;
  for (const PlannedRun& run : runs) {
    // By number of distinct runs, so that shards share none.
    if (!seen.insert(run.key).second || (seen.size() - 1) % shard.count != shard.index) continue;
    ++counts.asked;
    std::optional<MetricValues> stored;
    if (!fresh) HORUS_SET_OR_RETURN(stored, ReadRun(out, run));
    if (stored) {
      ++counts.finished;
    } else {
      todo.push_back(&run);
    }
  }
  HORUS_RETURN_IF_ERROR(Pool(grid, std::move(todo), out).Go(threads, counts.finished));
  return counts;
}

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

std::vector<double> OverSeeds(const Comparison& comparison, size_t workload, size_t policy, std::string_view metric) {
  return OverSeeds(comparison, workload, policy, *FindGridMetric(metric));
}

// Where two policies finish other numbers of jobs, what is of the jobs that finished has no difference.
PairedMean Summary(const Comparison& comparison, size_t workload, size_t policy, size_t metric) {
  PairedMean paired = ComparePaired(OverSeeds(comparison, workload, policy, metric),
                                    OverSeeds(comparison, workload, comparison.baseline, metric));
  if (GridMetrics()[metric].of_finished && OverSeeds(comparison, workload, policy, "finished") !=
                                               OverSeeds(comparison, workload, comparison.baseline, "finished")) {
    paired.difference = std::numeric_limits<double>::quiet_NaN();
  }
  return paired;
}

bool AllFinish(const Comparison& comparison, size_t workload) {
  for (size_t policy = 0; policy < comparison.grid->policies.size(); ++policy) {
    if (OverSeeds(comparison, workload, policy, "finished") != OverSeeds(comparison, workload, policy, "jobs"))
      return false;
  }
  return true;
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
  if (!change || !half_width || !std::isfinite(*change)) return {mean, "–"};
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
  for (const GridMetric& metric : GridMetrics())
    metrics.push_back({{"name", metric.name}, {"better", BetterName(metric.better)}});
  Json policies = Json::array();
  for (const GridPolicy& policy : grid.policies)
    policies.push_back({{"name", policy.name}, {"look_ahead", policy.sim_options.look_ahead}});
  Json runs = Json::array();
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    const PlannedRun& one = comparison.runs[i];
    Json values = Json::object();
    for (size_t metric = 0; metric < GridMetrics().size(); ++metric)
      values[std::string(GridMetrics()[metric].name)] = Exact(comparison.values[i][metric]);
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
                         {"policies", std::move(policies)},
                         {"seeds", grid.seeds},
                         {"metrics", std::move(metrics)},
                         {"summary", SummaryJson(comparison)},
                         {"runs", std::move(runs)}};
  return JsonText(document, kJsonDense);
}

constexpr char kOtherJobs[] =
    "Completion times are of the jobs that finished: those of policies that finish different jobs cannot be compared.";

// One table a workload with those metrics, by position.
std::string SummaryText(const Comparison& comparison, const std::vector<size_t>& metrics) {
  const Grid& grid = *comparison.grid;
  std::string text;
  for (size_t workload = 0; workload < grid.workloads.size(); ++workload) {
    text += absl::StrFormat("%s%s, mean of %d seed%s; change from %s with its paired 95 %% interval\n",
                            workload == 0 ? "" : "\n", Printable(grid.workloads[workload].name), grid.seeds.size(),
                            grid.seeds.size() == 1 ? "" : "s", Printable(grid.policies[comparison.baseline].name));
    const bool all = AllFinish(comparison, workload);
    std::string columns = all ? "POLICY" : "POLICY|>finished";
    for (const size_t metric : metrics) columns += "|>" + std::string(GridMetrics()[metric].name) + "|>change";
    Table table(columns);
    for (size_t policy = 0; policy < grid.policies.size(); ++policy) {
      std::vector<std::string> row = {Printable(grid.policies[policy].name)};
      const auto mean_of = [&](const char* metric) {
        return Plain(Summary(comparison, workload, policy, *FindGridMetric(metric)).mean);
      };
      if (!all) row.push_back(mean_of("finished") + " of " + mean_of("jobs"));
      for (const size_t metric : metrics) {
        auto [mean, change] = Cells(Summary(comparison, workload, policy, metric), policy == comparison.baseline);
        row.push_back(std::move(mean));
        row.push_back(std::move(change));
      }
      table.AddRow(std::move(row));
    }
    text += table.Render("  ");
    if (!all) text += Paragraph(kOtherJobs, "  ");
  }
  return text;
}

// How long each run took; not equal from machine to machine.
std::string TimingsCsv(const Comparison& comparison, const std::string& out) {
  std::string csv = "workload,policy,seed,run,seconds,decisions,decision_p50_us,decision_p99_us\n";
  for (const PlannedRun& one : comparison.runs) {
    const Json known = ReadTiming(out, one.key);
    const auto timing = [&known](const char* key) {
      const auto at = known.find(key);
      return at != known.end() && at->is_number() ? at->get<double>() : 0.0;
    };
    const auto at = known.find("decisions");
    const uint64_t decisions = at != known.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
    csv += NameColumns(*comparison.grid, one) + absl::StrFormat(",%.3f,%d,%.2f,%.2f\n", timing("seconds"), decisions,
                                                                timing("decision_p50_us"), timing("decision_p99_us"));
  }
  return csv;
}

constexpr char kCompareFooter[] = R"(
Examples:
  horus compare grid.yaml --out results
  horus compare grid.yaml --out results --threads 8 --metrics jct_mean_s,wait_mean_s
  horus compare grid.yaml --out results --shard 3/8     one of eight parts, on as many machines
  horus compare grid.yaml --out results --merge         their results together

Each finished run is a file under OUT/runs, so that the same command goes on after Ctrl-C and runs again only what has
changed. Results (results.csv, results.json) depend on the grid alone: not on threads, shards or the machine; how long
it took is in timings.csv, and where in machine.json. docs/simulate.md has every key of the grid.)";

constexpr int64_t kMaxThreads = 1024;

struct CompareArguments {
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
      const auto known = VectorOf<std::string_view>(GridMetrics(), &GridMetric::name);
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

absl::Status WriteResults(const Comparison& comparison, const CompareArguments& options, size_t threads) {
  const std::string& out = options.out;
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/results.csv", ResultsCsv(comparison)));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/results.json", ResultsJson(comparison)));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(out + "/timings.csv", TimingsCsv(comparison, out)));
  return WriteFileOrDevice(out + "/machine.json", MachineJson(threads));
}

absl::Status Compare(const CompareArguments& options) {
  Shard shard;
  if (!options.shard.empty()) HORUS_SET_OR_RETURN(shard, ParseShard(options.shard));
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

int RunCompare(const CompareArguments& options) {
  const absl::Status status = Compare(options);
  if (status.ok()) return kExitDecided;
  const int code = Fail(status);
  // Whoever started it learns of the signal as if nobody had caught it.
  if (g_stop != 0) std::raise(g_stop);
  return code;
}

}  // namespace

Command AddCompare(CLI::App& parser) {
  auto options = std::make_shared<CompareArguments>();
  CLI::App* app = parser.add_subcommand("compare", "Compare policies in a simulated cluster, over workloads and seeds");
  AddOption(*app, "GRID", options->grid, "YAML file with cluster, truth, beliefs, workloads, policies and seeds",
            "FILE")
      ->required();
  AddOption(*app, "--out", options->out, "Folder of the results; made where it is missing", "DIR")->required();
  AddRanged(*app, "--threads", options->threads, "Runs at a time (default: the machine's cores)", "N", int64_t{1},
            kMaxThreads);
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
  app->footer(kCompareFooter);
  return {app, [options] { return RunCompare(*options); }};
}

}  // namespace horus::cli
