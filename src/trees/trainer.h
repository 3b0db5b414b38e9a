// SPDX-License-Identifier: Apache-2.0
// Fits a forest to rows: gradient-boosted regression trees on squared error, over a margin per row.
//
// Enters:  feature rows (float32, NaN = missing), targets, optional margins, weights and groups; parameters.
// Leaves:  a Forest and a report of the validation, equal for equal input on every run.
// Units:   rows row-major; targets and margins in the same unit (the forest learns target - margin).
// Cost:    rounds x rows x features on the calling thread; loads libhorus_train.so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "trees/forest.h"

namespace horus {

// Views of the caller's columns, read during the call only.
struct TrainingData {
  size_t row_count = 0;
  size_t feature_count = 0;
  std::span<const float> rows;                 // [row_count x feature_count]; NaN = missing, never infinite
  std::span<const float> targets;              // [row_count], finite
  std::span<const float> base_margins;         // [row_count] or empty
  std::span<const float> weights;              // [row_count], > 0; or empty = all 1
  std::span<const uint32_t> groups;            // [row_count] or empty; rows of a group are never split up
  std::span<const std::string> feature_names;  // [feature_count] or empty; for messages
};

enum class TreeMethod {
  kAuto,   // exact up to kExactMaxRows rows, then hist
  kExact,  // tries every threshold
  kHist,   // tries 256 thresholds a feature
};
inline constexpr size_t kExactMaxRows = 10'000;  // beyond, sorting every column at every split is the slower

struct TrainingParams {
  int32_t rounds = 400;           // trees at most: 1..20,000
  int32_t max_depth = 6;          // 1..16
  float learning_rate = 0.05f;    // (0, 1]
  float lambda = 1.0f;            // L2 on leaf values, >= 0
  float min_child_weight = 1.0f;  // least weight of rows in a leaf, >= 0
  float subsample = 1.0f;         // share of rows a tree sees, (0, 1]
  float feature_share = 1.0f;     // share of features a tree sees, (0, 1]
  uint32_t seed = 0;
  TreeMethod method = TreeMethod::kAuto;
  std::vector<int32_t> monotone;    // [feature_count] of -1, 0, 1: the prediction falls, is free, rises; or empty
  std::optional<float> base_score;  // default: mean target; 0 with base margins
  // Choosing the number of trees by rows that the trees have not seen; at most one of the two.
  int32_t folds = 0;                       // >= 2: over that many folds of whole groups, then a fit on all rows
  std::optional<uint32_t> held_out_group;  // this group validates, the others train
  int32_t patience = 0;                    // with held_out_group: stop after so many rounds without gain; 0 = never
  std::string library_path;  // of libhorus_train.so; empty: beside this library, then where the loader looks
};

// Cautious parameters for a number of rows: shallow and strongly regularised for few. A start, not a tuning.
[[nodiscard]] TrainingParams DefaultTrainingParams(size_t rows);

struct TrainingProgress {
  int32_t fold = 0;       // from 0; == folds during the last fit, on all rows
  int32_t folds = 0;      // 0 without cross-validation
  int32_t round = 0;      // done in this fold
  int32_t rounds = 0;     // of this fold
  double valid_rmse = 0;  // of the held-out rows; NaN without any
};
// Called after every round on the calling thread; false cancels. Must not throw.
using TrainingCallback = std::function<bool(const TrainingProgress&)>;

struct TrainingReport {
  int32_t rounds = 0;              // trees of the forest
  std::vector<double> valid_rmse;  // held-out error after each round tried; empty without validation
};

// The fold of each row: whole groups dealt to `folds` folds, the largest first to the emptiest, ties to
// the lowest. Without groups each row is its own. Fewer folds are used where there are fewer groups.
[[nodiscard]] std::vector<uint32_t> AssignFolds(size_t row_count, std::span<const uint32_t> groups, uint32_t folds);

// kInvalidArgument names row and column of bad data; kCancelled when `progress` said so; kUnavailable when
// libhorus_train.so cannot be loaded. Nothing is kept between calls.
[[nodiscard]] absl::StatusOr<Forest> Fit(const TrainingData& data, const TrainingParams& params,
                                         const TrainingCallback& progress = nullptr, TrainingReport* report = nullptr);

// What Fit checks before it trains.
[[nodiscard]] absl::Status CheckTraining(const TrainingData& data, const TrainingParams& params);

}  // namespace horus
