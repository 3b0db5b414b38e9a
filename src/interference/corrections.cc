// SPDX-License-Identifier: Apache-2.0
// Learns errors of a model as a Gaussian process over ordered pairs of jobs, robustly.
#include "interference/corrections.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "interference/conjugate_gradients.h"
#include "interference/excess.h"

namespace horus {
namespace {

// Shares of an error's variance, round choices made with the public pairs in sight: of a job beside anybody; of a job,
// smooth in whom it meets; of these two alone.
constexpr double kOfJob = 0.15, kOfJobSmooth = 0.33, kOfPair = 0.04;  // 2 x (0.15 + 0.33) + 0.04 = 1: victim and other
constexpr double kLength = 2.5;                                       // of the smooth part, in units of SquaredDistance
constexpr double kNoise = 0.07;      // of one observation, relative: between the 5 and 10 % that sites report
constexpr double kDrift = 0.03;      // of z: no number of observations makes anything surer than this
constexpr double kPerBound = 1.645;  // standard deviations from an estimate to a bound at 95 %
// Of a model, in z, whatever its bounds say. The least is small, so that a model that says that it is right, and is,
// loses less than 0.2 points to noise by being corrected; one whose bound is its estimate gives no bound, and says
// nothing.
constexpr double kLeastError = 0.015, kMostError = 0.5, kErrorWithoutBound = 0.3;
constexpr double kOutlier = 2;  // standard deviations of noise beyond which an observation counts less
constexpr int kRobustPasses = 3;
constexpr double kEnoughSeen = 3;  // observations of two jobs before their own bound stands
constexpr double kTolerance = 1e-8;
constexpr int kMostIterations = 500;

uint64_t DeviceKey(GpuTypeId type, SharingMode mode, float share) {
  return CombineHash(CombineHash(type.value(), static_cast<uint64_t>(mode)), std::bit_cast<uint32_t>(share));
}

double Near(const JobPoint& a, const JobPoint& b) {
  return std::exp(-0.5 * SquaredDistance(a, b) / (kLength * kLength));
}

// How wrong the model may be, from the bound that it gives.
double ErrorOf(const Slowdown& s) {
  const double margin = ExcessOf(static_cast<double>(s.upper)) - ExcessOf(static_cast<double>(s.estimate));
  return margin > 0 ? std::clamp(margin / kPerBound, kLeastError, kMostError) : kErrorWithoutBound;
}

}  // namespace

// One line a situation: the sum of its pairs' errors, each by its share, is the residual.
struct Corrections::Equations {
  struct Line {
    std::vector<std::pair<uint32_t, double>> pairs;  // position, share
    double residual = 0;
    double variance = 0;  // of the residual, by noise
    double inflation = 1;
  };
  std::vector<Line> lines;

  // weights of the pairs = their shares of the lines' solution, times amplitude
  void SetWeights(const std::vector<double>& x, std::vector<Pair>& pairs) const {
    for (Pair& pair : pairs) pair.weight = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const auto& [at, share] : lines[i].pairs) pairs[at].weight += share * x[i] * pairs[at].amplitude;
    }
  }
  [[nodiscard]] std::vector<double> Times(const std::vector<double>& x, Corrections& c) const {
    SetWeights(x, c.pairs_);
    std::vector<double> of_pair(c.pairs_.size());
    for (size_t p = 0; p < c.pairs_.size(); ++p) of_pair[p] = c.pairs_[p].amplitude * c.Covered(c.pairs_[p]);
    std::vector<double> out(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      out[i] = lines[i].variance * lines[i].inflation * x[i];
      for (const auto& [at, share] : lines[i].pairs) out[i] += share * of_pair[at];
    }
    return out;
  }
  // (K + noise) x = residuals, by conjugate gradients.
  [[nodiscard]] std::vector<double> Solve(Corrections& c) const {
    std::vector<double> residuals;
    for (const Line& line : lines) residuals.push_back(line.residual);
    return SolveByConjugateGradients([&](const std::vector<double>& x) { return Times(x, c); }, std::move(residuals),
                                     kTolerance, kMostIterations);
  }
};

