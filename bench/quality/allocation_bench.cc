// SPDX-License-Identifier: Apache-2.0
// allocation: GPUs allocated by policy on the openb pod lists, beside the published table and FGD in a plain loop.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "bench/must.h"
#include "bench/quality/allocation_run.h"
#include "bench/quality/allocation_sharing.h"
#include "bench/rows.h"
#include "io/csv.h"

namespace horus::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFirstSeed = 42;  // as published; our streams are not those of its generator
constexpr uint64_t kSeeds = 10;
constexpr uint64_t kSmokeSeeds = 2;
constexpr std::string_view kPublished[] = {"random", "dotprod", "gpu-clustering", "gpu-packing", "best-fit", "fgd"};
// Policy and bound on slowdowns of the runs with jobs of measured pairs; 0 = the policy's default.
constexpr std::pair<std::string_view, double> kSharing[] = {
    {"random", 0},   {"best-fit", 0}, {"gpu-packing", 0}, {"fgd", 0},
    {"horus", 1.25}, {"horus", 1.5},  {"horus", 2},       {"horus", std::numeric_limits<double>::infinity()}};
constexpr uint64_t kSharingSeeds = 3;
constexpr std::string_view kSharedWorkload = "default";
constexpr double kGapAim = 0.5;        // points
constexpr double kHorusAim = -0.1;     // points
constexpr double kPerPodAimUs = 22.6;  // a thousandth of the published simulator's
constexpr double kGridAimS = 60;
constexpr const char* kProtocol =
    "bench/README.md, allocation: pods in random order to 130 %% of the GPUs, none leaves; %d seeds";

// "default" of ".../openb_pod_list_default.csv"; empty for other files.
std::string WorkloadOf(const fs::path& path) {
  constexpr std::string_view kPrefix = "openb_pod_list_";
  const std::string stem = path.stem().string();
  return path.extension() == ".csv" && stem.starts_with(kPrefix) ? stem.substr(kPrefix.size()) : "";
}

struct Found {
  std::map<std::string, fs::path> pods;                             // by workload
  std::map<std::pair<std::string, std::string>, double> published;  // (workload, policy) -> allocation at load 100
};

std::string PolicyOf(std::string_view published) {  // "03-GpuClustering" -> "gpu-clustering"
  static const std::map<std::string_view, std::string> names = {
      {"Random", "random"},          {"DotProd", "dotprod"},  {"GpuClustering", "gpu-clustering"},
      {"GpuPacking", "gpu-packing"}, {"BestFit", "best-fit"}, {"FGD", "fgd"}};
  const size_t dash = published.find('-');
  const auto at = names.find(dash == std::string_view::npos ? published : published.substr(dash + 1));
  return at == names.end() ? "" : at->second;
}

void ReadTable(const fs::path& path, Found& found) {
  const std::string file = path.string();
  const CsvTable table = Must(ParseCsv(Must(ReadFile(file, kMaxOpenbBytes)), file));
  const CsvColumns columns = ColumnsOf(table);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, columns, i, file);
    const std::string workload = WorkloadOf(std::string(row.Find("workload")) + ".csv");
    const std::string policy = PolicyOf(row.Find("sc_policy"));
    if (workload.empty() || policy.empty()) continue;
    found.published[{workload, policy}] = Must(row.Number("alloc_100_mean", "per cent"));
  }
}

Found Look(const std::string& data) {
  Found found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data, error)) {
    const std::string name = entry.path().filename().string();
    if (const std::string workload = WorkloadOf(entry.path()); !workload.empty()) found.pods[workload] = entry.path();
    if (name.starts_with("fgd_policy_table") && name.ends_with(".csv")) ReadTable(entry.path(), found);
  }
  return found;
}

fs::path NodesBeside(const fs::path& pods) { return pods.parent_path() / "openb_node_list_gpu_node.csv"; }

struct Series {
  std::vector<double> at_100;
  std::vector<double> at_130;
  double cpu_s = 0;
  size_t offers = 0;
};

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Series RunSeeds(const Experiment& experiment, std::string_view policy, uint64_t seeds) {
  Series series;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    const Outcome outcome = Must(RunPolicy(experiment, policy, seed));
    series.at_100.push_back(outcome.allocation_100);
    series.at_130.push_back(outcome.allocation_130);
    series.cpu_s += outcome.cpu_s;
    series.offers += outcome.offers;
  }
  return series;
}

