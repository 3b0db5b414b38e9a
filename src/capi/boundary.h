// SPDX-License-Identifier: Apache-2.0
// The boundary: what every exported function does with what it is given and with what it answers. Checks of pointers,
// text, columns and size-prefixed structs on the way in; statuses, rows and structs on the way out; and the one place
// where exceptions end.
//
// Enters:  what the caller passed; absl::Status, where needed with one of the four codes that only the boundary has.
// Leaves:  values, or which argument is wrong, expected and found: a horus_status and one line in the caller's struct.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capi/struct_sizes.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace horus::capi {

using namespace horus;  // NOLINT(google-build-using-namespace): C functions, outside, see both

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

[[nodiscard]] horus_status Guard(horus_error* error, const auto& body) {
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
[[nodiscard]] auto NeedsFirst(std::initializer_list<NamedPointer> needed, const auto& body) {
  return [needed, &body]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require(needed));
    return body();
  };
}
[[nodiscard]] horus_status Guard(horus_error* error, std::initializer_list<NamedPointer> needed, const auto& body) {
  return Guard(error, NeedsFirst(needed, body));
}

// An exported function in a build that lacks what it needs: the same symbol, which says what is missing.
#define HORUS_MISSING(name, reason, ...) \
  horus_status name(__VA_ARGS__, horus_error* error) { return horus::capi::Fail(error, HORUS_ERR_UNSUPPORTED, reason); }
inline constexpr char kWithoutOnnx[] =
    "this libhorus was built without graphs and predictions: configure with HORUS_WITH_ONNX=ON";

// do(from, to, field) for each of up to 27 fields, which two structs have by the same names.
#define HORUS_EACH_FIELD(do, from, to, ...) HORUS_EXPAND_(HORUS_EACH_STEP_(do, from, to, __VA_ARGS__))
#define HORUS_EACH_STEP_(do, from, to, field, ...) \
  do (from, to, field) __VA_OPT__(HORUS_EACH_AGAIN_ HORUS_PARENS_(do, from, to, __VA_ARGS__))
#define HORUS_EACH_AGAIN_() HORUS_EACH_STEP_
#define HORUS_PARENS_ ()
#define HORUS_EXPAND_(...) HORUS_EXPAND_1_(HORUS_EXPAND_1_(HORUS_EXPAND_1_(__VA_ARGS__)))
#define HORUS_EXPAND_1_(...) HORUS_EXPAND_2_(HORUS_EXPAND_2_(HORUS_EXPAND_2_(__VA_ARGS__)))
#define HORUS_EXPAND_2_(...) HORUS_EXPAND_3_(HORUS_EXPAND_3_(HORUS_EXPAND_3_(__VA_ARGS__)))
#define HORUS_EXPAND_3_(...) __VA_ARGS__
#define HORUS_COPY_FIELD_(from, to, field)                   \
  static_assert(sizeof((to).field) >= sizeof((from).field)); \
  to.field = static_cast<std::decay_t<decltype(to.field)>>(from.field);
#define HORUS_COPY_FIELDS(from, to, ...) HORUS_EACH_FIELD(HORUS_COPY_FIELD_, from, to, __VA_ARGS__)
#define HORUS_SET_FIELD_(from, to, field) SetUnlessZero(to.field, from.field);
#define HORUS_SET_FIELDS_UNLESS_ZERO(from, to, ...) HORUS_EACH_FIELD(HORUS_SET_FIELD_, from, to, __VA_ARGS__)

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

// ---- Plain arguments: pointers, text, columns and the capacity of output buffers.

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
[[nodiscard]] auto RowAt(const auto& rows, const char* what, size_t index) -> absl::StatusOr<decltype(rows.data())> {
  if (index < rows.size()) return &rows[index];
  return NoSuchRow(what, rows.size(), index);
}

// How many of `needed` elements are to be written: all of them, or none where the caller only counts (capacity 0).
// BUFFER_TOO_SMALL with *count = needed when they do not fit.
[[nodiscard]] absl::StatusOr<size_t> RowsToWrite(size_t needed, size_t capacity, size_t* count);

