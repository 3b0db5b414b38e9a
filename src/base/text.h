// SPDX-License-Identifier: Apache-2.0
// Text for error messages: untrusted names made printable, and "did you mean" suggestions.
//
// Enters:  names from files or callers, of any bytes and length.
// Leaves:  short printable text.
// Cost:    linear in the text; Nearest is names x length^2.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace horus {

// ---- Which characters command a terminal instead of showing something.

// C0 (below the blank), DEL and C1 (U+0080 to U+009F: two bytes in UTF-8).
[[nodiscard]] constexpr bool IsControl(std::string_view character) {
  constexpr unsigned char kBlank = 0x20, kDelete = 0x7F, kC1Lead = 0xC2, kC1End = 0xA0;
  if (character.empty()) return false;
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < kBlank || first == kDelete;
  return character.size() == 2 && first == kC1Lead && static_cast<unsigned char>(character[1]) < kC1End;
}

// Bytes of the UTF-8 character at the start of `text`; 0 when there is none.
[[nodiscard]] size_t Utf8Length(std::string_view text);

// `text` in single quotes, control bytes and what is no UTF-8 as \xNN, cut with "..." after at most `max_length` bytes,
// at the end of a character.
[[nodiscard]] std::string Quoted(std::string_view text, size_t max_length = 80);

// The up to `count` names nearest to `text` by case-insensitive edit distance (at most a third of its length away; two
// neighbours swapped count once), nearest first, ties in the order given; joined as "a, b"; empty when none is near.
[[nodiscard]] std::string Nearest(std::string_view text, std::span<const std::string_view> names, size_t count = 3);

// "; did you mean 'a'?" of the nearest; empty when none is near.
[[nodiscard]] std::string DidYouMean(std::string_view text, std::span<const std::string_view> names);

// "expected one of a, b, found 'c'", and DidYouMean.
[[nodiscard]] std::string ExpectedOneOf(std::span<const std::string_view> names, std::string_view found);

// "'a', 'b' and 3 more": at most `count` names, quoted, in the order given.
[[nodiscard]] std::string QuotedSome(std::span<const std::string_view> names, size_t count = 8);

// The number that the whole text is; nullopt for anything else, such as blanks or a plus sign.
template <typename Number>
[[nodiscard]] std::optional<Number> ParseNumber(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// Two amounts as text, `text(amount, more)` each, with as few more digits than usual as tell them apart.
template <typename Text>
[[nodiscard]] std::pair<std::string, std::string> ToldApart(double a, double b, Text text) {
  constexpr int kMostDigits = 15;  // beyond, doubles are rounding
  for (int more = 0;; ++more) {
    std::pair<std::string, std::string> both(text(a, more), text(b, more));
    if (both.first != both.second || a == b || more == kMostDigits) return both;
  }
}

// "a, b, c", in the order given.
[[nodiscard]] std::string Listed(std::span<const std::string_view> names);

}  // namespace horus
