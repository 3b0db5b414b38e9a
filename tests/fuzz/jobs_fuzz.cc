// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as jobs.yaml; what is accepted has ids that differ, demands or a model, and matrices of
// legal size. Files that it names are not read.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "io/jobs_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto jobs = horus::ParseJobsFile("/nowhere/jobs.yaml", text, *horus::Catalogue::Default(),
                                         {.max_bytes = size_t{1} << 16, .max_values = 10'000});
  if (!jobs.ok()) {
    if (jobs.status().message().empty()) std::abort();
    return 0;
  }
  std::set<uint64_t> ids;
  for (const horus::JobRequest& job : *jobs) {
    if (!ids.insert(job.spec.id).second) std::abort();
    const horus::Sensitivity* matrix = job.spec.sensitivity.get();
    if (matrix == nullptr) continue;
    if (matrix->cpu_milli().size() > horus::kMaxSensitivityPoints || matrix->speeds().empty()) std::abort();
    if (!(matrix->Speed({matrix->cpu_milli().back(), matrix->mem_mib().back()}) > 0)) std::abort();
  }
  return 0;
}