// So many rows, as far as the caller has room; `count` receives how many there are.
[[nodiscard]] absl::Status WriteRows(size_t needed, size_t capacity, size_t* count, const auto& write_row) {
  HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(needed, capacity, count));
  for (size_t i = 0; i < rows; ++i) write_row(i);
  if (count != nullptr) *count = needed;
  return absl::OkStatus();
}

// What `read` makes of each element of a column; an error names the element.
[[nodiscard]] auto ReadEach(const char* name, size_t count, const auto* column, const auto& read)
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
void SetAmount(auto& option, auto given) {
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

// ---- Size-prefixed structs, of a caller's header that is older or newer than ours: a copy of our version, zero where
// the caller's was shorter; errors name struct, offset and both sizes.

// The name of T, by what gcc and clang call this function: "... [with T = horus_job; ...]", "... [T = horus_job]".
template <typename T>
consteval std::string_view NameOf() {
  constexpr std::string_view kBefore = "T = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kBefore) + kBefore.size());
  return text.substr(0, text.find_first_of(";]"));
}

// Whether a constant of the C ABI is the value of an enumerator.
consteval bool Same(int32_t constant, auto value) { return constant == static_cast<int32_t>(value); }

struct StructShape {
  std::string_view name;
  size_t first_size;  // in the first release: no caller can have a smaller one
  size_t known_size;  // in this release
};
template <typename T>
inline constexpr StructShape kShape = {NameOf<T>(), kFirstSize<T>, sizeof(T)};

// Null, too small, implausibly large, or set beyond what this release knows.
[[nodiscard]] absl::Status CheckInputStruct(const void* given, const StructShape& shape);
// Null or too small.
[[nodiscard]] absl::Status CheckOutputStruct(const void* given, const StructShape& shape);
[[nodiscard]] absl::Status CheckReserved(const StructShape& shape, const char* field, int64_t value);

template <typename T>
[[nodiscard]] absl::StatusOr<T> ReadStruct(const T* given) {
  HORUS_RETURN_IF_ERROR(CheckInputStruct(given, kShape<T>));
  T known = {};
  std::memcpy(static_cast<void*>(&known), given, std::min<size_t>(given->struct_size, sizeof(T)));
  known.struct_size = sizeof(T);
  // No other names: tests/abi/check_since.py.
  if constexpr (requires { known.reserved; }) {
    HORUS_RETURN_IF_ERROR(CheckReserved(kShape<T>, "reserved", known.reserved));
  }
  if constexpr (requires { known.reserved0; }) {
    HORUS_RETURN_IF_ERROR(CheckReserved(kShape<T>, "reserved0", known.reserved0));
  }
  if constexpr (requires { known.reserved1; }) {
    HORUS_RETURN_IF_ERROR(CheckReserved(kShape<T>, "reserved1", known.reserved1));
  }
  return known;
}

// The same for a struct that may be left out: null = all defaults.
template <typename T>
[[nodiscard]] absl::StatusOr<T> ReadOptionalStruct(const T* given) {
  if (given != nullptr) return ReadStruct(given);
  T defaults = {};
  defaults.struct_size = sizeof(T);
  return defaults;
}

template <typename T>
[[nodiscard]] absl::Status CheckOutput(const T* given) {
  return CheckOutputStruct(given, kShape<T>);
}

// Requires CheckOutput(out). Writes at most the caller's size; struct_size itself stays.
template <typename T>
void WriteStruct(const T& value, T* out) {
  constexpr size_t kSkip = sizeof(out->struct_size);
  const size_t size = std::min<size_t>(out->struct_size, sizeof(T));
  std::memcpy(reinterpret_cast<char*>(out) + kSkip, reinterpret_cast<const char*>(&value) + kSkip, size - kSkip);
}

// Both of the above.
template <typename T>
[[nodiscard]] absl::Status Answer(const T& value, T* out) {
  HORUS_RETURN_IF_ERROR(CheckOutput(out));
  WriteStruct(value, out);
  return absl::OkStatus();
}

}  // namespace horus::capi
