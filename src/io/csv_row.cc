// SPDX-License-Identifier: Apache-2.0
// Cells to values, and the columns that a table must and may have.
#include "io/csv_row.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace horus {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

CsvColumns ColumnsOf(const CsvTable& table) {
  CsvColumns columns;
  for (size_t i = 0; i < table.header.size(); ++i) columns.emplace(table.header[i], i);
  return columns;
}

absl::Status UnknownColumn(const std::string& file, std::string_view found, std::span<const std::string_view> known) {
  return InvalidArgument("%s: header: %s", file, ExpectedOneOf(known, found));
}

absl::Status CheckRequiredColumns(const CsvTable& table, const std::string& file,
                                  std::span<const std::string_view> required) {
  for (const std::string_view name : required) {
    if (std::ranges::find(table.header, name) != table.header.end()) continue;
    return InvalidArgument("%s: header: expected a column %s, found none", file, name);
  }
  return absl::OkStatus();
}

absl::Status CheckColumns(const CsvTable& table, const std::string& file, std::span<const std::string_view> required,
                          std::span<const std::string_view> known) {
  HORUS_RETURN_IF_ERROR(CheckRequiredColumns(table, file, required));
  for (const std::string& name : table.header) {
    if (!Has(known, name)) return UnknownColumn(file, name, known);
  }
  return absl::OkStatus();
}

std::string_view CsvRow::Find(std::string_view column) const {
  const auto at = columns_.find(column);
  return at == columns_.end() ? std::string_view() : Trimmed(fields_[at->second]);
}

absl::Status CsvRow::Wrong(std::string_view column, std::string_view expected, std::string_view found) const {
  return InvalidArgument("%s: %s: expected %s, found %s", where_, column, expected, Quoted(found));
}

absl::StatusOr<double> CsvRow::Number(std::string_view column, std::string_view expected) const {
  const std::string_view text = Find(column);
  const std::optional<double> value = ParseNumber<double>(text);
  if (!value || !std::isfinite(*value)) return Wrong(column, expected, text);
  return *value;
}

absl::StatusOr<std::string> CsvRow::Label(std::string_view column) const {
  const std::string_view text = Find(column);
  const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  if (text.size() <= kMaxLabelBytes && printable) return std::string(text);
  return Wrong(column, "at most " + std::to_string(kMaxLabelBytes) + " printable ASCII characters", text);
}

absl::Status CsvRow::ReadCount(std::string_view column, int64_t least, int64_t& out) const {
  const std::string_view text = Find(column);
  if (text.empty()) return absl::OkStatus();
  const std::optional<int64_t> value = ParseNumber<int64_t>(text);
  if (!value || *value < least || *value > kMaxCsvCount) {
    return Wrong(column, "a whole number from " + std::to_string(least) + " to " + std::to_string(kMaxCsvCount), text);
  }
  out = *value;
  return absl::OkStatus();
}

}  // namespace horus
