// SPDX-License-Identifier: Apache-2.0
// Fits forests through libhorus_train.so: rows in, cross-validation of the number of trees, forest out.
#include "trees/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <utility>

#include "base/text.h"
#include "trees/train_library.h"

namespace horus {
namespace {

// Some of the caller's rows, copied so that they lie together.
struct RowSet {
  std::vector<float> features, targets, weights, margins;

  RowSet(const TrainingData& data, const std::function<bool(size_t)>& wanted) {
    for (size_t row = 0; row < data.row_count; ++row) {
      if (!wanted(row)) continue;
      const size_t at = row * data.feature_count;  // Bounded: the matrix is in memory
      const auto first = data.rows.begin() + static_cast<std::ptrdiff_t>(at);
      features.insert(features.end(), first, first + static_cast<std::ptrdiff_t>(data.feature_count));
      targets.push_back(data.targets[row]);
      if (!data.weights.empty()) weights.push_back(data.weights[row]);
      if (!data.base_margins.empty()) margins.push_back(data.base_margins[row]);
    }
  }
  [[nodiscard]] double weight() const {
    if (weights.empty()) return static_cast<double>(targets.size());
    double sum = 0;
    for (const float w : weights) sum += w;
    return sum;
  }
};

const float* DataOrNull(std::span<const float> values) { return values.empty() ? nullptr : values.data(); }

horus_train_rows View(const RowSet& set) {
  return {.features = set.features.data(),
          .targets = set.targets.data(),
          .weights = DataOrNull(set.weights),
          .margins = DataOrNull(set.margins),
          .count = set.targets.size()};
}

horus_train_rows View(const TrainingData& data) {
  return {.features = data.rows.data(),
          .targets = data.targets.data(),
          .weights = DataOrNull(data.weights),
          .margins = DataOrNull(data.base_margins),
          .count = data.row_count};
}

// One run of the library: what it reports lands here.
struct Run {
  const TrainingCallback* progress = nullptr;
  TrainingProgress at;
  double valid_weight = 0;          // 0 = no held-out rows
  int32_t patience = 0;             // 0 = never stop early
  std::vector<double> valid_error;  // sum of weighted squares, by round
  size_t best = 0;                  // round of the least error
  bool stopped_early = false;
  ForestData forest;
};

int32_t OnRound(void* user, int32_t rounds_done, double valid_error) {
  Run& run = *static_cast<Run*>(user);
  run.at.round = rounds_done;
  run.at.valid_rmse = std::numeric_limits<double>::quiet_NaN();
  if (run.valid_weight > 0) {
    run.valid_error.push_back(valid_error);
    if (valid_error < run.valid_error[run.best]) run.best = run.valid_error.size() - 1;
    run.at.valid_rmse = std::sqrt(valid_error / run.valid_weight);
  }
  if (run.progress != nullptr && *run.progress && !(*run.progress)(run.at)) return 1;
  run.stopped_early = run.patience > 0 && run.valid_error.size() - 1 - run.best >= static_cast<size_t>(run.patience);
  return run.stopped_early ? 1 : 0;
}

int32_t OnForest(void* user, const horus_train_forest* forest) {
  Run& run = *static_cast<Run*>(user);
  run.forest.base_score = forest->base_score;
  run.forest.tree_sizes.assign(forest->tree_sizes, forest->tree_sizes + forest->tree_count);
  run.forest.nodes.reserve(forest->node_count);
  for (uint64_t i = 0; i < forest->node_count; ++i) {
    const horus_train_node& node = forest->nodes[i];
    run.forest.nodes.push_back({.split = node.split, .right = node.right, .value = node.value, .cover = node.cover});
  }
  return 0;
}

class Fitter {
 public:
  Fitter(const TrainingData& data, const TrainingParams& params, const TrainingCallback& progress, TrainEntry entry)
      : data_(data), params_(params), progress_(progress), entry_(std::move(entry)) {}

