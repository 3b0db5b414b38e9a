// SPDX-License-Identifier: Apache-2.0
// Opens a libxgboost.so and looks up what training calls.
#include "trees/train/found.h"

#include "base/side_library.h"

namespace horus::train {
namespace {

// The first whose saved models, settings and array interfaces are those that train.cc knows.
constexpr int kLeastMajor = 1;
constexpr int kLeastMinor = 7;

template <typename Function>
absl::Status Find(const char* name, const std::string& path, Function*& out) {
  const SideLibrary library = {.soname = "libxgboost.so",
                               .entry = name,
                               .install_dir = "lib",
                               .purpose = "training",
                               .remedy = "It needs the library of XGBoost 1.7 or later"};
  HORUS_ASSIGN_OR_RETURN(void* const found, LoadSideLibrary(library, path));
  out = reinterpret_cast<Function*>(found);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<XGBoostApi> FindXGBoost(const std::string& path) {
  XGBoostApi xgboost;
#define HORUS_XGBOOST_FIND(name, result, arguments) HORUS_RETURN_IF_ERROR(Find(#name, path, xgboost.name));
  HORUS_XGBOOST_FUNCTIONS(HORUS_XGBOOST_FIND)
#undef HORUS_XGBOOST_FIND
  int major = 0;
  int minor = 0;
  int patch = 0;
  xgboost.XGBoostVersion(&major, &minor, &patch);
  if (major < kLeastMajor || (major == kLeastMajor && minor < kLeastMinor)) {
    return Unavailable("training: %s: expected XGBoost %d.%d or later, found %d.%d.%d", path, kLeastMajor, kLeastMinor,
                       major, minor, patch);
  }
  return xgboost;
}

}  // namespace horus::train
