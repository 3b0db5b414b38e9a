// SPDX-License-Identifier: Apache-2.0
// What `horus evaluate` answers when it is given pairs.
//
// Enters:  its options.   Leaves: text, JSON, or a file and how much is in it.
#pragma once

#include "cli/inputs.h"
#include "lab/evaluate/evaluate_pairs.h"

namespace horus::cli {

struct PairEvaluation {
  PairInputs inputs;
  PairTrainOptions train;
  std::string leave = "family";     // "pair", "job", "family", "gpu"
  std::vector<std::string> models;  // empty = all
  bool json = false, rows = false;
  bool as_is = false;       // the built-in models, or those of `bundle`, without training
  std::string bundle;       // of interference models
  OnlinePlan plan;          // of --observe
  std::string predictions;  // file
};

// Models judged by what training has not seen of the pairs, or as they are.
[[nodiscard]] absl::StatusOr<std::string> EvaluatePairsToText(const PairEvaluation& options);
// As `plan` has it.
[[nodiscard]] absl::StatusOr<std::string> EvaluateOnlineToText(const PairEvaluation& options);
// Writes what the one model says of every two jobs.
[[nodiscard]] absl::StatusOr<std::string> PredictPairsToText(const PairEvaluation& options);

}  // namespace horus::cli
