// SPDX-License-Identifier: Apache-2.0
// Reads rows of measured runs, naming row, column and unit of what is wrong.
#include "lab/io/dataset_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "graph/architecture.h"
#include "io/csv.h"

namespace horus {
namespace {

// ---- The columns that say what a job runs and how: one definition for datasets and job tables.
// Cost: a dozen cells.

constexpr std::array<std::string_view, 13> kRunColumns = {
    "graph",    "family", "batch",  "dims",     "mode", "precision", "optimizer", "framework", "checkpoint_segments",
    "replicas", "layout", "frozen", "lora_rank"};

// "seq=128; tgt_seq=32"
absl::Status ReadDims(const CsvRow& row, DimBindings& dims) {
  std::string_view rest = row.Find("dims");
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (one.empty()) continue;
    const size_t equals = std::min(one.find('='), one.size());
    const int64_t size = equals < one.size() ? ParseNumber<int64_t>(one.substr(equals + 1)).value_or(0) : 0;
    if (equals == 0 || size < 1 || size > kMaxCsvCount)
      return row.Wrong("dims", "NAME=SIZE;NAME=SIZE with sizes from 1", one);
    dims.dims.emplace_back(std::string(one.substr(0, equals)), size);
  }
  return absl::OkStatus();
}

// All but the family. A blank graph gives an empty path; blank cells are RunSpec's defaults.
absl::StatusOr<ModelRun> ReadModelRun(const CsvRow& row, const std::string& file) {
  ModelRun model;
  const std::string_view graph = row.Find("graph");
  if (graph.size() > kMaxPathBytes) return row.Wrong("graph", "a path of at most 4096 bytes", graph);
  const std::string written(graph);
  if (!graph.empty()) model.path = FindKnownModel(written) != nullptr ? written : PathBeside(file, written);
  RunSpec& run = model.run;
  HORUS_RETURN_IF_ERROR(row.ReadCount("batch", 1, run.dims.batch));
  HORUS_RETURN_IF_ERROR(ReadDims(row, run.dims));
  HORUS_RETURN_IF_ERROR(row.ReadName("mode", ParseRunMode, run.mode));
  HORUS_RETURN_IF_ERROR(row.ReadName("precision", ParsePrecision, run.precision));
  model.states_precision = !row.Find("precision").empty();
  HORUS_RETURN_IF_ERROR(row.ReadCount("lora_rank", 0, model.config.lora_rank));
  HORUS_RETURN_IF_ERROR(row.ReadName("optimizer", ParseOptimizer, run.optimizer));
  HORUS_RETURN_IF_ERROR(row.ReadName("framework", ParseFramework, run.framework));
  HORUS_RETURN_IF_ERROR(row.ReadName("layout", ParseLayout, run.layout));
  HORUS_RETURN_IF_ERROR(row.ReadCount("checkpoint_segments", 0, run.checkpoint_segments));
  HORUS_RETURN_IF_ERROR(row.ReadCount("replicas", 1, run.data_parallel));
  const std::string_view frozen = row.Find("frozen");
  run.frozen =
      std::vector<std::string>(absl::StrSplit(absl::string_view(frozen.data(), frozen.size()), ';', absl::SkipEmpty()));
  return model;
}

// Refuses an empty cell.
absl::StatusOr<std::string> ReadFamily(const CsvRow& row) {
  HORUS_ASSIGN_OR_RETURN(std::string family, row.Label("family"));
  if (family.empty()) return row.Wrong("family", "the name of the model family", "");
  return family;
}

// ---- Reads a job table, no name twice, and what was measured of its jobs.

constexpr size_t kMaxTableBytes = size_t{1} << 26;
constexpr std::array<std::string_view, 2> kRequiredOfJobs = {"job", "family"};

absl::StatusOr<TableJob> ReadJob(const CsvRow& row, const std::string& file) {
  TableJob job;
  job.where = row.where();
  HORUS_ASSIGN_OR_RETURN(job.name, row.Label("job"));
  if (job.name.empty()) return row.Wrong("job", "the name that pairs use", "");
  HORUS_ASSIGN_OR_RETURN(job.family, ReadFamily(row));
  HORUS_ASSIGN_OR_RETURN(job.model, ReadModelRun(row, file));
  return job;
}

struct Column {
  std::string_view name;
  std::optional<double> TableDemand::* value;
  double least, most;
  const char* unit;
};
// The limits of `demand` in jobs.yaml; no step takes a week.
constexpr std::array<Column, 4> kTableColumns = {{
    {"gpu_util_pct", &TableDemand::gpu_util_pct, 0, 100, "per cent"},
    {"step_time_us", &TableDemand::step_time_us, 1, 604'800e6, "microseconds"},
    {"operator_us", &TableDemand::operator_us, 0.001, 1e9, "microseconds"},
    {"kernels", &TableDemand::kernels, 1, 1e9, "kernels a step"},
}};

absl::Status ReadMeasured(const CsvRow& row, const Catalogue& catalogue, std::span<TableJob> jobs,
                          const std::map<std::string_view, size_t>& positions) {
  const std::string_view name = row.Find("job");
  const auto at = positions.find(name);
  if (at == positions.end()) return row.Wrong("job", "a name of the table of jobs", name);
  std::vector<TableDemand>& all = jobs[at->second].measured;
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId gpu, At(row.where() + ": gpu", catalogue.Find(row.Find("gpu"))));
  if (std::ranges::any_of(all, [&](const TableDemand& other) { return other.gpu == gpu; }))
    return row.Wrong("gpu", "each GPU type of a job once", row.Find("gpu"));
  TableDemand& out = all.emplace_back(TableDemand{.gpu = gpu});
  for (const Column& column : kTableColumns) {
    if (row.Find(column.name).empty()) continue;
    const std::string expected = absl::StrFormat("%g to %g %s, or blank", column.least, column.most, column.unit);
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column.name, expected));
    if (value < column.least || value > column.most) return row.Wrong(column.name, expected, row.Find(column.name));
    out.*column.value = value;
  }
  return absl::OkStatus();
}

