// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a grid; what is accepted keeps its limits and has names that differ. Files that it
// names are looked for in a folder that is not there.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "lab/io/grid_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto grid = horus::ParseGridFile("/nowhere/grid.yaml", text, horus::Catalogue::Default(),
                                         {.max_bytes = size_t{1} << 16, .max_values = 10'000});
  if (!grid.ok()) {
    if (grid.status().message().empty()) std::abort();
    return 0;
  }
  std::set<std::string> names;
  for (const horus::GridFilePolicy& one : grid->policies) {
    if (!names.insert(one.policy.name).second) std::abort();
  }
  const size_t runs = grid->workloads.size() * grid->policies.size() * grid->seeds.size();
  if (runs == 0 || runs > horus::kMaxGridRuns || grid->nodes.empty()) std::abort();
  return 0;
}
