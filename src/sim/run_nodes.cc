// SPDX-License-Identifier: Apache-2.0
// Nodes fail, jobs go back to their last checkpoints, nodes come back.
#include <algorithm>

#include "base/status.h"
#include "sim/run.h"

namespace horus {

absl::Status SimRun::PrepareOutages() {
  for (size_t i = 0; i < options_.outages.size(); ++i) {
    const NodeOutage& outage = options_.outages[i];
    const uint32_t* node = node_of_id_.Find(outage.node);
    if (node == nullptr) {
      return InvalidArgument("simulation: outages[%d]: node: expected one of the cluster, found %d", i, outage.node);
    }
    if (outage.from_us < 0 || outage.until_us <= outage.from_us) {
      return InvalidArgument(
          "simulation: outages[%d]: until_us: expected more than from_us of %d, which is 0 or more, "
          "found %d",
          i, outage.from_us, outage.until_us);
    }
    node_events_.push_back({outage.from_us, true, *node});
    node_events_.push_back({outage.until_us, false, *node});
  }
  std::sort(node_events_.begin(), node_events_.end());  // at one time those that end first
  std::vector<uint8_t> down(nodes_.size());
  for (const NodeEvent& event : node_events_) {
    if (event.down && down[event.node] != 0) {
      return InvalidArgument("simulation: outages: expected one at a time of node %d, found another at %d us",
                             nodes_[event.node], event.time_us);
    }
    down[event.node] = event.down ? 1 : 0;
  }
  return absl::OkStatus();
}

absl::Status SimRun::NodesDue() {
  for (; next_node_event_ < node_events_.size() && node_events_[next_node_event_].time_us <= now_us_;
       ++next_node_event_) {
    const NodeEvent& event = node_events_[next_node_event_];
    const NodeId node = nodes_[event.node];
    const Slot whole[] = {{node, kNoDevice, 0}};
    const auto devices = static_cast<size_t>(first_device_[event.node + 1] - first_device_[event.node]);
    devices_up_ = event.down ? devices_up_ - devices : devices_up_ + devices;
    fragments_.SetUp(event.node, !event.down);
    ++changes_;
    HORUS_RETURN_IF_ERROR(Tell(event.down ? SimEventKind::kNodeDown : SimEventKind::kNodeUp, kNotStated, whole));
    HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs,
                           cluster_.SetNodeState(node, event.down ? AdminState::kDown : AdminState::kUp));
    refused_.clear();
    if (!event.down) continue;
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
