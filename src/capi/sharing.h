// SPDX-License-Identifier: Apache-2.0
// Sharing modes between the C ABI, where 0 is left for "default", and the device room, where 0 is exclusive.
//
// Enters:  HORUS_SHARING_* or SharingMode.   Leaves: the other; INVALID_ARGUMENT for no mode.
// Units:   none.
// Cost:    an addition.                      Thread class: pure functions.
#ifndef HORUS_CAPI_SHARING_H_
#define HORUS_CAPI_SHARING_H_

#include <cstdint>

#include "base/status.h"
#include "device/sharing_mode.h"
#include "horus/interference.h"

namespace horus::capi {

[[nodiscard]] constexpr int32_t SharingToC(SharingMode mode) { return static_cast<int32_t>(mode) + 1; }

static_assert(SharingToC(SharingMode::kExclusive) == HORUS_SHARING_EXCLUSIVE);
static_assert(SharingToC(SharingMode::kTimeSlice) == HORUS_SHARING_TIME_SLICE);
static_assert(SharingToC(SharingMode::kMps) == HORUS_SHARING_MPS);
static_assert(SharingToC(SharingMode::kMig) == HORUS_SHARING_MIG);

[[nodiscard]] inline absl::StatusOr<SharingMode> SharingFromC(int32_t mode) {
  if (mode >= HORUS_SHARING_EXCLUSIVE && mode <= HORUS_SHARING_MIG) return static_cast<SharingMode>(mode - 1);
  return InvalidArgument("sharing_mode: expected HORUS_SHARING_* (%d to %d), found %d", HORUS_SHARING_EXCLUSIVE,
                         HORUS_SHARING_MIG, mode);
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_SHARING_H_
