// SPDX-License-Identifier: Apache-2.0
// The interference model that a command's options choose.
//
// Enters:  a name, a trained bundle, measured pairs.   Leaves: the model, or an error that names option or file.
// Units:   none.
// Cost:    that of reading; with pairs, an analysis of each job that they name.   Thread class: main thread.
#ifndef HORUS_CLI_INTERFERENCE_CHOICE_H_
#define HORUS_CLI_INTERFERENCE_CHOICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/pair_training.h"
#include "interference/model.h"
#include "interference/registry.h"

namespace CLI {
class App;
}

namespace horus::cli {

struct InterferenceChoice {
  std::string name{kDefaultInterferenceModel};
  std::string bundle;              // of `horus train --pairs`; empty = the built-in models
  std::vector<std::string> pairs;  // files; where they measured, their table answers in place of the model
  std::string pair_jobs;
};
void AddInterferenceOptions(CLI::App& app, InterferenceChoice& choice);

[[nodiscard]] absl::Status CheckChoice(const InterferenceChoice& choice);

[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadInterference(
    const InterferenceChoice& choice, std::shared_ptr<const Catalogue> catalogue,
    std::shared_ptr<const Predictor> predictor);

}  // namespace horus::cli

#endif  // HORUS_CLI_INTERFERENCE_CHOICE_H_
