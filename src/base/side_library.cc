// SPDX-License-Identifier: Apache-2.0
// Finds and opens a side library.
#include "base/side_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <string>

namespace horus {
namespace {

// The folder of the library or program that this code was linked into; empty when unknown.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadSideLibrary), &info) == 0 || info.dli_fname == nullptr) return {};
  std::string file(info.dli_fname);
  if (file.find('/') == std::string::npos) {  // a program found through PATH: its name is what was typed
    std::array<char, 4096> path;
    const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
    if (size > 0) file.assign(path.data(), static_cast<size_t>(size));
  }
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

// Beside this code, or in the library folder next to the folder of a program that holds it; else the bare
// name, which the loader looks up.
std::string FindFile(const SideLibrary& library, const std::string& folder) {
  if (folder.empty()) return library.soname;
  for (const std::string& place : {std::string("/"), std::string("/../") + library.install_dir + "/"}) {
    const std::string file = folder + place + library.soname;
    if (access(file.c_str(), F_OK) == 0) return file;
  }
  return library.soname;
}

std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown" : text;
}

}  // namespace

absl::StatusOr<void*> LoadSideLibrary(const SideLibrary& library, const std::string& path) {
  const std::string folder = OwnFolder();
  const std::string file = path.empty() ? FindFile(library, folder) : path;
  void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened == nullptr) {
    return MakeError(absl::StatusCode::kUnavailable,
                     "%s needs %s, which cannot be loaded (looked in '%s' and its neighbour '%s', then asked the "
                     "loader): %s. %s",
                     library.purpose, file, folder, library.install_dir, LoaderError(), library.remedy);
  }
  void* const entry = dlsym(opened, library.entry);
  const std::string why = entry == nullptr ? LoaderError() : std::string();
  dlclose(opened);  // RTLD_NODELETE keeps it; this only balances the count
  if (entry == nullptr) {
    return MakeError(absl::StatusCode::kUnavailable, "%s: %s has no %s: %s", library.purpose, file, library.entry, why);
  }
  return entry;
}

}  // namespace horus
