// SPDX-License-Identifier: Apache-2.0
// Evaluation: how well a quantity is predicted for families, nets or GPU types that training has not seen.
//
// Enters:  a TrainingSet, what to leave out at a time, options of training.
// Leaves:  every row's prediction by the model and by the baselines, and their errors.
// Units:   of the quantity; errors as named.
// Cost:    one training for each group left out, and the baselines.
// Thread class: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "predict/predictor.h"
#include "predict/train.h"
#include "predict/training_set.h"

namespace horus {

enum class RowLeave : uint8_t { kFamily, kModel, kGpu, kCampaign, kRows };  // kRows: ten random parts; flatters all
[[nodiscard]] std::string_view Name(RowLeave leave);  // "family", "model", "gpu", "campaign", "rows"
[[nodiscard]] absl::StatusOr<RowLeave> ParseRowLeave(std::string_view name);

struct ErrorSummary {
  std::string method;     // "horus", or a baseline
  double mape_pct = 0;    // mean of |predicted - measured| / measured; rows that measure 0 are left out of it
  double median_pct = 0;  // median of the same
  double rmsle = 0;       // root mean square of the difference of log1p
  double spearman = 0;    // rank correlation; NaN when all are equal
};

struct EvaluatedRow {
  const TrainingRow* row = nullptr;
  double measured = 0, predicted = 0, upper = 0, distance = 0;
  bool outside = false;           // as Refined says
  double promised = 0;            // coverage that `upper` stands for, 0-1; 0 = a default factor, which promises nothing
  std::vector<double> baselines;  // as ErrorReport::methods after the first
};

struct ErrorReport {
  Quantity quantity = Quantity::kStepTime;
  RowLeave leave = RowLeave::kFamily;
  size_t groups = 0;
  std::vector<EvaluatedRow> rows;
  std::vector<ErrorSummary> methods;  // "horus" first
  double promised_pct = 0;            // least coverage promised to any row; 0 = some bound promises nothing
  double covered_pct = 0;             // rows at or below their bound
  double slack_pct = 0;               // mean of bound / measured - 1, of rows that have a bound
};

// Trains without each group and predicts it. The baselines, which a prediction must beat to be worth its trouble, are
// trained in the same way: "constant" (mean of the margin), "linear" (ridge on logarithms of sizes and peaks),
// "horus_six" (trees on the six Horus features and the GPU's peak, no prior), "roofline" (nothing trained), and for
// memory "horus_formula". `speeds`: rows of step times, of which those of no left-out group tell the constants that
// utilisation shares with them.
[[nodiscard]] absl::StatusOr<ErrorReport> Evaluate(Quantity quantity, std::span<const TrainingRow* const> rows,
                                                   RowLeave leave, const TrainOptions& options,
                                                   const TrainProgress& progress = nullptr,
                                                   std::span<const TrainingRow* const> speeds = {});

// How a predictor as it is answers the rows; groups stays 0 and there are no trained baselines.
[[nodiscard]] ErrorReport EvaluateModel(const TargetModel& model, std::span<const TrainingRow* const> rows);

}  // namespace horus
