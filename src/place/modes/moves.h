// SPDX-License-Identifier: Apache-2.0
// What the modes share: slots in rows and slots in ids.
//
// Enters:  a ledger, slots.               Leaves: the same slots as the other side calls them.
// Units:   as decision.h.
// Cost:    O(slots).                      Thread class: pure functions.
#ifndef HORUS_PLACE_MODES_MOVES_H_
#define HORUS_PLACE_MODES_MOVES_H_

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "place/decision.h"
#include "place/state/ledger.h"

namespace horus {

[[nodiscard]] inline std::vector<Slot> SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed) {
  std::vector<Slot> slots;
  slots.reserve(placed.size());
  for (const PlacedSlot& slot : placed) slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
  return slots;
}

}  // namespace horus

#endif  // HORUS_PLACE_MODES_MOVES_H_
