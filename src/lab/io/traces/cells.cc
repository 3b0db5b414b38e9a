// SPDX-License-Identifier: Apache-2.0
// Cells of traces to integers, exactly.
#include <algorithm>
#include <limits>

#include "lab/io/traces/format.h"

namespace horus {
namespace {

__extension__ typedef __int128 Wide;

constexpr Wide kMostDigits = Wide{1'000'000'000} * 1'000'000'000 * 1'000'000'000;  // beyond any limit

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// All digits of `text` behind `value`; digits beyond what 128 bits hold are dropped where they cannot matter.
void Append(std::string_view digits, Wide& value, Wide* scale) {
  for (const char digit : digits) {
    if (value >= kMostDigits || (scale != nullptr && *scale >= kMostDigits)) continue;
    // Bounded: checked above: less than kMostDigits.
    value = value * 10 + (digit - '0');
    // Bounded: checked above: less than kMostDigits.
    if (scale != nullptr) *scale *= 10;
  }
}

}  // namespace

std::optional<int64_t> ScaledDecimal(std::string_view text, int64_t unit, int64_t most) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point < text.size() ? text.substr(point + 1) : std::string_view();
  if (whole.empty() && part.empty()) return std::nullopt;
  if (!std::all_of(whole.begin(), whole.end(), IsDigit)) return std::nullopt;
  if (!std::all_of(part.begin(), part.end(), IsDigit)) return std::nullopt;
  Wide value = 0;
  Append(whole, value, nullptr);
  if (value > most / unit) return std::nullopt;
  constexpr size_t kMostPlaces = 18;  // finer than any unit here, and times it within 128 bits
  Wide fraction = 0;
  Wide scale = 1;
  Append(part.substr(0, kMostPlaces), fraction, &scale);
  // Bounded: 128 bits; value x unit is at most `most`, fraction x unit at most 10^18 units.
  value = value * unit + (fraction * unit + scale / 2) / scale;
  if (value > most) return std::nullopt;
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> ScaledCell(const CsvRow& row, std::string_view column, int64_t unit, int64_t most) {
  const std::optional<int64_t> value = ScaledDecimal(row.Find(column), unit, most);
  if (value.has_value()) return *value;
  return row.Wrong(column, Formatted("a number from 0 to %d", most / unit), row.Find(column));
}

absl::StatusOr<int64_t> WholeCell(const CsvRow& row, std::string_view column, int64_t least, int64_t most) {
  std::string_view text = row.Find(column);
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(std::min(point + 1, text.size()));
  Wide value = 0;
  const bool digits = !whole.empty() && std::all_of(whole.begin(), whole.end(), IsDigit) &&
                      std::all_of(part.begin(), part.end(), [](char c) { return c == '0'; });
  if (digits) Append(whole, value, nullptr);
  if (minus) value = -value;
  if (digits && value >= least && value <= most) return static_cast<int64_t>(value);
  return row.Wrong(column, Formatted("a whole number from %d to %d", least, most), row.Find(column));
}

absl::StatusOr<std::string_view> NameCell(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.Find(column);
  if (text.empty() || ValidateTraceName("", text).ok()) return text;
  return row.Wrong(column, Formatted("at most %d bytes without control characters", kMaxNameBytes), text);
}

GpuTypeNames SplitTypes(std::string_view text) {
  GpuTypeNames names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(kTypeSeparator), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

}  // namespace horus
