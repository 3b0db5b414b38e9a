// SPDX-License-Identifier: Apache-2.0
// The entry of libhorus_train.so, over the XGBoost that it is linked with: the only file that includes XGBoost's
// header.
#include "trees/train/entry.h"

#include <xgboost/c_api.h>

#include "trees/train/train.h"

extern "C" int32_t horus_train_entry_v1(const horus_train_request* request, char* text) {
  horus::train::XGBoostApi xgboost;
#define HORUS_XGBOOST_LINKED(name, result, arguments) xgboost.name = &::name;
  HORUS_XGBOOST_FUNCTIONS(HORUS_XGBOOST_LINKED)
#undef HORUS_XGBOOST_LINKED
  return horus::train::Train(xgboost, *request, text);
}
