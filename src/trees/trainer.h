// SPDX-License-Identifier: Apache-2.0
// Fits a forest to rows: gradient-boosted regression trees on squared error, over a margin per row.
//
// Enters:  feature rows (float32, NaN = missing), targets, optional margins and weights; parameters.
// Leaves:  a Forest, or its errors on rows that it has not seen, equal for equal input on every run.
// Units:   rows row-major; targets and margins in the same unit (the forest learns target - margin).
// Cost:    rounds x rows x features on the calling thread; loads libhorus_train.so.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trees/forest.h"
#include "trees/train/entry.h"

namespace horus {

// Views of the caller's columns, read during the call only.
struct TrainingData {
  size_t row_count = 0;
  size_t feature_count = 0;
  std::span<const float> rows;          // [row_count x feature_count]; NaN = missing, never infinite
  std::span<const float> targets;       // [row_count], finite
  std::span<const float> base_margins;  // [row_count] or empty
  std::span<const float> weights;       // [row_count], > 0; or empty = all 1
};

enum class TreeMethod {
  kAuto,   // exact up to kExactMaxRows rows, then hist
  kExact,  // tries every threshold
  kHist,   // tries 256 thresholds a feature
};
inline constexpr size_t kExactMaxRows = 10'000;  // beyond, sorting every column at every split is the slower

struct TrainingParams {
  int32_t rounds = 400;           // trees: 1..20,000
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
  std::string library_path;         // of libhorus_train.so; empty: beside this library, then where the loader looks
};

// Cautious parameters for a number of rows: shallow and strongly regularised for few. A start, not a tuning.
[[nodiscard]] TrainingParams DefaultTrainingParams(size_t rows);

// Called after every round on the calling thread, with their number; false cancels. Must not throw.
using TrainingCallback = std::function<bool(int32_t rounds_done)>;

// The fold of each row: whole groups dealt to `folds` folds, the largest first to the emptiest, ties to the lowest.
// Fewer folds are used where there are fewer groups.
[[nodiscard]] std::vector<uint32_t> AssignFolds(std::span<const uint32_t> groups, uint32_t folds);

// kInvalidArgument names row and column of bad data; kCancelled when `progress` said so; kUnavailable when
// libhorus_train.so cannot be loaded. Nothing is kept between calls.
[[nodiscard]] absl::StatusOr<Forest> Fit(const TrainingData& data, const TrainingParams& params,
                                         const TrainingCallback& progress = nullptr);

// Root mean squared error on `held_out` after each round of training on `data`: what chooses the number of trees.
[[nodiscard]] absl::StatusOr<std::vector<double>> HeldOutErrors(const TrainingData& data, const TrainingData& held_out,
                                                                const TrainingParams& params,
                                                                const TrainingCallback& progress = nullptr);

// What both check before they train.
[[nodiscard]] absl::Status CheckTraining(const TrainingData& data, const TrainingParams& params);

// ---- libhorus_train.so, opened when a fit needs it: libhorus.so itself is not linked with XGBoost. Or the trainer
// inside, over XGBoost's own library. The first load takes about 20 ms; once loaded it stays (OpenMP cannot be
// unloaded).

// What trains: called as horus_train_entry_v1.
using TrainEntry = std::function<int32_t(const horus_train_request* request, char* text)>;

// With an empty path: beside the file that holds this code, in the library folder next to it (for programs
// in bin), then where the loader looks. Builds with the trainer inside (HORUS_TRAIN_INSIDE) need a path, and it may
// name XGBoost's own library.
[[nodiscard]] absl::StatusOr<TrainEntry> LoadTrainLibrary(const std::string& path);

}  // namespace horus
