// SPDX-License-Identifier: Apache-2.0
// Makes length and checksum of a snapshot's bytes fit, so that altered bytes reach the code behind the checks.
#ifndef HORUS_TESTS_CALLS_RESEAL_SNAPSHOT_H_
#define HORUS_TESTS_CALLS_RESEAL_SNAPSHOT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace horus::calls {

// The layout as snapshot_envelope.h gives it, spelled anew. False: too short to be a snapshot.
inline bool ResealSnapshot(std::string& bytes) {
  constexpr size_t kHeader = 32, kVersionAt = 8, kLengthAt = 16, kChecksumAt = 24;
  if (bytes.size() < kHeader) return false;
  uint64_t version = 0;
  for (size_t i = 0; i < 4; ++i) version |= uint64_t{static_cast<uint8_t>(bytes[kVersionAt + i])} << (8 * i);
  const auto put = [&](size_t at, uint64_t value) {
    for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(static_cast<uint8_t>(value >> (8 * i)));
  };
  put(kLengthAt, bytes.size() - kHeader);
  put(kChecksumAt, Hash64(std::string_view(bytes).substr(kHeader), version));
  return true;
}

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_RESEAL_SNAPSHOT_H_
