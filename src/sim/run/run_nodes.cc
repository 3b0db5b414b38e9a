// SPDX-License-Identifier: Apache-2.0
// Nodes fail, jobs go back to their last checkpoints, nodes come back.
#include "base/status.h"
#include "sim/run/run.h"

namespace horus {

absl::Status SimRun::NodesDue() {
  while (const std::optional<NodeEvent> event = node_events_.TakeDue(now_us_)) {
    const NodeId node = map_.id(event->node);
    const Slot whole[] = {{node, kNoDevice, 0}};
    meter_.SetUp(event->node, !event->down);
    ++changes_;
    HORUS_RETURN_IF_ERROR(Tell(event->down ? SimEventKind::kNodeDown : SimEventKind::kNodeUp, kNotStated, whole));
    HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs,
                           cluster_.SetNodeState(node, event->down ? AdminState::kDown : AdminState::kUp));
    refused_.Clear();
    if (!event->down) continue;
    for (const JobId job : jobs) HORUS_RETURN_IF_ERROR(Interrupt(static_cast<uint32_t>(job)));
  }
  return absl::OkStatus();
}

// What the job did since its last checkpoint is lost; it waits again.
absl::Status SimRun::Interrupt(uint32_t job) {
  RunEnd end;
  HORUS_RETURN_IF_ERROR(StopWork(job, end));
  const Work lost = end.left_on_disk - end.left;
  execution_.Lose(lost, lives_[job].devices.size());
  lives_[job].left = end.left_on_disk;
  result_.jobs[job].lost += lost;
  ++result_.jobs[job].interruptions;
  HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kInterrupt, job, SlotsOf(job)));
  HORUS_RETURN_IF_ERROR(LetGo(job));
  return Enqueue(job);
}

}  // namespace horus
