// SPDX-License-Identifier: Apache-2.0
// Reads bundle and pairs, and puts a table of what was measured before the model.
#include "cli/interference_choice.h"

#include <cstdio>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "interference/table_model.h"

namespace horus::cli {
namespace {

absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadModel(const InterferenceChoice& choice,
                                                                   const Catalogue& catalogue) {
  if (choice.bundle.empty()) return MakeInterferenceModel(choice.name);
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(choice.bundle, kMaxBundleBytes));
  auto model =
      InterferenceModelFromBundle({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, choice.name, catalogue);
  if (model.ok()) return model;
  return MakeError(model.status().code(), "%s: %s", choice.bundle, std::string(model.status().message()));
}

}  // namespace

void AddInterferenceOptions(CLI::App& app, InterferenceChoice& choice) {
  app.add_option("--interference", choice.name, Listed(InterferenceModelNames()))
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--interference-bundle", choice.bundle,
                 "Trained by horus train --pairs: its models in place of the built-in ones")
      ->type_name("FILE");
  auto* pairs =
      app.add_option("--pairs", choice.pairs,
                     "Measured pairs (CSV, or Gavel's JSON): they answer where they measured; may be repeated")
          ->allow_extra_args(false)
          ->type_name("FILE");
  app.add_option("--pair-jobs", choice.pair_jobs, "Graphs and runs of the jobs that --pairs names (CSV)")
      ->needs(pairs)
      ->type_name("FILE");
}

absl::Status CheckChoice(const InterferenceChoice& choice) {
  if (!choice.pairs.empty() && choice.pair_jobs.empty()) {
    return InvalidArgument("--pairs: expected --pair-jobs with the graphs of the jobs that it names, found none");
  }
  return choice.bundle.empty() ? MakeInterferenceModel(choice.name).status() : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadInterference(const InterferenceChoice& choice,
                                                                          std::shared_ptr<const Catalogue> catalogue,
                                                                          std::shared_ptr<const Predictor> predictor) {
  HORUS_ASSIGN_OR_RETURN(auto model, LoadModel(choice, *catalogue));
  if (choice.pairs.empty()) return model;
  HORUS_ASSIGN_OR_RETURN(
      const LoadedPairs pairs,
      LoadPairSet({.pairs = choice.pairs, .gpus_files = {}, .jobs = choice.pair_jobs, .demands = {}, .bundle = {}},
                  catalogue, std::move(predictor)));
  std::fputs(SkippedText(pairs.skipped).c_str(), stderr);
  HORUS_ASSIGN_OR_RETURN(const std::vector<TableEntry> entries, TableEntriesOf(pairs.set, *catalogue));
  if (entries.empty()) return InvalidArgument("--pairs: expected measured pairs, found none");
  return TableModel::Create(entries, std::move(model));
}

}  // namespace horus::cli
