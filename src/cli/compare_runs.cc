// SPDX-License-Identifier: Apache-2.0
// A pool of threads over the missing runs; results go to disk as they come.
#include "cli/compare_runs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/print.h"
#include "io/json_text.h"

namespace horus::cli {
namespace {

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
    if (g_stop != 0 && status_.ok() && done_ < todo_.size()) {
      status_ = absl::CancelledError("interrupted: finished runs are kept; the same command goes on");
    }
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
    if (error) {
      return Unavailable("%s/%s: cannot make the folder: %s", out, name, error.message());
    }
  }
  return absl::OkStatus();
}

}  // namespace

int StoppedBy() { return g_stop; }

std::vector<PlannedRun> PlanRuns(const Grid& grid) {
  std::vector<PlannedRun> runs;
  for (const GridRun& run : RunsOf(grid)) {
    std::string content = ContentOf(grid, run);
    std::string key = KeyOf(content);
    runs.push_back({run, std::move(key), std::move(content)});
  }
  return runs;
}

absl::StatusOr<Shard> ParseShard(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size() - 1);
  const auto index = ParseNumber<size_t>(text.substr(0, slash)), count = ParseNumber<size_t>(text.substr(slash + 1));
  if (index && count && *index < *count) return Shard{*index, *count};
  return InvalidArgument("--shard: expected I/N with I from 0 to N - 1, found %s", Quoted(text));
}

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
  if (text_of("run") != run.content) {
    return InvalidArgument("%s: expected the run that its name says, found another one; delete it and try again", path);
  }
  MetricValues values;
  for (const GridMetric& metric : GridMetrics()) {
    const auto at = document["metrics"].find(std::string(metric.name));
    const bool known = at != document["metrics"].end() && at->is_number();
    values.push_back(known ? at->get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

std::optional<RunTiming> ReadTiming(const std::string& out, const std::string& key) {
  const absl::StatusOr<std::string> text = ReadFile(TimingPath(out, key), kMaxRunBytes);
  if (!text.ok()) return std::nullopt;
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  const auto number = [&](const char* name) {
    const auto at = document.find(name);
    return at != document.end() && at->is_number() ? at->get<double>() : 0.0;
  };
  const auto decisions = document.find("decisions");
  const bool counted = decisions != document.end() && decisions->is_number_unsigned();
  return RunTiming{number("seconds"), counted ? decisions->get<uint64_t>() : 0, number("decision_p50_us"),
                   number("decision_p99_us")};
}

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
    if (!fresh) {
      HORUS_ASSIGN_OR_RETURN(stored, ReadRun(out, run));
    }
    if (stored) {
      ++counts.finished;
    } else {
      todo.push_back(&run);
    }
  }
  HORUS_RETURN_IF_ERROR(Pool(grid, std::move(todo), out).Go(threads, counts.finished));
  return counts;
}

}  // namespace horus::cli
