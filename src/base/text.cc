// SPDX-License-Identifier: Apache-2.0
// Printable names and nearest-name suggestions for error messages.
#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"

namespace horus {
namespace {

// Longer names are typing no more: bounds the quadratic distance.
constexpr size_t kMaxCompared = 64;
constexpr size_t kMostNames = 10'000;  // compared for a suggestion; chosen

struct LeadByte {
  unsigned char mask, bits;
  size_t length;
  uint32_t least;  // smallest code point that needs this length
};
constexpr LeadByte kLeadBytes[] = {
    {0x80, 0x00, 1, 0}, {0xE0, 0xC0, 2, 0x80}, {0xF0, 0xE0, 3, 0x800}, {0xF8, 0xF0, 4, 0x10000}};

bool SameLetter(char a, char b) {
  return absl::ascii_tolower(static_cast<unsigned char>(a)) == absl::ascii_tolower(static_cast<unsigned char>(b));
}

// Optimal string alignment: insertions, deletions, replacements, and swaps of two neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (SameLetter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i < 2 || j < 2 || !SameLetter(a[i - 1], b[j - 2]) || !SameLetter(a[i - 2], b[j - 1])) continue;
      row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const LeadByte& lead : kLeadBytes) {
    if ((byte(0) & lead.mask) != lead.bits) continue;
    if (text.size() < lead.length) return 0;
    uint32_t point = byte(0) & static_cast<unsigned char>(~lead.mask);
    for (size_t i = 1; i < lead.length; ++i) {
      if ((byte(i) & 0xC0u) != 0x80u) return 0;
      point = point << 6 | (byte(i) & 0x3Fu);
    }
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return point >= lead.least && point <= 0x10FFFF && !surrogate ? lead.length : 0;
  }
  return 0;
}

std::string Quoted(std::string_view text, size_t max_length) {
  std::string quoted = "'";
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = Utf8Length(text.substr(at));
    if (at + std::max(length, size_t{1}) > max_length) break;
    const std::string_view character = text.substr(at, std::max(length, size_t{1}));
    if (length == 0 || IsControl(character)) {
      for (const char byte : character) AppendFormatted(&quoted, "\\x%02X", static_cast<unsigned char>(byte));
    } else {
      quoted += character;
    }
    at += character.size();
  }
  if (at < text.size()) quoted += "...";
  quoted.push_back('\'');
  return quoted;
}

std::string Nearest(std::string_view text, std::span<const std::string_view> names, size_t count) {
  if (text.size() > kMaxCompared) return "";
  std::vector<std::pair<size_t, size_t>> near;  // distance, position
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    if (names[i].size() > kMaxCompared) continue;
    const size_t distance = EditDistance(text, names[i]);
    if (3 * distance <= std::max(text.size(), size_t{3})) near.emplace_back(distance, i);
  }
  std::ranges::sort(near);
  std::string joined;
  for (size_t i = 0; i < std::min(count, near.size()); ++i) {
    const std::string quoted = Quoted(names[near[i].second]);  // names may be a stranger's: no byte of them as it is
    absl::StrAppend(&joined, i == 0 ? "" : ", ", quoted.substr(1, quoted.size() - 2));
  }
  return joined;
}

std::string DidYouMean(std::string_view text, std::span<const std::string_view> names) {
  const std::string near = Nearest(text, names, 1);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

std::string ExpectedOneOf(std::span<const std::string_view> names, std::string_view found) {
  return absl::StrCat("expected one of ", Listed(names), ", found ", Quoted(found), DidYouMean(found, names));
}

std::string QuotedSome(std::span<const std::string_view> names, size_t count) {
  std::string list;
  for (size_t i = 0; i < names.size() && i < count; ++i) list += (i == 0 ? "" : ", ") + Quoted(names[i]);
  if (names.size() > count) list += " and " + std::to_string(names.size() - count) + " more";
  return list;
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
