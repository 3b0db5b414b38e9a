// SPDX-License-Identifier: Apache-2.0
// Fields of protobuf's wire format, as horus_snapshot.proto numbers them: messages that no library of ours writes.
//
// Enters:  field numbers and values.      Leaves: bytes.
// Units:   none.
// Cost:    none.                          Thread class: pure functions.
#ifndef HORUS_TESTS_UNIT_PLACE_SNAPSHOT_BYTES_H_
#define HORUS_TESTS_UNIT_PLACE_SNAPSHOT_BYTES_H_

#include <cstdint>
#include <string>

namespace horus::testing_place {

inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  return out + static_cast<char>(value);
}
inline std::string Number(uint64_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
inline std::string Part(uint64_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}

}  // namespace horus::testing_place

#endif  // HORUS_TESTS_UNIT_PLACE_SNAPSHOT_BYTES_H_
