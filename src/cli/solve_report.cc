// SPDX-License-Identifier: Apache-2.0
// Solves for what fits and writes the answer as text or JSON; docs/cli.md lists the keys.
#include "cli/solve_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/inspect_report.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSolveJsonVersion = 1;
constexpr size_t kShownNameBytes = 24;
constexpr size_t kShownMessageBytes = 400;

std::string Limit(const Solution& solution, std::vector<std::string>& messages) {
  switch (solution.end) {
    case SolveEnd::kMemory:
      return absl::StrFormat("memory: %d is %s over", solution.next, Mib(solution.short_mib));
    case SolveEnd::kMaximum:
      return "the maximum asked for";
    case SolveEnd::kGraph:
      break;
  }
  // The same few messages for every GPU: once, below the table.
  const std::string message = absl::StrFormat("%d: %s", solution.next, solution.message);
  if (std::find(messages.begin(), messages.end(), message) == messages.end()) messages.push_back(message);
  return absl::StrFormat("the graph refuses %d", solution.next);
}

Json SolutionJson(const Solution& solution) {
  const bool memory = solution.end == SolveEnd::kMemory;
  const bool graph = solution.end == SolveEnd::kGraph;
  return {{"largest", solution.largest},
          {"memory_upper_mib", solution.largest > 0 ? Json(solution.upper_mib) : Json(nullptr)},
          {"reason", std::string(SolveEndName(solution.end))},
          {"next", solution.next > 0 ? Json(solution.next) : Json(nullptr)},
          {"short_mib", memory ? Json(solution.short_mib) : Json(nullptr)},
          {"message", graph ? Json(solution.message) : Json(nullptr)}};
}

Json RowJson(const SolveReport& report, const SolveRow& row) {
  Json json = {{"gpu_type", row.type.name},
               {"display_name", row.type.display_name},
               {"gpu_memory_mib", row.type.mem_mib},
               {"free_mib", std::max<int64_t>(0, row.type.mem_mib - report.resident_mib)}};
  json.update(SolutionJson(row.beside));
  json["alone"] = SolutionJson(row.alone);
  return json;
}

}  // namespace

absl::StatusOr<SolveReport> MakeSolveReport(std::string path, std::shared_ptr<const Graph> graph, const RunSpec& run,
                                            const SolveRequest& request, int64_t resident_mib,
                                            const Predictor& predictor, const std::vector<GpuType>& types) {
  std::vector<SolveDevice> devices;
  for (size_t i = 0; i < types.size(); ++i) {
    devices.push_back({i, 0});
    if (resident_mib > 0) devices.push_back({i, resident_mib});
  }
  Progress progress;
  HORUS_ASSIGN_OR_RETURN(Solved solved, SolveDimension(graph, run, request, predictor, types, devices,
                                                       [&progress](size_t done, size_t all) {
                                                         progress.Update("solving:", done, all);
                                                         return true;
                                                       }));
  SolveReport report{.path = std::move(path),
                     .graph = std::move(graph),
                     .run = run,
                     .request = request,
                     .resident_mib = resident_mib,
                     .rows = {},
                     .bindings = solved.bindings,
                     .calibrated = predictor.calibrated(),
                     .outside = (solved.flags & kDemandOutside) != 0};
  const size_t stride = resident_mib > 0 ? 2 : 1;
  for (size_t i = 0; i < types.size(); ++i) {
    report.rows.push_back({types[i], solved.solutions[stride * i], solved.solutions[stride * (i + 1) - 1]});
  }
  return report;
}

std::string SolveText(const SolveReport& report) {
  const std::string dim = Printable(report.request.dim, kShownNameBytes);
  std::string text = absl::StrFormat("%s - %s", Printable(report.path), RunText(report.run, report.run.dims.batch));
  text += absl::StrFormat("\nLargest %s whose upper bound of memory fits%s\n", dim,
                          report.resident_mib > 0 ? ", alone and beside " + Mib(report.resident_mib) : "");

  const bool beside = report.resident_mib > 0;
  std::vector<Column> columns = {{"GPU"}, Right("MEMORY"), Right(beside ? "ALONE" : "LARGEST")};
  if (beside) columns.push_back(Right("BESIDE"));
  columns.push_back(Right("AT MOST"));
  columns.push_back({"LIMIT", Align::kLeft, true});
  Table table(std::move(columns));
  std::vector<std::string> messages;
  for (const SolveRow& row : report.rows) {
    std::vector<std::string> cells = {row.type.name, Mib(row.type.mem_mib), std::to_string(row.alone.largest)};
    if (beside) cells.push_back(std::to_string(row.beside.largest));
    cells.push_back(row.beside.largest > 0 ? Mib(row.beside.upper_mib) : "-");
    cells.push_back(Limit(row.beside, messages));
    table.AddRow(std::move(cells));
  }
  text += table.Render("  ");
  for (const std::string& message : messages) {
    for (const std::string& line : Wrap("refused: " + Printable(message, kShownMessageBytes), kPageWidth - 2)) {
      text += "  " + line + "\n";
    }
  }
  if (!report.calibrated) {
    text += "  Analytical prediction without trained models: the bounds are wide on purpose.\n";
  }
  if (report.outside) text += "  The job lies outside what the prediction was made for: the bounds may be too low.\n";
  return text;
}

std::string SolveJson(const SolveReport& report) {
  Json dims = Json::object();
  for (const auto& [name, size] : report.run.dims.dims) dims[name] = size;
  Json gpus = Json::array();
  for (const SolveRow& row : report.rows) gpus.push_back(RowJson(report, row));
  const Json json = {{"schema", "horus-solve"},
                     {"version", kSolveJsonVersion},
                     {"model",
                      {{"path", report.path},
                       {"name", report.graph->name},
                       {"fingerprint", absl::StrFormat("%016x", report.graph->fingerprint)}}},
                     {"run",
                      {{"mode", std::string(Name(report.run.mode))},
                       {"precision", std::string(Name(report.run.precision))},
                       {"optimizer", std::string(Name(report.run.optimizer))},
                       {"framework", std::string(Name(report.run.framework))},
                       {"batch", report.run.dims.batch > 0 ? Json(report.run.dims.batch) : Json(nullptr)},
                       {"dims", dims},
                       {"checkpoint_segments", report.run.checkpoint_segments},
                       {"frozen", report.run.frozen},
                       {"replicas", report.run.data_parallel}}},
                     {"dim", report.request.dim},
                     {"max_value", report.request.max_value},
                     {"resident_mib", report.resident_mib},
                     {"calibrated", report.calibrated},
                     {"outside_training_data", report.outside},
                     {"bindings", report.bindings},
                     {"gpus", gpus}};
  return JsonText(json);
}

}  // namespace horus::cli
