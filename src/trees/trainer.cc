// SPDX-License-Identifier: Apache-2.0
// Fits forests through libhorus_train.so: rows in, cross-validation of the number of trees, forest out.
#include "trees/trainer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <utility>

#include "base/side_library.h"
#include "base/text.h"
#ifdef HORUS_TRAIN_INSIDE
#include "base/python_package.h"
#include "trees/train/found.h"
#endif

namespace horus {
namespace {

const float* DataOrNull(std::span<const float> values) { return values.empty() ? nullptr : values.data(); }

horus_train_rows View(const TrainingData& data) {
  return {.features = data.rows.data(),
          .targets = data.targets.data(),
          .weights = DataOrNull(data.weights),
          .margins = DataOrNull(data.base_margins),
          .count = data.row_count};
}

// One run of the library: what it reports lands here.
struct Run {
  const TrainingCallback& progress;
  int32_t rounds_done = 0;
  std::vector<double> held_out_error = {};  // sum of weighted squares, by round
  ForestData forest = {};
};

int32_t OnRound(void* user, int32_t rounds_done, double held_out_error) {
  Run& run = *static_cast<Run*>(user);
  run.rounds_done = rounds_done;
  run.held_out_error.push_back(held_out_error);
  return run.progress && !run.progress(rounds_done) ? 1 : 0;
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

float BaseScore(const TrainingData& data, const TrainingParams& params) {
  if (params.base_score.has_value()) return *params.base_score;
  if (!data.base_margins.empty()) return 0;
  double sum = 0;
  double weight = 0;
  for (size_t row = 0; row < data.row_count; ++row) {
    const double w = data.weights.empty() ? 1.0 : double{data.weights[row]};
    sum += w * data.targets[row];
    weight += w;
  }
  return static_cast<float>(sum / weight);
}

// Grows a forest, which `run` gets, or the errors on `held_out`, where that is not null.
absl::Status Grow(const TrainingData& data, const TrainingData* held_out, const TrainingParams& params, Run& run) {
  constexpr int32_t kMaxBin = 256;  // XGBoost's default; thresholds tried a feature
  HORUS_ASSIGN_OR_RETURN(const TrainEntry entry, LoadTrainLibrary(params.library_path));
  const bool hist =
      params.method == TreeMethod::kHist || (params.method == TreeMethod::kAuto && data.row_count > kExactMaxRows);
  horus_train_request request = {};
  request.struct_size = sizeof(request);
  request.num_features = static_cast<uint32_t>(data.feature_count);
  request.train = View(data);
  if (held_out != nullptr) request.valid = View(*held_out);
  request.monotone = params.monotone.empty() ? nullptr : params.monotone.data();
  request.rounds = params.rounds;
  request.max_depth = params.max_depth;
  request.method = hist ? HORUS_TRAIN_METHOD_HIST : HORUS_TRAIN_METHOD_EXACT;
  request.max_bin = kMaxBin;
  request.learning_rate = params.learning_rate;
  request.lambda = params.lambda;
  request.min_child_weight = params.min_child_weight;
  request.subsample = params.subsample;
  request.colsample_bytree = params.feature_share;
  request.base_score = BaseScore(data, params);
  request.seed = params.seed;
  request.user = &run;
  request.progress = OnRound;
  request.sink = held_out == nullptr ? OnForest : nullptr;
  char text[HORUS_TRAIN_TEXT_BYTES] = "";
  const int32_t code = entry(&request, text);
  if (code == HORUS_TRAIN_OK) return absl::OkStatus();
  if (code == HORUS_TRAIN_CANCELLED)
    return Cancelled("training: cancelled after round %d of %d", run.rounds_done, params.rounds);
  if (code == HORUS_TRAIN_NO_MEMORY) throw std::bad_alloc();  // as an allocation on this side would
  const absl::StatusCode why =
      code == HORUS_TRAIN_REFUSED ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
  return MakeError(why, "training: %s", text);
}

}  // namespace

// Which file is missing, where it was looked for and how to get it, say errors of the loader of side libraries.
absl::StatusOr<TrainEntry> LoadTrainLibrary(const std::string& path) {
#ifdef HORUS_TRAIN_INSIDE  // the Python package
  if (path.empty())
    return Unavailable("training needs XGBoost, which is not installed: %s", InstallPythonPackage("train"));
#endif
  constexpr SideLibrary kLibrary = {
      .soname = HORUS_TRAIN_SONAME,
      .entry = "horus_train_entry_v1",
      .install_dir = HORUS_INSTALL_LIBDIR,
      .purpose = "training",
      .remedy = "It is built with HORUS_WITH_TRAIN=ON and needs XGBoost (Debian: libxgboost-dev)"};
  const absl::StatusOr<void*> entry = LoadSideLibrary(kLibrary, path);
#ifdef HORUS_TRAIN_INSIDE
  if (!entry.ok()) {
    HORUS_ASSIGN_OR_RETURN(const train::XGBoostApi xgboost, train::FindXGBoost(path));
    return [xgboost](const horus_train_request* request, char* text) { return train::Train(xgboost, *request, text); };
  }
#endif
  HORUS_RETURN_IF_ERROR(entry.status());
  return reinterpret_cast<horus_train_entry_fn>(*entry);
}

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

std::vector<uint32_t> AssignFolds(std::span<const uint32_t> groups, uint32_t folds) {
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
  std::vector<uint32_t> fold_of;
  for (const uint32_t group : groups) fold_of.push_back(fold_of_group[group]);
  return fold_of;
}

absl::StatusOr<Forest> Fit(const TrainingData& data, const TrainingParams& params, const TrainingCallback& progress) {
  HORUS_RETURN_IF_ERROR(CheckTraining(data, params));
  Run run{.progress = progress};
  HORUS_RETURN_IF_ERROR(Grow(data, nullptr, params, run));
  run.forest.num_features = static_cast<uint32_t>(data.feature_count);
  absl::StatusOr<Forest> made = Forest::Create(std::move(run.forest));
  if (!made.ok()) {  // extreme weights or targets overflow float32 inside XGBoost; huge fits exceed the limits
    return InvalidArgument("training: the forest grown from these rows cannot be used: %s", made.status().message());
  }
  return made;
}

absl::StatusOr<std::vector<double>> HeldOutErrors(const TrainingData& data, const TrainingData& held_out,
                                                  const TrainingParams& params, const TrainingCallback& progress) {
  HORUS_RETURN_IF_ERROR(CheckTraining(data, params));
  HORUS_RETURN_IF_ERROR(CheckTraining(held_out, params));
  Run run{.progress = progress};
  HORUS_RETURN_IF_ERROR(Grow(data, &held_out, params, run));
  double weight = held_out.weights.empty() ? static_cast<double>(held_out.row_count) : 0;
  for (const float one : held_out.weights) weight += one;
  for (double& error : run.held_out_error) error = std::sqrt(error / weight);
  return std::move(run.held_out_error);
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
    return InvalidArgument("training: row %d, feature %d: expected a number of magnitude up to %g or NaN, found %g",
                           i / data.feature_count, i % data.feature_count, kMaxFeatureMagnitude, data.rows[i]);
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

}  // namespace

absl::Status CheckTraining(const TrainingData& data, const TrainingParams& params) {
  if (data.row_count == 0 || data.row_count > kMaxRows)
    return InvalidArgument("training: expected 1 to %d rows, found %d", kMaxRows, data.row_count);
  if (data.feature_count == 0 || data.feature_count > kMaxFeatures)
    return InvalidArgument("training: expected 1 to %d features, found %d", kMaxFeatures, data.feature_count);
  // Bounded: at most kMaxRows times kMaxFeatures.
  HORUS_RETURN_IF_ERROR(CheckSize("rows", data.rows.size(), data.row_count * data.feature_count, false));
  HORUS_RETURN_IF_ERROR(CheckSize("targets", data.targets.size(), data.row_count, false));
  HORUS_RETURN_IF_ERROR(CheckSize("base_margins", data.base_margins.size(), data.row_count, true));
  HORUS_RETURN_IF_ERROR(CheckSize("weights", data.weights.size(), data.row_count, true));
  HORUS_RETURN_IF_ERROR(CheckParams(data, params));
  HORUS_RETURN_IF_ERROR(CheckFinite("target", data.targets));
  HORUS_RETURN_IF_ERROR(CheckFinite("base margin", data.base_margins));
  HORUS_RETURN_IF_ERROR(CheckWeights(data.weights));
  return CheckFeatures(data);
}

}  // namespace horus
