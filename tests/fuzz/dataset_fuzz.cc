// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a dataset; what is accepted has a value, a family and a GPU in every row.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lab/io/dataset_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const horus::Catalogue> catalogue = horus::Catalogue::Default();
  constexpr horus::MeasuredColumn kMeasured[] = {{"gpu_util_pct", "per cent", 100, true},
                                                 {"mem_mib", "MiB", 1e6, false}};
  constexpr std::string_view kFeatures[] = {"batch", "ops"};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = horus::ParseDataset("fuzz.csv", text, *catalogue, kMeasured, kFeatures);
  if (!rows.ok()) {
    if (rows.status().message().empty()) std::abort();
    return 0;
  }
  for (const horus::DatasetRow& row : *rows) {
    if (row.family.empty() || row.net.empty() || row.gpu_name.empty() || row.measured.size() != 2) std::abort();
    if (std::isnan(row.measured[0]) && std::isnan(row.measured[1])) std::abort();
    if (row.measured[0] < 0 || row.measured[0] > 100 || row.measured[1] <= 0) std::abort();
  }
  return 0;
}
