// SPDX-License-Identifier: Apache-2.0
// Writing of output columns.
#include "capi/columns.h"

#include <algorithm>

#include "capi/args.h"
#include "capi/structs.h"

namespace horus::capi {

absl::Status CheckRoom(size_t needed, const IdBuffer& buffer) {
  if (buffer.ids == nullptr) return absl::OkStatus();
  return CheckCapacity(needed, buffer.capacity, buffer.count);
}

void WriteIds(std::span<const uint64_t> ids, const IdBuffer& buffer) {
  if (buffer.ids != nullptr) std::copy(ids.begin(), ids.end(), buffer.ids);
  if (buffer.count != nullptr) *buffer.count = ids.size();
}

absl::Status WriteSlots(std::span<const Slot> slots, const horus_slots* out, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_ASSIGN_OR_RETURN(const horus_slots columns, ReadStruct(out));
  HORUS_RETURN_IF_ERROR(CheckCapacity(slots.size(), columns.capacity, count));
  for (size_t i = 0; i < slots.size(); ++i) {
    Put(columns.node_ids, i, slots[i].node);
    Put(columns.devices, i, slots[i].device);
    Put(columns.tasks, i, slots[i].task);
  }
  *count = slots.size();
  return absl::OkStatus();
}

}  // namespace horus::capi
