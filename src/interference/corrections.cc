// SPDX-License-Identifier: Apache-2.0
// Corrections: learned from observations, asked as sums over the pairs that share a job with the one asked of.
#include "interference/corrections.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "interference/conjugate_gradients.h"

namespace horus {
namespace {

// Of a model, in z, whatever its bounds say. The least is small, so that a model that says that it is right, and is,
// loses less than 0.2 points to noise by being corrected; one whose bound is its estimate gives no bound, and says
// nothing.
constexpr double kLeastError = 0.015, kMostError = 0.8, kErrorWithoutBound = 0.3;

// A usual job: steps of 0.1 s, kernels of 0.1 ms, operators of 1 ms, busy all the time.
const JobPoint kUsual = {std::log(1e5f), std::log(100.0f), std::log(1000.0f), 0};

// Of the level of a device never measured: by how much it may differ for a job that is one unit of SquaredDistance
// away, as a standard deviation. 0.25 x 0.6 is what the kernel's prior (kernel_model.h) lets a straight line and a
// smooth function differ by between devices: 0.2 and 0.3, times the root of 1 - 0.6.
constexpr double kSlopeOfLevel = 0.25;
constexpr double kFurthest = 4;  // of those units: beyond it, the line is level

}  // namespace

absl::StatusOr<double> ErrorOfJob(const InterferenceModel& model, const DeviceContext& device, const Demand& job) {
  std::array<Slowdown, 2> answer;
  HORUS_RETURN_IF_ERROR(model.Predict(device, std::array{&job, &job}, answer));
  return ErrorOf(answer[0], model.LevelError(device)).own;
}

ModelError ErrorOf(const Slowdown& answer, double level) {
  const double margin = ExcessOf(static_cast<double>(answer.upper)) - ExcessOf(static_cast<double>(answer.estimate));
  const double error = margin > 0 ? margin / kDeviationsToUpper : kErrorWithoutBound;
  const double common = std::min(level, error);  // two that were measured there have no more in common with the rest
  return {.level = common,
          .own = std::clamp(std::sqrt(std::max(0.0, error * error - common * common)), kLeastError, kMostError)};
}

double ScaleOfErrors(double victim_error, double other_error, const ModelError& alone) {
  return alone.own / std::sqrt(kErrorOfOne * (victim_error * victim_error + other_error * other_error));
}

double ResemblanceOf(const JobPoint& a, const JobPoint& b) {
  // What is unknown is one value for all jobs, so that resemblance stays a covariance: counted as no difference, an
  // unknown job would resemble two jobs fully that do not resemble each other. Any value would do.
  constexpr double kLength = 2.5;  // in units of SquaredDistance: chosen as the shares of error were
  JobPoint known_a = a, known_b = b;
  for (size_t c = 0; c < kPointColumns; ++c) {
    if (std::isnan(a[c])) known_a[c] = kUsual[c];
    if (std::isnan(b[c])) known_b[c] = kUsual[c];
  }
  return std::exp(-0.5 * SquaredDistance(known_a, known_b) / (kLength * kLength));
}

uint64_t Corrections::KeyOf(const DeviceContext& device) {
  return CombineHash(CombineHash(device.type.value(), static_cast<uint64_t>(device.mode)),
                     std::bit_cast<uint32_t>(device.compute_share));
}

void Corrections::Index() {
  by_other_.resize(pairs_.size());
  for (uint32_t i = 0; i < by_other_.size(); ++i) by_other_[i] = i;
  std::sort(by_other_.begin(), by_other_.end(), [this](uint32_t a, uint32_t b) {
    const Pair &x = pairs_[a], &y = pairs_[b];
    return std::tie(x.device, x.other, x.victim) < std::tie(y.device, y.other, y.victim);
  });
}

std::pair<size_t, size_t> Corrections::WithVictim(uint64_t device, uint64_t victim) const {
  const auto key = std::pair{device, victim};
  const auto of = [](const Pair& p) { return std::pair{p.device, p.victim}; };
  const auto first = std::partition_point(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return of(p) < key; });
  const auto last = std::partition_point(first, pairs_.end(), [&](const Pair& p) { return of(p) == key; });
  return {static_cast<size_t>(first - pairs_.begin()), static_cast<size_t>(last - pairs_.begin())};
}

