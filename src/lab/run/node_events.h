// SPDX-License-Identifier: Apache-2.0
// NodeEvents: the outages of a simulation as events in order.
//
// Enters:  outages, in any order.        Leaves:  which node goes down or comes back next.
// Units:   microseconds of the trace's clock; nodes as ClusterMap numbers them.
// Cost:    a sort.                       Thread class: one thread at a time.
#ifndef HORUS_LAB_RUN_NODE_EVENTS_H_
#define HORUS_LAB_RUN_NODE_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/run/cluster_map.h"
#include "lab/run/outages.h"

namespace horus {

struct NodeEvent {
  int64_t time_us = 0;
  bool down = false;  // at one time those that come back come first
  uint32_t node = 0;
  friend auto operator<=>(const NodeEvent&, const NodeEvent&) = default;
};

class NodeEvents {
 public:
  // INVALID_ARGUMENT: an outage of no node, without length, or beside another of its node.
  [[nodiscard]] static absl::StatusOr<NodeEvents> Create(std::span<const NodeOutage> outages, const ClusterMap& map);

  [[nodiscard]] int64_t next_us() const;
  [[nodiscard]] std::optional<NodeEvent> TakeDue(int64_t now_us);

 private:
  std::vector<NodeEvent> events_;  // ascending
  size_t next_ = 0;
};

}  // namespace horus

#endif  // HORUS_LAB_RUN_NODE_EVENTS_H_
