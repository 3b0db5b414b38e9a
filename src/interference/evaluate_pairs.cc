// SPDX-License-Identifier: Apache-2.0
// Leaves groups out in turn, calibrates on what remains, and predicts what was left out.
#include "interference/evaluate_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "interference/excess.h"
#include "interference/pair_bounds.h"
#include "interference/pair_bundle.h"

namespace horus {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::quiet_NaN();
constexpr uint32_t kOuterFolds = 10;
constexpr uint32_t kInnerFolds = 5;  // of the pairs that calibrate a fold

// The constant with the least mean absolute percentage error: a median in which each value weighs its inverse.
double BestConstant(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double total = 0, below = 0;
  for (const double value : values) total += 1 / value;
  for (const double value : values) {
    below += 1 / value;
    if (2 * below >= total) return value;
  }
  return 1;
}

std::vector<double> PredictConstant(std::span<const PairRow> train, std::span<const PairRow> test) {
  std::map<uint32_t, std::vector<double>> by_device;
  std::vector<double> all;
  for (const PairRow& row : train) {
    by_device[row.device].push_back(row.slowdown);
    all.push_back(row.slowdown);
  }
  std::vector<double> predicted;
  for (const PairRow& row : test) {
    const auto at = by_device.find(row.device);
    predicted.push_back(BestConstant(at == by_device.end() ? all : at->second));
  }
  return predicted;
}

// Effects of victim and other on z, shrunk towards nothing, by sweeps over the rows of one device (all, where it has
// none).
class Factors {
 public:
  Factors(std::span<const PairRow> train, uint32_t device, size_t jobs) : victim_(jobs), other_(jobs) {
    std::vector<PairRow> rows;
    std::copy_if(train.begin(), train.end(), std::back_inserter(rows),
                 [&](const PairRow& r) { return r.device == device; });
    if (rows.empty()) rows.assign(train.begin(), train.end());
    for (const PairRow& row : rows) mean_ += ExcessOf(row.slowdown) / static_cast<double>(rows.size());
    constexpr int kSweeps = 50;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      Update(rows, &PairRow::victim, victim_);
      Update(rows, &PairRow::other, other_);
    }
  }
  [[nodiscard]] double Predict(const PairRow& row) const { return SlowdownOf(Z(row)); }

 private:
  [[nodiscard]] double Z(const PairRow& row) const { return mean_ + victim_[row.victim] + other_[row.other]; }
  void Update(const std::vector<PairRow>& rows, uint32_t PairRow::* side, std::vector<double>& effects) {
    constexpr double kShrinkage = 0.3;  // rows' worth of no effect
    std::vector<double> sum(effects.size()), count(effects.size());
    for (const PairRow& row : rows) {
      sum[row.*side] += ExcessOf(row.slowdown) - Z(row) + effects[row.*side];
      count[row.*side] += 1;
    }
    for (size_t i = 0; i < effects.size(); ++i) effects[i] = sum[i] / (count[i] + kShrinkage);
  }
  double mean_ = 0;
  std::vector<double> victim_, other_;
};

std::vector<double> PredictFactors(const PairSet& set, std::span<const PairRow> train, std::span<const PairRow> test) {
  std::map<uint32_t, Factors> by_device;
  std::vector<double> predicted;
  for (const PairRow& row : test) {
    const auto at = by_device.try_emplace(row.device, train, row.device, set.jobs.size()).first;
    predicted.push_back(at->second.Predict(row));
  }
  return predicted;
}

std::vector<double> PredictUtilisation(const PairSet& set, std::span<const PairRow> test) {
  const auto util = [&set](uint32_t job, uint32_t device) {
    const auto log = static_cast<double>(set.jobs[job].points[device][static_cast<size_t>(PointColumn::kLogUtil)]);
    return std::isnan(log) ? 1 : std::exp(log);
  };
  std::vector<double> predicted;
  for (const PairRow& row : test) {
    predicted.push_back(std::max(1.0, util(row.victim, row.device) + util(row.other, row.device)));
  }
  return predicted;
}