std::span<const uint32_t> Corrections::WithOther(uint64_t device, uint64_t other) const {
  const auto key = std::pair{device, other};
  const auto of = [this](uint32_t i) { return std::pair{pairs_[i].device, pairs_[i].other}; };
  const auto first = std::partition_point(by_other_.begin(), by_other_.end(), [&](uint32_t i) { return of(i) < key; });
  const auto last = std::partition_point(first, by_other_.end(), [&](uint32_t i) { return of(i) == key; });
  return std::span(by_other_).subspan(first - by_other_.begin(), last - first);
}

std::optional<double> Corrections::KnownError(const DeviceContext& device, uint64_t profile_id) const {
  const uint64_t key = KeyOf(device);
  if (const auto [first, last] = WithVictim(key, profile_id); first < last) return pairs_[first].victim_error;
  if (const auto other = WithOther(key, profile_id); !other.empty()) return pairs_[other[0]].other_error;
  return std::nullopt;
}

const Corrections::Level* Corrections::LevelOf(uint64_t device) const {
  const auto at = std::lower_bound(levels_.begin(), levels_.end(), device,
                                   [](const Level& level, uint64_t key) { return level.device < key; });
  return at != levels_.end() && at->device == device ? &*at : nullptr;
}

std::optional<double> Corrections::LevelLeft(const DeviceContext& device) const {
  const Level* level = LevelOf(KeyOf(device));
  return level == nullptr ? std::nullopt : std::optional(level->error * std::sqrt(std::max(0.0, level->left[0][0])));
}

Corrections::Common Corrections::CommonOf(const Pair& pair) {
  Common common = {};
  if (pair.level == 0) return common;
  common[0] = pair.level;
  for (size_t c = 0; c < kPointColumns; ++c) {
    const auto column = [c](const JobPoint& point) {
      const auto value = static_cast<double>(point[c] - kUsual[c]) / ScaleOf(c);
      return std::isnan(value) ? 0 : std::clamp(value, -kFurthest, kFurthest);
    };
    common[1 + c] = pair.level * kSlopeOfLevel * column(pair.victim_point);
    common[1 + kPointColumns + c] = pair.level * kSlopeOfLevel * column(pair.other_point);
  }
  return common;
}

double Corrections::Product(const Common& a, const Common& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double Corrections::LeftOf(const Level& level, const Common& common) {
  double left = 0;
  for (size_t i = 0; i < kCommon; ++i) left += common[i] * Product(level.left[i], common);
  return std::max(0.0, left);
}

double Corrections::ShareOf(const Pair& a, const Pair& b, bool as_victim) {
  const bool same = as_victim ? a.other == b.other : a.victim == b.victim;
  const double alike =
      as_victim ? ResemblanceOf(a.other_point, b.other_point) : ResemblanceOf(a.victim_point, b.victim_point);
  return kErrorOfJob + kErrorSmooth * alike + (same ? kErrorOfPair : 0);
}

Corrections::Kin Corrections::KinOf(const Pair& asked, bool as_victim) const {
  if (as_victim) {
    const auto [first, last] = WithVictim(asked.device, asked.victim);
    return {.first = first, .count = last - first, .as_victim = true};
  }
  const std::span<const uint32_t> with = WithOther(asked.device, asked.other);
  if (with.empty()) return {};
  return {.first = static_cast<size_t>(with.data() - by_other_.data()), .count = with.size()};
}

// The posterior variance of a normal variable, given the observations of the
// block: exact for those, and more would only lessen it.
Corrections::Left Corrections::LeftOf(const Pair& asked, const Common& common, const Kin& kin,
                                      std::span<const double> covariances) const {
  const double own = asked.scale * (kin.as_victim ? asked.victim_error : asked.other_error);
  Left left{.part = kErrorOfOne * own * own, .with_level = kErrorOfOne * own * own + Product(common, common)};
  const auto& blocks = blocks_[kin.as_victim ? 1 : 0];
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), kin.first,
                                   [](const auto& block, size_t position) { return block.first < position; });
  if (kin.count == 0 || at == blocks.end() || at->first != kin.first) return left;
  const Block& block = at->second;
  std::array<double, kMostTold> part = {}, both = {};
  for (size_t i = 0; i < block.count; ++i) {
    const uint32_t told = told_[block.first + i];
    part[i] = both[i] = covariances[told];
    if (asked.level > 0) both[i] += Product(common, CommonOf(pairs_[At(kin, told)]));
  }
  double of_part = 0, of_both = 0;
  for (size_t i = 0; i < block.count; ++i) {
    const float* row = inverses_.data() + block.inverse + i * block.count;
    double told = 0, told_both = 0;
    for (size_t j = 0; j < block.count; ++j) {
      told += static_cast<double>(row[j]) * part[j];
      told_both += static_cast<double>(row[j]) * both[j];
    }
    of_part += told * part[i];
    of_both += told_both * both[i];
  }
  left.part = std::max(0.0, left.part - of_part);
  left.with_level = std::max(0.0, left.with_level - of_both);
  return left;
}

