// SPDX-License-Identifier: Apache-2.0
// Lays results out in the grid's order.
#include "cli/compare_report.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "cli/numbers.h"
#include "cli/record.h"
#include "cli/table.h"
#include "io/csv.h"
#include "io/json_text.h"
#include "lab/grid_metrics.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

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

std::string SummaryText(const Comparison& comparison, const std::vector<size_t>& metrics) {
  const Grid& grid = *comparison.grid;
  std::string text;
  for (size_t workload = 0; workload < grid.workloads.size(); ++workload) {
    text += absl::StrFormat("%s%s, mean of %d seed%s; change from %s with its paired 95 %% interval\n",
                            workload == 0 ? "" : "\n", Printable(grid.workloads[workload].name), grid.seeds.size(),
                            grid.seeds.size() == 1 ? "" : "s", Printable(grid.policies[comparison.baseline].name));
    std::vector<Column> columns = {{"POLICY"}};
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

}  // namespace horus::cli
