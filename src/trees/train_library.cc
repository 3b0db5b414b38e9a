// SPDX-License-Identifier: Apache-2.0
// Names libhorus_train.so to the loader of side libraries.
#include "trees/train_library.h"

#include "base/side_library.h"
#ifdef HORUS_TRAIN_INSIDE
#include "base/python_package.h"
#include "trees/train/found.h"
#include "trees/train/train.h"
#endif

namespace horus {

absl::StatusOr<TrainEntry> LoadTrainLibrary(const std::string& path) {
#ifdef HORUS_TRAIN_INSIDE  // the Python package
  if (path.empty()) {
    return Unavailable("training needs XGBoost, which is not installed: %s", InstallPythonPackage("train"));
  }
#endif
  constexpr SideLibrary kLibrary = {
      .soname = HORUS_TRAIN_SONAME,
      .entry = "horus_train_entry_v1",
      .install_dir = HORUS_INSTALL_LIBDIR,
      .purpose = "training",
      .remedy = "It is built with HORUS_WITH_TRAIN=ON and needs XGBoost (Debian: libxgboost-dev)"};
  const absl::StatusOr<void*> entry = LoadSideLibrary(kLibrary, path);
#ifdef HORUS_TRAIN_INSIDE
  if (!entry.ok()) {
    HORUS_ASSIGN_OR_RETURN(const train::XGBoostApi xgboost, train::FindXGBoost(path));
    return [xgboost](const horus_train_request* request, char* text) { return train::Train(xgboost, *request, text); };
  }
#endif
  HORUS_RETURN_IF_ERROR(entry.status());
  return reinterpret_cast<horus_train_entry_fn>(*entry);
}

}  // namespace horus
