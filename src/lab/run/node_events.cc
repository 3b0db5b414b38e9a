// SPDX-License-Identifier: Apache-2.0
// Checks and orders outages.
#include "lab/run/node_events.h"

#include <algorithm>

#include "base/status.h"
#include "lab/run/alarms.h"
#include "lab/trace/trace.h"

namespace horus {

absl::StatusOr<NodeEvents> NodeEvents::Create(std::span<const NodeOutage> outages, const ClusterMap& map) {
  NodeEvents made;
  for (size_t i = 0; i < outages.size(); ++i) {
    const NodeOutage& outage = outages[i];
    const uint32_t* node = map.Find(outage.node);
    if (node == nullptr) {
      return InvalidArgument("simulation: outages[%d]: node: expected one of the cluster, found %d", i, outage.node);
    }
    if (outage.from_us < 0 || outage.until_us <= outage.from_us || outage.until_us > kMaxTraceTimeUs) {
      return InvalidArgument(
          "simulation: outages[%d]: until_us: expected more than from_us of %d, which is 0 or more, and at most %d, "
          "found %d",
          i, outage.from_us, kMaxTraceTimeUs, outage.until_us);
    }
    made.events_.push_back({outage.from_us, true, *node});
    made.events_.push_back({outage.until_us, false, *node});
  }
  std::sort(made.events_.begin(), made.events_.end());
  std::vector<uint8_t> down(map.nodes());
  for (const NodeEvent& event : made.events_) {
    if (event.down && down[event.node] != 0) {
      return InvalidArgument("simulation: outages: expected one at a time of node %d, found another at %d us",
                             map.id(event.node), event.time_us);
    }
    down[event.node] = event.down ? 1 : 0;
  }
  return made;
}

int64_t NodeEvents::next_us() const { return next_ < events_.size() ? events_[next_].time_us : kNoEvent; }

std::optional<NodeEvent> NodeEvents::TakeDue(int64_t now_us) {
  if (next_us() > now_us) return std::nullopt;
  return events_[next_++];
}

}  // namespace horus
