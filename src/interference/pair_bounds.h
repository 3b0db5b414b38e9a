// SPDX-License-Identifier: Apache-2.0
// How far a slowdown may lie above its estimate: margins from errors on groups left out, and what they promise.
//
// Enters:  a kind and the rows that it is fitted to; later an estimate and what is known of its two jobs.
// Leaves:  margins; an upper bound.
// Units:   margins in z of laws.h; slowdowns; coverage 0-1.
// Cost:    to calibrate, a fit a left-out group; to apply, an exponential.   Thread class: pure functions over values.
#pragma once

#include <functional>

#include "interference/pair_model.h"

namespace horus {

// ---- What is left out together, and what a kind says of rows that it has not seen.
// Cost: linear in rows; one fit a prediction of a group.

enum class PairLeave {
  kPair,    // unordered pairs, in folds: a pair leaves on every device and in every campaign
  kJob,     // every pair that the job takes part in
  kFamily,  // likewise of all jobs of a family
  kGpu,     // a GPU type, in every mode and campaign
};

struct LeftOut {
  std::string name;            // "fold 3", a job, a family, a GPU type
  std::vector<uint32_t> rows;  // positions, ascending
};

// Groups with rows, in the order of the first of them; pairs are dealt to folds by a hash of seed and pair. `folds`
// counts for pairs only.
[[nodiscard]] std::vector<LeftOut> LeaveOut(const PairSet& set, std::span<const PairRow> rows, PairLeave leave,
                                            uint32_t folds, uint32_t seed);

// The rows at those positions, and all others.
[[nodiscard]] std::vector<PairRow> RowsAt(std::span<const PairRow> rows, std::span<const uint32_t> positions);
[[nodiscard]] std::vector<PairRow> RowsBut(std::span<const PairRow> rows, std::span<const uint32_t> positions);

// The slowdown that the model says for each row.
[[nodiscard]] std::vector<double> PredictRows(const PairModel& model, const PairSet& set,
                                              std::span<const PairRow> rows);

// Likewise by a model of this kind fitted to `train`, which may be empty only if `test` is.
[[nodiscard]] absl::StatusOr<std::vector<double>> FitAndPredict(const PairModelKind& kind, const PairSet& set,
                                                                std::span<const PairRow> train,
                                                                std::span<const PairRow> test,
                                                                const PairFitOptions& options);

struct PairMargin {
  double margin = 0;    // of a bound that holds with kUpperProbability; >= 0
  double promised = 0;  // up to which probability the groups left out tell it, 0-1; 0 = none
  double observed = 0;  // of the rows, each bounded by what the other groups give, at the probability asked for
  friend bool operator==(const PairMargin&, const PairMargin&) = default;
};

struct PairBounds {
  struct Device {
    PairMargin pair;       // two jobs with rows on the device that were not measured together: holds over pairs
    PairMargin family;     // one with rows there, and one of a family without: holds over families
    PairMargin strangers;  // both of families without rows: likewise
    friend bool operator==(const Device&, const Device&) = default;
  };
  std::vector<Device> devices;  // parallel to the header's
  PairMargin unseen;            // on a GPU type without rows: holds over GPU types
  double level = 0;             // of which all answers on such a type have this much in common, deviations of z

  // What stands for two jobs, 0 to 2 of which have rows there, on a device of the header or kUnseen.
  [[nodiscard]] const PairMargin& Of(uint32_t device, int jobs_seen) const;
  friend bool operator==(const PairBounds&, const PairBounds&) = default;
};

// The bound that a margin gives an estimate; >= estimate.
[[nodiscard]] double UpperOf(double estimate, double margin);

// The same margin at another probability (laws.h), below 1.
[[nodiscard]] double MarginAt(const PairMargin& margin, double probability);

// Where too few groups were measured to calibrate, a margin stands in that promises nothing: e^1 times the excess.
inline constexpr double kDefaultMargin = 1;

// By how much the answers on a GPU type or mode that was never measured may be off in common; a standard deviation of
// z. A round choice: K80, P100 and V100, each left out, are off by 0.1, 0.05 and -0.1; of a fourth, which three others
// tell, Student's t makes that 0.2. At 0.3 the bounds cover 93 % and more of each, families left out too.
inline constexpr double kLevelError = 0.3;

struct CalibrationPlan {
  double promise = kUpperProbability;               // at which the scale of the margins is fitted
  uint32_t folds = 10;                              // of pairs
  bool pairs = true, families = true, gpus = true;  // what to calibrate; the rest keeps the default margin
};

// Mean absolute percentage errors of the rows left out, where they were.
struct LeftOutErrors {
  double pair = 0, family = 0, gpu = 0;
};

// `done` is called after every fit and cancels by returning false (kCancelled).
[[nodiscard]] absl::StatusOr<PairBounds> CalibratePairs(const PairModelKind& kind, const PairSet& set,
                                                        std::span<const PairRow> rows, const CalibrationPlan& plan,
                                                        const PairFitOptions& options,
                                                        const std::function<bool()>& done,
                                                        LeftOutErrors* errors = nullptr);

// Fits that CalibratePairs makes.
[[nodiscard]] size_t FitsToCalibrate(const PairSet& set, std::span<const PairRow> rows, const CalibrationPlan& plan,
                                     uint32_t seed);

}  // namespace horus
