// SPDX-License-Identifier: Apache-2.0
// Adds excesses as whole numbers.
#include "interference/combine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace horus {
namespace {

constexpr double kUnitsPerSlowdown = 1e6;  // far finer than any measurement, and exact in sums
constexpr auto kMostUnits = static_cast<int64_t>((static_cast<double>(kMaxSlowdown) - 1) * kUnitsPerSlowdown);

int64_t Millionths(float slowdown) {
  if (slowdown <= 1) return 0;
  if (!(slowdown < kMaxSlowdown)) return kMostUnits;  // NaN too
  return std::llround((static_cast<double>(slowdown) - 1) * kUnitsPerSlowdown);
}

float Counted(int64_t excess) { return static_cast<float>(1 + static_cast<double>(excess) / kUnitsPerSlowdown); }

}  // namespace

PairExcess CountExcess(float slowdown, float upper) {
  const int64_t estimate = Millionths(slowdown);
  return {estimate, std::max(estimate, Millionths(upper))};
}

void AddExcess(PairExcess& sum, const PairExcess& part) {
  sum.estimate = std::min(sum.estimate + part.estimate, kMostUnits);
  sum.upper = std::min(sum.upper + part.upper, kMostUnits);
}

Slowdown SlowdownOf(const PairExcess& sum) { return {Counted(sum.estimate), Counted(sum.upper)}; }

void CombinePairs(std::span<const float> pairs, std::span<const float> pair_uppers, std::span<Slowdown> out) {
  const size_t count = out.size();
  assert(pairs.size() == count * count && pair_uppers.size() == count * count);
  for (size_t i = 0; i < count; ++i) {
    PairExcess sum;
    for (size_t j = 0; j < count; ++j) {
      if (i != j) AddExcess(sum, CountExcess(pairs[i * count + j], pair_uppers[i * count + j]));
    }
    out[i] = SlowdownOf(sum);
  }
}

absl::Status InterferenceModel::PredictPairs(const DeviceContext& /*device*/,
                                             std::span<const Demand* const> /*tenants*/,
                                             std::span<PairExcess> /*out*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "interference model %s: does not add pairs", std::string(name()));
}

absl::Status InterferenceModel::PredictLoad(const DeviceContext& /*device*/, const Demand& /*tenant*/,
                                            Load& /*load*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "interference model %s: does not add loads", std::string(name()));
}

}  // namespace horus
