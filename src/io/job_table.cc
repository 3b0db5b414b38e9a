// SPDX-License-Identifier: Apache-2.0
// Reads a job table; no name twice.
#include "io/job_table.h"

#include <array>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "io/csv_row.h"
#include "io/run_columns.h"

namespace horus {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 26;
constexpr std::array<std::string_view, 3> kRequired = {"job", "graph", "family"};

absl::StatusOr<TableJob> ReadJob(const CsvRow& row, const std::string& file) {
  TableJob job;
  job.where = row.where();
  HORUS_ASSIGN_OR_RETURN(job.name, row.Label("job"));
  if (job.name.empty()) return row.Wrong("job", "the name that pairs use", "");
  HORUS_ASSIGN_OR_RETURN(job.family, ReadFamily(row));
  HORUS_ASSIGN_OR_RETURN(job.model, ReadModelRun(row, file));
  if (job.model.path.empty()) return row.Wrong("graph", "the path of an ONNX file", "");
  return job;
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

}  // namespace horus
