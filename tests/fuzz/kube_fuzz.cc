// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as what kubectl printed; what is accepted becomes files that their readers accept, or
// an error that says something.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "io/kube/kube_import.h"
#include "io/kube/kube_objects.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream stream(std::string(reinterpret_cast<const char*>(data), size));
  horus::KubeState state;
  const absl::Status read = horus::ReadKubeItems(
      stream, "objects.json",
      [&](std::string_view kind, const horus::KubeView& object) { return state.Add(kind, object); });
  if (!read.ok()) {
    if (read.message().empty()) std::abort();
    return 0;
  }
  const auto catalogue = horus::Catalogue::Default();
  const horus::ImportedCluster imported = horus::ImportCluster(state, *catalogue, {});
  for (const horus::ImportLeftOut& one : imported.left_out) {
    if (one.reason.empty()) std::abort();
  }
  if (imported.nodes.empty()) return 0;
  const auto files = horus::WriteImport(imported, catalogue, {});
  if (!files.ok() && files.status().message().empty()) std::abort();
  return 0;
}
