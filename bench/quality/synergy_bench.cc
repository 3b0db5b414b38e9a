// SPDX-License-Identifier: Apache-2.0
// synergy: summed speed of greedy, fair, tune and opt on random full clusters, beside the bound of the linear program.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/quality/sensitivity_table.h"
#include "bench/rows.h"
#include "lab/synergy/round.h"

namespace horus::bench {
namespace {

// Synergy's server: 8 GPUs, 500 GB; cores per GPU as the table says.
constexpr int32_t kGpusPerServer = 8;
constexpr int64_t kServerMib = 500 * 1024;
constexpr double kAimGapPct = 10;  // as published for tune

struct Workload {
  const char* name;
  double weights[3];  // image, language, speech; all 0 = every model alike
  bool gangs;         // 70 % one GPU, 15 % two, 15 % four; else all one. A choice near Philly's mix
};
constexpr Workload kWorkloads[] = {
    {"", {0, 0, 0}, false},         {"gangs", {0, 0, 0}, true},      {"20_70_10", {20, 70, 10}, false},
    {"33_33_33", {1, 1, 1}, false}, {"50_0_50", {50, 0, 50}, false}, {"100_0_0", {1, 0, 0}, false}};

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(Mix64(seed)) {}
  uint64_t Below(uint64_t limit) { return (state_ = Mix64(state_)) % limit; }
  double Unit() { return static_cast<double>(Below(1u << 30)) / (1u << 30); }

 private:
  uint64_t state_;
};

struct Cluster {
  std::vector<SynergyServer> servers;
  std::vector<SynergyJob> jobs;
};

const MeasuredModel& DrawModel(Draws& draws, const std::vector<MeasuredModel>& models, const Workload& workload) {
  const double sum = workload.weights[0] + workload.weights[1] + workload.weights[2];
  if (sum == 0) return models[draws.Below(models.size())];
  double left = draws.Unit() * sum;
  size_t task = 0;
  while (task < 2 && left >= workload.weights[task]) left -= workload.weights[task++];
  std::vector<const MeasuredModel*> of_task;
  for (const MeasuredModel& model : models) {
    if (static_cast<size_t>(model.task) == task) of_task.push_back(&model);
  }
  return *of_task[draws.Below(of_task.size())];
}

// Jobs until every GPU is asked for.
Cluster DrawCluster(uint64_t seed, int32_t servers, int32_t fair_cores, const std::vector<MeasuredModel>& models,
                    const Workload& workload) {
  Draws draws(seed);
  const int64_t cpu = int64_t{kGpusPerServer} * fair_cores * 1000;
  Cluster cluster;
  cluster.servers.assign(static_cast<size_t>(servers), {.gpus = kGpusPerServer,
                                                        .gpus_free = kGpusPerServer,
                                                        .cpu_milli = cpu,
                                                        .mem_mib = kServerMib,
                                                        .cpu_free_milli = cpu,
                                                        .mem_free_mib = kServerMib});
  for (int32_t left = servers * kGpusPerServer; left > 0;) {
    const double size = workload.gangs ? draws.Unit() : 0;
    const int32_t gpus = std::min(left, size < 0.70 ? 1 : size < 0.85 ? 2 : 4);
    cluster.jobs.push_back({.gpus = gpus, .sensitivity = &DrawModel(draws, models, workload).For(gpus)});
    left -= gpus;
  }
  return cluster;
}

struct Outcome {
  double speed = 0;  // summed over jobs
  double bound = 0;
  double running = 0;  // share of the jobs
  double us_per_job = 0;
};

Outcome Run(SynergyRule rule, const Cluster& cluster, bool grow) {
  const auto start = std::chrono::steady_clock::now();
  const auto round = AllocateRound(rule, {cluster.servers, {}, cluster.jobs}, {.grow = grow});
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  if (!round.ok()) {
    std::fprintf(stderr, "synergy: %s\n", round.status().ToString().c_str());
    std::exit(1);
  }
  const auto jobs = static_cast<double>(cluster.jobs.size());
  Outcome outcome{.bound = round->bound, .us_per_job = took.count() / jobs};
  for (const SynergyGrant& grant : round->grants) {
    outcome.speed += grant.speed;
    outcome.running += grant.slices.empty() ? 0 : 1 / jobs;
  }
  return outcome;
}

// One value a seed.
struct Series {
  std::vector<double> values;

