// SPDX-License-Identifier: Apache-2.0
// Reads quantities without floating point.
#include "io/kube/quantity.h"

#include <array>
#include <chrono>
#include <utility>

#include "base/text.h"

namespace horus {
namespace {

__extension__ using Wide = unsigned __int128;

struct Suffix {
  std::string_view text;
  int decimal = 0;  // power of ten
  int binary = 0;   // power of two
};
constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};
constexpr int kMostDigits = 19;  // that count: as many fit 64 bits
constexpr int kMostExponent = 99;

// Digits as integer x 10^decimal, and whether digits beyond kMostDigits were dropped behind the point.
struct Mantissa {
  uint64_t digits = 0;
  int decimal = 0;
  bool more = false;
};

std::optional<Mantissa> ReadMantissa(std::string_view& text) {
  Mantissa mantissa;
  bool any = false, point = false;
  int count = 0;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (count == kMostDigits) {
      if (!point) return std::nullopt;
      mantissa.more |= c != '0';
      continue;
    }
    mantissa.digits = mantissa.digits * 10 + static_cast<uint64_t>(c - '0');  // Bounded: at most 19 digits
    if (mantissa.digits > 0) ++count;
    if (point) --mantissa.decimal;
    if (mantissa.decimal < -kMostExponent) return std::nullopt;
  }
  text.remove_prefix(at);
  return any ? std::optional(mantissa) : std::nullopt;
}

std::optional<Suffix> ReadSuffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  Suffix exponent;
  exponent.decimal = ParseNumber<int>(text).value_or(kMostExponent + 1);
  if (exponent.decimal > kMostExponent || exponent.decimal < -kMostExponent) return std::nullopt;
  return exponent;
}

// Two digits, or as many as `count`, at `at`; -1 for anything else.
int Digits(std::string_view text, size_t at, size_t count) {
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {  // Bounded: at and count are constants below
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');  // Bounded: at most four digits
  }
  return value;
}

}  // namespace

std::optional<int64_t> ParseKubeQuantity(std::string_view text, int64_t per_unit) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<Mantissa> mantissa = ReadMantissa(text);
  const std::optional<Suffix> suffix = mantissa ? ReadSuffix(text) : std::nullopt;
  if (!suffix) return std::nullopt;
  Wide value = mantissa->digits;
  bool rest = mantissa->more;
  if (__builtin_mul_overflow(value, static_cast<Wide>(per_unit), &value) ||
      __builtin_mul_overflow(value, Wide{1} << suffix->binary, &value)) {  // Bounded: checked by the builtin
    return std::nullopt;
  }
  int power = mantissa->decimal + suffix->decimal;
  for (; power > 0 && value > 0; --power) {
    if (__builtin_mul_overflow(value, Wide{10}, &value)) return std::nullopt;
  }
  for (; power < 0 && value > 0; ++power) {
    rest |= value % 10 != 0;
    value /= 10;
  }
  if (rest) ++value;
  if (value > static_cast<Wide>(kMostQuantity)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> ParseKubeTime(std::string_view text) {
  constexpr size_t kShortest = std::string_view("2026-11-26T12:00:00Z").size();
  if (text.size() < kShortest || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text.back() != 'Z') {
    return std::nullopt;
  }
  const int year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const int hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  constexpr int kFirstYear = 1970;
  if (year < kFirstYear || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  for (size_t i = kShortest - 1; i + 1 < text.size(); ++i) {
    const bool fraction = i == kShortest - 1 ? text[i] == '.' : text[i] >= '0' && text[i] <= '9';
    if (!fraction) return std::nullopt;
  }
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(hour) +
                                        std::chrono::minutes(minute) + std::chrono::seconds(second);
  return time.time_since_epoch().count();
}

}  // namespace horus
