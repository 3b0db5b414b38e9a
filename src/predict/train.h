// SPDX-License-Identifier: Apache-2.0
// Training: from measured runs to a bundle. Per quantity: constants of the prior, a forest on the residual, a bound.
//
// Enters:  a TrainingSet and options.
// Leaves:  a bundle and what was found on the way; equal input gives equal bytes (same XGBoost and architecture).
// Cost:    about 3 x folds fits of a forest a quantity; loads libhorus_train.so.
#pragma once

#include "predict/predictor.h"
#include "predict/training_set.h"

namespace horus {

struct TrainOptions {
  double promise = 0.9;  // coverage of the bounds on families not seen, 0.5 to 0.99; at most n / (n + 1) for n families
  int32_t rounds = 100;  // trees a quantity at most, 0 to 2,000; cross-validation chooses how many are worth it
  uint32_t seed = 0;
  std::string library_path;  // of libhorus_train.so; empty: found as trees/trainer.h says
  std::shared_ptr<const Predictor>
      base;  // whose models are kept where too few rows measure a quantity; null = built-in
};

// Share of the work done, 0-1; false cancels. Called on the calling thread.
using TrainProgress = std::function<bool(double done)>;

// Rows of a quantity that belong to at least two families are needed for a bound.
inline constexpr size_t kLeastTrainingRows = 8;
inline constexpr size_t kMostTrainingGpus = 128;  // types that rows of a quantity name, each with a constant of its own

// One quantity from the rows that measured it. Errors: fewer than kLeastTrainingRows, more than kMostTrainingGpus,
// kCancelled, kUnavailable (library).
// `centre`: a model whose constants these are held near, of this quantity or, for utilisation, of step time, which has
// the same constants and more rows; null = the typical values.
[[nodiscard]] absl::StatusOr<TargetModel> TrainTarget(Quantity quantity, std::span<const TrainingRow* const> rows,
                                                      const TrainOptions& options, const TrainProgress& progress,
                                                      const TargetModel* centre = nullptr);

// The constants alone, without trees or bound.
[[nodiscard]] TargetModel FitConstants(Quantity quantity, std::span<const TrainingRow* const> rows,
                                       const TargetModel* centre = nullptr);

// Whether step time's constants are the quantity's too.
[[nodiscard]] constexpr bool SharesStepConstants(Quantity quantity) {
  return quantity == Quantity::kGpuUtil || quantity == Quantity::kGpuUtilMax || quantity == Quantity::kMemBwUtil;
}

struct TrainedQuantity {
  Quantity quantity = Quantity::kStepTime;
  size_t rows = 0, families = 0, gpus = 0, trees = 0;
  double promised = 0, observed = 0;  // coverage of the bound, 0-1; 0 without one
};
struct TrainReport {
  std::vector<TrainedQuantity> quantities;
  std::vector<Quantity> left_out;  // measured in too few rows
  std::vector<Quantity> kept;      // of the base
};

// Every quantity that enough rows measured, and the base's models of the others. Errors: those of CheckTrainingSet and
// TrainTarget; no quantity at all.
[[nodiscard]] absl::StatusOr<Bundle> TrainPredictor(const TrainingSet& set, const TrainOptions& options,
                                                    const TrainProgress& progress = nullptr,
                                                    TrainReport* report = nullptr);

// Rows that measured the quantity, in order.
[[nodiscard]] std::vector<const TrainingRow*> RowsWith(const TrainingSet& set, Quantity quantity);

// ---- Moving trained models to a site by a few of its own runs, without training (site.cc): what its context and
// libraries take of memory, how fast its GPUs are and how busy it keeps them. One prediction a row.

struct SiteEffect {
  Quantity quantity = Quantity::kMemory;
  size_t rows = 0;
  double error_before = 0, error_after = 0;  // mean of |predicted - measured| / measured, of these very rows
  double slack_before = 0, slack_after = 0;  // median of bound / measured - 1
};
struct SiteReport {
  std::vector<SiteEffect> effects;  // of the quantities that were adjusted
  double base_mib = -1;             // < 0: no row measured memory
};

struct SiteOptions {
  double promise = 0.9;  // coverage of the bounds
  double base_mib = -1;  // what context and libraries take, where that is known; < 0: learned from the rows
};

// Memory, step time and utilisation are adjusted, by one row or more each; other models are kept. From ten rows of a
// quantity on its bound rests on this site's own errors, and its range holds these rows. Errors: those of
// CheckTrainingSet; neither rows of either quantity nor a stated base; a predictor without models of what was measured.
[[nodiscard]] absl::StatusOr<Bundle> CalibrateToSite(const Predictor& base, const TrainingSet& set,
                                                     const SiteOptions& options, SiteReport* report = nullptr);

}  // namespace horus
