// SPDX-License-Identifier: Apache-2.0
// libhorus_train.so, opened when a fit needs it: libhorus.so itself is not linked with XGBoost.
//
// Enters:  the path of the library, or none to look for it.
// Leaves:  its entry point; or which file is missing, where it was looked for and how to get it.
// Units:   none.
// Cost:    the first load about 20 ms, then microseconds; once loaded it stays (OpenMP cannot be unloaded).
// Thread class: pure function; the loader synchronises.
#ifndef HORUS_TREES_TRAIN_LIBRARY_H_
#define HORUS_TREES_TRAIN_LIBRARY_H_

#include <string>

#include "base/status.h"
#include "trees/train/entry.h"

namespace horus {

// With an empty path: beside the file that holds this code, in the library folder next to it (for programs
// in bin), then where the loader looks.
[[nodiscard]] absl::StatusOr<horus_train_entry_fn> LoadTrainLibrary(const std::string& path);

}  // namespace horus

#endif  // HORUS_TREES_TRAIN_LIBRARY_H_
