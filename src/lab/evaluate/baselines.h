// SPDX-License-Identifier: Apache-2.0
// Baselines: what a prediction must beat to be worth its trouble.
//
// Enters:  rows to learn from and rows to predict.
// Leaves:  one prediction a row.
// Units:   of the quantity.
// Cost:    one fit each.                 Thread class: pure functions.
#ifndef HORUS_LAB_EVALUATE_BASELINES_H_
#define HORUS_LAB_EVALUATE_BASELINES_H_

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "predict/train.h"
#include "predict/training_set.h"

namespace horus {

[[nodiscard]] std::vector<std::string_view> BaselineNames(Quantity quantity);

// As BaselineNames, one list of predictions each, parallel to `test`.
[[nodiscard]] absl::StatusOr<std::vector<std::vector<double>>> PredictBaselines(
    Quantity quantity, std::span<const TrainingRow* const> train, std::span<const TrainingRow* const> test,
    const TrainOptions& options);

}  // namespace horus

#endif  // HORUS_LAB_EVALUATE_BASELINES_H_
