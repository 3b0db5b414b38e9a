// SPDX-License-Identifier: Apache-2.0
// Names of the sharing modes, both ways.
#include "device/sharing_mode.h"

#include <iterator>

#include "base/text.h"
#include "device/fold_name.h"

namespace horus {

std::string_view SharingModeName(SharingMode mode) {
  constexpr std::string_view kNames[] = {"exclusive", "time-slice", "mps", "mig", "time-slice-or-mps"};
  const auto at = static_cast<size_t>(mode);
  return at < std::size(kNames) ? kNames[at] : "unknown";
}

absl::StatusOr<SharingMode> ParseSharingMode(std::string_view name) {
  for (const SharingMode mode : kSharingModes) {
    if (SameFolded(name, SharingModeName(mode))) return mode;
  }
  return InvalidArgument("sharing mode: expected exclusive, time-slice, mps or mig, found %s", Quoted(name));
}

}  // namespace horus
