// SPDX-License-Identifier: Apache-2.0
// Weights of jobs, by their length or by prices that are kept up.
#include "lab/run/pricing.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace horus {
namespace {

constexpr double kWeightUnitUs = 3.6e9;  // a job of an hour counts 1. Weights count as ratios alone
constexpr size_t kPriceEvery = 64;       // starts between two price lists. A chosen value

}  // namespace

void Pricing::Count(uint32_t job, int32_t sign) {
  const TraceJob& one = trace_.jobs[job];
  if (one.profile < gpus_there_.size()) gpus_there_[one.profile] += static_cast<double>(sign * GpusOf(one));
}

absl::Status Pricing::Update(const Placer& placer) {
  if (options_.weights != SimWeights::kPrices || starts_ < price_at_) return absl::OkStatus();
  price_at_ = starts_ + kPriceEvery;
  if (!pricer_ || epoch_ != placer.model().epoch()) {
    epoch_ = placer.model().epoch();
    HORUS_ASSIGN_OR_RETURN(pricer_, WorkPrices::Create(beliefs_, cluster_, placer, options_.lp_library));
  }
  HORUS_ASSIGN_OR_RETURN(prices_, pricer_->Of(gpus_there_));
  return absl::OkStatus();
}

float Pricing::WeightOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  if (options_.weights == SimWeights::kPrices && !prices_.empty() && one.profile < prices_.size()) {
    return prices_[one.profile];
  }
  if (options_.weights != SimWeights::kShortest || one.endless) return 1;
  // Powers of two, so that jobs of about one length are one kind.
  const double weight = std::exp2(std::round(std::log2(kWeightUnitUs / static_cast<double>(one.duration_us))));
  return std::clamp(static_cast<float>(weight), 1 / kMaxWorkWeight, kMaxWorkWeight);
}

}  // namespace horus
