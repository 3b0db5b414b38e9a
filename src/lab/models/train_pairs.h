// SPDX-License-Identifier: Apache-2.0
// Trains every kind of learned interference model on measured pairs, with bounds calibrated on pairs and families left
// out.
//
// Enters:  a PairSet and options.
// Leaves:  a bundle with one target a kind; equal input gives equal bytes (same XGBoost and architecture).
// Units:   slowdowns; coverage 0-1.
// Cost:    about 20 fits a kind, seconds for 2,000 rows; the boosted kind loads libhorus_train.so.
// Thread class: pure functions.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/kernel_model.h"
#include "interference/pair_model.h"
#include "trees/bundle.h"

namespace horus {

// ---- `horus` (kernel_model.h): weights of its Gaussian process.
// Cost: some hundred products with the rows' covariance.

// Errors: RESOURCE_EXHAUSTED above those limits.
[[nodiscard]] absl::StatusOr<KernelState> FitKernel(const PairSet& set, std::span<const PairRow> rows,
                                                    const KernelSettings& settings);
[[nodiscard]] absl::StatusOr<BundleTarget> FitKernelTarget(const PairSet& set, std::span<const PairRow> rows,
                                                           const PairFitOptions& options);

// ---- The kinds of learned interference models by name.
// Cost: a few comparisons.

// The default first.
[[nodiscard]] std::span<const PairModelKind> PairModelKinds();
[[nodiscard]] absl::StatusOr<const PairModelKind*> FindPairModelKind(std::string_view name);  // NOT_FOUND
// Each once, in the order named; all where none is. NOT_FOUND.
[[nodiscard]] absl::StatusOr<std::vector<const PairModelKind*>> PairModelKindsNamed(
    const std::vector<std::string>& names);

struct PairTrainOptions {
  double promise = kUpperProbability;  // at which bounds are fitted, 0.5 to 0.99; n groups tell at most n / (n + 1)
  std::vector<std::string> kinds;      // empty = all
  PairFitOptions fit;
};

// Share of the work done, 0-1; false cancels. Called on the calling thread.
using PairProgress = std::function<bool(double done)>;

struct TrainedKind {
  std::string kind;
  double pair_mape = 0, family_mape = 0;  // of the rows, each predicted without its pair or a family of its two, %
  double pair_promised = 0, pair_observed = 0;      // coverage of the bound for two jobs that were trained on
  double family_promised = 0, family_observed = 0;  // for a job of a family that was not
};

inline constexpr size_t kLeastPairRows = 8;

// Errors: those of CheckPairSet and of the kinds; fewer than kLeastPairRows rows; unknown kind; kCancelled.
[[nodiscard]] absl::StatusOr<Bundle> TrainInterference(const PairSet& set, const PairTrainOptions& options,
                                                       const PairProgress& progress = nullptr,
                                                       std::vector<TrainedKind>* report = nullptr);

}  // namespace horus
