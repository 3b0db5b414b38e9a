// SPDX-License-Identifier: Apache-2.0
// Side libraries: parts that need a heavy foreign library, opened on first use and never linked.
//
// Enters:  the library's file name, its one entry, what needs it; optionally the path of the file.
// Leaves:  the address of the entry; or which file is missing, where it was looked for and how to get it.
// Cost:    the first load tens of ms, then microseconds; once loaded it stays.
// Thread class: pure function; the loader synchronises.
#pragma once

#include "base/status.h"

namespace horus {

// All texts are static.
struct SideLibrary {
  const char* soname = "";       // carries the ABI: another release's library is another name
  const char* entry = "";        // the symbol to look up
  const char* install_dir = "";  // library folder under the prefix, e.g. "lib"
  const char* purpose = "";      // what needs it, e.g. "training"
  const char* remedy = "";       // one sentence without a full stop
};

// With an empty path: beside the file that holds this code, in the library folder next to it (for programs
// in bin), then where the loader looks. UNAVAILABLE.
[[nodiscard]] absl::StatusOr<void*> LoadSideLibrary(const SideLibrary& library, const std::string& path);

}  // namespace horus
