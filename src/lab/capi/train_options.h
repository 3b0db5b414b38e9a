// SPDX-License-Identifier: Apache-2.0
// What the options of every training say alike, from their C structs.
//
// Enters:  a C struct with promise, seed and library_path.   Leaves: the three where the room's options keep them.
// Units:   promise is a share, 0 = the room's default stays.
// Cost:    a copy of the path.                               Thread class: pure function.
#ifndef HORUS_LAB_CAPI_TRAIN_OPTIONS_H_
#define HORUS_LAB_CAPI_TRAIN_OPTIONS_H_

#include <cstdint>
#include <string>

#include "capi/args.h"

namespace horus::capi {

template <typename COptions>
[[nodiscard]] absl::Status ReadTrainOptions(const COptions& c, double& promise, uint32_t& seed,
                                            std::string& library_path) {
  HORUS_ASSIGN_OR_RETURN(library_path, ReadOptionalText(c.library_path, "library_path"));
  if (c.promise != 0) promise = c.promise;
  seed = c.seed;
  return absl::OkStatus();
}

}  // namespace horus::capi

#endif  // HORUS_LAB_CAPI_TRAIN_OPTIONS_H_
