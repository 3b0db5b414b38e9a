// SPDX-License-Identifier: Apache-2.0
// TargetModel: one quantity as a bundle knows it: fitted prior, forest on its residual, bound, and what it was trained
// on.
//
// Enters:  a feature row, the GPU type's name, and the roofline's own answer.
// Leaves:  estimate and bound, how far the row lies outside the training data, and the parts that explain it.
// Units:   of the quantity; distances are natural logarithms of "times beyond the trained range".
// Cost:    about 100 ns and the walk of the forest.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "predict/prior.h"
#include "trees/forest.h"

namespace horus {

// The span of the training rows in the columns that say what kind of job on what kind of GPU a row is.
struct TrainedRange {
  std::vector<double> low, high;  // as RangeColumns(); empty = nothing is known
  friend bool operator==(const TrainedRange&, const TrainedRange&) = default;
};
struct RangeColumn {
  std::string_view name;
  bool ratio = true;  // else a code
};
[[nodiscard]] std::span<const RangeColumn> RangeColumns();

// A job beyond this distance is flagged: twice or half of anything trained on. Assumption.
inline constexpr double kOutsideDistance = 0.7;
// So is one whose kernels are predicted so many times worse than those of the rows trained on.
inline constexpr double kHardJob = 1.4;
// No distance is larger; as ValidateDemand.
inline constexpr double kMostDistance = 1e6;

// What the roofline and the replayed memory say by themselves.
struct Analytic {
  double value = 0;
  double upper = 0;        // >= value
  bool understood = true;  // else the refined bound stays at or above `upper`
};

struct Refined {
  double roofline = 0;  // its own estimate
  double fitted = 0;    // with the fitted constants
  double value = 0;     // and the forest, which fades as the distance grows
  double upper = 0;
  double distance = 0;        // 0 = inside the trained range, to kMostDistance
  std::string_view farthest;  // the column that says so; empty inside
  bool below = false;         // it lies below the trained range, else above it
  bool outside = false;       // unlike what was trained on: by distance, or
  std::string_view hardest;   // by this part of its device time (TimePartName); else empty
  bool calibrated = false;    // the bound rests on measured errors, and the job is like those measured
  double site_mib = 0;        // of memory: what a site that nobody measured may take more; it and the job's
                              // own width are independent, and their squares add up
  double promised = 0;        // coverage of the bound on families, or GPU types, not seen, 0-1; 0 = no promise
  double forest_share = 0;    // how much of the forest counts, 0-1
};

// A chip by compute capability and SMs, under which `gpus` has the mean factor of its boards: an A100 with 40 GB runs
// as one with 80. Empty where the row's GPU is not described.
inline constexpr std::string_view kChipPrefix = "chip:";
[[nodiscard]] std::string ChipOf(std::span<const float> row);

// How sites differ in the memory that they take for one job: by a base, and by a share of the job, as allocators and
// kernels differ. Assumptions: docs/predict.md, "Your site".
inline constexpr double kBaseSpreadMib = 1000, kShareSpread = 0.1;
[[nodiscard]] constexpr double SiteSpreadMib(double predicted_mib) {
  return kBaseSpreadMib + kShareSpread * predicted_mib;
}

struct TargetModel {
  Quantity quantity = Quantity::kStepTime;
  std::vector<double> factors;                       // of the prior
  std::vector<std::pair<std::string, double>> gpus;  // factor of each GPU type and chip seen, sorted by name
  Forest forest;                                     // on the residual; may be empty
  double upper_margin = -1;        // a score: its error is added to the margin for the bound; < 0 = not calibrated
  double unseen_gpu_margin = -1;   // likewise on a GPU type that was not trained on
  double promised = 0;             // coverage that upper_margin stands for, 0-1
  double unseen_gpu_promised = 0;  // that unseen_gpu_margin stands for, or site_margin
  double observed = 0;             // coverage of the training rows, each bounded without its own group
  double rows = 0, groups = 0;
  // Of step time: how far errors of jobs lie that spend their time in one part (kTimeParts), over those of the rows
  // trained on. Empty: alike.
  std::vector<double> difficulty;
  double base_mib = -1;    // of memory: what the site's context and libraries take; < 0 = not known, estimated
  double site_margin = 0;  // of memory: how many SiteSpreadMib more a site may take that nobody measured
  double site_level = 0, site_slope = 1;  // of a site's utilisation: its margin is level + slope x that predicted
  TrainedRange range;

  [[nodiscard]] const double* FindGpu(std::string_view name) const;  // nullptr when not seen
  [[nodiscard]] const double* FindGpu(std::span<const float> row, std::string_view name) const;  // or its chip's
  // The type's own factor, or the mean of the typical one, 0, and those seen.
  [[nodiscard]] double GpuFactor(std::string_view name) const;
  [[nodiscard]] double GpuFactor(std::span<const float> row, std::string_view name) const;  // or its chip's
  // What the forest starts from: the prior's margin.
  [[nodiscard]] double FittedMargin(std::span<const float> row, std::string_view gpu) const;
  // Of a row, about 1. `hardest` is set to the part that raises it most.
  [[nodiscard]] double DifficultyOf(std::span<const float> row, size_t* hardest = nullptr) const;
  // An error of the margin as calibration counts it, and back. Memory's errors are additive: they count relative to the
  // prediction and in units of what is uncertain of it.
  [[nodiscard]] double ScoreOf(std::span<const float> row, bool gpu_seen, double error) const;
  [[nodiscard]] double ErrorOf(std::span<const float> row, bool gpu_seen, double score) const;
  // The bound that is published and judged: there is no other.
  [[nodiscard]] Refined Refine(std::span<const float> row, std::string_view gpu, const Analytic& analytic) const;
  [[nodiscard]] size_t bytes_held() const;
};

[[nodiscard]] BundleTarget ToBundle(const TargetModel& model);
// Refuses (kDataLoss) what ToBundle cannot have written, naming target, series, expected and found.
[[nodiscard]] absl::StatusOr<TargetModel> FromBundle(const BundleTarget& target, size_t feature_count);

}  // namespace horus
