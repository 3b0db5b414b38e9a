// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as measured pairs, a table or Gavel's layout; what is accepted is a pair that can be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "interference/pair_model.h"
#include "lab/io/pairs_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const horus::Catalogue> catalogue = horus::Catalogue::Default();
  static const std::vector<std::string> jobs = {"a", "b", "c"};
  horus::PairsReader reader(*catalogue, jobs);
  const absl::Status status = reader.Parse("fuzz", {reinterpret_cast<const char*>(data), size});
  if (!status.ok()) {
    if (status.message().empty()) std::abort();
    return 0;
  }
  const auto possible = [](double slowdown) {
    return std::isnan(slowdown) ||
           (slowdown >= horus::kLeastMeasuredSlowdown && slowdown <= horus::kMostMeasuredSlowdown);
  };
  for (const horus::NamedPair& pair : reader.pairs()) {
    if (!catalogue->Contains(pair.gpu)) std::abort();
    for (const std::string& job : {pair.job_a, pair.job_b}) {
      if (std::find(jobs.begin(), jobs.end(), job) == jobs.end()) std::abort();
    }
    if (!possible(pair.slowdown_a) || !possible(pair.slowdown_b)) std::abort();
    if (std::isnan(pair.slowdown_a) && std::isnan(pair.slowdown_b)) std::abort();
  }
  return 0;
}
