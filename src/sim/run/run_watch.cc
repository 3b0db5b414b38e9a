// SPDX-License-Identifier: Apache-2.0
// What follows of what is seen of jobs while they run.
#include <utility>

#include "base/status.h"
#include "sim/run/run.h"

namespace horus {

absl::Status SimRun::WatchDue() {
  while (const std::optional<uint32_t> device = watching_.TakeDue()) {
    HORUS_ASSIGN_OR_RETURN(Revision revision, watching_.Observe(*device, placer_->policy()));
    if (revision.policy != nullptr) {
      HORUS_ASSIGN_OR_RETURN(revised_,
                             Placer::Create(placer_->shared_model(), std::move(revision.policy), placer_->options()));
      placer_ = revised_.get();
      refused_.Clear();
    }
    if (options_.learner != nullptr) refused_.Clear();
    if (revision.undo) HORUS_RETURN_IF_ERROR(Preempt(execution_.TenantsOf(*device).back()));  // who came last
  }
  return absl::OkStatus();
}

// Whether what the job could not bear was learned of.
absl::StatusOr<bool> SimRun::LearnFailure(uint32_t job) {
  HORUS_ASSIGN_OR_RETURN(const std::optional<bool> learned, watching_.Failed(job, lives_[job].devices));
  if (learned) refused_.Clear();
  return learned.value_or(false);
}

absl::Status SimRun::ProfilingDue() {
  while (const std::optional<uint32_t> job = profiling_.TakeDue(now_us_)) {
    HORUS_RETURN_IF_ERROR(PutBack(*job, SimEventKind::kProfiled));
  }
  return absl::OkStatus();
}

}  // namespace horus
