// SPDX-License-Identifier: Apache-2.0
// Reading and writing of columns.
#include "capi/columns.h"

#include <algorithm>
#include <limits>

#include "capi/args.h"
#include "capi/structs.h"

namespace horus::capi {

absl::StatusOr<int32_t> DeviceIndex(uint32_t device) {
  if (device <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) return static_cast<int32_t>(device);
  return MakeError(absl::StatusCode::kNotFound, "device: expected an index within the node, found %d", device);
}

absl::StatusOr<std::vector<Slot>> SlotsFromC(const SlotColumns& columns) {
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.node_ids, "node_ids", columns.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.devices, "devices", columns.count));
  if (columns.count > static_cast<size_t>(kMaxGpusPerJob)) {
    return InvalidArgument("slot_count: expected at most %d, found %d", kMaxGpusPerJob, columns.count);
  }
  std::vector<Slot> slots(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    slots[i].node = columns.node_ids[i];
    slots[i].device = kNoDevice;
    if (columns.devices[i] != UINT32_MAX) {
      const absl::StatusOr<int32_t> device = DeviceIndex(columns.devices[i]);
      if (!device.ok()) return At(Element("devices", i), device.status());
      slots[i].device = *device;
    }
    const uint32_t task = columns.tasks == nullptr ? 0 : columns.tasks[i];
    if (task >= static_cast<uint32_t>(kMaxGpusPerJob)) {
      return InvalidArgument("%s: expected less than %d, found %d", Element("tasks", i), kMaxGpusPerJob, task);
    }
    slots[i].task = static_cast<int32_t>(task);
  }
  return slots;
}

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