  // Grows `rounds` trees on `train`; errors of `valid` (may be null) are collected in `run`.
  absl::Status Grow(const horus_train_rows& train, const RowSet* valid, int32_t rounds, Run& run) const {
    run.progress = &progress_;
    run.at.rounds = rounds;
    run.valid_weight = valid == nullptr ? 0 : valid->weight();
    horus_train_request request = {};
    request.struct_size = sizeof(request);
    request.num_features = static_cast<uint32_t>(data_.feature_count);
    request.train = train;
    if (valid != nullptr) request.valid = View(*valid);
    request.monotone = params_.monotone.empty() ? nullptr : params_.monotone.data();
    request.rounds = rounds;
    request.max_depth = params_.max_depth;
    request.method = UsesHist() ? HORUS_TRAIN_METHOD_HIST : HORUS_TRAIN_METHOD_EXACT;
    request.max_bin = kMaxBin;
    request.learning_rate = params_.learning_rate;
    request.lambda = params_.lambda;
    request.min_child_weight = params_.min_child_weight;
    request.subsample = params_.subsample;
    request.colsample_bytree = params_.feature_share;
    request.base_score = BaseScore();
    request.seed = params_.seed;
    request.user = &run;
    request.progress = OnRound;
    request.sink = OnForest;
    char text[HORUS_TRAIN_TEXT_BYTES] = "";
    const int32_t code = entry_(&request, text);
    if (code == HORUS_TRAIN_OK || run.stopped_early) return absl::OkStatus();
    if (code == HORUS_TRAIN_CANCELLED) {
      return Cancelled("training: cancelled after round %d of %d", run.at.round, rounds);
    }
    if (code == HORUS_TRAIN_NO_MEMORY) throw std::bad_alloc();  // as an allocation on this side would
    const absl::StatusCode why =
        code == HORUS_TRAIN_REFUSED ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
    return MakeError(why, "training: %s", text);
  }

  // The number of rounds at which the summed held-out error over all folds is least.
  absl::StatusOr<int32_t> RoundsByFolds(TrainingReport& report) const {
    const std::vector<uint32_t> fold_of =
        AssignFolds(data_.row_count, data_.groups, static_cast<uint32_t>(params_.folds));
    const uint32_t folds = 1 + *std::ranges::max_element(fold_of);
    std::vector<double> error(static_cast<size_t>(params_.rounds), 0.0);
    double weight = 0;
    for (uint32_t fold = 0; fold < folds; ++fold) {
      const RowSet train(data_, [&](size_t row) { return fold_of[row] != fold; });
      const RowSet valid(data_, [&](size_t row) { return fold_of[row] == fold; });
      Run run;
      run.at.fold = static_cast<int32_t>(fold);
      run.at.folds = static_cast<int32_t>(folds);
      HORUS_RETURN_IF_ERROR(Grow(View(train), &valid, params_.rounds, run));
      for (size_t round = 0; round < error.size(); ++round) error[round] += run.valid_error[round];
      weight += run.valid_weight;
    }
    report.valid_rmse.clear();
    for (const double sum : error) report.valid_rmse.push_back(std::sqrt(sum / weight));
    return 1 + static_cast<int32_t>(std::ranges::min_element(error) - error.begin());
  }

  // The held-out group chooses the rounds; the trees up to there are then grown again, on the same rows.
  absl::StatusOr<ForestData> FitHeldOut(TrainingReport& report) const {
    const uint32_t group = *params_.held_out_group;
    const RowSet train(data_, [&](size_t row) { return data_.groups[row] != group; });
    const RowSet valid(data_, [&](size_t row) { return data_.groups[row] == group; });
    Run run;
    run.patience = params_.patience;
    HORUS_RETURN_IF_ERROR(Grow(View(train), &valid, params_.rounds, run));
    for (const double sum : run.valid_error) report.valid_rmse.push_back(std::sqrt(sum / run.valid_weight));
    Run last;
    HORUS_RETURN_IF_ERROR(Grow(View(train), nullptr, static_cast<int32_t>(run.best) + 1, last));
    return std::move(last.forest);
  }

  absl::StatusOr<ForestData> FitAll(TrainingReport& report) const {
    if (params_.held_out_group.has_value()) return FitHeldOut(report);
    int32_t rounds = params_.rounds;
    Run run;
    if (params_.folds != 0) {
      HORUS_ASSIGN_OR_RETURN(rounds, RoundsByFolds(report));
      run.at.fold = run.at.folds = params_.folds;
    }
    HORUS_RETURN_IF_ERROR(Grow(View(data_), nullptr, rounds, run));
    return std::move(run.forest);
  }

 private:
  static constexpr int32_t kMaxBin = 256;  // XGBoost's default; thresholds tried a feature

  [[nodiscard]] bool UsesHist() const {
    return params_.method == TreeMethod::kHist ||
           (params_.method == TreeMethod::kAuto && data_.row_count > kExactMaxRows);
  }
  [[nodiscard]] float BaseScore() const {
    if (params_.base_score.has_value()) return *params_.base_score;
    if (!data_.base_margins.empty()) return 0;
    double sum = 0;
    double weight = 0;
    for (size_t row = 0; row < data_.row_count; ++row) {
      const double w = data_.weights.empty() ? 1.0 : double{data_.weights[row]};
      sum += w * data_.targets[row];
      weight += w;
    }
    return static_cast<float>(sum / weight);
  }

