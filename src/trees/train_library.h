// SPDX-License-Identifier: Apache-2.0
// libhorus_train.so, opened when a fit needs it: libhorus.so itself is not linked with XGBoost. Or the trainer inside,
// over XGBoost's own library.
//
// Enters:  the path of the library, or none to look for it.
// Leaves:  its entry point; or which file is missing, where it was looked for and how to get it.
// Cost:    the first load about 20 ms, then microseconds; once loaded it stays (OpenMP cannot be unloaded).
// Thread class: pure function; the loader synchronises.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "trees/train/entry.h"

namespace horus {

// What trains: called as horus_train_entry_v1.
using TrainEntry = std::function<int32_t(const horus_train_request* request, char* text)>;

// With an empty path: beside the file that holds this code, in the library folder next to it (for programs
// in bin), then where the loader looks. Builds with the trainer inside (HORUS_TRAIN_INSIDE) need a path, and it may
// name XGBoost's own library.
[[nodiscard]] absl::StatusOr<TrainEntry> LoadTrainLibrary(const std::string& path);

}  // namespace horus
