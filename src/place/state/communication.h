// SPDX-License-Identifier: Apache-2.0
// Communication: how long a gang's GPUs take to sum their gradients over the links between them.
//
// Enters:  where the GPUs are: nodes as resolved and positions of devices; the gradients' size.
// Leaves:  microseconds of one all-reduce; what it adds to a step.
// Units:   MiB, MB/s in one direction, microseconds.
#pragma once

#include <array>

#include "place/state/node.h"

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

// A ring sends 2 (n - 1) / n of each byte over its slowest link (Patarasuk and Yuan, JPDC 2009); each of 2 (n - 1)
// rounds waits for a first slice over its own link.
[[nodiscard]] double RingUs(double gradient_mib, size_t members, double mb_per_s);

// A GPU of a gang; the slots of a node must follow each other.
struct GangSlot {
  const NodeSpec* node = nullptr;
  int32_t device = 0;
};
// Time of one all-reduce, nothing else on the links: a ring over all GPUs. Links between racks carry
// 1 / rack_oversubscription of what nodes can send.
[[nodiscard]] double GangAllReduceUs(double gradient_mib, std::span<const GangSlot> slots,
                                     double rack_oversubscription);

// What it adds to a step, for each unit of the step alone: part of it runs beside the backward pass. 0 where gradients
// or step time are not stated.
[[nodiscard]] double CommunicationShare(const Demand& demand, double all_reduce_us);

// Whether a gang with that demand has anything to send, and a step to compare it with.
[[nodiscard]] bool Communicates(const Demand& demand);

}  // namespace horus
