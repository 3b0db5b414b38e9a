// SPDX-License-Identifier: Apache-2.0
// Corrections: learned from observations, asked as sums over the pairs that share a job with the one asked of.
#include "interference/corrections.h"

#include <bit>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "base/vectors.h"
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
  for (const Role role : kRoles) {
    order_[role].resize(pairs_.size());
    std::iota(order_[role].begin(), order_[role].end(), 0u);
    const auto key = [&](uint32_t i) {
      const Pair& pair = pairs_[i];
      return std::tie(pair.device, pair.jobs[role], pair.jobs[Facing(role)]);
    };
    std::ranges::sort(order_[role], [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  }
}

Corrections::Kin Corrections::With(Role role, uint64_t device, uint64_t job) const {
  const auto of = [&](uint32_t i) { return std::pair{pairs_[i].device, pairs_[i].jobs[role]}; };
  const std::vector<uint32_t>& order = order_[role];
  const std::pair key{device, job};
  const auto first = std::ranges::lower_bound(order, key, {}, of);
  const auto last =
      std::upper_bound(first, order.end(), key, [&](const auto& asked, uint32_t i) { return asked < of(i); });
  return Kin(order).subspan(static_cast<size_t>(first - order.begin()), static_cast<size_t>(last - first));
}

std::optional<double> Corrections::KnownError(const DeviceContext& device, uint64_t profile_id) const {
  const uint64_t key = KeyOf(device);
  for (const Role role : kRoles) {
    const Kin kin = With(role, key, profile_id);
    if (!kin.empty()) return pairs_[kin[0]].errors[role];
  }
  return std::nullopt;
}

const Corrections::Level* Corrections::LevelOf(uint64_t device) const {
  return FindSorted(levels_, device, &Level::device);
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
    common[1 + c] = pair.level * kSlopeOfLevel * column(pair.points[kVictim]);
    common[1 + kPointColumns + c] = pair.level * kSlopeOfLevel * column(pair.points[kOther]);
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

double Corrections::ShareOf(const Pair& a, const Pair& b, Role role) {
  const Role facing = Facing(role);
  return kErrorOfJob + kErrorSmooth * ResemblanceOf(a.points[facing], b.points[facing]) +
         (a.jobs[facing] == b.jobs[facing] ? kErrorOfPair : 0);
}

// The posterior variance of a normal variable, given the observations of the block: exact for those, and more would
// only lessen it.
Corrections::Left Corrections::LeftOf(const Pair& asked, const Common& common, Role role, Kin kin,
                                      std::span<const double> covariances) const {
  const double own = asked.Error(role);
  Left left{.part = kErrorOfOne * own * own, .with_level = kErrorOfOne * own * own + Product(common, common)};
  if (kin.empty()) return left;
  const auto first = static_cast<size_t>(kin.data() - order_[role].data());
  const auto at = std::ranges::lower_bound(blocks_[role], first, {}, [](const auto& block) { return block.first; });
  if (at == blocks_[role].end() || at->first != first) return left;
  const Block& block = at->second;
  std::array<double, kMostTold> part = {}, both = {};
  for (size_t i = 0; i < block.count; ++i) {
    const uint32_t told = told_[block.first + i];
    part[i] = both[i] = covariances[told];
    if (asked.level > 0) both[i] += Product(common, CommonOf(pairs_[kin[told]]));
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
             .points = {victim.point, other.point},
             .errors = {victim_error, other_error},
             .scale = ScaleOfErrors(victim_error, other_error, error),
             .level = error.level};
  if (named) asked.jobs = {victim.profile_id, other.profile_id};
  const std::array<Kin, 2> kin = {With(kVictim, key, asked.jobs[kVictim]), With(kOther, key, asked.jobs[kOther])};
  Correction correction;
  for (const uint32_t at : kin[kVictim]) {
    const Pair& seen = pairs_[at];
    if (seen.jobs[kOther] != asked.jobs[kOther]) continue;
    asked.scale = seen.scale;  // what was learned of it
    asked.level = seen.level;
    correction.margin = seen.margin;
    correction.least_bound = seen.least_bound;
  }
  const Common common = CommonOf(asked);
  if (level != nullptr) correction.shift = Product(common, level->shift);
  std::array<Left, 2> left;
  for (const Role role : kRoles) {
    std::array<double, kMostMet> covariances = {};
    for (size_t i = 0; i < kin[role].size(); ++i) {
      const Pair& seen = pairs_[kin[role][i]];
      covariances[i] = ShareOf(seen, asked, role) * seen.Error(role) * asked.Error(role);
      correction.shift += seen.weight * covariances[i];
    }
    left[role] = LeftOf(asked, common, role, kin[role], covariances);
  }
  // The level is learned from this job beside others, or from that one, or from all: whichever leaves least.
  const double of_level = level == nullptr ? 0 : LeftOf(*level, common);
  const double least = std::min(
      {left[0].with_level + left[1].part, left[0].part + left[1].with_level, left[0].part + left[1].part + of_level});
  const double before = Product(common, common) + kErrorOfOne * asked.scale * asked.scale *
                                                      (victim_error * victim_error + other_error * other_error);
  correction.remaining = (level == nullptr ? 1 : level->scale) * std::min(1.0, std::sqrt(least / before));
  return correction;
}

size_t Corrections::bytes_held() const {
  return sizeof(*this) + BytesIn(pairs_, order_[0], order_[1], told_, levels_, blocks_[0], blocks_[1], inverses_);
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
void Corrections::MakeBlock(Kin kin, Role role) {
  std::vector<uint32_t> told;  // of kin
  for (uint32_t i = 0; i < kin.size(); ++i) {
    if (std::isfinite(pairs_[kin[i]].noise)) told.push_back(i);
  }
  std::ranges::stable_sort(told, {}, [&](uint32_t i) { return pairs_[kin[i]].noise; });
  if (told.size() > kMostTold) told.resize(kMostTold);
  const size_t n = told.size();
  std::vector<double> covariance(n * n);
  for (size_t i = 0; i < n; ++i) {
    const Pair& a = pairs_[kin[told[i]]];
    for (size_t j = 0; j < n; ++j) {
      const Pair& b = pairs_[kin[told[j]]];
      covariance[i * n + j] = Product(CommonOf(a), CommonOf(b)) + a.Error(role) * b.Error(role) * ShareOf(a, b, role);
    }
    const double nuisance = a.Error(Facing(role));
    covariance[i * n + i] += a.noise + kErrorOfOne * nuisance * nuisance;
  }
  Invert(covariance, n);
  told_.insert(told_.end(), told.begin(), told.end());
  for (const double value : covariance) inverses_.push_back(static_cast<float>(value));
}

void Corrections::MakeBlocks() {
  for (const Role role : kRoles) {
    for (uint32_t first = 0; first < pairs_.size();) {
      const Pair& pair = pairs_[order_[role][first]];
      const Kin kin = With(role, pair.device, pair.jobs[role]);
      Block block{.first = static_cast<uint32_t>(told_.size()), .inverse = inverses_.size()};
      MakeBlock(kin, role);
      block.count = static_cast<uint32_t>(told_.size()) - block.first;
      if (block.count > 0) blocks_[role].emplace_back(first, block);
      first += static_cast<uint32_t>(kin.size());
    }
  }
}

// Learns errors of a model as a Gaussian process over ordered pairs of jobs, robustly.
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

// Collects one equation a situation: the sum of its pairs' errors, each by its share, is what the model missed.
class CorrectionsLearner {
 public:
  CorrectionsLearner(const InterferenceModel& model, const Catalogue& catalogue)
      : model_(model), catalogue_(catalogue) {}

  // What has no room is left out.
  [[nodiscard]] absl::Status Add(const Situation& s) {
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
    // What was seen to disagree with itself is noisier than usual: one of three is an outlier. And as the excess hides
    // a smaller share of a larger slowdown's noise, an outlier downwards is not to pass for precise.
    const double noise = std::max(kNoise, std::sqrt(s.variance)), most = std::max(seen, predicted);
    const double per_excess = noise * most / (most - kSlowdownShift);
    line.weight = s.weight;
    line.variance = per_excess * per_excess / s.weight + kDrift * kDrift;
    if (line.pairs.size() == 1) {
      Pair& pair = corrections_.pairs_[line.pairs[0].first];
      pair.noise = line.variance;
      const double own = pair.scale * std::sqrt(kErrorOfOne) * std::hypot(pair.errors[0], pair.errors[1]);
      const double stated = std::hypot(own, pair.level);
      if (s.weight >= kEnoughSeen) {
        // A model that is sure of itself is believed until several observations say that it cannot be right.
        if (std::abs(line.residual) > kContradiction * std::hypot(stated, std::sqrt(line.variance)))
          pair.scale *= std::abs(line.residual) / stated;
        pair.margin = kDeviationsToUpper * std::sqrt(line.variance);
        // Where the model's own bound turned out wrong, the bound is that of what was seen.
        if (seen > static_cast<double>(answers[0].upper)) pair.least_bound = ExcessOf(seen) + pair.margin;
      }
    }
    lines_.push_back(std::move(line));
    return absl::OkStatus();
  }

  [[nodiscard]] absl::StatusOr<Corrections> Learn(const CommitProgress& progress) && {
    corrections_.Index();
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

  [[nodiscard]] bool HasRoom(const Situation& situation, uint64_t device) const {
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

  [[nodiscard]] absl::StatusOr<double> KnownError(const DeviceContext& device, const Demand& job) {
    const auto [at, fresh] = errors_.try_emplace({Corrections::KeyOf(device), ProfileAsRun(job)}, 0);
    if (fresh) HORUS_SET_OR_RETURN(at->second, ErrorOfJob(model_, device, job));
    return at->second;
  }

  // Kept in the order of the devices' keys.
  [[nodiscard]] double LevelErrorOf(const DeviceContext& device) {
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

  [[nodiscard]] absl::StatusOr<uint32_t> PairOf(const DeviceContext& device, const Demand& victim, const Demand& other,
                                                const Slowdown& alone) {
    const uint64_t key = Corrections::KeyOf(device);
    const auto [at, fresh] = position_.try_emplace({key, ProfileAsRun(victim), ProfileAsRun(other)},
                                                   static_cast<uint32_t>(corrections_.pairs_.size()));
    if (fresh) {
      ++met_[{key, ProfileAsRun(victim), true}];
      ++met_[{key, ProfileAsRun(other), false}];
      Pair pair{.device = key,
                .jobs = {ProfileAsRun(victim), ProfileAsRun(other)},
                .points = {TenantOf(victim, device).point, TenantOf(other, device).point}};
      HORUS_ASSIGN_OR_RETURN(pair.errors[Corrections::kVictim], KnownError(device, victim));
      HORUS_ASSIGN_OR_RETURN(pair.errors[Corrections::kOther], KnownError(device, other));
      const ModelError error = ErrorOf(alone, LevelErrorOf(device));
      pair.scale = ScaleOfErrors(pair.errors[0], pair.errors[1], error);
      pair.level = error.level;
      corrections_.pairs_.push_back(pair);
    }
    return at->second;
  }

  void Relate() {
    for (const Pair& pair : corrections_.pairs_) {
      for (const Corrections::Role role : Corrections::kRoles) {
        for (const uint32_t at : corrections_.With(role, pair.device, pair.jobs[role])) {
          const Pair& other = corrections_.pairs_[at];
          const double share = Corrections::ShareOf(other, pair, role);
          related_.positions.push_back(at);
          related_.covariances.push_back(static_cast<float>(share * pair.Error(role) * other.Error(role)));
        }
      }
      related_.ends.push_back(related_.positions.size());
    }
  }

  // Of the pairs, and of the levels, whose pairs lie side by side in their order.
  void SetWeights(const std::vector<double>& x) {
    for (Pair& pair : corrections_.pairs_) pair.weight = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      for (const auto& [at, share] : lines_[i].pairs) corrections_.pairs_[at].weight += share * x[i];
    }
    for (Corrections::Level& level : corrections_.levels_) level.shift = {};
    auto level = corrections_.levels_.begin();
    for (const uint32_t at : corrections_.order_[Corrections::kVictim]) {
      const Pair& pair = corrections_.pairs_[at];
      while (level != corrections_.levels_.end() && level->device < pair.device) ++level;
      if (level == corrections_.levels_.end()) break;
      if (level->device != pair.device) continue;
      const Corrections::Common common = Corrections::CommonOf(pair);
      for (size_t c = 0; c < common.size(); ++c) level->shift[c] += common[c] * pair.weight;
    }
  }

  // By how much each line moves with one of the parts that a device's pairs have in common, for a deviation of it.
  [[nodiscard]] std::vector<double> LinesBy(size_t level, size_t part) const {
    std::vector<double> out(lines_.size());
    for (size_t i = 0; i < lines_.size(); ++i) {
      for (const auto& [at, share] : lines_[i].pairs) {
        const Pair& pair = corrections_.pairs_[at];
        if (pair.device == corrections_.levels_[level].device) out[i] += share * Corrections::CommonOf(pair)[part];
      }
    }
    return out;
  }

  // What is left of them.
  void LearnLevels() {
    for (size_t at = 0; at < corrections_.levels_.size(); ++at) {
      std::array<std::vector<double>, Corrections::kCommon> moved;
      for (size_t part = 0; part < moved.size(); ++part) moved[part] = LinesBy(at, part);
      for (size_t part = 0; part < moved.size(); ++part) {
        const std::vector<double> solved =
            SolveByConjugateGradients([this](const std::vector<double>& v) { return Times(v); }, moved[part],
                                      kVarianceTolerance, kMostIterations);
        for (size_t other = 0; other < moved.size(); ++other) {
          const double told = std::inner_product(moved[other].begin(), moved[other].end(), solved.begin(), 0.0);
          corrections_.levels_[at].left[part][other] = (part == other ? 1 : 0) - told;
        }
      }
    }
  }

  // Residuals, made independent of each other and of variance 1 if the model's errors are as large as it says: their
  // mean square, beside that of kScaleObservations which are.
  void LearnScales(const std::vector<double>& residuals, const std::vector<double>& x) {
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

  // (K + noise) x
  [[nodiscard]] std::vector<double> Times(const std::vector<double>& x) {
    SetWeights(x);
    std::vector<double> of_pair;
    size_t at = 0;
    for (const size_t end : related_.ends) {
      const Pair& pair = corrections_.pairs_[of_pair.size()];
      double sum = 0;
      if (const Corrections::Level* level = corrections_.LevelOf(pair.device); level != nullptr)
        sum = Corrections::Product(Corrections::CommonOf(pair), level->shift);
      for (; at < end; ++at)
        sum += static_cast<double>(related_.covariances[at]) * corrections_.pairs_[related_.positions[at]].weight;
      of_pair.push_back(sum);
    }
    std::vector<double> out(lines_.size());
    for (size_t i = 0; i < lines_.size(); ++i) {
      out[i] = lines_[i].variance * lines_[i].inflation * x[i];
      for (const auto& [pair, share] : lines_[i].pairs) out[i] += share * of_pair[pair];
    }
    return out;
  }

  const InterferenceModel& model_;
  const Catalogue& catalogue_;
  Corrections corrections_;
  std::vector<Line> lines_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint32_t> position_;  // device, victim, other
  std::map<std::tuple<uint64_t, uint64_t, bool>, size_t> met_;             // device, job, as victim
  std::map<std::pair<uint64_t, uint64_t>, double> errors_;                 // device, job
  Related related_;
};

absl::StatusOr<Corrections> Corrections::Learn(const InterferenceModel& model, const ObservedSlowdowns& observed,
                                               const Catalogue& catalogue, const CommitProgress& progress) {
  // Newest first, so that what is left out is old.
  CorrectionsLearner learner(model, catalogue);
  const auto& oldest_first = observed.situations();
  for (auto at = oldest_first.rbegin(); at != oldest_first.rend(); ++at) HORUS_RETURN_IF_ERROR(learner.Add(at->second));
  return std::move(learner).Learn(progress);
}

}  // namespace horus