  [[nodiscard]] double Mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  [[nodiscard]] double Worst(bool lower_is_better) const {
    return lower_is_better ? *std::max_element(values.begin(), values.end())
                           : *std::min_element(values.begin(), values.end());
  }
  // Half the 95 % interval of the mean, normal approximation.
  [[nodiscard]] double HalfWidth() const {
    double squares = 0;
    for (const double value : values) squares += (value - Mean()) * (value - Mean());
    const auto n = static_cast<double>(values.size());
    return n < 2 ? 0 : 1.96 * std::sqrt(squares / (n - 1) / n);
  }
};

struct Setting {
  int32_t servers = 16;
  int seeds = 30;
  int32_t fair_cores = 3;
  std::string source;  // of the matrices, for protocols
  bool has_solver = false;
};

using Columns = std::map<std::string, Series>;  // metric -> a value a seed

Columns MeasureSeeds(const Setting& setting, const std::vector<MeasuredModel>& models, const Workload& workload) {
  Columns columns;
  const auto add = [&](const char* metric, double value) { columns[metric].values.push_back(value); };
  for (int seed = 0; seed < setting.seeds; ++seed) {
    const Cluster cluster =
        DrawCluster(static_cast<uint64_t>(seed), setting.servers, setting.fair_cores, models, workload);
    const Outcome fair = Run(SynergyRule::kFair, cluster, false);
    const Outcome greedy = Run(SynergyRule::kGreedy, cluster, false);
    const Outcome tune = Run(SynergyRule::kTune, cluster, false);
    const Outcome grown = Run(SynergyRule::kTune, cluster, true);
    const auto gain = [&](const Outcome& outcome) { return 100 * (outcome.speed / fair.speed - 1); };
    add("greedy_gain_pct", gain(greedy));
    add("greedy_running_pct", 100 * greedy.running);
    add("tune_gain_pct", gain(tune));
    add("tune_grow_gain_pct", gain(grown));
    add("tune_us_per_job", tune.us_per_job);
    if (!setting.has_solver) continue;
    const Outcome opt = Run(SynergyRule::kOpt, cluster, false);
    const auto gap = [&](const Outcome& outcome) { return 100 * (1 - outcome.speed / opt.bound); };
    add("tune_gap_pct", gap(tune));
    add("tune_grow_gap_pct", gap(grown));
    add("tune_behind_opt_pct", 100 * (1 - tune.speed / opt.speed));
    add("opt_gap_pct", gap(opt));
    add("fair_gap_pct", gap(fair));
    add("opt_gain_pct", gain(opt));
    add("opt_us_per_job", opt.us_per_job);
  }
  return columns;
}

void AddRows(const Setting& setting, const Workload& workload, const Columns& columns, std::vector<Row>* rows) {
  const std::string suffix = *workload.name == '\0' ? "" : std::string("_") + workload.name;
  const bool split = workload.weights[0] + workload.weights[1] + workload.weights[2] > 0;
  const std::string protocol = absl::StrFormat(
      "%d servers of %d GPUs, %d cores and 500 GB, every GPU asked for, %s, %s, %d seeds; speeds relative to the fair "
      "share, summed over jobs; bound = linear program on one merged machine",
      setting.servers, kGpusPerServer, kGpusPerServer * setting.fair_cores, setting.source,
      split            ? absl::StrFormat("image, language, speech drawn %s", workload.name)
      : workload.gangs ? std::string("models drawn alike, jobs of 1, 2 and 4 GPUs drawn 70 : 15 : 15")
                       : std::string("models drawn alike, jobs of 1 GPU"),
      setting.seeds);
  for (const auto& [metric, series] : columns) {
    const bool gap = metric.ends_with("gap_pct") || metric == "tune_behind_opt_pct";
    const bool lower = gap || metric.ends_with("us_per_job");
    std::string beside = absl::StrFormat("+- %.2g (95 %%), worst %.4g", series.HalfWidth(), series.Worst(lower));
    if (metric == "tune_gap_pct") {
      beside += absl::StrFormat("; fair %.3g, opt as rounded %.3g", columns.at("fair_gap_pct").Mean(),
                                columns.at("opt_gap_pct").Mean());
    }
    const double aim = metric == "tune_gap_pct" || metric == "tune_behind_opt_pct" ? kAimGapPct : 0;
    const char* unit = metric.ends_with("us_per_job") ? "us" : "%";
    rows->push_back({metric + suffix, series.Mean(), unit, aim, lower, beside, protocol});
    if (metric == "tune_gap_pct") {
      rows->push_back({"tune_gap_worst_pct" + suffix, series.Worst(true), unit, 0, true, "", protocol});
    }
  }
}

bool HasTasks(const std::vector<MeasuredModel>& models, const Workload& workload) {
  for (size_t task = 0; task < 3; ++task) {
    const bool found = std::any_of(models.begin(), models.end(),
                                   [&](const MeasuredModel& model) { return static_cast<size_t>(model.task) == task; });
    if (workload.weights[task] > 0 && !found) return false;
  }
  return true;
}

// One round that fills an idle cluster of 100,000 GPUs.
void MeasureScale(Setting setting, const std::vector<MeasuredModel>& models, std::vector<Row>* rows) {
  setting.servers = 12'500;
  const Cluster cluster = DrawCluster(0, setting.servers, setting.fair_cores, models, kWorkloads[1]);
  const std::string protocol =
      absl::StrFormat("%d servers of %d GPUs, every GPU asked for, %s, jobs of 1, 2 and 4 GPUs, one round of %d jobs",
                      setting.servers, kGpusPerServer, setting.source, cluster.jobs.size());
  const Outcome fair = Run(SynergyRule::kFair, cluster, false);
  const Outcome tune = Run(SynergyRule::kTune, cluster, false);
  rows->push_back({"tune_us_per_job_100k", tune.us_per_job, "us", 0, true,
                   absl::StrFormat("fair %.3g us", fair.us_per_job), protocol});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Setting setting;
  MeasuredModels models;
  if (!options.data.empty()) models = ReadSensitivities(options.data);
  setting.source = "measured matrices";
  if (models.empty()) {
    models = MadeUpSensitivities();
    setting.source = "made-up matrices (no table under --data)";
  }
  if (options.smoke) {
    setting.servers = 2;
    setting.seeds = 2;
  }
  // The cluster of the table with fewest cores per GPU is Synergy's own; a table of more is another cluster.
  setting.fair_cores = models.begin()->first;
  const std::vector<MeasuredModel>& list = models.begin()->second;
  const SynergyServer server = {.gpus = 1, .gpus_free = 1};
  const SynergyJob job;
  const auto probe = AllocateRound(SynergyRule::kOpt, {{&server, 1}, {}, {&job, 1}});
  setting.has_solver = probe.ok();
  if (!probe.ok()) std::fprintf(stderr, "synergy: no rows of opt: %s\n", probe.status().ToString().c_str());
  for (const Workload& workload : kWorkloads) {
    if (HasTasks(list, workload)) AddRows(setting, workload, MeasureSeeds(setting, list, workload), rows);
  }
  if (!options.smoke) MeasureScale(setting, list, rows);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
