// SPDX-License-Identifier: Apache-2.0
// Reads quantities without floating point.
#include "io/kube/quantity.h"

#include <array>
#include <chrono>

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
  constexpr std::string_view kForm = "0000-00-00T00:00:00", kDigits = "0123456789";
  if (text.size() <= kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? kDigits.find(text[i]) == kDigits.npos : text[i] != kForm[i]) return std::nullopt;
  }
  const std::string_view rest = text.substr(kForm.size());  // "Z", or ".25Z"
  const bool fraction = rest[0] == '.' && rest.find_first_not_of(kDigits, 1) == rest.size() - 1 && rest.ends_with('Z');
  if (rest != "Z" && !fraction) return std::nullopt;
  const auto number = [text](size_t at, size_t count) { return *ParseNumber<int>(text.substr(at, count)); };
  const auto two = [&](size_t at) { return static_cast<unsigned>(number(at, 2)); };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)), std::chrono::month(two(5)),
                                         std::chrono::day(two(8))};
  constexpr int kFirstYear = 1970;
  if (number(0, 4) < kFirstYear || !date.ok() || two(11) > 23 || two(14) > 59 || two(17) > 60) return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(two(11)) +
                                        std::chrono::minutes(two(14)) + std::chrono::seconds(two(17));
  return time.time_since_epoch().count();
}

}  // namespace horus