absl::StatusOr<Corrections> Corrections::Learn(const InterferenceModel& model, const ObservedSlowdowns& observed,
                                               const Catalogue& catalogue) {
  // Newest first, so that what is left out is old; an order of its own, whatever slots were used.
  std::vector<const Situation*> situations;
  for (const Situation& situation : observed.situations()) situations.push_back(&situation);
  std::sort(situations.begin(), situations.end(), [](const auto* a, const auto* b) { return a->seen > b->seen; });

  Corrections c;
  Equations equations;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint32_t> position;
  std::map<std::tuple<uint64_t, uint64_t, bool>, size_t> met;  // device, job, as victim
  for (const Situation* s : situations) {
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(s->gpu);
    if (!type.ok()) continue;
    const DeviceContext device{.type = *type, .mode = s->mode, .compute_share = s->compute_share};
    const uint64_t key = DeviceKey(device.type, device.mode, device.compute_share);
    const Demand& victim = s->tenants[0];
    const Tenant victim_tenant = TenantOf(victim, device);
    bool room = true;
    for (size_t o = 1; o < s->tenants.size(); ++o) {
      const uint64_t other = s->tenants[o].profile_id;
      if (position.contains({key, victim.profile_id, other})) continue;
      room = room && met[{key, victim.profile_id, true}] < kMostMet && met[{key, other, false}] < kMostMet;
    }
    if (!room) continue;
    Equations::Line line;
    double excess = 0;
    for (size_t o = 1; o < s->tenants.size(); ++o) {
      const std::array<const Demand*, 2> two = {&victim, &s->tenants[o]};
      std::array<Slowdown, 2> answer;
      HORUS_RETURN_IF_ERROR(model.Predict(device, two, answer));
      const auto [at, fresh] =
          position.try_emplace({key, victim.profile_id, two[1]->profile_id}, static_cast<uint32_t>(c.pairs_.size()));
      if (fresh) {
        ++met[{key, victim.profile_id, true}];
        ++met[{key, two[1]->profile_id, false}];
        c.pairs_.push_back({.device = key,
                            .victim = victim.profile_id,
                            .other = two[1]->profile_id,
                            .victim_point = victim_tenant.point,
                            .other_point = TenantOf(*two[1], device).point,
                            .amplitude = ErrorOf(answer[0])});
      }
      const double share = static_cast<double>(answer[0].estimate) - kSlowdownShift;
      line.pairs.emplace_back(at->second, share);
      excess += share;
    }
    for (auto& [at, share] : line.pairs) share /= excess;
    std::vector<const Demand*> all;
    for (const Demand& tenant : s->tenants) all.push_back(&tenant);
    std::vector<Slowdown> answers(all.size());
    HORUS_RETURN_IF_ERROR(model.Predict(device, all, answers));
    const double seen = std::exp(s->mean), predicted = static_cast<double>(answers[0].estimate);
    line.residual = ExcessOf(seen) - ExcessOf(predicted);
    // What was seen to disagree with itself is noisier than usual: one of three is an outlier. And as the excess hides
    // a smaller share of a larger slowdown's noise, an outlier downwards is not to pass for precise.
    const double noise = std::max(kNoise, std::sqrt(s->variance)), most = std::max(seen, predicted);
    const double per_excess = noise * most / (most - kSlowdownShift);
    line.variance = per_excess * per_excess / s->weight + kDrift * kDrift;
    if (line.pairs.size() == 1 && s->weight >= kEnoughSeen) {
      c.pairs_[line.pairs[0].first].margin = kPerBound * std::sqrt(line.variance);
    }
    equations.lines.push_back(std::move(line));
  }
  // Into their order; lines follow.
  std::vector<uint32_t> order(c.pairs_.size()), place(c.pairs_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&c](uint32_t a, uint32_t b) {
    const Pair &x = c.pairs_[a], &y = c.pairs_[b];
    return std::tie(x.device, x.victim, x.other) < std::tie(y.device, y.victim, y.other);
  });
  std::vector<Pair> sorted;
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(c.pairs_[order[i]]);
  }
  c.pairs_ = std::move(sorted);
  for (Equations::Line& line : equations.lines) {
    for (auto& [at, share] : line.pairs) at = place[at];
  }
  c.Index();

  std::vector<double> x;
  for (int pass = 0; pass < kRobustPasses; ++pass) {
    x = equations.Solve(c);
    for (size_t i = 0; i < equations.lines.size(); ++i) {
      Equations::Line& line = equations.lines[i];
      // What is left of the residual is variance times solution.
      const double left = std::abs(line.variance * line.inflation * x[i]) / std::sqrt(line.variance);
      line.inflation = std::max(1.0, left / kOutlier);
    }
  }
  equations.SetWeights(x, c.pairs_);
  return c;
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
  return {first, last};
}

double Corrections::Covered(const Pair& pair) const {
  double sum = 0;
  const auto [first, last] = WithVictim(pair.device, pair.victim);
  for (size_t i = first; i < last; ++i) {
    const Pair& seen = pairs_[i];
    sum += seen.weight * (kOfJob + kOfJobSmooth * Near(seen.other_point, pair.other_point));
    if (seen.other == pair.other) sum += seen.weight * kOfPair;
  }
  for (const uint32_t i : WithOther(pair.device, pair.other)) {
    const Pair& seen = pairs_[i];
    sum += seen.weight * (kOfJob + kOfJobSmooth * Near(seen.victim_point, pair.victim_point));
  }
  return sum;
}

Correction Corrections::Of(const DeviceContext& device, const Tenant& victim, const Tenant& other,
                           const Slowdown& estimate) const {
  if (pairs_.empty() || victim.profile_id == 0 || other.profile_id == 0) return {};
  const Pair asked{.device = DeviceKey(device.type, device.mode, device.compute_share),
                   .victim = victim.profile_id,
                   .other = other.profile_id,
                   .victim_point = victim.point,
                   .other_point = other.point};
  Correction correction{.shift = ErrorOf(estimate) * Covered(asked)};
  const auto [first, last] = WithVictim(asked.device, asked.victim);
  for (size_t i = first; i < last; ++i) {
    if (pairs_[i].other == asked.other) correction.margin = pairs_[i].margin;
  }
  return correction;
}

size_t Corrections::bytes_held() const {
  return sizeof(*this) + pairs_.capacity() * sizeof(Pair) + by_other_.capacity() * sizeof(uint32_t);
}

}  // namespace horus
