// SPDX-License-Identifier: Apache-2.0
// Running jobs go elsewhere: rebalancing, and whoever is put back to wait.
#include "base/status.h"
#include "sim/run/run.h"

namespace horus {

// The job writes a checkpoint, loses its places and waits again.
absl::Status SimRun::PutBack(uint32_t job, SimEventKind why) {
  RunEnd end;
  HORUS_RETURN_IF_ERROR(StopWork(job, end));
  HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
  HORUS_RETURN_IF_ERROR(LetGo(job));
  refused_.Clear();
  return Enqueue(job);
}

absl::Status SimRun::RebalanceDue() {
  if (options_.rebalance_us == 0 || now_us_ % options_.rebalance_us != 0) return absl::OkStatus();
  // What was best stays so while nobody comes or goes and nothing is learned.
  const std::pair state(changes_, placer_->model().epoch());
  if (state == settled_) return absl::OkStatus();
  std::vector<JobId> movable = cluster_.JobIds();
  std::erase_if(movable, [&](JobId job) { return lives_[job].phase != Phase::kRunning; });
  if (movable.empty()) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, Rebalance(*placer_, cluster_, options_.rebalance, movable));
  if (plan.actions.empty()) {
    settled_ = state;
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  // All leave before the first comes, as in the cluster: they may change places.
  for (const Action& action : plan.actions) {
    const auto job = static_cast<uint32_t>(action.job->id);
    RunEnd end;
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    Vacate(job);
  }
  for (const Action& action : plan.actions) {
    HORUS_RETURN_IF_ERROR(MoveTo(static_cast<uint32_t>(action.job->id), action));
  }
  refused_.Clear();
  return absl::OkStatus();
}

// The job, which left its places, works again at those of the action.
absl::Status SimRun::MoveTo(uint32_t job, const Action& action) {
  Hold(job, action.slots);
  lives_[job].phase = Phase::kLaunching;
  SetHost(*action.job);
  ++result_.jobs[job].migrations;
  HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kMigrate, job, SlotsOf(job)));
  return Launch(job);
}

}  // namespace horus
