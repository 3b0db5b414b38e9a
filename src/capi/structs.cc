// SPDX-License-Identifier: Apache-2.0
// Checks of size-prefixed structs.
#include "capi/structs.h"

#include <cstdint>

namespace horus::capi {
namespace {

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
