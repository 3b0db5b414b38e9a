// SPDX-License-Identifier: Apache-2.0
// Errors inside the library: absl::Status with a message that says what, where, expected and found.
//
// Enters:  a code and a printf-style message.   Leaves: absl::Status / absl::StatusOr<T>.
// Units:   every number in a message carries its unit.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "base/format.h"

namespace horus {

// What each code means here; capi/boundary.cc maps them one to one to horus_status.
//   kInvalidArgument     the caller's value is wrong           kNotFound        no such id or name
//   kAlreadyExists       the id is taken                       kAborted         state moved since the plan saw it
//   kResourceExhausted   a documented limit was exceeded       kDataLoss        bytes are damaged or not of this format
//   kFailedPrecondition  not possible in the present state     kUnimplemented   not part of this build or version
//   kUnavailable         a file cannot be read or written      kCancelled       the progress callback said stop
//   kOutOfRange          bytes of a newer or unknown version   kInternal        a bug of ours

template <typename... Args>
[[nodiscard]] absl::Status MakeError(absl::StatusCode code, const absl::FormatSpec<Args...>& format,
                                     const Args&... args) {
  return absl::Status(code, Formatted(format, args...));
}

// One function a code: InvalidArgument("%s: expected ..., found ...", where, ...).
#define HORUS_MAKE_ERROR_(Code)                                                                   \
  template <typename... Args>                                                                     \
  [[nodiscard]] absl::Status Code(const absl::FormatSpec<Args...>& format, const Args&... args) { \
    return MakeError(absl::StatusCode::k##Code, format, args...);                                 \
  }
HORUS_MAKE_ERROR_(InvalidArgument)
HORUS_MAKE_ERROR_(NotFound)
HORUS_MAKE_ERROR_(AlreadyExists)
HORUS_MAKE_ERROR_(ResourceExhausted)
HORUS_MAKE_ERROR_(DataLoss)
HORUS_MAKE_ERROR_(FailedPrecondition)
HORUS_MAKE_ERROR_(Unimplemented)
HORUS_MAKE_ERROR_(Unavailable)
HORUS_MAKE_ERROR_(Cancelled)
#undef HORUS_MAKE_ERROR_

// The same error with where it was found before its message; what is OK stays so.
[[nodiscard]] inline absl::Status At(std::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status placed = MakeError(status.code(), "%s: %s", std::string(where), std::string(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { placed.SetPayload(url, payload); });
  return placed;
}
template <typename T>
[[nodiscard]] absl::StatusOr<T> At(std::string_view where, absl::StatusOr<T> value) {
  if (value.ok()) return value;
  return At(where, value.status());
}

}  // namespace horus

#define HORUS_STATUS_CONCAT_INNER_(a, b) a##b
#define HORUS_STATUS_CONCAT_(a, b) HORUS_STATUS_CONCAT_INNER_(a, b)

// Returns the status of `expr` from the enclosing function unless it is OK.
#define HORUS_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                  \
    if (absl::Status horus_status_ = (expr); !horus_status_.ok()) return horus_status_; \
  } while (false)

// Assigns the value of a StatusOr to what is there already, or returns its status: one statement, as the one above.
#define HORUS_SET_OR_RETURN(lhs, expr)                             \
  do {                                                             \
    auto horus_found = (expr);                                     \
    if (!horus_found.ok()) return std::move(horus_found).status(); \
    (lhs) = *std::move(horus_found);                               \
  } while (false)

// Declares or assigns `lhs` from the value of a StatusOr, or returns its status.
#define HORUS_ASSIGN_OR_RETURN(lhs, expr) \
  HORUS_ASSIGN_OR_RETURN_IMPL_(HORUS_STATUS_CONCAT_(horus_status_or_, __LINE__), lhs, expr)
#define HORUS_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return std::move(tmp).status();     \
  lhs = *std::move(tmp)
