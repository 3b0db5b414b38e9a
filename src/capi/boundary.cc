// SPDX-License-Identifier: Apache-2.0
// Maps statuses to codes, copies messages into the caller's error struct, and checks arguments and structs.
#include "capi/boundary.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "base/text.h"

namespace horus::capi {
namespace {

constexpr char kCodeUrl[] = "horus/status";
// Codes travel as one character, 'A' = 0: there are at most 20.
constexpr char kFirstCode = 'A';

constexpr std::pair<absl::StatusCode, horus_status> kCodes[] = {
    {absl::StatusCode::kOk, HORUS_OK},
    {absl::StatusCode::kInvalidArgument, HORUS_ERR_INVALID_ARGUMENT},
    {absl::StatusCode::kNotFound, HORUS_ERR_NOT_FOUND},
    {absl::StatusCode::kAlreadyExists, HORUS_ERR_EXISTS},
    {absl::StatusCode::kAborted, HORUS_ERR_CONFLICT},
    {absl::StatusCode::kCancelled, HORUS_ERR_CANCELLED},
    {absl::StatusCode::kResourceExhausted, HORUS_ERR_LIMIT},
    {absl::StatusCode::kDataLoss, HORUS_ERR_CORRUPT},
    {absl::StatusCode::kOutOfRange, HORUS_ERR_VERSION},
    {absl::StatusCode::kFailedPrecondition, HORUS_ERR_STATE},
    {absl::StatusCode::kUnimplemented, HORUS_ERR_UNSUPPORTED},
    {absl::StatusCode::kUnavailable, HORUS_ERR_IO},
};
horus_status CodeOfAbsl(absl::StatusCode code) {
  const auto* at = std::ranges::find(kCodes, code, &std::pair<absl::StatusCode, horus_status>::first);
  return at == std::end(kCodes) ? HORUS_ERR_INTERNAL : at->second;
}

// No struct will ever be this large: a larger struct_size is an uninitialised one.
constexpr uint32_t kMaxStructSize = 64 * 1024;

uint32_t SizeOf(const void* given) {
  uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  return size;
}

absl::Status CheckSize(const void* given, const StructShape& shape) {
  if (given == nullptr) return InvalidArgument("%s: expected a struct, found NULL", shape.name);
  const uint32_t size = SizeOf(given);
  if (size >= shape.first_size && size <= kMaxStructSize) return absl::OkStatus();
  return CError(HORUS_ERR_INVALID_STRUCT,
                Formatted("%s: struct_size: expected %d to %d bytes, found %d; start from the INIT macro", shape.name,
                          shape.first_size, kMaxStructSize, size));
}

}  // namespace

absl::Status CError(horus_status code, std::string_view message) {
  absl::Status status(absl::StatusCode::kUnknown, absl::string_view(message.data(), message.size()));
  status.SetPayload(kCodeUrl, absl::Cord(std::string(1, static_cast<char>(kFirstCode + code))));
  return status;
}

absl::Status Require(std::initializer_list<NamedPointer> pointers) {
  for (const NamedPointer& argument : pointers) {
    if (argument.pointer == nullptr) return InvalidArgument("%s: expected a pointer, found NULL", argument.name);
  }
  return absl::OkStatus();
}

horus_status CodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCodeUrl);
  if (!payload.has_value()) return CodeOfAbsl(status.code());
  return std::string(*payload)[0] - kFirstCode;
}

void CopyLine(std::string_view text, char* out, size_t capacity) {
  const char* const last = out + capacity - 1;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);  // 0: a path may be of any bytes
    const size_t taken = std::max<size_t>(length, 1);
    if (taken > static_cast<size_t>(last - out)) break;
    const bool control = IsControl(text.substr(0, taken));
    if (length == 0 || control) {
      *out++ = control ? ' ' : '?';
    } else {
      out = std::copy_n(text.data(), taken, out);
    }
    text.remove_prefix(taken);
  }
  *out = '\0';
}

horus_status Fail(horus_error* error, horus_status code, std::string_view message) {
  if (error == nullptr) return code;
  const size_t size = std::min<size_t>(error->struct_size, sizeof(horus_error));
  if (size >= offsetof(horus_error, status) + sizeof error->status) error->status = code;
  if (size <= offsetof(horus_error, message)) return code;
  CopyLine(message, error->message, size - offsetof(horus_error, message));
  return code;
}

// ---- What becomes of an exception that reached the boundary.

horus_status FailOnException(horus_error* error) {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (const std::bad_alloc&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "an allocation failed");
  } catch (const std::length_error&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "a count is larger than memory can hold");
  } catch (const std::exception& exception) {
    return Fail(error, HORUS_ERR_INTERNAL, exception.what());
  } catch (...) {
    return Fail(error, HORUS_ERR_INTERNAL, "an exception of unknown type");
  }
}

// ---- Plain arguments.

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
  if (columns.count > max_count)
    return InvalidArgument("%s_count: expected at most %d, found %d", columns.name, max_count, columns.count);
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.keys, keys.c_str(), columns.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(columns.values, values.c_str(), columns.count));
  std::vector<std::pair<std::string, std::string>> pairs(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    HORUS_ASSIGN_OR_RETURN(pairs[i].first, ReadText(columns.keys[i], Element(keys.c_str(), i).c_str()));
    HORUS_ASSIGN_OR_RETURN(pairs[i].second, ReadText(columns.values[i], Element(values.c_str(), i).c_str()));
  }
  return pairs;
}

// ---- Size-prefixed structs.

absl::Status CheckInputStruct(const void* given, const StructShape& shape) {
  HORUS_RETURN_IF_ERROR(CheckSize(given, shape));
  const auto* bytes = static_cast<const unsigned char*>(given);
  const uint32_t size = SizeOf(given);
  for (size_t offset = shape.known_size; offset < size; ++offset) {
    if (bytes[offset] == 0) continue;
    return CError(HORUS_ERR_INVALID_STRUCT,
                  Formatted("%s: byte %d of %d is set, but this library knows %d bytes: it is older than the "
                            "header that the program was compiled with",
                            shape.name, offset, size, shape.known_size));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputStruct(const void* given, const StructShape& shape) { return CheckSize(given, shape); }

absl::Status CheckReserved(const StructShape& shape, const char* field, int64_t value) {
  if (value == 0) return absl::OkStatus();
  return CError(HORUS_ERR_INVALID_STRUCT,
                Formatted("%s: %s: expected 0, found %d; start from the INIT macro", shape.name, field, value));
}

}  // namespace horus::capi
