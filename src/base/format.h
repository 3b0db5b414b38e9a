// SPDX-License-Identifier: Apache-2.0
// absl::StrFormat for where memory may run out: that one appends to its string in a destructor and so ends the process.
//
// Enters:  a printf-style format and its arguments.   Leaves: text; std::bad_alloc when there is no memory for it.
// Cost:    one formatting, two above kShortText bytes.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/str_format.h"

namespace horus {

inline constexpr size_t kShortText = 1024;  // bytes formatted without asking for their number first

template <typename... Args>
[[nodiscard]] std::string Formatted(const absl::FormatSpec<Args...>& format, const Args&... args) {
  char text[kShortText];
  const int size = absl::SNPrintF(text, sizeof text, format, args...);
  if (size < 0) return {};  // more than INT_MAX bytes
  if (static_cast<size_t>(size) < sizeof text) return std::string(text, static_cast<size_t>(size));
  std::string whole(static_cast<size_t>(size) + 1, '\0');
  absl::SNPrintF(whole.data(), whole.size(), format, args...);
  whole.pop_back();
  return whole;
}

template <typename... Args>
void AppendFormatted(std::string* text, const absl::FormatSpec<Args...>& format, const Args&... args) {
  text->append(Formatted(format, args...));
}

}  // namespace horus
