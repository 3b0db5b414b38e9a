// SPDX-License-Identifier: Apache-2.0
// Measured pairs turned into what training and evaluation of interference models read; what both commands share.
//
// Enters:  paths of pair files, a job table, measured demands and a bundle, GPU types.   Leaves: a PairSet, or an error
// that names file and row. Units:   as in the rooms. Cost:    each graph is read once, each job analysed once.   Thread
// class: one thread at a time.
#ifndef HORUS_CLI_PAIR_TRAINING_H_
#define HORUS_CLI_PAIR_TRAINING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/pair_set.h"
#include "interference/train_pairs.h"
#include "lab/io/pairs_file.h"
#include "predict/predictor.h"

namespace CLI {
class App;
}

namespace horus::cli {

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

}  // namespace horus::cli

#endif  // HORUS_CLI_PAIR_TRAINING_H_
