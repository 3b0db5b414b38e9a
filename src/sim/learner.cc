// SPDX-License-Identifier: Apache-2.0
// Hands what was seen to ObservedSlowdowns and commits it now and then.
#include "sim/learner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "interference/corrected_model.h"
#include "interference/pair_set.h"

namespace horus {

absl::StatusOr<std::unique_ptr<Placer>> CorrectingLearner::Observe(const SeenSharing& seen) {
  const bool named =
      std::all_of(seen.demands.begin(), seen.demands.end(), [](const Demand* one) { return one->profile_id != 0; });
  if (!named || seen.demands.size() > kMostCoTenants + 1) return std::unique_ptr<Placer>();
  for (size_t i = 0; i < seen.demands.size(); ++i) {
    if (seen.slowdowns[i] < kLeastMeasuredSlowdown || seen.slowdowns[i] > kMostMeasuredSlowdown) continue;
    std::vector<const Demand*> others(seen.demands.begin(), seen.demands.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    HORUS_RETURN_IF_ERROR(observed_.Add({.gpu = catalogue_->at(seen.device.type).name,
                                         .mode = seen.device.mode,
                                         .compute_share = seen.device.compute_share,
                                         .victim = seen.demands[i],
                                         .others = others,
                                         .slowdown = seen.slowdowns[i]}));
  }
  if (++seen_ % commit_every_ != 0) return std::unique_ptr<Placer>();
  HORUS_ASSIGN_OR_RETURN(model_, CorrectedModel::Commit(model_, observed_, *catalogue_));
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy, policy_());
  return Placer::Create(model_, std::move(policy), options_);
}

}  // namespace horus
