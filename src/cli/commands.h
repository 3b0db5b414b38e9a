// SPDX-License-Identifier: Apache-2.0
// The subcommands: each adds itself to the command line and returns what runs it.
//
// Enters:  the parser.                   Leaves: a function that runs the subcommand once parsing is done.
// Units:   none.
// Cost:    none.                         Thread class: main thread.
#ifndef HORUS_CLI_COMMANDS_H_
#define HORUS_CLI_COMMANDS_H_

#include <functional>

namespace CLI {
class App;
}

namespace horus::cli {

struct Command {
  CLI::App* app = nullptr;   // owned by the parser
  std::function<int()> run;  // answers the exit code
};

[[nodiscard]] Command AddInspect(CLI::App& parser);
[[nodiscard]] Command AddPlace(CLI::App& parser);
[[nodiscard]] Command AddGpus(CLI::App& parser);

}  // namespace horus::cli

#endif  // HORUS_CLI_COMMANDS_H_
