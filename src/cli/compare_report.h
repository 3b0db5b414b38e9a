// SPDX-License-Identifier: Apache-2.0
// Results of a comparison: CSV and JSON that depend on the grid alone, and tables for people.
//
// Enters:  a grid, and the metrics of each of its runs.
// Leaves:  text.
// Units:   as GridMetrics().
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_CLI_COMPARE_REPORT_H_
#define HORUS_CLI_COMPARE_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/compare_runs.h"

namespace horus::cli {

struct Comparison {
  const Grid* grid = nullptr;
  std::vector<PlannedRun> runs;
  std::vector<MetricValues> values;  // by run
  size_t baseline = 0;               // policy
};

[[nodiscard]] std::string ResultsCsv(const Comparison& comparison);
// Runs, and for each workload and policy the means over seeds and their paired differences to the baseline.
[[nodiscard]] std::string ResultsJson(const Comparison& comparison);
// One table a workload with those metrics, by position.
[[nodiscard]] std::string SummaryText(const Comparison& comparison, const std::vector<size_t>& metrics);
// How long each run took; not equal from machine to machine.
[[nodiscard]] std::string TimingsCsv(const Comparison& comparison, const std::string& out);

}  // namespace horus::cli

#endif  // HORUS_CLI_COMPARE_REPORT_H_