Correction Corrections::Of(const DeviceContext& device, const Tenant& victim, double victim_error, const Tenant& other,
                           double other_error, const Slowdown& alone) const {
  if (pairs_.empty()) return {};
  const uint64_t key = KeyOf(device);
  const Level* level = LevelOf(key);
  const bool named = victim.profile_id != 0 && other.profile_id != 0;
  if (!named && level == nullptr) return {};
  const ModelError error = ErrorOf(alone, level == nullptr ? 0 : level->error);
  Pair asked{.device = key,
             .victim = named ? victim.profile_id : 0,
             .other = named ? other.profile_id : 0,
             .victim_point = victim.point,
             .other_point = other.point,
             .victim_error = victim_error,
             .other_error = other_error,
             .scale = ScaleOfErrors(victim_error, other_error, error),
             .level = error.level};
  const std::array<Kin, 2> kin = {KinOf(asked, true), KinOf(asked, false)};
  Correction correction;
  for (size_t i = 0; i < kin[0].count; ++i) {
    const Pair& seen = pairs_[At(kin[0], i)];
    if (seen.other != asked.other) continue;
    asked.scale = seen.scale;  // what was learned of it
    asked.level = seen.level;
    correction.margin = seen.margin;
    correction.least_bound = seen.least_bound;
  }
  const Common common = CommonOf(asked);
  if (level != nullptr) correction.shift = Product(common, level->shift);
  std::array<Left, 2> left;
  for (const size_t role : {size_t{0}, size_t{1}}) {
    const double own = asked.scale * (role == 0 ? victim_error : other_error);
    std::array<double, kMostMet> covariances = {};
    for (size_t i = 0; i < kin[role].count; ++i) {
      const Pair& seen = pairs_[At(kin[role], i)];
      const double error_of_seen = seen.scale * (role == 0 ? seen.victim_error : seen.other_error);
      covariances[i] = ShareOf(seen, asked, role == 0) * error_of_seen * own;
      correction.shift += seen.weight * covariances[i];
    }
    left[role] = LeftOf(asked, common, kin[role], covariances);
  }
  // The level is learned from this job beside others, or from that one, or from
  // all: whichever leaves least.
  const double of_level = level == nullptr ? 0 : LeftOf(*level, common);
  const double least = std::min(
      {left[0].with_level + left[1].part, left[0].part + left[1].with_level, left[0].part + left[1].part + of_level});
  const double before = Product(common, common) + kErrorOfOne * asked.scale * asked.scale *
                                                      (victim_error * victim_error + other_error * other_error);
  correction.remaining = (level == nullptr ? 1 : level->scale) * std::min(1.0, std::sqrt(least / before));
  return correction;
}

size_t Corrections::bytes_held() const {
  return sizeof(*this) + pairs_.capacity() * sizeof(Pair) +
         (by_other_.capacity() + told_.capacity()) * sizeof(uint32_t) + levels_.capacity() * sizeof(Level) +
         (blocks_[0].capacity() + blocks_[1].capacity()) * sizeof(blocks_[0][0]) + inverses_.capacity() * sizeof(float);
}

// What the margins of learned corrections rest on: for each job the observations that say most, and how they hang
// together.
namespace {

// A symmetric, positive definite matrix of n rows in place, by Gauss and Jordan: no pivots are needed, for noise keeps
// its diagonal away from 0.
void Invert(std::vector<double>& a, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    const double pivot = 1 / a[k * n + k];
    a[k * n + k] = 1;
    for (size_t j = 0; j < n; ++j) a[k * n + j] *= pivot;
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k];
      a[i * n + k] = 0;
      for (size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
}

}  // namespace

