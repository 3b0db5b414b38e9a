// SPDX-License-Identifier: Apache-2.0
// The scale of margins: every group of rows is predicted by a model that has not seen it.
#include "interference/pair_bounds.h"

#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/hash.h"
#include "base/statistics.h"
#include "base/status.h"

namespace horus {
namespace {

// ---- Groups of rows that leave together, and predictions of them.

// The groups that a row belongs to: one of a job, up to two of jobs and families.
std::set<std::string> GroupsOfRow(const PairSet& set, const PairRow& row, PairLeave leave, uint32_t folds,
                                  uint32_t seed) {
  const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
  switch (leave) {
    case PairLeave::kPair: {
      const auto [low, high] = std::minmax(row.victim, row.other);
      const uint64_t hash = CombineHash(CombineHash(seed, low), high);
      return {"fold " + std::to_string(hash % folds)};
    }
    case PairLeave::kJob:
      return {victim.name, other.name};
    case PairLeave::kFamily:
      return {victim.family, other.family};
    case PairLeave::kGpu:
      return {set.devices[row.device].gpu};
  }
  return {};
}

}  // namespace

std::vector<LeftOut> LeaveOut(const PairSet& set, std::span<const PairRow> rows, PairLeave leave, uint32_t folds,
                              uint32_t seed) {
  std::vector<LeftOut> groups;
  std::map<std::string, size_t> position;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    for (const std::string& name : GroupsOfRow(set, rows[i], leave, folds, seed)) {
      const auto [at, added] = position.emplace(name, groups.size());
      if (added) groups.push_back({.name = name, .rows = {}});
      groups[at->second].rows.push_back(i);
    }
  }
  return groups;
}

std::vector<PairRow> RowsAt(std::span<const PairRow> rows, std::span<const uint32_t> positions) {
  std::vector<PairRow> some;
  some.reserve(positions.size());
  for (const uint32_t position : positions) some.push_back(rows[position]);
  return some;
}

std::vector<PairRow> RowsBut(std::span<const PairRow> rows, std::span<const uint32_t> positions) {
  std::vector<PairRow> others;
  auto next = positions.begin();
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (next != positions.end() && *next == i) {
      ++next;
    } else {
      others.push_back(rows[i]);
    }
  }
  return others;
}

std::vector<double> PredictRows(const PairModel& model, const PairSet& set, std::span<const PairRow> rows) {
  std::vector<double> predictions;
  predictions.reserve(rows.size());
  for (const PairRow& row : rows) {
    const PairJob &victim = set.jobs[row.victim], &other = set.jobs[row.other];
    const std::array<Tenant, 2> tenants = {Tenant{victim.profile_id, victim.points[row.device]},
                                           Tenant{other.profile_id, other.points[row.device]}};
    std::array<float, 4> slowdowns = {};
    model.Pairs(row.device, tenants, slowdowns);
    predictions.push_back(static_cast<double>(slowdowns[1]));  // of the first beside the second
  }
  return predictions;
}

absl::StatusOr<std::vector<double>> FitAndPredict(const PairModelKind& kind, const PairSet& set,
                                                  std::span<const PairRow> train, std::span<const PairRow> test,
                                                  const PairFitOptions& options) {
  if (test.empty()) return std::vector<double>();
  HORUS_ASSIGN_OR_RETURN(const BundleTarget target, kind.fit(set, train, options));
  HORUS_ASSIGN_OR_RETURN(const auto model, kind.read(HeaderOf(set), target));
  return PredictRows(*model, set, test);
}

namespace {

constexpr double kLeastFitted = 0.75;  // below it errors tell little of how far bounds must lie

struct Score {
  uint32_t device;
  uint64_t group;  // rows of one group hang together
  double value;    // of z: measured - predicted
  bool strangers;  // both jobs were left out
};

// By how much further the bound of a new group must lie when what is common was learned from n groups: their mean is
// off by its own error. Student's t in place of normal deviates (1.15 times as far for six) covered 95 % where 90 %
// were asked.
double FewGroups(size_t groups) { return std::sqrt(1 + 1 / static_cast<double>(groups)); }

// Scores in order, every group of the same weight however many rows it has.
class GroupedScores {
 public:
  explicit GroupedScores(std::span<const Score> scores) : scores_(scores.begin(), scores.end()) {
    for (const Score& score : scores_) rows_[score.group] += 1;
    std::stable_sort(scores_.begin(), scores_.end(), [](const Score& a, const Score& b) { return a.value < b.value; });
  }

  [[nodiscard]] size_t groups() const { return rows_.size(); }