constexpr size_t kMaxFileBytes = size_t{1} << 28;

// Columns besides the run's, the measured ones and the features; `note` is for people.
constexpr std::array<std::string_view, 5> kColumns = {"net", "gpu", "sharing_mode", "campaign", "note"};
constexpr std::array<std::string_view, 2> kRequired = {"family", "gpu"};

absl::Status ReadGpu(const CsvRow& row, const Catalogue& catalogue, DatasetRow& out) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, row.Label("gpu"));
  if (name.starts_with(kOpaqueGpu) && name.size() > kOpaqueGpu.size()) {
    out.gpu_name = name;
  } else {
    const absl::StatusOr<GpuTypeId> id = catalogue.Find(name);
    if (!id.ok()) {
      return InvalidArgument("%s: gpu: %s (a GPU whose type is not known is written opaque:NAME)", row.where(),
                             std::string(id.status().message()));
    }
    out.gpu = *id;
    out.gpu_name = catalogue.at(*id).name;
  }
  const std::string_view mode = row.Find("sharing_mode");
  if (mode.empty() || mode == "exclusive") return absl::OkStatus();
  return row.Wrong("sharing_mode", "exclusive or blank (a demand is what a job takes of a GPU of its own)", mode);
}

absl::Status ReadMeasured(const CsvRow& row, std::span<const MeasuredColumn> columns, DatasetRow& out) {
  bool any = false;
  for (const MeasuredColumn& column : columns) {
    out.measured.push_back(std::numeric_limits<double>::quiet_NaN());
    if (row.Find(column.name).empty()) continue;
    const std::string expected =
        std::string(column.zero_allowed ? "a number from 0 to " : "a number above 0 and up to ") +
        Formatted("%g", column.most) + " " + std::string(column.unit);
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column.name, expected));
    if (value > column.most || value < 0 || (value == 0 && !column.zero_allowed))
      return row.Wrong(column.name, expected, row.Find(column.name));
    out.measured.back() = value;
    any = true;
  }
  if (any) return absl::OkStatus();
  std::string names;
  for (const MeasuredColumn& column : columns) names.append(names.empty() ? "" : ", ").append(column.name);
  return InvalidArgument("%s: expected a value in at least one of %s, found none", row.where(), names);
}

