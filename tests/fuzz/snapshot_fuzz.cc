// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a snapshot of a cluster, as they are and with length and checksum made to fit; what
// is accepted is a cluster whose columns agree, and which is the same after saving and restoring.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "calls/reseal_snapshot.h"
#include "place/state/snapshot.h"
#include "support/invariants.h"

namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void Check(const std::string& bytes) {
  const auto cluster = horus::RestoreSnapshot(BytesOf(bytes), horus::Catalogue::Default());
  if (!cluster.ok()) {
    if (cluster.status().message().empty()) std::abort();
    return;
  }
  if (!CheckInvariants(*cluster).ok()) std::abort();
  const auto saved = horus::SaveSnapshot(*cluster);
  if (!saved.ok()) std::abort();
  const auto again = horus::RestoreSnapshot(BytesOf(*saved), horus::Catalogue::Default());
  if (!again.ok() || again->state_hash() != cluster->state_hash()) std::abort();
  const auto bytes_again = horus::SaveSnapshot(*again);
  if (!bytes_again.ok() || *bytes_again != *saved) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  if (horus::calls::ResealSnapshot(bytes)) Check(bytes);
  return 0;
}
