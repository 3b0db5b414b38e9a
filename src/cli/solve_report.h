// SPDX-License-Identifier: Apache-2.0
// What `horus inspect --solve` found out, before it is printed as text or JSON.
//
// Enters:  a graph, a run that leaves one dimension open, GPU types and the memory that residents hold.
// Leaves:  per type the largest value that fits, alone and beside the residents.
// Units:   MiB; values in elements of the dimension.
// Cost:    as SolveDimension.            Thread class: value, share freely.
#ifndef HORUS_CLI_SOLVE_REPORT_H_
#define HORUS_CLI_SOLVE_REPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu_type.h"
#include "predict/solve.h"

namespace horus::cli {

struct SolveRow {
  GpuType type;
  Solution alone;
  Solution beside;  // = alone without residents
};

struct SolveReport {
  std::string path;
  std::shared_ptr<const Graph> graph;
  RunSpec run;
  SolveRequest request;
  int64_t resident_mib = 0;  // sum of the residents' upper bounds
  std::vector<SolveRow> rows;
  int64_t bindings = 0;
  bool calibrated = false;
  bool outside = false;  // the job lies outside what the prediction was made for
};

[[nodiscard]] absl::StatusOr<SolveReport> MakeSolveReport(std::string path, std::shared_ptr<const Graph> graph,
                                                          const RunSpec& run, const SolveRequest& request,
                                                          int64_t resident_mib, const Predictor& predictor,
                                                          const std::vector<GpuType>& types);

[[nodiscard]] std::string SolveText(const SolveReport& report);
[[nodiscard]] std::string SolveJson(const SolveReport& report);

}  // namespace horus::cli

#endif  // HORUS_CLI_SOLVE_REPORT_H_