absl::Status ReadFeatures(const CsvRow& row, std::span<const std::string_view> names, DatasetRow& out) {
  for (const std::string_view name : names) {
    const std::string column = std::string(kFeaturePrefix) + std::string(name);
    if (row.Find(column).empty()) {
      out.features.push_back(std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, "a number or blank"));
    out.features.push_back(static_cast<float>(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetRow> ReadRow(const CsvRow& row, const std::string& file, const Catalogue& catalogue,
                                   std::span<const MeasuredColumn> measured, std::span<const std::string_view> features,
                                   bool has_features) {
  DatasetRow out;
  out.where = row.where();
  HORUS_ASSIGN_OR_RETURN(out.model, ReadModelRun(row, file));
  const std::string_view graph = row.Find("graph");
  if (graph.empty() && !has_features)
    return row.Wrong("graph", "the path of an ONNX file, since there are no feature columns", graph);
  HORUS_ASSIGN_OR_RETURN(out.net, row.Label("net"));
  if (out.net.empty()) {
    const size_t slash = graph.rfind('/');
    out.net = graph.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (out.net.ends_with(".onnx")) out.net.resize(out.net.size() - 5);
  }
  if (out.net.empty()) return row.Wrong("net", "a name, since there is no graph to take it from", "");
  HORUS_ASSIGN_OR_RETURN(out.family, ReadFamily(row));
  HORUS_ASSIGN_OR_RETURN(out.campaign, row.Label("campaign"));
  HORUS_RETURN_IF_ERROR(ReadGpu(row, catalogue, out));
  HORUS_RETURN_IF_ERROR(ReadMeasured(row, measured, out));
  if (graph.empty()) HORUS_RETURN_IF_ERROR(ReadFeatures(row, features, out));
  return out;
}

absl::Status CheckHeader(const CsvTable& table, const std::string& file, std::span<const MeasuredColumn> measured,
                         std::span<const std::string_view> features) {
  HORUS_RETURN_IF_ERROR(CheckRequiredColumns(table, file, kRequired));
  std::vector<std::string_view> known(kRunColumns.begin(), kRunColumns.end());
  known.insert(known.end(), kColumns.begin(), kColumns.end());
  for (const MeasuredColumn& column : measured) known.push_back(column.name);
  const auto has = [](std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const std::string_view name : table.header) {
    if (has(known, name)) continue;
    if (name.starts_with(kFeaturePrefix) && has(features, name.substr(kFeaturePrefix.size()))) continue;
    known.push_back("feature.NAME");
    return UnknownColumn(file, name, known);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TableJob>> ParseJobTable(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  std::vector<std::string_view> known = {"job"};
  known.insert(known.end(), kRunColumns.begin(), kRunColumns.end());
  known.push_back("note");
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kRequiredOfJobs, known));
  if (table.rows.size() > kMostTableJobs)
    return ResourceExhausted("%s: expected at most %d jobs, found %d", file, kMostTableJobs, table.rows.size());
  const CsvColumns columns = ColumnsOf(table);
  std::vector<TableJob> jobs;
  std::map<std::string, size_t> rows;  // by name
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, columns, i, file);
    HORUS_ASSIGN_OR_RETURN(TableJob job, ReadJob(row, file));
    const auto [known_as, is_new] = rows.emplace(job.name, i);
    if (!is_new) {
      return row.Wrong("job", "a name that no other job has (row " + std::to_string(known_as->second + 1) + " does)",
                       job.name);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<TableJob>> ReadJobTable(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTableBytes));
  return ParseJobTable(path, text);
}

void TableDemand::Replace(Demand& demand) const {
  if (gpu_util_pct) {
    demand.gpu_util_pct.estimate = demand.gpu_util_pct.upper = static_cast<float>(*gpu_util_pct);
    ForgetDeviceShare(demand);
  }
  if (step_time_us) demand.step_time_us.estimate = demand.step_time_us.upper = std::llround(*step_time_us);
  if (operator_us) demand.operator_us = static_cast<float>(*operator_us);
  if (kernels) demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(*kernels));
}

absl::Status ParseTableDemands(const std::string& file, std::string_view text, const Catalogue& catalogue,
                               std::span<TableJob> jobs) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  constexpr std::array<std::string_view, 2> kKeys = {"job", "gpu"};
  std::vector<std::string_view> known(kKeys.begin(), kKeys.end());
  for (const Column& column : kTableColumns) known.push_back(column.name);
  known.push_back("note");
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kKeys, known));
  std::map<std::string_view, size_t> positions;
  for (size_t i = 0; i < jobs.size(); ++i) positions.emplace(jobs[i].name, i);
  const CsvColumns columns = ColumnsOf(table);
  for (size_t i = 0; i < table.rows.size(); ++i)
    HORUS_RETURN_IF_ERROR(ReadMeasured(CsvRow(table, columns, i, file), catalogue, jobs, positions));
  return absl::OkStatus();
}

absl::Status ReadTableDemands(const std::string& path, const Catalogue& catalogue, std::span<TableJob> jobs) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTableBytes));
  return ParseTableDemands(path, text, catalogue, jobs);
}

absl::StatusOr<std::vector<DatasetRow>> ParseDataset(const std::string& file, std::string_view text,
                                                     const Catalogue& catalogue,
                                                     std::span<const MeasuredColumn> measured,
                                                     std::span<const std::string_view> features) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckHeader(table, file, measured, features));
  const bool has_features =
      std::ranges::any_of(table.header, [](const std::string& name) { return name.starts_with(kFeaturePrefix); });
  const CsvColumns columns = ColumnsOf(table);
  std::vector<DatasetRow> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(DatasetRow row,
                           ReadRow(CsvRow(table, columns, i, file), file, catalogue, measured, features, has_features));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<DatasetRow>> ReadDataset(const std::string& path, const Catalogue& catalogue,
                                                    std::span<const MeasuredColumn> measured,
                                                    std::span<const std::string_view> features) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  return ParseDataset(path, text, catalogue, measured, features);
}

}  // namespace horus
