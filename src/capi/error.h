// SPDX-License-Identifier: Apache-2.0
// Status on its way out: absl::Status to horus_status and the caller's horus_error; and the one place where exceptions
// end.
//
// Enters:  absl::Status; where needed with one of the four codes that only the boundary has.
// Leaves:  a horus_status and one line of text in the caller's struct.
#pragma once

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "horus/base.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace horus::capi {

// ---- DefaultFloats: for a scope, numbers are computed as C has them by default, whatever the host has set.
// Cost: one register read, about a nanosecond, where the host keeps the default.

class DefaultFloats {
 public:
  DefaultFloats() : changed_(!IsDefault()) {
    if (changed_) Set();
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;
  ~DefaultFloats() {
    if (changed_) (void)std::fesetenv(&host_);
  }

 private:
  static bool IsDefault() {
#if defined(__SSE2__)
    return (_mm_getcsr() & ~unsigned{_MM_EXCEPT_MASK}) == _MM_MASK_MASK;  // what was raised before is no setting
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
    return control == 0;
#else
    return false;
#endif
  }

  void Set() {
    (void)std::fegetenv(&host_);
    (void)std::fesetenv(FE_DFL_ENV);
#if defined(__SSE2__)
    _mm_setcsr(_MM_MASK_MASK);  // subnormal numbers too, of which C says nothing
#endif
  }

  std::fenv_t host_;  // only read where changed_
  bool changed_;
};

// A status of a code that absl does not have: HORUS_ERR_BUFFER_TOO_SMALL, _INVALID_STRUCT, _BUSY, _CALLBACK.
[[nodiscard]] absl::Status CError(horus_status code, std::string_view message);

[[nodiscard]] horus_status CodeOf(const absl::Status& status);

// Copies `text` into `out` as one line of UTF-8: cut to fit at the end of a character, control bytes as spaces, what is
// no UTF-8 as question marks, ended by NUL. `capacity` >= 1 bytes.
void CopyLine(std::string_view text, char* out, size_t capacity);

// Writes code and message as far as the caller's struct goes; `error` may be null. Returns `code`.
horus_status Fail(horus_error* error, horus_status code, std::string_view message);

// ---- Guard: the one place where exceptions end, and the host's settings of floating point. Every fallible exported
// function is one call of it.
// Cost: none on success.

// To be called in a catch block: maps the exception in flight. A thread's forced unwind (pthread_cancel,
// pthread_exit) is no exception of ours and goes on.
horus_status FailOnException(horus_error* error);

struct NamedPointer {
  const void* pointer;
  const char* name;
};
[[nodiscard]] absl::Status Require(std::initializer_list<NamedPointer> pointers);

template <typename Body>
[[nodiscard]] horus_status Guard(horus_error* error, const Body& body) {
  const DefaultFloats floats;
  try {
    const absl::Status status = body();
    if (status.ok()) return HORUS_OK;
    return Fail(error, CodeOf(status), std::string_view(status.message().data(), status.message().size()));
  } catch (...) {
    return FailOnException(error);
  }
}

// `body`, once none of the pointers is NULL.
template <typename Body>
[[nodiscard]] auto NeedsFirst(std::initializer_list<NamedPointer> needed, const Body& body) {
  return [needed, &body]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require(needed));
    return body();
  };
}
template <typename Body>
[[nodiscard]] horus_status Guard(horus_error* error, std::initializer_list<NamedPointer> needed, const Body& body) {
  return Guard(error, NeedsFirst(needed, body));
}

// Hands a new handle to the caller.
template <typename T>
[[nodiscard]] absl::Status Give(T* made, T** out) {
  *out = made;
  return absl::OkStatus();
}
template <typename T>
[[nodiscard]] absl::Status Give(absl::StatusOr<std::unique_ptr<T>> made, T** out) {
  return made.ok() ? Give(made->release(), out) : made.status();
}

}  // namespace horus::capi
