// SPDX-License-Identifier: Apache-2.0
// Printable names and nearest-name suggestions for error messages.
#include "base/text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace horus {
namespace {

// Longer names are typing no more: bounds the quadratic distance.
constexpr size_t kMaxCompared = 64;

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = absl::ascii_tolower(static_cast<unsigned char>(a[i - 1])) ==
                        absl::ascii_tolower(static_cast<unsigned char>(b[j - 1]));
      const size_t replace = diagonal + (same ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replace, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Quoted(std::string_view text, size_t max_length) {
  std::string quoted = "'";
  for (const char c : text.substr(0, max_length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppendFormat(&quoted, "\\x%02X", byte);
    } else {
      quoted.push_back(c);
    }
  }
  if (text.size() > max_length) quoted += "...";
  quoted.push_back('\'');
  return quoted;
}

std::string Nearest(std::string_view text, std::span<const std::string_view> names, size_t count) {
  if (text.size() > kMaxCompared) return "";
  std::vector<std::pair<size_t, size_t>> near;  // distance, position
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].size() > kMaxCompared) continue;
    const size_t distance = EditDistance(text, names[i]);
    if (3 * distance <= std::max(text.size(), size_t{3})) near.emplace_back(distance, i);
  }
  std::sort(near.begin(), near.end());
  std::string joined;
  for (size_t i = 0; i < std::min(count, near.size()); ++i) {
    absl::StrAppend(&joined, i == 0 ? "" : ", ", std::string(names[near[i].second]));
  }
  return joined;
}

std::string Listed(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

}  // namespace horus
