// SPDX-License-Identifier: Apache-2.0
// Status on its way out: absl::Status to horus_status and the caller's horus_error.
//
// Enters:  absl::Status; where needed with one of the four codes that only the boundary has.
// Leaves:  a horus_status and one line of text in the caller's struct.
// Units:   none.
// Cost:    none on success.               Thread class: pure functions.
#ifndef HORUS_CAPI_ERROR_H_
#define HORUS_CAPI_ERROR_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "horus/base.h"

namespace horus::capi {

// A status of a code that absl does not have: HORUS_ERR_BUFFER_TOO_SMALL, _INVALID_STRUCT, _BUSY, _CALLBACK.
[[nodiscard]] absl::Status CError(horus_status code, std::string_view message);

// `status` with "<where>: " before its message; OK stays OK, the code stays the same.
[[nodiscard]] absl::Status At(std::string_view where, const absl::Status& status);

[[nodiscard]] horus_status CodeOf(const absl::Status& status);

// Copies `text` into `out` as one line of UTF-8: cut to fit at the end of a character, control bytes as spaces, what is
// no UTF-8 as question marks, ended by NUL. `capacity` >= 1 bytes.
void CopyLine(std::string_view text, char* out, size_t capacity);

// Writes code and message as far as the caller's struct goes; `error` may be null. Returns `code`.
horus_status Fail(horus_error* error, horus_status code, std::string_view message);

}  // namespace horus::capi

#endif  // HORUS_CAPI_ERROR_H_
