// SPDX-License-Identifier: Apache-2.0
// Reads a job table, no name twice, and what was measured of its jobs.
#include "lab/io/job_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/text.h"
#include "io/csv_row.h"
#include "lab/io/run_columns.h"

namespace horus {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 26;
constexpr std::array<std::string_view, 2> kRequired = {"job", "family"};

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
constexpr std::array<Column, 4> kColumns = {{
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
  const absl::StatusOr<GpuTypeId> gpu = catalogue.Find(row.Find("gpu"));
  if (!gpu.ok()) {
    return MakeError(gpu.status().code(), "%s: gpu: %s", row.where(), std::string(gpu.status().message()));
  }
  if (std::any_of(all.begin(), all.end(), [&](const TableDemand& other) { return other.gpu == *gpu; })) {
    return row.Wrong("gpu", "each GPU type of a job once", row.Find("gpu"));
  }
  TableDemand& out = all.emplace_back(TableDemand{.gpu = *gpu});
  for (const Column& column : kColumns) {
    if (row.Find(column.name).empty()) continue;
    const std::string expected = absl::StrFormat("%g to %g %s, or blank", column.least, column.most, column.unit);
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column.name, expected));
    if (value < column.least || value > column.most) return row.Wrong(column.name, expected, row.Find(column.name));
    out.*column.value = value;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TableJob>> ParseJobTable(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  std::vector<std::string_view> known = {"job"};
  known.insert(known.end(), kRunColumns.begin(), kRunColumns.end());
  known.push_back("note");
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kRequired, known));
  if (table.rows.size() > kMostTableJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d jobs, found %d", file,
                     kMostTableJobs, table.rows.size());
  }
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
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  return ParseJobTable(path, text);
}

void TableDemand::Replace(Demand& demand) const {
  if (gpu_util_pct) demand.gpu_util_pct.estimate = demand.gpu_util_pct.upper = static_cast<float>(*gpu_util_pct);
  if (step_time_us) demand.step_time_us.estimate = demand.step_time_us.upper = std::llround(*step_time_us);
  if (operator_us) demand.operator_us = static_cast<float>(*operator_us);
  if (kernels) demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(*kernels));
}

absl::Status ParseTableDemands(const std::string& file, std::string_view text, const Catalogue& catalogue,
                               std::span<TableJob> jobs) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  constexpr std::array<std::string_view, 2> kKeys = {"job", "gpu"};
  std::vector<std::string_view> known(kKeys.begin(), kKeys.end());
  for (const Column& column : kColumns) known.push_back(column.name);
  known.push_back("note");
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kKeys, known));
  std::map<std::string_view, size_t> positions;
  for (size_t i = 0; i < jobs.size(); ++i) positions.emplace(jobs[i].name, i);
  const CsvColumns columns = ColumnsOf(table);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_RETURN_IF_ERROR(ReadMeasured(CsvRow(table, columns, i, file), catalogue, jobs, positions));
  }
  return absl::OkStatus();
}

absl::Status ReadTableDemands(const std::string& path, const Catalogue& catalogue, std::span<TableJob> jobs) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  return ParseTableDemands(path, text, catalogue, jobs);
}

}  // namespace horus
