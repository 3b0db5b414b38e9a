// SPDX-License-Identifier: Apache-2.0
// Cross-conformal margins: every group of rows is predicted by a model that has not seen it.
#include "interference/pair_bounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/status.h"
#include "interference/excess.h"
#include "trees/calibrate.h"

namespace horus {
namespace {

struct Score {
  uint32_t device;
  uint64_t group;  // rows of one group hang together
  double value;    // of z: measured - predicted
};

PairMargin MarginOf(std::span<const Score> scores, double promise) {
  std::vector<double> values;
  std::vector<uint32_t> groups;
  std::map<uint64_t, uint32_t> position;
  for (const Score& score : scores) {
    values.push_back(score.value);
    groups.push_back(position.emplace(score.group, static_cast<uint32_t>(position.size())).first->second);
  }
  if (position.size() < 2) return {.margin = kDefaultMargin};
  const Calibration found = Calibrate(values, groups, position.size(), promise);
  return {.margin = found.margin, .promised = found.promised, .observed = found.observed};
}

struct Calibrator {
  const PairModelKind& kind;
  const PairSet& set;
  std::span<const PairRow> rows;
  const CalibrationPlan& plan;
  const PairFitOptions& options;
  const std::function<bool()>& done;

  // Scores of all rows left out in turn, none if not wanted; `mape` becomes their mean absolute error in per cent.
  [[nodiscard]] absl::StatusOr<std::vector<Score>> Scores(bool wanted, PairLeave leave, double* mape) const {
    if (!wanted) return std::vector<Score>();
    const std::vector<LeftOut> groups = LeaveOut(set, rows, leave, plan.folds, options.seed);
    std::vector<Score> scores;
    double errors = 0;
    if (groups.size() < 2) return scores;
    for (size_t g = 0; g < groups.size(); ++g) {
      const std::vector<PairRow> train = RowsBut(rows, groups[g].rows), test = RowsAt(rows, groups[g].rows);
      if (train.empty()) continue;  // every row belongs to the group
      HORUS_ASSIGN_OR_RETURN(const auto predicted, FitAndPredict(kind, set, train, test, options));
      for (size_t i = 0; i < test.size(); ++i) {
        const auto [low, high] = std::minmax(test[i].victim, test[i].other);
        const uint64_t group = leave == PairLeave::kPair ? uint64_t{low} << 32 | high : g;
        scores.push_back({test[i].device, group, ExcessOf(test[i].slowdown) - ExcessOf(predicted[i])});
        errors += std::abs(predicted[i] / test[i].slowdown - 1);
      }
      if (done && !done()) return MakeError(absl::StatusCode::kCancelled, "training was cancelled");
    }
    if (mape != nullptr && !scores.empty()) *mape = 100 * errors / static_cast<double>(scores.size());
    return scores;
  }

  [[nodiscard]] PairMargin OnDevice(std::span<const Score> scores, uint32_t device) const {
    std::vector<Score> here;
    std::copy_if(scores.begin(), scores.end(), std::back_inserter(here),
                 [&](const Score& s) { return s.device == device; });
    return MarginOf(here, plan.promise);
  }
};

}  // namespace

const PairMargin& PairBounds::Of(uint32_t device, bool both_seen) const {
  if (device >= devices.size()) return unseen;
  return both_seen ? devices[device].pair : devices[device].family;
}

double UpperOf(double estimate, double margin) {
  const double upper = kSlowdownShift + (estimate - kSlowdownShift) * std::exp(margin);
  return std::clamp(upper, estimate, static_cast<double>(kMaxSlowdown));
}

absl::StatusOr<PairBounds> CalibratePairs(const PairModelKind& kind, const PairSet& set, std::span<const PairRow> rows,
                                          const CalibrationPlan& plan, const PairFitOptions& options,
                                          const std::function<bool()>& done, LeftOutErrors* errors) {
  const Calibrator calibrator{kind, set, rows, plan, options, done};
  LeftOutErrors found;
  HORUS_ASSIGN_OR_RETURN(const std::vector<Score> pairs, calibrator.Scores(plan.pairs, PairLeave::kPair, &found.pair));
  HORUS_ASSIGN_OR_RETURN(const std::vector<Score> families,
                         calibrator.Scores(plan.families, PairLeave::kFamily, &found.family));
  HORUS_ASSIGN_OR_RETURN(const std::vector<Score> gpus, calibrator.Scores(plan.gpus, PairLeave::kGpu, &found.gpu));
  PairBounds bounds;
  for (uint32_t d = 0; d < set.devices.size(); ++d) {
    bounds.devices.push_back({.pair = calibrator.OnDevice(pairs, d), .family = calibrator.OnDevice(families, d)});
    PairBounds::Device& device = bounds.devices.back();
    // Less known never means a tighter bound.
    if (plan.pairs) device.family.margin = std::max(device.family.margin, device.pair.margin);
  }
  bounds.unseen = MarginOf(gpus, plan.promise);
  for (const PairBounds::Device& device : bounds.devices) {
    if (plan.families) bounds.unseen.margin = std::max(bounds.unseen.margin, device.family.margin);
  }
  if (errors != nullptr) *errors = found;
  return bounds;
}

size_t FitsToCalibrate(const PairSet& set, std::span<const PairRow> rows, const CalibrationPlan& plan, uint32_t seed) {
  size_t fits = 0;
  const auto add = [&](bool wanted, PairLeave leave) {
    if (wanted) fits += LeaveOut(set, rows, leave, plan.folds, seed).size();
  };
  add(plan.pairs, PairLeave::kPair);
  add(plan.families, PairLeave::kFamily);
  add(plan.gpus, PairLeave::kGpu);
  return fits;
}

}  // namespace horus
