// SPDX-License-Identifier: Apache-2.0
// Output columns that several functions share: job ids and slots.
//
// Enters:  a vector of the rooms and the caller's columns.
// Leaves:  the rows written and counted, or BUFFER_TOO_SMALL with the count needed.
// Units:   elements.
// Cost:    linear in the rows.            Thread class: pure functions.
#ifndef HORUS_CAPI_COLUMNS_H_
#define HORUS_CAPI_COLUMNS_H_

#include <span>
#include <vector>

#include "base/status.h"
#include "horus/cluster.h"
#include "place/decision.h"

namespace horus::capi {

// Where ids go. `ids` null: only counted; `count` null: only written.
struct IdBuffer {
  size_t capacity;
  uint64_t* ids;
  size_t* count;
};
// What can fail, apart from writing, so that callers can do it before anything changes.
[[nodiscard]] absl::Status CheckRoom(size_t needed, const IdBuffer& buffer);
// Requires CheckRoom.
void WriteIds(std::span<const uint64_t> ids, const IdBuffer& buffer);

[[nodiscard]] absl::Status WriteSlots(std::span<const Slot> slots, const horus_slots* out, size_t* count);

// An index of a device; NOT_FOUND beyond any.
[[nodiscard]] absl::StatusOr<int32_t> DeviceIndex(uint32_t device);

// Slots that come in; `tasks` null = all 0, a device UINT32_MAX = a task without GPUs.
struct SlotColumns {
  size_t count;
  const uint64_t* node_ids;
  const uint32_t* devices;
  const uint32_t* tasks;
};
[[nodiscard]] absl::StatusOr<std::vector<Slot>> SlotsFromC(const SlotColumns& columns);

}  // namespace horus::capi

#endif  // HORUS_CAPI_COLUMNS_H_
