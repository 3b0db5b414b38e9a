// SPDX-License-Identifier: Apache-2.0
// Checks of plain arguments: pointers, text, columns and the capacity of output buffers.
//
// Enters:  what the caller passed.        Leaves: OK, or which argument is wrong, expected and found.
// Units:   elements.
// Cost:    linear in the text.            Thread class: pure functions.
#ifndef HORUS_CAPI_ARGS_H_
#define HORUS_CAPI_ARGS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "capi/error.h"

namespace horus::capi {

struct NamedPointer {
  const void* pointer;
  const char* name;
};
[[nodiscard]] absl::Status Require(std::initializer_list<NamedPointer> pointers);

// A column of `count` elements may be null only when count is 0.
[[nodiscard]] absl::Status RequireColumn(const void* column, const char* name, size_t count);

// Text that must be there, or may be null (then empty). Refuses what is not UTF-8.
[[nodiscard]] absl::StatusOr<std::string> ReadText(const char* text, const char* name);
[[nodiscard]] absl::StatusOr<std::string> ReadOptionalText(const char* text, const char* name);

// 0 or 1.
[[nodiscard]] absl::Status CheckFlag(const char* name, int32_t value);

// "name[index]", for messages.
[[nodiscard]] std::string Element(const char* name, size_t index);

// BUFFER_TOO_SMALL with *count = needed when `needed` elements do not fit `capacity`.
[[nodiscard]] absl::Status CheckCapacity(size_t needed, size_t capacity, size_t* count);

// A field that was left 0 keeps its default.
template <typename T, typename Given>
void SetUnlessZero(T& option, Given given) {
  if (given != 0) option = given;
}

// Writes row `index` of a column that the caller may have left out.
template <typename T, typename Value>
void Put(T* column, size_t index, Value value) {
  if (column != nullptr) column[index] = static_cast<T>(value);
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_ARGS_H_
