// SPDX-License-Identifier: Apache-2.0
// How the jobs on one GPU share it. Modes do not mix on a device.
//
// Enters:  a mode's name from a file or a caller.   Leaves: the mode, or an error that lists the names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace horus {

// The values are stored in snapshots and cross the C boundary: never renumber.
enum class SharingMode : uint8_t {
  kExclusive = 0,  // one job per GPU
  kTimeSlice = 1,  // several processes take turns; memory is shared, faults are not isolated in time
  kMps = 2,        // NVIDIA Multi-Process Service: kernels of several processes run side by side
  kMig = 3,        // NVIDIA Multi-Instance GPU: fixed slices of compute units and memory
  // Of a device that can change between these two while it is empty: its first job decides. No model sees it.
  kTimeSliceOrMps = 4,
};

// In which jobs run.
inline constexpr std::array<SharingMode, 4> kSharingModes = {SharingMode::kExclusive, SharingMode::kTimeSlice,
                                                             SharingMode::kMps, SharingMode::kMig};

// "exclusive", "time-slice", "mps", "mig", "time-slice-or-mps"; "unknown" for a value that is no mode.
[[nodiscard]] std::string_view SharingModeName(SharingMode mode);

// The mode of that name; upper case, '_' and ' ' for '-' are accepted.
[[nodiscard]] absl::StatusOr<SharingMode> ParseSharingMode(std::string_view name);

}  // namespace horus
