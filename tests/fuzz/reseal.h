// SPDX-License-Identifier: Apache-2.0
// Makes sizes and checksums of a bundle's bytes fit, so that mutated bytes reach the code behind the checks.
#ifndef HORUS_TESTS_FUZZ_RESEAL_H_
#define HORUS_TESTS_FUZZ_RESEAL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace horus {

inline uint64_t GetBytes(const std::string& bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

inline void PutBytes(std::string& bytes, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(static_cast<uint8_t>(value >> (8 * i)));
}

// The layout as src/trees/README.md gives it, not as the reader's code has it. False: too short to be a bundle.
inline bool Reseal(std::string& bytes) {
  constexpr size_t kHeader = 32, kEntry = 16;
  if (bytes.size() < kHeader) return false;
  const uint64_t count = GetBytes(bytes, 12, 4);
  if (count == 0 || count > (bytes.size() - kHeader) / kEntry) return false;
  PutBytes(bytes, 16, bytes.size());
  size_t at = kHeader + kEntry * count;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t entry = kHeader + kEntry * i;
    const size_t left = bytes.size() - at;
    const uint64_t size = i + 1 == count || GetBytes(bytes, entry, 8) > left ? left : GetBytes(bytes, entry, 8);
    PutBytes(bytes, entry, size);
    PutBytes(bytes, entry + 8, Hash64(std::string_view(bytes).substr(at, size)));
    at += size;
  }
  PutBytes(bytes, 24, Hash64(bytes.substr(0, 24) + bytes.substr(kHeader, kEntry * count)));
  return true;
}

}  // namespace horus

#endif  // HORUS_TESTS_FUZZ_RESEAL_H_
