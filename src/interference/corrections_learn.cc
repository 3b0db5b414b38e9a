// SPDX-License-Identifier: Apache-2.0
// Learns errors of a model as a Gaussian process over ordered pairs of jobs, robustly.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "interference/conjugate_gradients.h"
#include "interference/corrections.h"
#include "interference/excess.h"
#include "interference/quantile.h"

namespace horus {
namespace {

constexpr double kNoise = 0.07;  // of one observation, relative: between the 5 and 10 % that sites report
constexpr double kDrift = 0.03;  // of z: no number of observations makes anything surer than this
constexpr double kOutlier = 2;   // standard deviations of noise beyond which an observation counts less
constexpr int kRobustPasses = 3;
constexpr double kContradiction = 3;  // standard deviations of model and noise together
constexpr double kEnoughSeen = 3;     // observations of two jobs before their own bound stands
// On a device of which the model knew nothing: how many observations its stated errors are worth. The spread within
// K80, P100 and V100, each left out, is 0.28, 0.44 and 0.65: e^0.4 apart, as if each were told by 1 / (2 x 0.4^2) of
// them.
constexpr double kScaleObservations = 3;
constexpr double kMostScale = 2;
constexpr double kTolerance = 1e-8, kVarianceTolerance = 1e-5;
constexpr int kMostIterations = 500;
constexpr double kUsualIterations = 30;  // for progress only

}  // namespace

// Collects one equation a situation: the sum of its pairs' errors, each by its share, is what the model missed.
class CorrectionsLearner {
 public:
  CorrectionsLearner(const InterferenceModel& model, const Catalogue& catalogue)
      : model_(model), catalogue_(catalogue) {}

  // What has no room is left out.
  [[nodiscard]] absl::Status Add(const Situation& situation);
  [[nodiscard]] absl::StatusOr<Corrections> Learn(const CommitProgress& progress) &&;

 private:
  using Pair = Corrections::Pair;
  struct Line {
    std::vector<std::pair<uint32_t, double>> pairs;  // position, share
    double residual = 0;
    double variance = 0;  // of the residual, by noise
    double weight = 0;    // observations that it sums up
    double inflation = 1;
  };
  // Covariances of the pairs' errors, row by row.
  struct Related {
    std::vector<size_t> ends;
    std::vector<uint32_t> positions;
    std::vector<float> covariances;
  };

  [[nodiscard]] bool HasRoom(const Situation& situation, uint64_t device) const;
  [[nodiscard]] absl::StatusOr<double> KnownError(const DeviceContext& device, const Demand& job);
  [[nodiscard]] double LevelErrorOf(const DeviceContext& device);
  [[nodiscard]] absl::StatusOr<uint32_t> PairOf(const DeviceContext& device, const Demand& victim, const Demand& other,
                                                const Slowdown& alone);
  void Sort();
  void Relate();
  void SetWeights(const std::vector<double>& x);
  [[nodiscard]] std::vector<double> LinesBy(size_t level, size_t part) const;
  void LearnLevels();  // what is left of them
  void LearnScales(const std::vector<double>& residuals, const std::vector<double>& x);
  [[nodiscard]] std::vector<double> Times(const std::vector<double>& x);

