// SPDX-License-Identifier: Apache-2.0
// Finds and opens libhorus_train.so.
#include "trees/train_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string_view>

namespace horus {
namespace {

constexpr char kSoname[] = HORUS_TRAIN_SONAME;  // carries the ABI: another release's library is another name
constexpr char kEntry[] = "horus_train_entry_v1";

// The folder of the library or program that this code was linked into; empty when unknown.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadTrainLibrary), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string_view file(info.dli_fname);
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(file.substr(0, slash));
}

std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown" : text;
}

}  // namespace

absl::StatusOr<horus_train_entry_fn> LoadTrainLibrary(const std::string& path) {
  std::string file = path;
  const std::string folder = OwnFolder();
  if (file.empty()) {
    const std::string beside = folder + "/" + kSoname;
    file = !folder.empty() && access(beside.c_str(), F_OK) == 0 ? beside : kSoname;
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return MakeError(absl::StatusCode::kUnavailable,
                     "training needs %s, which cannot be loaded (looked beside libhorus in '%s', then asked the "
                     "loader): %s. It is built with HORUS_WITH_TRAIN=ON and needs XGBoost (Debian: libxgboost-dev)",
                     file, folder, LoaderError());
  }
  void* const entry = dlsym(library, kEntry);
  const std::string why = entry == nullptr ? LoaderError() : std::string();
  dlclose(library);  // RTLD_NODELETE keeps it; this only balances the count
  if (entry == nullptr) {
    return MakeError(absl::StatusCode::kUnavailable, "training: %s has no %s: %s", file, kEntry, why);
  }
  return reinterpret_cast<horus_train_entry_fn>(entry);
}

}  // namespace horus
