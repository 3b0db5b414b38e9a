// SPDX-License-Identifier: Apache-2.0
// Job table: which graph runs how behind each name that measured pairs use.
//
// Enters:  a CSV file with a column `job` and those of run_columns.h.
// Leaves:  jobs in file order; or "jobs.csv: row 12: batch: expected ..., found ...".
// Units:   docs/dataset.md has the schema.
// Cost:    linear in the file; at most kMostTableJobs jobs.   Thread class: pure functions.
#ifndef HORUS_IO_JOB_TABLE_H_
#define HORUS_IO_JOB_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/job_request.h"

namespace horus {

inline constexpr size_t kMostTableJobs = 100'000;

struct TableJob {
  std::string name;
  std::string family;
  ModelRun model;
  std::string where;  // "jobs.csv: row 12"
};

[[nodiscard]] absl::StatusOr<std::vector<TableJob>> ParseJobTable(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<std::vector<TableJob>> ReadJobTable(const std::string& path);

}  // namespace horus

#endif  // HORUS_IO_JOB_TABLE_H_
