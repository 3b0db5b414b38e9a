// SPDX-License-Identifier: Apache-2.0
// Corrupting: one field of an argument struct becomes something that a careless or hostile caller might have put there.
// Pointers are corrupted to NULL alone and counts never promise more than there is, unless that is beyond a documented
// limit: what else a caller could do wrong no library can see.
//
// Enters:  a struct in a Roomy, and the table of its fields.   Leaves: the same with one field changed.
// Units:   none.
// Cost:    none.                          Thread class: pure functions.
#ifndef HORUS_TESTS_CALLS_CORRUPT_H_
#define HORUS_TESTS_CALLS_CORRUPT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "calls/choices.h"
#include "horus/lab/lab.h"

namespace horus::calls {

// A struct with room behind it, as one of a newer header has.
inline constexpr size_t kRoom = 32;
template <typename T>
struct Roomy {
  T value;
  unsigned char room[kRoom] = {};
};

// kCount has a documented limit, kFewer none: what it counts is there only as far as it says.
enum class FieldKind : uint8_t { kNumber, kCount, kFewer, kText, kPointer };

struct Field {
  size_t offset;
  size_t size;
  FieldKind kind;
};

// Fields of `T`, from its header: make_fields.py.
template <typename T>
std::span<const Field> FieldsOf();

// A text that no name is.
[[nodiscard]] const char* HostileText(Choices& choices);

void CorruptBytes(Choices& choices, std::span<const Field> fields, void* base, size_t size);

// With one chance in `n`.
template <typename T>
void MaybeCorrupt(Choices& choices, uint64_t n, Roomy<T>& given) {
  if (choices.OneIn(n)) CorruptBytes(choices, FieldsOf<T>(), &given, sizeof(T));
}

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_CORRUPT_H_