  const InterferenceModel& model_;
  const Catalogue& catalogue_;
  Corrections corrections_;
  std::vector<Line> lines_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint32_t> position_;  // device, victim, other
  std::map<std::tuple<uint64_t, uint64_t, bool>, size_t> met_;             // device, job, as victim
  std::map<std::pair<uint64_t, uint64_t>, double> errors_;                 // device, job
  Related related_;
};

bool CorrectionsLearner::HasRoom(const Situation& situation, uint64_t device) const {
  const auto met = [&](uint64_t job, bool as_victim) {
    const auto at = met_.find({device, job, as_victim});
    return at == met_.end() ? 0 : at->second;
  };
  const uint64_t victim = situation.tenants[0].profile_id;
  size_t fresh = 0;
  for (size_t o = 1; o < situation.tenants.size(); ++o) {
    const uint64_t other = situation.tenants[o].profile_id;
    if (position_.contains({device, victim, other})) continue;
    ++fresh;
    if (met(other, false) >= Corrections::kMostMet) return false;
  }
  return fresh == 0 || (met(victim, true) + fresh <= Corrections::kMostMet &&
                        corrections_.pairs_.size() + fresh <= Corrections::kMostPairs);
}

absl::StatusOr<double> CorrectionsLearner::KnownError(const DeviceContext& device, const Demand& job) {
  const auto [at, fresh] = errors_.try_emplace({Corrections::KeyOf(device), job.profile_id}, 0);
  if (fresh) {
    HORUS_ASSIGN_OR_RETURN(at->second, ErrorOfJob(model_, device, job));
  }
  return at->second;
}

// Kept in the order of the devices' keys.
double CorrectionsLearner::LevelErrorOf(const DeviceContext& device) {
  const uint64_t key = Corrections::KeyOf(device);
  if (const Corrections::Level* level = corrections_.LevelOf(key); level != nullptr) return level->error;
  const double error = model_.LevelError(device);
  if (error == 0) return 0;
  std::vector<Corrections::Level>& levels = corrections_.levels_;
  const auto after =
      std::find_if(levels.begin(), levels.end(), [key](const auto& level) { return level.device > key; });
  Corrections::Level level{.device = key, .error = error};
  for (size_t part = 0; part < level.left.size(); ++part) level.left[part][part] = 1;
  levels.insert(after, level);
  return error;
}

absl::StatusOr<uint32_t> CorrectionsLearner::PairOf(const DeviceContext& device, const Demand& victim,
                                                    const Demand& other, const Slowdown& alone) {
  const uint64_t key = Corrections::KeyOf(device);
  const auto [at, fresh] = position_.try_emplace({key, victim.profile_id, other.profile_id},
                                                 static_cast<uint32_t>(corrections_.pairs_.size()));
  if (fresh) {
    ++met_[{key, victim.profile_id, true}];
    ++met_[{key, other.profile_id, false}];
    Pair pair{.device = key,
              .victim = victim.profile_id,
              .other = other.profile_id,
              .victim_point = TenantOf(victim, device).point,
              .other_point = TenantOf(other, device).point};
    HORUS_ASSIGN_OR_RETURN(pair.victim_error, KnownError(device, victim));
    HORUS_ASSIGN_OR_RETURN(pair.other_error, KnownError(device, other));
    const ModelError error = ErrorOf(alone, LevelErrorOf(device));
    pair.scale = ScaleOfErrors(pair.victim_error, pair.other_error, error);
    pair.level = error.level;
    corrections_.pairs_.push_back(pair);
  }
  return at->second;
}

absl::Status CorrectionsLearner::Add(const Situation& s) {
  const std::optional<GpuTypeId> type = catalogue_.FindKnown(s.gpu);
  if (!type.has_value()) return absl::OkStatus();
  const DeviceContext device{.type = *type, .mode = s.mode, .compute_share = s.compute_share};
  if (!HasRoom(s, Corrections::KeyOf(device))) return absl::OkStatus();
  const Demand& victim = s.tenants[0];
  Line line;
  double excess = 0;
  for (size_t o = 1; o < s.tenants.size(); ++o) {
    std::array<Slowdown, 2> answer;
    HORUS_RETURN_IF_ERROR(model_.Predict(device, std::array{&victim, &s.tenants[o]}, answer));
    HORUS_ASSIGN_OR_RETURN(const uint32_t at, PairOf(device, victim, s.tenants[o], answer[0]));
    line.pairs.emplace_back(at, static_cast<double>(answer[0].estimate) - kSlowdownShift);
    excess += line.pairs.back().second;
  }
  for (auto& [at, share] : line.pairs) share /= excess;
  std::vector<const Demand*> all;
  for (const Demand& tenant : s.tenants) all.push_back(&tenant);
  std::vector<Slowdown> answers(all.size());
  HORUS_RETURN_IF_ERROR(model_.Predict(device, all, answers));
  const double seen = std::exp(s.mean), predicted = static_cast<double>(answers[0].estimate);
  line.residual = ExcessOf(seen) - ExcessOf(predicted);
  // What was seen to disagree with itself is noisier than usual: one of three is an outlier. And as the excess hides a
  // smaller share of a larger slowdown's noise, an outlier downwards is not to pass for precise.
  const double noise = std::max(kNoise, std::sqrt(s.variance)), most = std::max(seen, predicted);
  const double per_excess = noise * most / (most - kSlowdownShift);
  line.weight = s.weight;
  line.variance = per_excess * per_excess / s.weight + kDrift * kDrift;
  if (line.pairs.size() == 1) {
    Pair& pair = corrections_.pairs_[line.pairs[0].first];
    pair.noise = line.variance;
    const double own = pair.scale * std::sqrt(kErrorOfOne) * std::hypot(pair.victim_error, pair.other_error);
    const double stated = std::hypot(own, pair.level);
    if (s.weight >= kEnoughSeen) {
      // A model that is sure of itself is believed until several observations say that it cannot be right.
      if (std::abs(line.residual) > kContradiction * std::hypot(stated, std::sqrt(line.variance))) {
        pair.scale *= std::abs(line.residual) / stated;
      }
      pair.margin = kDeviationsToUpper * std::sqrt(line.variance);
      // Where the model's own bound turned out wrong, the bound is that of what was seen.
      if (seen > static_cast<double>(answers[0].upper)) pair.least_bound = ExcessOf(seen) + pair.margin;
    }
  }
  lines_.push_back(std::move(line));
  return absl::OkStatus();
}

// Into their order; lines follow.
void CorrectionsLearner::Sort() {
  std::vector<Pair>& pairs = corrections_.pairs_;
  std::vector<uint32_t> order(pairs.size()), place(pairs.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&pairs](uint32_t a, uint32_t b) {
    const Pair &x = pairs[a], &y = pairs[b];
    return std::tie(x.device, x.victim, x.other) < std::tie(y.device, y.victim, y.other);
  });
  std::vector<Pair> sorted;
  sorted.reserve(pairs.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(pairs[order[i]]);
  }
  pairs = std::move(sorted);
  for (Line& line : lines_) {
    for (auto& [at, share] : line.pairs) at = place[at];
  }
  corrections_.Index();
}

