// SPDX-License-Identifier: Apache-2.0
// Fuzz target: restores observations from any bytes; what is accepted saves the same bytes and gives valid demands.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/hash.h"
#include "predict/measured.h"

namespace {

void Check(const std::string& bytes) {
  const auto restored = horus::MeasuredDemands::Restore({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!restored.ok()) {
    if (restored.status().message().empty()) std::abort();
    return;
  }
  if (restored->Save() != bytes) std::abort();
  horus::Demand demand;
  for (demand.profile_id = 1; demand.profile_id < 4; ++demand.profile_id) {
    if (!horus::ValidateDemand(restored->Apply("v100", demand)).ok()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  // Makes the checksum fit, so that mutated bytes reach the code behind it: 8 magic, 4 version, 8 checksum, then the
  // body.
  constexpr size_t kHashAt = 12, kBody = 20;
  if (size < kBody) return 0;
  const uint64_t hash = horus::Hash64(bytes.data() + kBody, size - kBody);
  std::memcpy(bytes.data() + kHashAt, &hash, sizeof hash);
  Check(bytes);
  return 0;
}
