// SPDX-License-Identifier: Apache-2.0
// Checks of plain arguments: pointers, text, columns and the capacity of output buffers.
//
// Enters:  what the caller passed.   Leaves: OK, or which argument is wrong, expected and found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capi/error.h"

namespace horus::capi {

// A column of `count` elements may be null only when count is 0.
[[nodiscard]] absl::Status RequireColumn(const void* column, const char* name, size_t count);
[[nodiscard]] absl::Status RequireColumns(size_t count, std::initializer_list<NamedPointer> columns);

// Text that must be there, or may be null (then empty). Refuses what is not UTF-8.
[[nodiscard]] absl::StatusOr<std::string> ReadText(const char* text, const char* name);
[[nodiscard]] absl::StatusOr<std::string> ReadOptionalText(const char* text, const char* name);

// 0 or 1.
[[nodiscard]] absl::Status CheckFlag(const char* name, int32_t value);

// One of the constants `constants` ("HORUS_STATE_*"), which are those from `first` to `last`.
[[nodiscard]] absl::Status CheckConstant(const char* name, const char* constants, int32_t first, int32_t last,
                                         int32_t value);

// "name[index]", for messages.
[[nodiscard]] std::string Element(const char* name, size_t index);

// NOT_FOUND past the rows, which `what` names.
[[nodiscard]] absl::Status NoSuchRow(const char* what, size_t count, size_t index);
template <typename Rows>
[[nodiscard]] auto RowAt(const Rows& rows, const char* what, size_t index) -> absl::StatusOr<decltype(rows.data())> {
  if (index < rows.size()) return &rows[index];
  return NoSuchRow(what, rows.size(), index);
}

// How many of `needed` elements are to be written: all of them, or none where the caller only counts (capacity 0).
// BUFFER_TOO_SMALL with *count = needed when they do not fit.
[[nodiscard]] absl::StatusOr<size_t> RowsToWrite(size_t needed, size_t capacity, size_t* count);

// So many rows, as far as the caller has room; `count` receives how many there are.
template <typename WriteRow>
[[nodiscard]] absl::Status WriteRows(size_t needed, size_t capacity, size_t* count, const WriteRow& write_row) {
  HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(needed, capacity, count));
  for (size_t i = 0; i < rows; ++i) write_row(i);
  if (count != nullptr) *count = needed;
  return absl::OkStatus();
}

// What `read` makes of each element of a column; an error names the element.
template <typename Given, typename Read>
[[nodiscard]] auto ReadEach(const char* name, size_t count, const Given* column, const Read& read)
    -> absl::StatusOr<std::vector<typename decltype(read(*column))::value_type>> {
  std::vector<typename decltype(read(*column))::value_type> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto one = read(column[i]);
    if (!one.ok()) return At(Element(name, i), one.status());
    all.push_back(*std::move(one));
  }
  return all;
}

// A field that was left 0 keeps its default.
template <typename T, typename Given>
void SetUnlessZero(T& option, Given given) {
  if (given != 0) option = static_cast<T>(given);
}
// Likewise, of an amount whose 0 is given as -1.
template <typename T, typename Given>
void SetAmount(T& option, Given given) {
  SetUnlessZero(option, given);
  if (given == -1) option = 0;
}

// Writes row `index` of a column that the caller may have left out.
template <typename T, typename Value>
void Put(T* column, size_t index, Value value) {
  if (column != nullptr) column[index] = static_cast<T>(value);
}

// ---- Two text columns of the C ABI as key-value pairs: node labels and node selectors.

struct LabelColumns {
  const char* name;  // "label" of label_count, label_keys, label_values
  size_t count;
  const char* const* keys;
  const char* const* values;
};

[[nodiscard]] absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LabelsFromC(const LabelColumns& columns,
                                                                                           size_t max_count);

// ---- Bytes into the caller's buffer.
// Cost: one copy.

[[nodiscard]] inline absl::Status WriteBytes(std::string_view from, size_t capacity, void* bytes, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_RETURN_IF_ERROR(RequireColumn(bytes, "bytes", capacity));
  HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(from.size(), capacity, count));
  if (rows > 0) std::memcpy(bytes, from.data(), rows);
  *count = from.size();
  return absl::OkStatus();
}

}  // namespace horus::capi