void CorrectionsLearner::Relate() {
  for (const Pair& pair : corrections_.pairs_) {
    corrections_.VisitRelated(pair, [&](size_t at, double share, bool as_victim) {
      const Pair& other = corrections_.pairs_[at];
      const double error = pair.scale * (as_victim ? pair.victim_error : pair.other_error);
      const double others = other.scale * (as_victim ? other.victim_error : other.other_error);
      related_.positions.push_back(static_cast<uint32_t>(at));
      related_.covariances.push_back(static_cast<float>(share * error * others));
    });
    related_.ends.push_back(related_.positions.size());
  }
}

// Of the pairs, and of the levels, whose pairs lie side by side.
void CorrectionsLearner::SetWeights(const std::vector<double>& x) {
  for (Pair& pair : corrections_.pairs_) pair.weight = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    for (const auto& [at, share] : lines_[i].pairs) corrections_.pairs_[at].weight += share * x[i];
  }
  for (Corrections::Level& level : corrections_.levels_) level.shift = {};
  auto level = corrections_.levels_.begin();
  for (const Pair& pair : corrections_.pairs_) {
    while (level != corrections_.levels_.end() && level->device < pair.device) ++level;
    if (level == corrections_.levels_.end() || level->device != pair.device) continue;
    const Corrections::Common common = Corrections::CommonOf(pair);
    for (size_t c = 0; c < common.size(); ++c) level->shift[c] += common[c] * pair.weight;
  }
}

// (K + noise) x
std::vector<double> CorrectionsLearner::Times(const std::vector<double>& x) {
  SetWeights(x);
  std::vector<double> of_pair;
  size_t at = 0;
  for (const size_t end : related_.ends) {
    const Pair& pair = corrections_.pairs_[of_pair.size()];
    double sum = 0;
    if (const Corrections::Level* level = corrections_.LevelOf(pair.device); level != nullptr) {
      sum = Corrections::Product(Corrections::CommonOf(pair), level->shift);
    }
    for (; at < end; ++at) {
      sum += static_cast<double>(related_.covariances[at]) * corrections_.pairs_[related_.positions[at]].weight;
    }
    of_pair.push_back(sum);
  }
  std::vector<double> out(lines_.size());
  for (size_t i = 0; i < lines_.size(); ++i) {
    out[i] = lines_[i].variance * lines_[i].inflation * x[i];
    for (const auto& [pair, share] : lines_[i].pairs) out[i] += share * of_pair[pair];
  }
  return out;
}

