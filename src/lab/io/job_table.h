// SPDX-License-Identifier: Apache-2.0
// Job table: which graph runs how behind each name that measured pairs use, and what was measured of its demands.
//
// Enters:  a CSV file with a column `job` and those of run_columns.h; another one with a row a job and GPU type.
// Leaves:  jobs in file order; or "jobs.csv: row 12: batch: expected ..., found ...".
// Units:   docs/dataset.md has the schema.
// Cost:    linear in the file; at most kMostTableJobs jobs.   Thread class: pure functions.
#ifndef HORUS_LAB_IO_JOB_TABLE_H_
#define HORUS_LAB_IO_JOB_TABLE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/jobs_file.h"
#include "predict/demand.h"

namespace horus {

inline constexpr size_t kMostTableJobs = 100'000;

// What was measured of a job alone on a GPU type: all that an interference model reads of a demand on a whole GPU.
struct TableDemand {
  GpuTypeId gpu;
  std::optional<double> gpu_util_pct, step_time_us, operator_us, kernels;

  // What was measured replaces what `demand` says; whose demand it is stays.
  void Replace(Demand& demand) const;
};

struct TableJob {
  std::string name;
  std::string family;
  ModelRun model;                     // its path is empty where the table names no graph
  std::vector<TableDemand> measured;  // at most one a GPU type
  std::string where;                  // "jobs.csv: row 12"
};

[[nodiscard]] absl::StatusOr<std::vector<TableJob>> ParseJobTable(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<std::vector<TableJob>> ReadJobTable(const std::string& path);

// Adds what such a file measured to its jobs, all of which are among `jobs`.
[[nodiscard]] absl::Status ParseTableDemands(const std::string& file, std::string_view text, const Catalogue& catalogue,
                                             std::span<TableJob> jobs);
[[nodiscard]] absl::Status ReadTableDemands(const std::string& path, const Catalogue& catalogue,
                                            std::span<TableJob> jobs);

}  // namespace horus

#endif  // HORUS_LAB_IO_JOB_TABLE_H_
