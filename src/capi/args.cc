// SPDX-License-Identifier: Apache-2.0
// Checks of plain arguments.
#include "capi/args.h"

#include "base/text.h"

namespace horus::capi {

absl::Status RequireColumn(const void* column, const char* name, size_t count) {
  if (count == 0 || column != nullptr) return absl::OkStatus();
  return InvalidArgument("%s: expected %d elements, found NULL", name, count);
}

absl::Status RequireColumns(size_t count, std::initializer_list<NamedPointer> columns) {
  for (const NamedPointer& column : columns) HORUS_RETURN_IF_ERROR(RequireColumn(column.pointer, column.name, count));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadText(const char* text, const char* name) {
  HORUS_RETURN_IF_ERROR(Require({{text, name}}));
  const std::string_view all(text);
  for (size_t at = 0; at < all.size();) {
    const size_t length = Utf8Length(all.substr(at));
    if (length == 0) {
      return InvalidArgument("%s: expected UTF-8, found byte 0x%02x at offset %d", name,
                             static_cast<unsigned char>(all[at]), at);
    }
    at += length;
  }
  return std::string(all);
}

absl::StatusOr<std::string> ReadOptionalText(const char* text, const char* name) {
  return text == nullptr ? std::string() : ReadText(text, name);
}

absl::Status CheckFlag(const char* name, int32_t value) {
  if (value == 0 || value == 1) return absl::OkStatus();
  return InvalidArgument("%s: expected 0 or 1, found %d", name, value);
}

absl::Status CheckConstant(const char* name, const char* constants, int32_t first, int32_t last, int32_t value) {
  if (value >= first && value <= last) return absl::OkStatus();
  return InvalidArgument("%s: expected %s (%d to %d), found %d", name, constants, first, last, value);
}

std::string Element(const char* name, size_t index) { return Formatted("%s[%d]", name, index); }

absl::Status NoSuchRow(const char* what, size_t count, size_t index) {
  return NotFound("index: expected less than %d %s, found %d", count, what, index);
}

absl::StatusOr<size_t> RowsToWrite(size_t needed, size_t capacity, size_t* count) {
  if (capacity == 0) return 0;
  if (needed <= capacity) return needed;
  absl::Status error = CError(HORUS_ERR_BUFFER_TOO_SMALL,
                              Formatted("capacity: expected at least %d elements, found %d", needed, capacity));
  if (count != nullptr) *count = needed;  // last: where the message finds no memory, nothing is written
  return error;
}

// ---- Key-value pairs from two text columns.

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> LabelsFromC(const LabelColumns& columns,
                                                                             size_t max_count) {
  const std::string keys = std::string(columns.name) + "_keys";
  const std::string values = std::string(columns.name) + "_values";
  if (columns.count > max_count) {
    return InvalidArgument("%s_count: expected at most %d, found %d", columns.name, max_count, columns.count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.keys, keys.c_str(), columns.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.values, values.c_str(), columns.count));
  std::vector<std::pair<std::string, std::string>> pairs(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    HORUS_ASSIGN_OR_RETURN(pairs[i].first, ReadText(columns.keys[i], Element(keys.c_str(), i).c_str()));
    HORUS_ASSIGN_OR_RETURN(pairs[i].second, ReadText(columns.values[i], Element(values.c_str(), i).c_str()));
  }
  return pairs;
}

}  // namespace horus::capi
