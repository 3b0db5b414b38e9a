// SPDX-License-Identifier: Apache-2.0
// What `horus train` and `horus evaluate` do when they are given pairs.
//
// Enters:  their options.   Leaves: the exit code; results on stdout, errors on stderr.
#pragma once

#include <string>
#include <vector>

#include "cli/training.h"
#include "lab/evaluate/evaluate_online.h"
#include "lab/models/train_pairs.h"

namespace horus::cli {

struct TrainPairsOptions {
  PairInputs inputs;
  PairTrainOptions train;
  std::string out;
  bool json = false;
};
[[nodiscard]] int RunTrainPairs(const TrainPairsOptions& options);

struct EvaluatePairsOptions {
  PairInputs inputs;
  PairTrainOptions train;
  std::string leave;                // "pair", "job", "family", "gpu"
  std::vector<std::string> models;  // empty = all
  bool json = false, rows = false;
  bool as_is = false;  // the built-in models, or those of `bundle`, without training
  std::string bundle;  // of interference models
};
[[nodiscard]] int RunEvaluatePairs(const EvaluatePairsOptions& options);

struct EvaluateOnlineOptions {
  PairInputs inputs;
  PairTrainOptions train;
  OnlinePlan plan;
  std::vector<std::string> models;  // empty = all that are trained
  bool json = false;
};
[[nodiscard]] int RunEvaluateOnline(const EvaluateOnlineOptions& options);

struct PredictPairsOptions {
  PairInputs inputs;
  PairTrainOptions train;
  std::string model;
  std::string out;  // file
};
[[nodiscard]] int RunPredictPairs(const PredictPairsOptions& options);

}  // namespace horus::cli
