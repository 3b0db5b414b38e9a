// SPDX-License-Identifier: Apache-2.0
// Communication: how long a gang's GPUs take to sum their gradients over the links between them.
//
// Enters:  where the GPUs are: nodes as resolved and positions of devices; the gradients' size.
// Leaves:  microseconds of one all-reduce; that time as a share of a step.
// Units:   MiB, MB/s in one direction, microseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "place/state/node.h"
#include "predict/demand.h"

namespace horus {

// The parts of a node, each with links of its own. GPUs that are all in one part may use its links.
enum class Reach : uint8_t { kIsland, kSwitch, kSocket, kNode };
inline constexpr std::array kReaches = {Reach::kIsland, Reach::kSwitch, Reach::kSocket, Reach::kNode};

// Number of the part that holds the device; -1 = it is in none.
[[nodiscard]] int32_t PartOf(const DeviceSpec& device, Reach reach);

// Slowest link of a ring over GPUs as `device` inside one part of that kind; `device` as resolved.
[[nodiscard]] double LinkMbPerS(const DeviceSpec& device, Reach reach);

// The fastest links that all of `devices`, at least one and as resolved, can use.
[[nodiscard]] double LinkAmong(const NodeSpec& node, std::span<const int32_t> devices);

// A gang on one of its nodes.
struct GangPart {
  size_t gpus = 0;
  double link_mb_s = 0;  // between them
  double network_mb_s = 0;
  uint64_t rack = 0;
};

// A ring moves each byte 2 (n - 1) / n times over its slowest link (Patarasuk and Yuan, JPDC 2009).
[[nodiscard]] double RingUs(double gradient_mib, size_t members, double mb_per_s);

// Time of one all-reduce, nothing else on the links: the faster of one ring over all GPUs, and a ring inside each node
// followed by one between nodes, in which each GPU sends its share (Goyal et al. 2017, section 4). Links between racks
// carry 1 / rack_oversubscription of what nodes can send.
[[nodiscard]] double AllReduceUs(double gradient_mib, std::span<const GangPart> parts, double rack_oversubscription);

// A GPU of a gang, for those who hold nodes; the slots of a node must follow each other.
struct GangSlot {
  const NodeSpec* node = nullptr;
  int32_t device = 0;
};
[[nodiscard]] double GangAllReduceUs(double gradient_mib, std::span<const GangSlot> slots,
                                     double rack_oversubscription);

// That time for each unit of the step alone; 0 where gradients or step time are not stated.
[[nodiscard]] double CommunicationShare(const Demand& demand, double all_reduce_us);

// Whether a gang with that demand has anything to send, and a step to compare it with.
[[nodiscard]] bool Communicates(const Demand& demand);

}  // namespace horus