  const TrainingData& data_;
  const TrainingParams& params_;
  const TrainingCallback& progress_;
  TrainEntry entry_;
};

}  // namespace

TrainingParams DefaultTrainingParams(size_t rows) {
  TrainingParams params;
  if (rows < 500) {
    params.rounds = 200;
    params.max_depth = 3;
    params.lambda = 3;
    params.min_child_weight = 2;
  } else if (rows < 5000) {
    params.max_depth = 4;
    params.min_child_weight = 3;
  } else {
    params.min_child_weight = 5;
  }
  return params;
}

std::vector<uint32_t> AssignFolds(size_t row_count, std::span<const uint32_t> groups, uint32_t folds) {
  std::vector<uint32_t> fold_of(row_count, 0);
  if (folds == 0) return fold_of;
  if (groups.empty()) {
    for (size_t row = 0; row < row_count; ++row) fold_of[row] = static_cast<uint32_t>(row % folds);
    return fold_of;
  }
  std::map<uint32_t, size_t> size_of;  // rows of each group, in the order of ids
  for (const uint32_t group : groups) ++size_of[group];
  std::vector<std::pair<uint32_t, size_t>> order(size_of.begin(), size_of.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<size_t> filled(folds, 0);
  std::map<uint32_t, uint32_t> fold_of_group;
  for (const auto& [group, size] : order) {
    const auto emptiest = std::ranges::min_element(filled) - filled.begin();
    filled[static_cast<size_t>(emptiest)] += size;
    fold_of_group[group] = static_cast<uint32_t>(emptiest);
  }
  for (size_t row = 0; row < row_count; ++row) fold_of[row] = fold_of_group[groups[row]];
  return fold_of;
}

absl::StatusOr<Forest> Fit(const TrainingData& data, const TrainingParams& params, const TrainingCallback& progress,
                           TrainingReport* report) {
  HORUS_RETURN_IF_ERROR(CheckTraining(data, params));
  HORUS_ASSIGN_OR_RETURN(TrainEntry entry, LoadTrainLibrary(params.library_path));
  TrainingReport own;
  HORUS_ASSIGN_OR_RETURN(ForestData forest, Fitter(data, params, progress, std::move(entry)).FitAll(own));
  forest.num_features = static_cast<uint32_t>(data.feature_count);
  own.rounds = static_cast<int32_t>(forest.tree_sizes.size());
  absl::StatusOr<Forest> made = Forest::Create(std::move(forest));
  if (!made.ok()) {  // extreme weights or targets overflow float32 inside XGBoost; huge fits exceed the limits
    return InvalidArgument("training: the forest grown from these rows cannot be used: %s",
                           std::string(made.status().message()));
  }
  if (report != nullptr) *report = std::move(own);
  return made;
}

// Checks training rows and parameters, naming row and column.
namespace {

constexpr size_t kMaxRows = 50'000'000;
constexpr size_t kMaxFeatures = 4096;  // as ForestLimits
// Below these, the middle of two features and the squared sums of targets stay finite in float32.
constexpr float kMaxFeatureMagnitude = 1e37f;
constexpr float kMaxTargetMagnitude = 1e12f;

absl::Status CheckSize(std::string_view column, size_t found, size_t expected, bool optional) {
  if (found == expected || (optional && found == 0)) return absl::OkStatus();
  return InvalidArgument("training: %s: expected %d values, found %d", column, expected, found);
}

absl::Status CheckFinite(std::string_view column, std::span<const float> values) {
  for (size_t row = 0; row < values.size(); ++row) {
    if (std::abs(values[row]) <= kMaxTargetMagnitude) continue;
    return InvalidArgument("training: row %d: %s: expected a number of magnitude up to %g, found %g", row, column,
                           kMaxTargetMagnitude, values[row]);
  }
  return absl::OkStatus();
}

absl::Status CheckFeatures(const TrainingData& data) {
  for (size_t i = 0; i < data.rows.size(); ++i) {
    if (std::isnan(data.rows[i]) || std::abs(data.rows[i]) <= kMaxFeatureMagnitude) continue;
    const size_t column = i % data.feature_count;
    return InvalidArgument("training: row %d, feature %d%s: expected a number of magnitude up to %g or NaN, found %g",
                           i / data.feature_count, column,
                           data.feature_names.empty() ? "" : Formatted(" %s", Quoted(data.feature_names[column])),
                           kMaxFeatureMagnitude, data.rows[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(std::span<const float> weights) {
  for (size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] > 0 && weights[row] <= kMaxTargetMagnitude) continue;
    return InvalidArgument("training: row %d: weight: expected a number above 0 and up to %g, found %g", row,
                           kMaxTargetMagnitude, weights[row]);
  }
  return absl::OkStatus();
}

absl::Status CheckRange(std::string_view name, double value, double low, bool low_included, double high) {
  const bool fits = (low_included ? value >= low : value > low) && value <= high;
  if (fits) return absl::OkStatus();
  return InvalidArgument("training: %s: expected a number %s %g and up to %g, found %g", name,
                         low_included ? "from" : "above", low, high, value);
}

absl::Status CheckParams(const TrainingData& data, const TrainingParams& params) {
  constexpr double kLarge = 1e9;
  HORUS_RETURN_IF_ERROR(CheckRange("rounds", params.rounds, 1, true, ForestLimits().max_trees));
  HORUS_RETURN_IF_ERROR(CheckRange("max_depth", params.max_depth, 1, true, 16));
  HORUS_RETURN_IF_ERROR(CheckRange("learning_rate", params.learning_rate, 0, false, 1));
  HORUS_RETURN_IF_ERROR(CheckRange("lambda", params.lambda, 0, true, kLarge));
  HORUS_RETURN_IF_ERROR(CheckRange("min_child_weight", params.min_child_weight, 0, true, kLarge));
  HORUS_RETURN_IF_ERROR(CheckRange("subsample", params.subsample, 0, false, 1));
  HORUS_RETURN_IF_ERROR(CheckRange("feature_share", params.feature_share, 0, false, 1));
  HORUS_RETURN_IF_ERROR(CheckRange("patience", params.patience, 0, true, kLarge));
  if (params.base_score.has_value()) {
    HORUS_RETURN_IF_ERROR(
        CheckRange("base_score", *params.base_score, -kMaxTargetMagnitude, true, kMaxTargetMagnitude));
  }
  HORUS_RETURN_IF_ERROR(CheckSize("monotone", params.monotone.size(), data.feature_count, true));
  for (size_t f = 0; f < params.monotone.size(); ++f) {
    if (params.monotone[f] >= -1 && params.monotone[f] <= 1) continue;
    return InvalidArgument("training: monotone[%d]: expected -1, 0 or 1, found %d", f, params.monotone[f]);
  }
  return absl::OkStatus();
}

absl::Status CheckValidation(const TrainingData& data, const TrainingParams& params) {
  if (params.folds != 0) HORUS_RETURN_IF_ERROR(CheckRange("folds", params.folds, 2, true, 1000));
  if (params.folds != 0 && params.held_out_group.has_value()) {
    return InvalidArgument("training: folds and held_out_group exclude each other");
  }
  if (params.patience != 0 && !params.held_out_group.has_value()) {
    return InvalidArgument("training: patience needs held_out_group");
  }
  if (params.folds != 0) {
    const std::vector<uint32_t> fold = AssignFolds(data.row_count, data.groups, 2);
    if (std::ranges::find(fold, 1u) == fold.end()) {
      return InvalidArgument("training: folds: expected rows of at least 2 groups, found 1");
    }
  }
  if (params.held_out_group.has_value()) {
    const auto held = static_cast<size_t>(std::ranges::count(data.groups, *params.held_out_group));
    if (held == 0 || held == data.row_count) {
      return InvalidArgument("training: held_out_group %d: expected some of the %d rows, found %d",
                             *params.held_out_group, data.row_count, held);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTraining(const TrainingData& data, const TrainingParams& params) {
  if (data.row_count == 0 || data.row_count > kMaxRows) {
    return InvalidArgument("training: expected 1 to %d rows, found %d", kMaxRows, data.row_count);
  }
  if (data.feature_count == 0 || data.feature_count > kMaxFeatures) {
    return InvalidArgument("training: expected 1 to %d features, found %d", kMaxFeatures, data.feature_count);
  }
  // Bounded: at most kMaxRows times kMaxFeatures.
  HORUS_RETURN_IF_ERROR(CheckSize("rows", data.rows.size(), data.row_count * data.feature_count, false));
  HORUS_RETURN_IF_ERROR(CheckSize("targets", data.targets.size(), data.row_count, false));
  HORUS_RETURN_IF_ERROR(CheckSize("base_margins", data.base_margins.size(), data.row_count, true));
  HORUS_RETURN_IF_ERROR(CheckSize("weights", data.weights.size(), data.row_count, true));
  HORUS_RETURN_IF_ERROR(CheckSize("groups", data.groups.size(), data.row_count, true));
  HORUS_RETURN_IF_ERROR(CheckSize("feature_names", data.feature_names.size(), data.feature_count, true));
  HORUS_RETURN_IF_ERROR(CheckParams(data, params));
  HORUS_RETURN_IF_ERROR(CheckValidation(data, params));
  HORUS_RETURN_IF_ERROR(CheckFinite("target", data.targets));
  HORUS_RETURN_IF_ERROR(CheckFinite("base margin", data.base_margins));
  HORUS_RETURN_IF_ERROR(CheckWeights(data.weights));
  return CheckFeatures(data);
}

}  // namespace horus
