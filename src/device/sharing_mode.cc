// SPDX-License-Identifier: Apache-2.0
// Names of the sharing modes, both ways.
#include "device/sharing_mode.h"

#include "base/text.h"
#include "device/fold_name.h"

namespace horus {

std::string_view SharingModeName(SharingMode mode) {
  switch (mode) {
    case SharingMode::kExclusive:
      return "exclusive";
    case SharingMode::kTimeSlice:
      return "time-slice";
    case SharingMode::kMps:
      return "mps";
    case SharingMode::kMig:
      return "mig";
  }
  return "unknown";
}

absl::StatusOr<SharingMode> ParseSharingMode(std::string_view name) {
  for (const SharingMode mode : kSharingModes) {
    if (SameFolded(name, SharingModeName(mode))) return mode;
  }
  return InvalidArgument("sharing mode: expected exclusive, time-slice, mps or mig, found %s", Quoted(name));
}

}  // namespace horus
