// SPDX-License-Identifier: Apache-2.0
// The subcommands: each adds itself to the command line and returns what runs it.
//
// Enters:  the parser.   Leaves: a function that runs the subcommand once parsing is done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "predict/train.h"

namespace CLI {
class App;
}

namespace horus::cli {

struct Command {
  CLI::App* app = nullptr;   // owned by the parser
  std::function<int()> run;  // answers the exit code
};

// False in a build without the laboratory, whose commands then say how to get it (no_lab.cc).
extern const bool kHasLaboratory;

[[nodiscard]] Command AddInspect(CLI::App& parser);
[[nodiscard]] Command AddPlace(CLI::App& parser);
[[nodiscard]] Command AddShadow(CLI::App& parser);
[[nodiscard]] Command AddPotential(CLI::App& parser);
[[nodiscard]] Command AddImport(CLI::App& parser);
[[nodiscard]] Command AddGpus(CLI::App& parser);
[[nodiscard]] Command AddModels(CLI::App& parser);
[[nodiscard]] Command AddTraces(CLI::App& parser);
[[nodiscard]] Command AddSimulate(CLI::App& parser);
[[nodiscard]] Command AddCompare(CLI::App& parser);
[[nodiscard]] Command AddTrain(CLI::App& parser);
[[nodiscard]] Command AddCalibrate(CLI::App& parser);
[[nodiscard]] Command AddEvaluate(CLI::App& parser);
[[nodiscard]] Command AddReport(CLI::App& parser);

// Commands that are Python programs: listed in the help, and never parsed. HandOver becomes that program, if the
// command line names one; it answers an exit code only where that cannot be done, and none for other commands.
void AddHandOvers(CLI::App& parser);
[[nodiscard]] std::optional<int> HandOver(int argc, const char* const* argv);

// The options that train and evaluate share.
void AddTrainOptions(CLI::App& app, std::vector<std::string>& data, std::vector<std::string>& gpus_files,
                     std::vector<std::string>& without, TrainOptions& train);

}  // namespace horus::cli
