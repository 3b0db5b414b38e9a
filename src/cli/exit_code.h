// SPDX-License-Identifier: Apache-2.0
// Exit codes of the horus command; docs/cli.md lists them.
//
// Enters:  a status.                     Leaves: the process's exit code, after one line on stderr.
// Units:   none.
// Cost:    none.                         Thread class: main thread.
#ifndef HORUS_CLI_EXIT_CODE_H_
#define HORUS_CLI_EXIT_CODE_H_

#include <string_view>

#include "absl/status/status.h"

namespace horus::cli {

inline constexpr int kExitDecided = 0;   // refusals included
inline constexpr int kExitInternal = 1;  // a bug of ours, or no memory
inline constexpr int kExitBadInput = 2;  // options, files, values
inline constexpr int kExitRefused = 3;   // with --strict: at least one job found no place

// Prints "horus: <what>" on one line: paths and names in it may have any bytes, and a terminal would obey some.
void PrintProblem(std::string_view what);

// Prints what the parser of options says, in as many lines.
[[nodiscard]] int FailToParse(std::string_view problem);

// Prints "horus: <message>" and chooses between internal error and bad input.
[[nodiscard]] int Fail(const absl::Status& status);

}  // namespace horus::cli

#endif  // HORUS_CLI_EXIT_CODE_H_
