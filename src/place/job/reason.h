// SPDX-License-Identifier: Apache-2.0
// Reason: the hard constraints by name, in the order in which they are asked.
//
// Leaves:  stable codes, their names and one sentence each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace horus {

// Why a node or a device cannot take a job. The values cross the C boundary: never renumber, append only.
enum class Reason : int32_t {
  kNone = 0,
  kNodeDown = 1,
  kNodeDrained = 2,
  kDeviceDown = 3,
  kDeviceDrained = 4,
  kNotInSubset = 5,
  kGpuType = 6,
  kLabel = 7,
  kCpu = 8,
  kHostMemory = 9,
  kStorageBandwidth = 10,
  kGpuMemory = 11,
  kGpuMilli = 12,
  kTenantLimit = 13,
  kExclusive = 14,
  kSharingMode = 15,
  kSlowdownOwn = 16,
  kSlowdownNeighbour = 17,
  kGang = 18,
  kPolicy = 19,
  kOwner = 20,
  kAntiAffinity = 21,
  kMemoryUnknown = 22,
  kSharingQuota = 23,
  kPassedOver = 24,
};
inline constexpr size_t kReasonCount = 25;

// Position of a constraint in the order in which they are checked. A job came nearer to a place, the later its first
// failing constraint is.
[[nodiscard]] int AskedAt(Reason reason);

// "gpu_memory", and its meaning in one sentence; "unknown" for other values.
[[nodiscard]] std::string_view ReasonName(Reason reason);
[[nodiscard]] std::string_view ReasonText(Reason reason);

}  // namespace horus
