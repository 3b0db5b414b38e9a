// SPDX-License-Identifier: Apache-2.0
// Draws failures and repairs node by node.
#include "lab/run/outages.h"

#include <algorithm>
#include <tuple>

#include "base/draws.h"
#include "base/hash.h"
#include "base/status.h"
#include "lab/run/alarms.h"
#include "lab/trace/trace.h"

namespace horus {

absl::StatusOr<std::vector<NodeOutage>> DrawOutages(std::span<const NodeId> nodes, const OutageOptions& options) {
  std::vector<NodeOutage> outages;
  for (const NodeId node : nodes) {
    Draws draws(CombineHash(Mix64(options.seed), node));
    int64_t up_us = 0;
    while (true) {
      const int64_t from_us =
          up_us + static_cast<int64_t>(draws.Exponential(static_cast<uint64_t>(options.mean_up_us)));
      if (from_us >= options.until_us) break;
      const auto down_us = static_cast<int64_t>(draws.Exponential(static_cast<uint64_t>(options.mean_down_us)));
      up_us = from_us + std::max<int64_t>(1, down_us);
      outages.push_back({node, from_us, up_us});
      if (outages.size() > kMostOutages) {
        return ResourceExhausted("outages: expected at most %d, found more", kMostOutages);
      }
    }
  }
  std::ranges::sort(outages, [](const NodeOutage& a, const NodeOutage& b) {
    return std::tie(a.from_us, a.node) < std::tie(b.from_us, b.node);
  });
  return outages;
}

// ---- Checks and orders outages.

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
  std::ranges::sort(made.events_);
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
