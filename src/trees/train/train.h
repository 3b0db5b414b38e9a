// SPDX-License-Identifier: Apache-2.0
// Trains one booster with the XGBoost that a table of functions names.
//
// Enters:  the table, complete; a request as entry.h says.
// Leaves:  the forest, handed to the request's sink; HORUS_TRAIN_* and a text for people.
#pragma once

#include <cstdint>

#include "trees/train/entry.h"
#include "trees/train/xgboost_api.h"

namespace horus::train {

// `text` has HORUS_TRAIN_TEXT_BYTES and is always terminated. Throws nothing.
[[nodiscard]] int32_t Train(const XGBoostApi& xgboost, const horus_train_request& request, char* text);

}  // namespace horus::train
