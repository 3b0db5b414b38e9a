// SPDX-License-Identifier: Apache-2.0
// Names libhorus_train.so to the loader of side libraries.
#include "trees/train_library.h"

#include "base/side_library.h"

namespace horus {

absl::StatusOr<horus_train_entry_fn> LoadTrainLibrary(const std::string& path) {
  constexpr SideLibrary kLibrary = {
      .soname = HORUS_TRAIN_SONAME,
      .entry = "horus_train_entry_v1",
      .install_dir = HORUS_INSTALL_LIBDIR,
      .purpose = "training",
      .remedy = "It is built with HORUS_WITH_TRAIN=ON and needs XGBoost (Debian: libxgboost-dev)"};
  HORUS_ASSIGN_OR_RETURN(void* const entry, LoadSideLibrary(kLibrary, path));
  return reinterpret_cast<horus_train_entry_fn>(entry);
}

}  // namespace horus
