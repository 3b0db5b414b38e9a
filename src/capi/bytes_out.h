// SPDX-License-Identifier: Apache-2.0
// Bytes into the caller's buffer.
//
// Enters:  bytes and the caller's buffer.   Leaves: the bytes copied and counted, or BUFFER_TOO_SMALL with the count.
// Units:   bytes.
// Cost:    one copy.                        Thread class: pure function.
#ifndef HORUS_CAPI_BYTES_OUT_H_
#define HORUS_CAPI_BYTES_OUT_H_

#include <cstddef>
#include <cstring>
#include <string_view>

#include "capi/args.h"

namespace horus::capi {

[[nodiscard]] inline absl::Status WriteBytes(std::string_view from, size_t capacity, void* bytes, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_RETURN_IF_ERROR(RequireColumn(bytes, "bytes", capacity));
  HORUS_RETURN_IF_ERROR(CheckCapacity(from.size(), capacity, count));
  if (!from.empty()) std::memcpy(bytes, from.data(), from.size());
  *count = from.size();
  return absl::OkStatus();
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_BYTES_OUT_H_