// By how much each line moves with one of the parts that a device's pairs have in common, for a deviation of it.
std::vector<double> CorrectionsLearner::LinesBy(size_t level, size_t part) const {
  std::vector<double> out(lines_.size());
  for (size_t i = 0; i < lines_.size(); ++i) {
    for (const auto& [at, share] : lines_[i].pairs) {
      const Pair& pair = corrections_.pairs_[at];
      if (pair.device == corrections_.levels_[level].device) out[i] += share * Corrections::CommonOf(pair)[part];
    }
  }
  return out;
}

void CorrectionsLearner::LearnLevels() {
  for (size_t at = 0; at < corrections_.levels_.size(); ++at) {
    std::array<std::vector<double>, Corrections::kCommon> moved;
    for (size_t part = 0; part < moved.size(); ++part) moved[part] = LinesBy(at, part);
    for (size_t part = 0; part < moved.size(); ++part) {
      const std::vector<double> solved = SolveByConjugateGradients(
          [this](const std::vector<double>& v) { return Times(v); }, moved[part], kVarianceTolerance, kMostIterations);
      for (size_t other = 0; other < moved.size(); ++other) {
        const double told = std::inner_product(moved[other].begin(), moved[other].end(), solved.begin(), 0.0);
        corrections_.levels_[at].left[part][other] = (part == other ? 1 : 0) - told;
      }
    }
  }
}

// Residuals, made independent of each other and of variance 1 if the model's errors are as large as it says: their mean
// square, beside that of kScaleObservations which are.
void CorrectionsLearner::LearnScales(const std::vector<double>& residuals, const std::vector<double>& x) {
  for (Corrections::Level& level : corrections_.levels_) {
    // Without the level's own part: that it is an unlikely one tells nothing of errors beside it.
    double squares = kScaleObservations - level.shift[0] * level.shift[0], count = kScaleObservations;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (corrections_.pairs_[lines_[i].pairs[0].first].device != level.device) continue;
      squares += residuals[i] * x[i];
      count += 1;
    }
    level.scale = std::min(std::sqrt(std::max(squares, 0.0) / count), kMostScale);
  }
}

absl::StatusOr<Corrections> CorrectionsLearner::Learn(const CommitProgress& progress) && {
  Sort();
  Relate();
  std::vector<double> residuals, x;
  for (const Line& line : lines_) residuals.push_back(line.residual);
  for (int pass = 0; pass < kRobustPasses; ++pass) {
    bool go_on = true;
    int iterations = 0;
    const auto tell = [&] {
      const double of_pass = 1 - 1 / (1 + ++iterations / kUsualIterations);
      return go_on = !progress || progress((pass + of_pass) / kRobustPasses);
    };
    x = SolveByConjugateGradients([this](const std::vector<double>& v) { return Times(v); }, residuals, kTolerance,
                                  kMostIterations, tell);
    if (!go_on) return MakeError(absl::StatusCode::kCancelled, "commit was cancelled");
    for (size_t i = 0; i < lines_.size(); ++i) {
      // One or two observations may be outliers; more that agree are the truth, however unlikely the model finds them
      // (what does not agree with the others of its situation counted little there).
      if (lines_[i].weight >= kEnoughSeen) continue;
      // What is left of the residual is variance times solution.
      const double left = std::sqrt(lines_[i].variance) * lines_[i].inflation * std::abs(x[i]);
      lines_[i].inflation = std::max(1.0, left / kOutlier);
    }
  }
  LearnLevels();
  SetWeights(x);
  LearnScales(residuals, x);
  for (const Line& line : lines_) {
    if (line.pairs.size() == 1) corrections_.pairs_[line.pairs[0].first].noise = line.variance * line.inflation;
  }
  corrections_.MakeBlocks();
  return std::move(corrections_);
}

absl::StatusOr<Corrections> Corrections::Learn(const InterferenceModel& model, const ObservedSlowdowns& observed,
                                               const Catalogue& catalogue, const CommitProgress& progress) {
  // Newest first, so that what is left out is old; an order of its own, whatever slots were used.
  std::vector<const Situation*> situations;
  for (const Situation& situation : observed.situations()) situations.push_back(&situation);
  std::sort(situations.begin(), situations.end(), [](const auto* a, const auto* b) { return a->seen > b->seen; });
  CorrectionsLearner learner(model, catalogue);
  for (const Situation* situation : situations) HORUS_RETURN_IF_ERROR(learner.Add(*situation));
  return std::move(learner).Learn(progress);
}

}  // namespace horus