  // The margin at probability `p` that all groups give, or all but `without`; at least two remain.
  [[nodiscard]] double Margin(double p, std::optional<uint64_t> without) const {
    const size_t left = groups() - (without.has_value() ? 1 : 0);
    double below = 0, margin = 0;
    for (const Score& score : scores_) {
      if (score.group == without) continue;
      margin = score.value;
      below += 1 / rows_.at(score.group);
      if (below >= p * static_cast<double>(left)) break;
    }
    return std::max(0.0, margin) * FewGroups(left);
  }

  // Share of the rows within what the other groups give.
  [[nodiscard]] double Observed(double p) const {
    double covered = 0;
    std::map<uint64_t, double> margins;
    for (const Score& score : scores_) {
      const auto [at, fresh] = margins.try_emplace(score.group, 0);
      if (fresh) at->second = Margin(p, score.group);
      covered += score.value <= at->second ? 1 : 0;
    }
    return covered / static_cast<double>(scores_.size());
  }

 private:
  std::vector<Score> scores_;
  std::map<uint64_t, double> rows_;  // of each group
};

// The scale of a normal distribution of z whose bound at `promise` covers the groups left out, as a margin at
// kUpperProbability. n groups tell at most what lies below n / (n + 1).
PairMargin MarginOf(std::span<const Score> scores, double promise) {
  const GroupedScores grouped(scores);
  if (grouped.groups() < 2) return {.margin = kDefaultMargin};
  const auto n = static_cast<double>(grouped.groups());
  const double at = std::max(promise, kLeastFitted);
  return {.margin = grouped.Margin(at, std::nullopt) * kDeviationsToUpper / DeviationsAt(at),
          .promised = std::min(promise, n / (n + 1)),
          .observed = grouped.groups() < 3 ? 0 : grouped.Observed(at)};
}

// Of the errors that are not common to all of a GPU type: the largest that any type showed, as a deviation of z.
double WithinTypes(std::span<const Score> scores, double promise) {
  const double at = std::max(promise, kLeastFitted);
  std::map<uint64_t, std::vector<double>> types;
  for (const Score& score : scores) types[score.group].push_back(score.value);
  double most = 0;
  for (auto& [type, values] : types) {
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    std::sort(values.begin(), values.end());
    const auto place = static_cast<size_t>(at * static_cast<double>(values.size() - 1));
    most = std::max(most, (values[place] - mean) / DeviationsAt(at));
  }
  return most;
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
        const bool strangers =
            leave != PairLeave::kFamily || set.jobs[low].family == set.jobs[high].family;  // or one is a resident
        scores.push_back({test[i].device, group, ExcessOf(test[i].slowdown) - ExcessOf(predicted[i]), strangers});
        errors += std::abs(predicted[i] / test[i].slowdown - 1);
      }
      if (done && !done()) return MakeError(absl::StatusCode::kCancelled, "training was cancelled");
    }
    if (mape != nullptr && !scores.empty()) *mape = 100 * errors / static_cast<double>(scores.size());
    return scores;
  }

  [[nodiscard]] PairMargin OnDevice(std::span<const Score> scores, uint32_t device, bool strangers) const {
    std::vector<Score> here;
    std::copy_if(scores.begin(), scores.end(), std::back_inserter(here),
                 [&](const Score& s) { return s.device == device && s.strangers == strangers; });
    return MarginOf(here, plan.promise);
  }
};

}  // namespace

const PairMargin& PairBounds::Of(uint32_t device, int jobs_seen) const {
  if (device >= devices.size()) return unseen;
  const Device& here = devices[device];
  return jobs_seen == 2 ? here.pair : jobs_seen == 1 ? here.family : here.strangers;
}

double MarginAt(const PairMargin& margin, double probability) {
  return margin.margin * DeviationsAt(probability) / kDeviationsToUpper;
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
    bounds.devices.push_back({.pair = calibrator.OnDevice(pairs, d, true),
                              .family = calibrator.OnDevice(families, d, false),
                              .strangers = calibrator.OnDevice(families, d, true)});
    PairBounds::Device& device = bounds.devices.back();
    // Less known never means a tighter bound.
    if (plan.pairs) device.family.margin = std::max(device.family.margin, device.pair.margin);
    device.strangers.margin = std::max(device.strangers.margin, device.family.margin);
  }
  // A level in common, and beside it what the types left out showed, or at least what a job never seen does.
  double within = gpus.empty() ? 0 : WithinTypes(gpus, plan.promise);
  for (const PairBounds::Device& device : bounds.devices) {
    if (device.family.promised > 0) within = std::max(within, device.family.margin / kDeviationsToUpper);
  }
  bounds.unseen = MarginOf(gpus, plan.promise);
  bounds.unseen.margin = kDeviationsToUpper * std::hypot(kLevelError, within);
  for (const PairBounds::Device& device : bounds.devices) {
    if (plan.families) bounds.unseen.margin = std::max(bounds.unseen.margin, device.strangers.margin);
  }
  bounds.level = kLevelError;
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
