// SPDX-License-Identifier: Apache-2.0
// Leaves groups out in turn, calibrates on what remains, and predicts what was left out.
#include "lab/evaluate/evaluate_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "interference/laws.h"
#include "interference/learned_model.h"

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
  std::set<std::pair<uint32_t, uint32_t>> known;  // device, job
  for (const PairRow& row : train) known.insert({{row.device, row.victim}, {row.device, row.other}});
  for (size_t i = 0; i < test.size(); ++i) {
    const uint32_t device = leave == PairLeave::kGpu ? kUnseen : test[i].device;
    const auto seen = [&](uint32_t job) { return known.contains({test[i].device, job}) ? 1 : 0; };
    const PairMargin& margin = bounds.Of(device, seen(test[i].victim) + seen(test[i].other));
    found.uppers.push_back(UpperOf(found.values[i], MarginAt(margin, options.promise)));
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

absl::Status CheckModel(std::string_view model) {
  const std::vector<std::string_view> names = EvaluatedPairModels();
  if (std::find(names.begin(), names.end(), model) != names.end()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kNotFound, "model: expected one of %s, found %s", Listed(names), Quoted(model));
}

absl::Status CheckTraining(std::span<const PairRow> train, const std::string& left_out) {
  if (train.size() >= kLeastPairRows) return absl::OkStatus();
  return InvalidArgument("pairs: %s left out: expected at least %d slowdowns to remain, found %d", left_out,
                         kLeastPairRows, train.size());
}

absl::Status Report(const PairProgress& progress, size_t done, size_t all) {
  if (!progress || progress(static_cast<double>(done) / static_cast<double>(all))) return absl::OkStatus();
  return MakeError(absl::StatusCode::kCancelled, "evaluation was cancelled");
}

// One slowdown, as the model answers a placement.
absl::StatusOr<PairPrediction> Ask(const PairSet& set, const Catalogue& catalogue, const InterferenceModel& model,
                                   const PairRow& row) {
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(set.devices[row.device].gpu));
  const DeviceContext device{.type = type, .mode = set.devices[row.device].mode};
  const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
  const std::array<Demand, 2> demands = {DemandOf(victim.profile_id, victim.points[row.device]),
                                         DemandOf(other.profile_id, other.points[row.device])};
  const std::array<const Demand*, 2> tenants = {&demands[0], &demands[1]};
  std::array<Slowdown, 2> slowdowns;
  HORUS_RETURN_IF_ERROR(model.Predict(device, tenants, slowdowns));
  PairPrediction said{.row = row, .left_out = "", .predicted = double{slowdowns[0].estimate}, .upper = kNoBound};
  if (const auto* learned = dynamic_cast<const LearnedModel*>(&model)) {
    said.upper = double{slowdowns[0].upper};
    said.promised = learned->MarginOf(device, victim.profile_id, other.profile_id).promised;
  }
  return said;
}

// Rows without either family.
std::vector<PairRow> RowsWithout(const PairSet& set, std::span<const PairRow> rows, const std::string& one,
                                 const std::string& two) {
  std::vector<PairRow> others;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(others), [&](const PairRow& row) {
    const std::string &victim = set.jobs[row.victim].family, &other = set.jobs[row.other].family;
    return victim != one && victim != two && other != one && other != two;
  });
  return others;
}

// Every job of one family beside every one of the other, both ways, on every device.
std::vector<PairRow> RowsBetween(const PairSet& set, const std::string& one, const std::string& two) {
  std::vector<PairRow> rows;
  for (uint32_t device = 0; device < set.devices.size(); ++device) {
    for (uint32_t a = 0; a < set.jobs.size(); ++a) {
      for (uint32_t b = 0; b < set.jobs.size(); ++b) {
        const std::string &victim = set.jobs[a].family, &other = set.jobs[b].family;
        const bool between = (victim == one && other == two) || (victim == two && other == one);
        if (between) rows.push_back({.device = device, .victim = a, .other = b});
      }
    }
  }
  return rows;
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
  HORUS_RETURN_IF_ERROR(CheckModel(model));
  const std::vector<PairRow> rows = RowsOf(set);
  const std::vector<LeftOut> groups = LeaveOut(set, rows, leave, kOuterFolds, options.fit.seed);
  if (groups.size() < 2) {
    return InvalidArgument("pairs: expected at least two groups to leave out in turn, found %d", groups.size());
  }
  std::vector<PairPrediction> predictions;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<PairRow> train = RowsBut(rows, groups[g].rows), test = RowsAt(rows, groups[g].rows);
    HORUS_RETURN_IF_ERROR(CheckTraining(train, groups[g].name));
    HORUS_ASSIGN_OR_RETURN(const Predictions found, Predict(model, set, train, test, leave, options));
    for (size_t i = 0; i < test.size(); ++i) {
      predictions.push_back({test[i], groups[g].name, found.values[i], found.uppers[i], found.promised[i]});
    }
    HORUS_RETURN_IF_ERROR(Report(progress, g + 1, groups.size()));
  }
  return predictions;
}

absl::StatusOr<std::vector<PairPrediction>> EvaluateAsIs(const PairSet& set, const Catalogue& catalogue,
                                                         const InterferenceModel& model, PairLeave leave,
                                                         uint32_t seed) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  const std::vector<PairRow> rows = RowsOf(set);
  std::vector<PairPrediction> said;
  for (const PairRow& row : rows) {
    HORUS_ASSIGN_OR_RETURN(PairPrediction one, Ask(set, catalogue, model, row));
    said.push_back(std::move(one));
  }
  std::vector<PairPrediction> predictions;
  for (const LeftOut& group : LeaveOut(set, rows, leave, kOuterFolds, seed)) {
    for (const uint32_t row : group.rows) {
      predictions.push_back(said[row]);
      predictions.back().left_out = group.name;
    }
  }
  return predictions;
}

absl::StatusOr<std::vector<UnseenPrediction>> PredictUnseen(const PairSet& set, std::string_view model,
                                                            const PairTrainOptions& options,
                                                            const PairProgress& progress) {
  HORUS_RETURN_IF_ERROR(CheckPairSet(set));
  HORUS_RETURN_IF_ERROR(CheckModel(model));
  const std::vector<PairRow> rows = RowsOf(set);
  std::set<std::string> names;
  for (const PairJob& job : set.jobs) names.insert(job.family);
  const std::vector<std::string> families(names.begin(), names.end());
  const size_t all = families.size() * (families.size() + 1) / 2;
  std::vector<UnseenPrediction> predictions;
  size_t done = 0;
  for (size_t i = 0; i < families.size(); ++i) {
    for (size_t j = i; j < families.size(); ++j) {
      const std::vector<PairRow> train = RowsWithout(set, rows, families[i], families[j]);
      const std::vector<PairRow> test = RowsBetween(set, families[i], families[j]);
      HORUS_RETURN_IF_ERROR(CheckTraining(train, families[i] + " and " + families[j]));
      HORUS_ASSIGN_OR_RETURN(const Predictions found, Predict(model, set, train, test, PairLeave::kFamily, options));
      for (size_t k = 0; k < test.size(); ++k) {
        predictions.push_back({test[k].device, test[k].victim, test[k].other, found.values[k], found.uppers[k]});
      }
      HORUS_RETURN_IF_ERROR(Report(progress, ++done, all));
    }
  }
  std::sort(predictions.begin(), predictions.end(), [](const UnseenPrediction& a, const UnseenPrediction& b) {
    return std::tie(a.device, a.victim, a.other) < std::tie(b.device, b.victim, b.other);
  });
  return predictions;
}

}  // namespace horus
