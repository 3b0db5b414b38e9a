// SPDX-License-Identifier: Apache-2.0
// A placement as JSON, for programs.
//
// Enters:  a PlacementReport.                  Leaves: one JSON document; docs/cli.md lists its keys.
// Units:   in the keys.
// Cost:    linear, about 1 KiB a job.    Thread class: pure functions.
#ifndef HORUS_IO_PLACEMENT_JSON_H_
#define HORUS_IO_PLACEMENT_JSON_H_

#include <string>

#include "io/placement.h"

namespace horus {

inline constexpr int kPlacementJsonVersion = 1;

// Bytes that are no UTF-8 become U+FFFD; numbers that JSON lacks (infinity) become null. Ends with a newline.
[[nodiscard]] std::string PlacementJson(const PlacementReport& placement);

// The shortest decimal that reads back as `value`, as a double: 1.1f is 1.1, not 1.10000002384.
[[nodiscard]] double ShortDouble(float value);

}  // namespace horus

#endif  // HORUS_IO_PLACEMENT_JSON_H_
