// SPDX-License-Identifier: Apache-2.0
// Dataset: measured runs as a CSV table, one row a run; what models are trained on and judged by.
//
// Enters:  a path, the catalogue of GPU types, and the names and limits of the measured columns.
// Leaves:  rows in file order; or "rows.csv: row 12: batch: expected ..., found ...".
// Units:   docs/measure.md has the schema.
#pragma once

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

// ---- Job table: which graph runs how behind each name that measured pairs use, and what was measured of its demands.
// Cost: linear in the file; at most kMostTableJobs jobs.

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

// A column of measured values; blank = not measured.
struct MeasuredColumn {
  std::string_view name;
  std::string_view unit;
  double most = 0;
  bool zero_allowed = false;
};

struct DatasetRow {
  ModelRun model;   // an empty path: the features are given
  std::string net;  // the graph's file name without ".onnx" unless it is given
  std::string family;
  std::string campaign;          // may be empty
  std::optional<GpuTypeId> gpu;  // empty: an undescribed GPU
  std::string gpu_name;          // canonical name, or "opaque:..."
  std::vector<double> measured;  // as the columns asked for; NaN = not measured
  std::vector<float> features;   // as the feature columns asked for; empty without a "feature." column
  std::string where;             // "rows.csv: row 12"
};

inline constexpr std::string_view kOpaqueGpu = "opaque:";
inline constexpr std::string_view kFeaturePrefix = "feature.";

// `features` are the names of all columns of the feature row: a row without a graph gives what it knows of them.
[[nodiscard]] absl::StatusOr<std::vector<DatasetRow>> ParseDataset(const std::string& file, std::string_view text,
                                                                   const Catalogue& catalogue,
                                                                   std::span<const MeasuredColumn> measured,
                                                                   std::span<const std::string_view> features);
[[nodiscard]] absl::StatusOr<std::vector<DatasetRow>> ReadDataset(const std::string& path, const Catalogue& catalogue,
                                                                  std::span<const MeasuredColumn> measured,
                                                                  std::span<const std::string_view> features);

}  // namespace horus
