// SPDX-License-Identifier: Apache-2.0
// What commands make of measured runs and pairs: what training and evaluation read, and the interference model that
// options choose.
//
// Enters:  paths of dataset files, GPU types.   Leaves: a TrainingSet, or an error that names file and row.
// Cost:    a graph and run that several rows share is analysed once.   Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/inputs.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/pair_set.h"
#include "interference/registry.h"
#include "lab/io/pairs_file.h"
#include "lab/models/train_pairs.h"
#include "predict/training_set.h"

namespace horus::cli {

// The rows of all files in order, but for those of nets or families named in `without` (one that no row has is
// refused).
[[nodiscard]] absl::StatusOr<TrainingSet> LoadTrainingSet(std::span<const std::string> files,
                                                          std::span<const std::string> without,
                                                          const Catalogue& catalogue);

// ---- Measured pairs turned into what training and evaluation of interference models read; what both commands share.

// Options of the commands that work on pairs instead of --data.
struct PairInputs {
  std::vector<std::string> pairs, gpus_files;
  std::string jobs, demands, bundle;
};
void AddPairOptions(CLI::App& app, PairInputs& inputs);

// Exactly one of --data and --pairs; with --pairs none of `only_data`, with --data none of `only_pairs`.
[[nodiscard]] absl::Status CheckDataOrPairs(const CLI::App& app, std::span<const char* const> only_data,
                                            std::span<const char* const> only_pairs);

// --promise and --seed where they were given, else the defaults of pairs.
[[nodiscard]] PairTrainOptions PairOptionsOf(const CLI::App& app, double promise, uint32_t seed);

struct LoadedPairs {
  std::shared_ptr<const Catalogue> catalogue;
  PairSet set;
  PairsSkipped skipped;
};

// The jobs that a pair names, in the order of the job table; the pairs in file order; demands as they were
// measured, else as `predictor` predicts them, on each GPU type of the pairs.
[[nodiscard]] absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs,
                                                      std::shared_ptr<const Catalogue> catalogue,
                                                      std::shared_ptr<const Predictor> predictor);

// Both of the above, and catalogue and predictor as the options name them.
[[nodiscard]] absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs);

// One line a kind of entry that was no pair; empty if there was none.
[[nodiscard]] std::string SkippedText(const PairsSkipped& skipped);

// ---- The interference model that a command's options choose.
// Cost: that of reading; with pairs, an analysis of each job that they name.

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
