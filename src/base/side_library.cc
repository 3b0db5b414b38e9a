// SPDX-License-Identifier: Apache-2.0
// Finds and opens a side library.
#include "base/side_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace horus {
namespace {

constexpr size_t kMaxMapsBytes = size_t{64} << 20;  // 65,530 mappings are what Linux allows unless told otherwise

// The file that holds this code, by the addresses that the kernel has mapped it to; empty when unknown.
std::string MappedFile() {
  const absl::StatusOr<std::string> maps = ReadFile("/proc/self/maps", kMaxMapsBytes);
  if (!maps.ok()) return {};
  const auto here = reinterpret_cast<uintptr_t>(&LoadSideLibrary);
  std::string_view rest = *maps;  // lines such as "7f00a000-7f00b000 r-xp 00000000 08:01 123 /usr/lib/libhorus.so.0.1"
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    uintptr_t begin = 0, end = 0;
    const char* const last = line.data() + line.size();
    const auto first = std::from_chars(line.data(), last, begin, 16);
    if (first.ptr == last || *first.ptr != '-') continue;
    std::from_chars(first.ptr + 1, last, end, 16);
    if (here < begin || here >= end) continue;
    return std::string(line.substr(std::min(line.size(), line.find('/'))));
  }
  return {};
}

// The folder of the library or program that this code was linked into; empty when unknown. Never a relative one: the
// loader's name is relative where that was how the file was found, and the process may work elsewhere by now.
std::string OwnFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&LoadSideLibrary), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname[0] == '/' ? info.dli_fname : MappedFile();
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
    return Unavailable(
        "%s needs %s, which cannot be loaded (looked in '%s' and its neighbour '%s', then asked the "
        "loader): %s. %s",
        library.purpose, file, folder, library.install_dir, LoaderError(), library.remedy);
  }
  void* const entry = dlsym(opened, library.entry);
  const std::string why = entry == nullptr ? LoaderError() : std::string();
  dlclose(opened);  // RTLD_NODELETE keeps it; this only balances the count
  if (entry == nullptr) return Unavailable("%s: %s has no %s: %s", library.purpose, file, library.entry, why);
  return entry;
}

}  // namespace horus
