// SPDX-License-Identifier: Apache-2.0
// Size-prefixed structs across versions: how they are read and how far they are written.
//
// Enters:  a pointer to a struct of the caller's header, older or newer than ours.
// Leaves:  a copy of our version, zero where the caller's was shorter; errors name struct, offset and both sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "capi/error.h"
#include "capi/struct_sizes.h"

namespace horus::capi {

// The name of T, by what gcc and clang call this function: "... [with T = horus_job; ...]", "... [T = horus_job]".
template <typename T>
consteval std::string_view NameOf() {
  constexpr std::string_view kBefore = "T = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kBefore) + kBefore.size());
  return text.substr(0, text.find_first_of(";]"));
}

// Whether a constant of the C ABI is the value of an enumerator.
template <typename Enum>
consteval bool Same(int32_t constant, Enum value) {
  return constant == static_cast<int32_t>(value);
}

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
