// SPDX-License-Identifier: Apache-2.0
// Asks learned corrections: sums over the pairs that share a job with the one asked of.
#include "interference/corrections.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "interference/excess.h"
#include "interference/quantile.h"

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
  return {first, last};
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

}  // namespace horus
