// SPDX-License-Identifier: Apache-2.0
// How each predicted quantity was arrived at: roofline, fitted constants, trees, and what moved them.
//
// Enters:  explanations of one GPU type.   Leaves: a table for people, a tree for programs.
// Units:   of the quantities; shifts as factors (x 1.05).
// Cost:    linear in the features.       Thread class: pure functions.
#ifndef HORUS_CLI_EXPLAIN_REPORT_H_
#define HORUS_CLI_EXPLAIN_REPORT_H_

#include <string>

#include "cli/inspect_report.h"
#include "nlohmann/json.hpp"

namespace horus::cli {

[[nodiscard]] std::string ExplainText(const GpuReport& gpu);
[[nodiscard]] nlohmann::ordered_json ExplainJson(const GpuReport& gpu);

// "step_flops is 2.3 times beyond the training data"; empty for a job inside it.
[[nodiscard]] std::string OutsideText(const GpuReport& gpu);

}  // namespace horus::cli

#endif  // HORUS_CLI_EXPLAIN_REPORT_H_
