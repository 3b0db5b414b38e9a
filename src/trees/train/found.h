// SPDX-License-Identifier: Apache-2.0
// XGBoost's functions, found by name in a libxgboost.so that is opened at run time.
//
// Enters:  the file's path.   Leaves: the table of its functions, or what is wrong with the file.
// Cost:    the first load some 10 ms; once loaded it stays (OpenMP cannot be unloaded).
// Thread class: pure function; the loader synchronises.
#pragma once

#include <string>

#include "base/status.h"
#include "trees/train/train.h"

namespace horus::train {

// kUnavailable: no such file, not XGBoost, or older than 1.7.
[[nodiscard]] absl::StatusOr<XGBoostApi> FindXGBoost(const std::string& path);

}  // namespace horus::train
