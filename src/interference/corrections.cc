// SPDX-License-Identifier: Apache-2.0
// Asks learned corrections: sums over the pairs that share a job with the one asked of.
#include "interference/corrections.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "interference/excess.h"

namespace horus {
namespace {

// Of a model, in z, whatever its bounds say. The least is small, so that a model that says that it is right, and is,
// loses less than 0.2 points to noise by being corrected; one whose bound is its estimate gives no bound, and says
// nothing.
constexpr double kLeastError = 0.015, kMostError = 0.5, kErrorWithoutBound = 0.3;

}  // namespace

absl::StatusOr<double> ErrorOfJob(const InterferenceModel& model, const DeviceContext& device, const Demand& job) {
  std::array<Slowdown, 2> answer;
  HORUS_RETURN_IF_ERROR(model.Predict(device, std::array{&job, &job}, answer));
  return ErrorOf(answer[0]);
}

double ErrorOf(const Slowdown& answer) {
  const double margin = ExcessOf(static_cast<double>(answer.upper)) - ExcessOf(static_cast<double>(answer.estimate));
  return margin > 0 ? std::clamp(margin / kDeviationsToBound, kLeastError, kMostError) : kErrorWithoutBound;
}

double ScaleOfErrors(double victim_error, double other_error, const Slowdown& alone) {
  return ErrorOf(alone) / std::max(victim_error, other_error);
}

double ResemblanceOf(const JobPoint& a, const JobPoint& b) {
  // What is unknown is one value for all jobs, so that resemblance stays a covariance: counted as no difference, an
  // unknown job would resemble two jobs fully that do not resemble each other. Any value would do: 0.1 s, 0.1 ms, 1 ms.
  static const JobPoint kUnknown = {std::log(1e5f), std::log(100.0f), std::log(1000.0f), 0};
  constexpr double kLength = 2.5;  // in units of SquaredDistance: chosen as the shares of error were
  JobPoint known_a = a, known_b = b;
  for (size_t c = 0; c < kPointColumns; ++c) {
    if (std::isnan(a[c])) known_a[c] = kUnknown[c];
    if (std::isnan(b[c])) known_b[c] = kUnknown[c];
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
  return {first, last};
}

std::optional<double> Corrections::KnownError(const DeviceContext& device, uint64_t profile_id) const {
  const uint64_t key = KeyOf(device);
  if (const auto [first, last] = WithVictim(key, profile_id); first < last) return pairs_[first].victim_error;
  if (const auto other = WithOther(key, profile_id); !other.empty()) return pairs_[other[0]].other_error;
  return std::nullopt;
}

Correction Corrections::Of(const DeviceContext& device, const Tenant& victim, double victim_error, const Tenant& other,
                           double other_error, const Slowdown& alone) const {
  if (pairs_.empty() || victim.profile_id == 0 || other.profile_id == 0) return {};
  Pair asked{.device = KeyOf(device),
             .victim = victim.profile_id,
             .other = other.profile_id,
             .victim_point = victim.point,
             .other_point = other.point,
             .victim_error = victim_error,
             .other_error = other_error,
             .scale = ScaleOfErrors(victim_error, other_error, alone)};
  const auto [first, last] = WithVictim(asked.device, asked.victim);
  for (size_t i = first; i < last; ++i) {
    if (pairs_[i].other == asked.other) asked.scale = pairs_[i].scale;  // what was learned of it
  }
  // Of victim and other: the variance of the model's error, how many times over observations tell it, and the share
  // that the one most like it could tell at best.
  struct Part {
    double variance, known = 0, best = 0;
    [[nodiscard]] double Left() const { return variance * std::max(1 / (1 + known), 1 - best); }
  };
  const double own_victim = asked.scale * victim_error, own_other = asked.scale * other_error;
  Part of_victim{kErrorOfOne * own_victim * own_victim}, of_other{kErrorOfOne * own_other * own_other};
  Correction correction;
  VisitRelated(asked, [&](size_t i, double share, bool as_victim) {
    const Pair& seen = pairs_[i];
    const double error = seen.scale * (as_victim ? seen.victim_error : seen.other_error);
    const double nuisance = seen.scale * (as_victim ? seen.other_error : seen.victim_error);
    correction.shift += seen.weight * share * error * (as_victim ? own_victim : own_other);
    // An observation of a sum, of which this part is correlated with the one asked for.
    Part& part = as_victim ? of_victim : of_other;
    const double told = share / kErrorOfOne * (share / kErrorOfOne);
    const double variance = kErrorOfOne * error * error;
    part.known += told / (1 - told + (seen.noise + kErrorOfOne * nuisance * nuisance) / variance);
    if (std::isfinite(seen.noise)) part.best = std::max(part.best, told);
    if (seen.victim == asked.victim && seen.other == asked.other) {
      correction.margin = seen.margin;
      correction.least_bound = seen.least_bound;
    }
  });
  const double before = of_victim.variance + of_other.variance;
  correction.remaining = std::sqrt((of_victim.Left() + of_other.Left()) / before);
  return correction;
}

size_t Corrections::bytes_held() const {
  return sizeof(*this) + pairs_.capacity() * sizeof(Pair) + by_other_.capacity() * sizeof(uint32_t);
}

}  // namespace horus
