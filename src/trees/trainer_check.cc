// SPDX-License-Identifier: Apache-2.0
// Checks training rows and parameters, naming row and column.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "trees/trainer.h"

namespace horus {
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
    if (std::find(fold.begin(), fold.end(), 1u) == fold.end()) {
      return InvalidArgument("training: folds: expected rows of at least 2 groups, found 1");
    }
  }
  if (params.held_out_group.has_value()) {
    const auto held = static_cast<size_t>(std::count(data.groups.begin(), data.groups.end(), *params.held_out_group));
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
