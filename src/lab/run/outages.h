// SPDX-License-Identifier: Apache-2.0
// Outages: when nodes of a simulated cluster are down.
//
// Enters:  nodes, mean times, a seed; or a list of one's own.
// Leaves:  outages, ascending by begin, then node; those of one node do not overlap.
// Units:   microseconds of the trace's clock.
// Cost:    about 100 ns an outage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/run/cluster_map.h"
#include "place/state/node.h"

namespace horus {

struct NodeOutage {
  NodeId node = 0;
  int64_t from_us = 0;
  int64_t until_us = 0;  // it is up again; above from_us
  friend bool operator==(const NodeOutage&, const NodeOutage&) = default;
};

struct OutageOptions {
  int64_t mean_up_us = 0;    // from a repair, or from 0, to the next failure; exponential; above 0
  int64_t mean_down_us = 0;  // of a repair; exponential, at least 1 us; above 0
  int64_t until_us = 0;      // nothing fails at or after it
  uint64_t seed = 0;         // each node has its own draws, so that one more node changes no other's
};

inline constexpr size_t kMostOutages = 1'000'000;  // of all nodes

// RESOURCE_EXHAUSTED: more than kMostOutages.
[[nodiscard]] absl::StatusOr<std::vector<NodeOutage>> DrawOutages(std::span<const NodeId> nodes,
                                                                  const OutageOptions& options);

// ---- NodeEvents: the outages of a simulation as events in order.
// Cost: a sort.

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