struct Predictions {
  std::vector<double> values, uppers, promised;
};

absl::StatusOr<Predictions> PredictLearned(const PairModelKind& kind, const PairSet& set,
                                           std::span<const PairRow> train, std::span<const PairRow> test,
                                           PairLeave leave, const PairTrainOptions& options) {
  Predictions found;
  HORUS_ASSIGN_OR_RETURN(found.values, FitAndPredict(kind, set, train, test, options.fit));
  const CalibrationPlan plan{.promise = options.promise,
                             .folds = kInnerFolds,
                             .pairs = leave == PairLeave::kPair,
                             .families = leave == PairLeave::kJob || leave == PairLeave::kFamily,
                             .gpus = leave == PairLeave::kGpu};
  HORUS_ASSIGN_OR_RETURN(const PairBounds bounds, CalibratePairs(kind, set, train, plan, options.fit, nullptr));
  for (size_t i = 0; i < test.size(); ++i) {
    const uint32_t device = leave == PairLeave::kGpu ? kUnseen : test[i].device;
    const PairMargin& margin = bounds.Of(device, leave == PairLeave::kPair);
    found.uppers.push_back(UpperOf(found.values[i], margin.margin));
    found.promised.push_back(margin.promised);
  }
  return found;
}

absl::StatusOr<Predictions> Predict(std::string_view model, const PairSet& set, std::span<const PairRow> train,
                                    std::span<const PairRow> test, PairLeave leave, const PairTrainOptions& options) {
  Predictions found;
  if (model == "constant") {
    found.values = PredictConstant(train, test);
  } else if (model == "factors") {
    found.values = PredictFactors(set, train, test);
  } else if (model == "utilisation") {
    found.values = PredictUtilisation(set, test);
  } else {
    HORUS_ASSIGN_OR_RETURN(const PairModelKind* kind, FindPairModelKind(model));
    return PredictLearned(*kind, set, train, test, leave, options);
  }
  found.uppers.assign(test.size(), kNoBound);
  found.promised.assign(test.size(), 0);
  return found;
}

}  // namespace

std::vector<std::string_view> EvaluatedPairModels() {
  std::vector<std::string_view> names;
  for (const PairModelKind& kind : PairModelKinds()) names.push_back(kind.name);
  names.insert(names.end(), {"utilisation", "constant", "factors"});
  return names;
}

absl::StatusOr<std::vector<PairPrediction>> EvaluatePairs(const PairSet& set, std::string_view model, PairLeave leave,
                                                          const PairTrainOptions& options,
                                                          const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  const std::vector<std::string_view> names = EvaluatedPairModels();
  if (std::find(names.begin(), names.end(), model) == names.end()) {
    return MakeError(absl::StatusCode::kNotFound, "model: expected one of %s, found %s", Listed(names), Quoted(model));
  }
  const std::vector<PairRow> rows = RowsOf(set);
  const std::vector<LeftOut> groups = LeaveOut(set, rows, leave, kOuterFolds, options.fit.seed);
  if (groups.size() < 2) {
    return InvalidArgument("pairs: expected at least two groups to leave out in turn, found %d", groups.size());
  }
  std::vector<PairPrediction> predictions;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<PairRow> train = RowsBut(rows, groups[g].rows), test = RowsAt(rows, groups[g].rows);
    if (train.size() < kLeastPairRows) {
      return InvalidArgument("pairs: %s left out: expected at least %d slowdowns to remain, found %d", groups[g].name,
                             kLeastPairRows, train.size());
    }
    HORUS_ASSIGN_OR_RETURN(const Predictions found, Predict(model, set, train, test, leave, options));
    for (size_t i = 0; i < test.size(); ++i) {
      predictions.push_back({test[i], groups[g].name, found.values[i], found.uppers[i], found.promised[i]});
    }
    if (progress && !progress(static_cast<double>(g + 1) / static_cast<double>(groups.size()))) {
      return MakeError(absl::StatusCode::kCancelled, "evaluation was cancelled");
    }
  }
  return predictions;
}

}  // namespace horus
