// SPDX-License-Identifier: Apache-2.0
// That a command writes over none of the files it was given.
//
// Enters:  a parsed subcommand.          Leaves: OK, or "--out: expected ..., found ...".
// Units:   none.
// Cost:    a look at the file system for each two files named.   Thread class: main thread.
#ifndef HORUS_CLI_OUTPUTS_H_
#define HORUS_CLI_OUTPUTS_H_

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace horus::cli {

// INVALID_ARGUMENT when a file to write is one that another option reads or writes; devices and pipes may be.
[[nodiscard]] absl::Status CheckOutputs(const CLI::App& command);

}  // namespace horus::cli

#endif  // HORUS_CLI_OUTPUTS_H_
