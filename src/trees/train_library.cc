// SPDX-License-Identifier: Apache-2.0
// Finds and opens libhorus_train.so.
#include "trees/train_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <string>

namespace horus {
namespace {

constexpr char kSoname[] = HORUS_TRAIN_SONAME;  // carries the ABI: another release's library is another name
constexpr char kEntry[] = "horus_train_entry_v1";

// The folder of the library or program that this code was linked into; empty when unknown.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadTrainLibrary), &info) == 0 || info.dli_fname == nullptr) return {};
  std::string file(info.dli_fname);
  if (file.find('/') == std::string::npos) {  // a program found through PATH: its name is what was typed
    std::array<char, 4096> path;
    const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
    if (size > 0) file.assign(path.data(), static_cast<size_t>(size));
  }
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? std::string() : file.substr(0, slash);
}

// Beside this code, or in the library folder next to the folder of a program that holds it; else the bare
// name, which the loader looks up.
std::string FindFile(const std::string& folder) {
  if (folder.empty()) return kSoname;
  for (const char* place : {"/", "/../" HORUS_INSTALL_LIBDIR "/"}) {
    const std::string file = folder + place + kSoname;
    if (access(file.c_str(), F_OK) == 0) return file;
  }
  return kSoname;
}

std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown" : text;
}

}  // namespace

absl::StatusOr<horus_train_entry_fn> LoadTrainLibrary(const std::string& path) {
  const std::string folder = OwnFolder();
  const std::string file = path.empty() ? FindFile(folder) : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return MakeError(
        absl::StatusCode::kUnavailable,
        "training needs %s, which cannot be loaded (looked in '%s' and its neighbour '" HORUS_INSTALL_LIBDIR
        "', then asked the loader): %s. It is built with HORUS_WITH_TRAIN=ON and needs XGBoost (Debian: "
        "libxgboost-dev)",
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
