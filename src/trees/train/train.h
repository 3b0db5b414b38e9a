// SPDX-License-Identifier: Apache-2.0
// Trains one booster with the XGBoost that a table of functions names: linked (entry.cc) or found at run time
// (found.cc).
//
// Enters:  the table, complete; a request as entry.h says.
// Leaves:  the forest, handed to the request's sink; HORUS_TRAIN_* and a text for people.
// Units:   as in xgboost/c_api.h, whose declarations entry.cc holds against these.
#pragma once

#include <cstdint>

#include "trees/train/entry.h"

// X(name, result, arguments). Matrices and boosters are void*; the functions that give no int cannot fail.
#define HORUS_XGBOOST_FUNCTIONS(X)                                                                                \
  X(XGBoostVersion, void, (int* major, int* minor, int* patch))                                                   \
  X(XGBGetLastError, const char*, ())                                                                             \
  X(XGBGetGlobalConfig, int, (const char** out))                                                                  \
  X(XGBSetGlobalConfig, int, (const char* config))                                                                \
  X(XGDMatrixCreateFromDense, int, (const char* data, const char* config, void** out))                            \
  X(XGDMatrixSetInfoFromInterface, int, (void* matrix, const char* field, const char* interface))                 \
  X(XGDMatrixFree, int, (void* matrix))                                                                           \
  X(XGBoosterCreate, int, (void* const* matrices, uint64_t count, void** out))                                    \
  X(XGBoosterSetParam, int, (void* booster, const char* name, const char* value))                                 \
  X(XGBoosterUpdateOneIter, int, (void* booster, int round, void* matrix))                                        \
  X(XGBoosterPredictFromDMatrix, int,                                                                             \
    (void* booster, void* matrix, const char* config, const uint64_t** shape, uint64_t* dims, const float** out)) \
  X(XGBoosterSaveModelToBuffer, int, (void* booster, const char* config, uint64_t* size, const char** out))       \
  X(XGBoosterFree, int, (void* booster))

namespace horus::train {

struct XGBoostApi {
#define HORUS_XGBOOST_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  HORUS_XGBOOST_FUNCTIONS(HORUS_XGBOOST_MEMBER)
#undef HORUS_XGBOOST_MEMBER
};

// `text` has HORUS_TRAIN_TEXT_BYTES and is always terminated. Throws nothing.
[[nodiscard]] int32_t Train(const XGBoostApi& xgboost, const horus_train_request& request, char* text);

}  // namespace horus::train
