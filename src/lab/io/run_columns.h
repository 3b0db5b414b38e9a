// SPDX-License-Identifier: Apache-2.0
// The columns that say what a job runs and how: one definition for datasets and job tables.
//
// Enters:  a row of a table.
// Leaves:  the graph's path and the run; or an error that names row and column.
// Units:   docs/dataset.md has the schema.
// Cost:    a dozen cells.                Thread class: pure functions.
#ifndef HORUS_LAB_IO_RUN_COLUMNS_H_
#define HORUS_LAB_IO_RUN_COLUMNS_H_

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"
#include "io/csv_row.h"
#include "io/jobs_file.h"

namespace horus {

inline constexpr std::array<std::string_view, 10> kRunColumns = {
    "graph",   "family", "batch", "dims", "mode", "precision", "optimizer", "framework", "checkpoint_segments",
    "replicas"};

// All but the family. A blank graph gives an empty path; blank cells are RunSpec's defaults.
[[nodiscard]] absl::StatusOr<ModelRun> ReadModelRun(const CsvRow& row, const std::string& file);

// Refuses an empty cell.
[[nodiscard]] absl::StatusOr<std::string> ReadFamily(const CsvRow& row);

}  // namespace horus

#endif  // HORUS_LAB_IO_RUN_COLUMNS_H_