// The observations that a job's margins rest on: those with the least noise, and of as much the first.
void Corrections::MakeBlock(std::span<const uint32_t> pairs, bool as_victim) {
  std::vector<uint32_t> told;
  for (const uint32_t at : pairs) {
    if (std::isfinite(pairs_[at].noise)) told.push_back(at);
  }
  std::stable_sort(told.begin(), told.end(),
                   [this](uint32_t a, uint32_t b) { return pairs_[a].noise < pairs_[b].noise; });
  if (told.size() > kMostTold) told.resize(kMostTold);
  const size_t n = told.size();
  std::vector<double> covariance(n * n);
  const auto error_of = [&](const Pair& p, bool victims) {
    return p.scale * (victims ? p.victim_error : p.other_error);
  };
  for (size_t i = 0; i < n; ++i) {
    const Pair& a = pairs_[told[i]];
    for (size_t j = 0; j < n; ++j) {
      const Pair& b = pairs_[told[j]];
      covariance[i * n + j] = Product(CommonOf(a), CommonOf(b)) +
                              error_of(a, as_victim) * error_of(b, as_victim) * ShareOf(a, b, as_victim);
    }
    const double nuisance = error_of(a, !as_victim);
    covariance[i * n + i] += a.noise + kErrorOfOne * nuisance * nuisance;
  }
  Invert(covariance, n);
  for (const uint32_t at : told) {
    told_.push_back(static_cast<uint32_t>(std::find(pairs.begin(), pairs.end(), at) - pairs.begin()));
  }
  for (const double value : covariance) inverses_.push_back(static_cast<float>(value));
}

void Corrections::MakeBlocks() {
  const auto add = [this](uint32_t first, std::span<const uint32_t> pairs, bool as_victim) {
    Block block{.first = static_cast<uint32_t>(told_.size()), .inverse = inverses_.size()};
    MakeBlock(pairs, as_victim);
    block.count = static_cast<uint32_t>(told_.size()) - block.first;
    if (block.count > 0) blocks_[as_victim ? 1 : 0].emplace_back(first, block);
  };
  std::vector<uint32_t> all(pairs_.size());
  std::iota(all.begin(), all.end(), 0u);
  for (size_t first = 0; first < pairs_.size();) {
    const size_t last = WithVictim(pairs_[first].device, pairs_[first].victim).second;
    add(static_cast<uint32_t>(first), std::span(all).subspan(first, last - first), true);
    first = last;
  }
  for (size_t first = 0; first < by_other_.size();) {
    const Pair& pair = pairs_[by_other_[first]];
    const std::span<const uint32_t> with = WithOther(pair.device, pair.other);
    add(static_cast<uint32_t>(first), with, false);
    first += with.size();
  }
}

// Learns errors of a model as a Gaussian process over ordered pairs of jobs, robustly.
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
  const uint64_t victim = ProfileAsRun(situation.tenants[0]);
  size_t fresh = 0;
  for (size_t o = 1; o < situation.tenants.size(); ++o) {
    const uint64_t other = ProfileAsRun(situation.tenants[o]);
    if (position_.contains({device, victim, other})) continue;
    ++fresh;
    if (met(other, false) >= Corrections::kMostMet) return false;
  }
  return fresh == 0 || (met(victim, true) + fresh <= Corrections::kMostMet &&
                        corrections_.pairs_.size() + fresh <= Corrections::kMostPairs);
}

absl::StatusOr<double> CorrectionsLearner::KnownError(const DeviceContext& device, const Demand& job) {
  const auto [at, fresh] = errors_.try_emplace({Corrections::KeyOf(device), ProfileAsRun(job)}, 0);
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
  const auto [at, fresh] = position_.try_emplace({key, ProfileAsRun(victim), ProfileAsRun(other)},
                                                 static_cast<uint32_t>(corrections_.pairs_.size()));
  if (fresh) {
    ++met_[{key, ProfileAsRun(victim), true}];
    ++met_[{key, ProfileAsRun(other), false}];
    Pair pair{.device = key,
              .victim = ProfileAsRun(victim),
              .other = ProfileAsRun(other),
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
  // Newest first, so that what is left out is old.
  CorrectionsLearner learner(model, catalogue);
  const auto& oldest_first = observed.situations();
  for (auto at = oldest_first.rbegin(); at != oldest_first.rend(); ++at) HORUS_RETURN_IF_ERROR(learner.Add(at->second));
  return std::move(learner).Learn(progress);
}

}  // namespace horus
