// SPDX-License-Identifier: Apache-2.0
// Collects what libcsv reports, field by field and row by row; cells to values.
#include "io/csv.h"

#include <csv.h>

#include <algorithm>
#include <cmath>
#include <new>

#include "base/text.h"

namespace horus {
namespace {

absl::Status NoMemory(const std::string& file) { return ResourceExhausted("%s: out of memory", file); }

// Frees the parser on every way out.
class Parser {
 public:
  explicit Parser(char separator) {
    ok_ = csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0;
    if (ok_) csv_set_delim(&parser_, static_cast<unsigned char>(separator));
  }
  ~Parser() {
    if (ok_) csv_free(&parser_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] csv_parser* get() { return &parser_; }
  [[nodiscard]] const char* error() { return csv_strerror(csv_error(&parser_)); }

 private:
  csv_parser parser_;
  bool ok_ = false;
};

// Feeds libcsv a line at a time, so that rows have numbers and a broken one can be left behind.
class Scanner {
 public:
  Scanner(const std::string& file, char separator, size_t most_lines, const CsvVisitor& visit)
      : file_(file), separator_(separator), most_lines_(most_lines), visit_(visit) {}

  absl::Status Scan(std::string_view bytes) {
    while (!bytes.empty()) {
      Parser parser(separator_);
      if (!parser.ok()) return NoMemory(file_);
      const bool whole = Lines(parser, bytes) && csv_fini(parser.get(), OnField, OnRow, this) == 0;
      if (out_of_memory_) return NoMemory(file_);
      HORUS_RETURN_IF_ERROR(status_);
      if (whole) return absl::OkStatus();
      count_ = 0;
      open_ = false;
      const char* why = csv_error(parser.get()) == CSV_SUCCESS ? "too many lines" : parser.error();
      HORUS_RETURN_IF_ERROR(visit_({.line = row_line_, .fields = fields_, .broken = why}));
      bytes = after_row_line_;
      line_ = row_line_;
    }
    return absl::OkStatus();
  }

 private:
  // False where a row breaks.
  bool Lines(Parser& parser, std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
      const std::string_view text = bytes.substr(0, end);
      bytes.remove_prefix(end);
      ++line_;
      if (!open_) {
        row_line_ = line_;
        after_row_line_ = bytes;
      }
      open_ = open_ || (text != "\n" && text != "\r\n");
      if (csv_parse(parser.get(), text.data(), text.size(), OnField, OnRow, this) != text.size()) return false;
      if (out_of_memory_ || !status_.ok()) return false;
      // Bounded: lines of a text in memory.
      if (open_ && line_ - row_line_ + 1 >= most_lines_) return false;
    }
    return true;
  }

  static void OnField(void* text, size_t size, void* user) { static_cast<Scanner*>(user)->Field(text, size); }
  static void OnRow(int, void* user) { static_cast<Scanner*>(user)->Row(); }

  void Field(const void* text, size_t size) {
    if (!status_.ok() || out_of_memory_ || count_ > kMaxCsvColumns) return;
    try {
      if (count_ == fields_.size()) fields_.emplace_back();
      fields_[count_++].assign(static_cast<const char*>(text), size);
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;  // nothing may be thrown through libcsv
    }
  }

  void Row() {
    if (!status_.ok() || out_of_memory_) return;
    try {
      fields_.resize(count_);
      count_ = 0;
      open_ = false;
      status_ = visit_({.line = row_line_, .fields = fields_});
    } catch (const std::bad_alloc&) {
      out_of_memory_ = true;
    }
  }

  const std::string& file_;
  char separator_;
  size_t most_lines_;  // of one row
  const CsvVisitor& visit_;
  std::vector<std::string> fields_;  // kept from row to row
  size_t count_ = 0;                 // of them in use
  size_t line_ = 0;                  // the one that is read
  size_t row_line_ = 0;              // where the row began
  std::string_view after_row_line_;
  bool open_ = false;  // the row goes on in the next line
  bool out_of_memory_ = false;
  absl::Status status_;
};

absl::Status CheckHeader(const std::vector<std::string>& header, const std::string& file) {
  if (header.size() > kMaxCsvColumns)
    return ResourceExhausted("%s: header: expected at most %d columns, found more", file, kMaxCsvColumns);
  std::vector<std::string> sorted = header;
  std::ranges::sort(sorted);
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return InvalidArgument("%s: header: the column %s occurs twice", file, Quoted(*twice));
  if (sorted[0].empty()) return InvalidArgument("%s: header: expected a name for every column, found none", file);
  return absl::OkStatus();
}

absl::Status Scan(std::string_view bytes, const std::string& file, char separator, size_t most_lines,
                  const CsvVisitor& visit) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (const size_t zero = bytes.find('\0'); zero != std::string_view::npos)
    return InvalidArgument("%s: expected text, found a null byte at %d", file, zero);
  return Scanner(file, separator, most_lines, visit).Scan(bytes);
}

absl::Status CheckRow(const CsvTable& table, const std::vector<std::string>& fields, size_t count,
                      const std::string& file) {
  const size_t row = table.rows.size() + 1;
  if (fields.size() != table.header.size()) {
    return InvalidArgument("%s: row %d: expected %d fields as in the header, found %s%d", file, row,
                           table.header.size(), fields.size() > kMaxCsvColumns ? "more than " : "",
                           std::min(fields.size(), kMaxCsvColumns));
  }
  if (row <= kMaxCsvRows && count <= kMaxCsvFields) return absl::OkStatus();
  return ResourceExhausted("%s: row %d: more than %d rows or %d fields", file, row, kMaxCsvRows, kMaxCsvFields);
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

absl::Status ScanCsv(std::string_view bytes, const std::string& file, char separator, const CsvVisitor& visit) {
  return Scan(bytes, file, separator, kMaxScannedRowLines, visit);
}

absl::StatusOr<CsvTable> ParseCsv(std::string_view bytes, const std::string& file) {
  CsvTable table;
  size_t count = 0;
  const CsvVisitor visit = [&](const CsvLine& line) -> absl::Status {
    if (line.broken != nullptr) {
      return InvalidArgument(
          "%s: row %d: expected a closed quoted field followed by a comma or the end of the line: %s", file,
          table.rows.size() + (table.header.empty() ? 0 : 1), line.broken);
    }
    if (table.header.empty()) {
      table.header = line.fields;
      return CheckHeader(table.header, file);
    }
    count += line.fields.size();
    HORUS_RETURN_IF_ERROR(CheckRow(table, line.fields, count, file));
    table.rows.push_back(line.fields);
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(Scan(bytes, file, ',', bytes.size(), visit));
  if (table.header.empty()) return InvalidArgument("%s: expected a header row, found none", file);
  return table;
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

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
  if (!value || *value < least || *value > kMaxCsvCount)
    return Wrong(column, "a whole number from " + std::to_string(least) + " to " + std::to_string(kMaxCsvCount), text);
  out = *value;
  return absl::OkStatus();
}

}  // namespace horus
