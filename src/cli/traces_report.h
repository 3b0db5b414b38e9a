// SPDX-License-Identifier: Apache-2.0
// A trace for people and for programs: docs/cli.md has the keys.
//
// Enters:  what was read.                Leaves: text of at most 100 columns; one JSON document.
// Units:   GPU hours; microseconds in JSON.
// Cost:    one summary.                  Thread class: pure functions.
#ifndef HORUS_CLI_TRACES_REPORT_H_
#define HORUS_CLI_TRACES_REPORT_H_

#include <string>

#include "lab/io/traces/trace_file.h"

namespace horus::cli {

[[nodiscard]] std::string TraceText(const TraceRead& read);
[[nodiscard]] std::string TraceJson(const TraceRead& read);

}  // namespace horus::cli

#endif  // HORUS_CLI_TRACES_REPORT_H_
