// SPDX-License-Identifier: Apache-2.0
// In a build without the laboratory, in place of the commands that need it: each says how to get it.

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/print.h"

namespace horus::cli {
namespace {

Command LeftOut(CLI::App& parser, const std::string& name) {
  CLI::App* const app = parser.add_subcommand(name, "Left out of this build (./scripts/quickstart --all has it)");
  app->set_help_flag();
  app->prefix_command();
  const auto tell = [name] {
    return Fail(absl::UnimplementedError(absl::StrCat(
        name,
        ": this build leaves the laboratory out; ./scripts/quickstart --all in the sources builds horus with it")));
  };
  return {.app = app, .run = tell};
}

}  // namespace

const bool kHasLaboratory = false;

Command AddPotential(CLI::App& parser) { return LeftOut(parser, "potential"); }
Command AddTraces(CLI::App& parser) { return LeftOut(parser, "traces"); }
Command AddSimulate(CLI::App& parser) { return LeftOut(parser, "simulate"); }
Command AddCompare(CLI::App& parser) { return LeftOut(parser, "compare"); }
Command AddTrain(CLI::App& parser) { return LeftOut(parser, "train"); }
Command AddCalibrate(CLI::App& parser) { return LeftOut(parser, "calibrate"); }
Command AddEvaluate(CLI::App& parser) { return LeftOut(parser, "evaluate"); }

}  // namespace horus::cli