// A few nodes and many kinds of pods: shows that rows come out.
Experiment Synthetic() {
  std::vector<OpenbNode> nodes;
  for (uint64_t i = 0; i < 100; ++i) {  // enough GPUs that no pod is a whole per cent

    const int32_t gpus = 1 << (Mix64(i) % 4);
    nodes.push_back({"node-" + std::to_string(i), 32'000 + 12'000 * gpus, 131'072, gpus, i % 3 == 0 ? "T4" : "P100"});
  }
  std::vector<OpenbPod> pods;
  for (uint64_t i = 0; i < 600; ++i) {
    OpenbPod pod{.name = absl::StrFormat("pod-%03d", i), .models = {}, .spec = {}};
    pod.gpus = i % 9 == 0 ? 0 : i % 7 == 0 ? 2 : 1;
    pod.gpu_milli = pod.gpus == 0 ? 0 : pod.gpus == 1 && i % 2 == 0 ? 200 + 100 * static_cast<int32_t>(i % 7) : 1000;
    pod.cpu_milli = 2000 + 1000 * static_cast<int64_t>(Mix64(i) % 12);
    pod.mem_mib = 4096;
    pods.push_back(pod);
  }
  return Must(MakeExperiment(std::move(nodes), std::move(pods)));
}

class Bench {
 public:
  Bench(const Options& options, std::vector<Row>* rows)
      : seeds_(options.smoke ? kSmokeSeeds : kSeeds), rows_(rows), protocol_(absl::StrFormat(kProtocol, seeds_)) {}

  void Run(const Found& found, const std::vector<PairSlowdowns>& tables) {
    for (const auto& [workload, path] : found.pods) {
      const Experiment experiment = Must(LoadExperiment(NodesBeside(path).string(), path.string()));
      RunWorkload(workload, experiment, found);
      for (const PairSlowdowns& table : tables) {
        if (workload == kSharedWorkload) RunSharing(workload, experiment, table);
      }
      RunGolden(workload, experiment);
    }
    Summary();
  }

  void RunSmoke() {
    const Experiment experiment = Synthetic();
    RunWorkload("synthetic", experiment, {});
    RunSharing("synthetic", experiment, MadeUpPairSlowdowns());
    Summary();
  }

  // What is allocated against what sharing costs.
  void RunSharing(const std::string& workload, const Experiment& experiment, const PairSlowdowns& table) {
    const uint64_t seeds = std::min(seeds_, kSharingSeeds);
    for (const auto& [policy, bound] : kSharing) {
      SharedOutcome sum{.slowdown_p50 = 0, .slowdown_p95 = 0};
      for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
        const SharedOutcome one = Must(RunShared(experiment, table, policy, bound, seed));
        sum.allocation += one.allocation;
        sum.useful += one.useful;
        sum.work += one.work;
        sum.slowdown_p50 += one.slowdown_p50;
        sum.slowdown_p95 += one.slowdown_p95;
        sum.above_pct += one.above_pct;
      }
      const auto n = static_cast<double>(seeds);
      Add({.metric = absl::StrFormat("alloc_work_100_%s_%s_%s%s", workload, table.gpu, policy,
                                     bound > 0 ? absl::StrFormat("_%g", bound) : ""),
           .value = sum.work / n,
           .unit = "GPUs",
           .lower_is_better = false,
           .baseline = absl::StrFormat(
               "allocated %.2f %%, over slowdowns %.2f %%; slowdown of sharers median %.3f, p95 %.2f, %.1f %% above %g",
               sum.allocation / n, sum.useful / n, sum.slowdown_p50 / n, sum.slowdown_p95 / n, sum.above_pct / n,
               kUsualBound),
           .protocol = absl::StrFormat("pods with jobs of the pairs measured on %s; arrivals stop at load 100; %d "
                                       "seeds",
                                       table.gpu, seeds)});
    }
  }

 private:
  void Add(Row row) {
    if (row.protocol.empty()) row.protocol = protocol_;
    rows_->push_back(std::move(row));
  }

  void RunWorkload(const std::string& workload, const Experiment& experiment, const Found& found) {
    std::map<std::string, Series> series;
    const bool in_table = found.published.contains({workload, "fgd"});
    for (const std::string_view policy : kPublished) {
      Series& one = series[std::string(policy)] = RunSeeds(experiment, policy, seeds_);
      if (in_table) grid_s_ += one.cpu_s;
      if (in_table) ++grid_cells_;
    }
    series["horus"] = RunSeeds(experiment, "horus", seeds_);
    for (const auto& [policy, one] : series) {
      const auto published = found.published.find({workload, policy});
      std::string beside = absl::StrFormat("at load 130 %.2f", Mean(one.at_130));
      if (published != found.published.end()) {
        gap_ = std::max(gap_, std::abs(Mean(one.at_100) - published->second));
        beside = absl::StrFormat("published %.2f; ", published->second) + beside;
      }
      Add({.metric = "alloc_100_" + workload + "_" + policy,
           .value = Mean(one.at_100),
           .unit = "%",
           .lower_is_better = false,
           .baseline = beside,
           .protocol = {}});
    }
    Compare(workload, series.at("horus"), series.at("fgd"));
    const Series& fgd = series.at("fgd");
    fgd_s_ += fgd.cpu_s;
    fgd_pods_ += fgd.offers;
    horus_s_ += series.at("horus").cpu_s;
    const Outcome plain = RunPlainFgd(experiment, kFirstSeed);
    plain_s_ += plain.cpu_s;
    plain_pods_ += plain.offers;
    const Outcome same = Must(RunPolicy(experiment, "fgd", kFirstSeed));
    plain_same_ += same.hash == plain.hash && same.used == plain.used ? 1 : 0;
    ++workloads_;
  }

  void Compare(const std::string& workload, const Series& horus, const Series& fgd) {
    std::vector<double> differences;
    for (size_t i = 0; i < horus.at_100.size(); ++i) differences.push_back(horus.at_100[i] - fgd.at_100[i]);
    const double mean = Mean(differences);
    const double worst = *std::min_element(differences.begin(), differences.end());
    if (mean < horus_minus_fgd_) worst_workload_ = workload;
    horus_minus_fgd_ = std::min(horus_minus_fgd_, mean);
    Add({.metric = "alloc_horus_minus_fgd_" + workload,
         .value = mean,
         .unit = "points",
         .lower_is_better = false,
         .baseline = absl::StrFormat("worst seed %+.2f", worst),
         .protocol = {}});
  }

  void RunGolden(const std::string& workload, const Experiment& experiment) {
    for (const GoldenRun& golden : GoldenRuns()) {
      if (golden.workload != workload) continue;
      ++golden_;
      const Outcome found = Must(RunPolicy(experiment, golden.policy, std::nullopt));
      golden_exact_ += IsGolden(golden, found) ? 1 : 0;
    }
  }

  void Summary() {
    const auto us = [](double seconds, size_t pods) {
      return 1e6 * seconds / static_cast<double>(std::max<size_t>(pods, 1));
    };
    if (grid_cells_ > 0) {
      Add({.metric = "alloc_gap_max_points",
           .value = gap_,
           .unit = "points",
           .aim = kGapAim,
           .baseline = absl::StrFormat("%d cells of the published table", grid_cells_),
           .protocol = {}});
      Add({.metric = "alloc_grid_s",
           .value = grid_s_,
           .unit = "s",
           .aim = kGridAimS,
           .baseline = absl::StrFormat("%d cells x %d seeds, CPU time of plan + apply", grid_cells_, seeds_),
           .protocol = {}});
    }
    if (golden_ > 0) {
      Add({.metric = "alloc_golden_exact",
           .value = static_cast<double>(golden_exact_),
           .unit = "runs",
           .aim = static_cast<double>(golden_),
           .lower_is_better = false,
           .baseline = absl::StrFormat("%d worked out by two other programs", golden_),
           .protocol = "pods in name order, ties by row; used, dropped and the hash of all placements"});
    }
    Add({.metric = "alloc_horus_minus_fgd_min",
         .value = horus_minus_fgd_,
         .unit = "points",
         .aim = kHorusAim,
         .lower_is_better = false,
         .baseline = absl::StrFormat("worst of %d pod lists: %s", workloads_, worst_workload_),
         .protocol = protocol_ + ", paired by seed, mean"});
    Add({.metric = "fgd_us_per_pod",
         .value = us(fgd_s_, fgd_pods_),
         .unit = "us",
         .aim = kPerPodAimUs,
         .baseline =
             absl::StrFormat("plain loop with kept scores %.1f us; same placements in %d of %d lists; horus %.1f us",
                             us(plain_s_, plain_pods_), plain_same_, workloads_, us(horus_s_, fgd_pods_)),
         .protocol = "CPU time of one MakePlan over all pods and its Apply"});
  }

  uint64_t seeds_;
  std::vector<Row>* rows_;
  std::string protocol_;
  double gap_ = 0;
  double grid_s_ = 0;
  size_t grid_cells_ = 0;
  double horus_minus_fgd_ = std::numeric_limits<double>::infinity();
  std::string worst_workload_;
  double fgd_s_ = 0;
  size_t fgd_pods_ = 0;
  double horus_s_ = 0;
  double plain_s_ = 0;
  size_t plain_pods_ = 0;
  size_t plain_same_ = 0;
  size_t workloads_ = 0;
  size_t golden_ = 0;
  size_t golden_exact_ = 0;
};

void Measure(const Options& options, std::vector<Row>* rows) {
  const Found found = options.data.empty() || options.smoke ? Found() : Look(options.data);
  Bench bench(options, rows);
  if (found.pods.empty()) {
    if (!options.smoke) {
      std::fprintf(stderr, "allocation: no openb_pod_list_*.csv under --data; a small synthetic list instead\n");
    }
    bench.RunSmoke();
  } else {
    bench.Run(found, ReadPairSlowdowns(options.data));
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
