// SPDX-License-Identifier: Apache-2.0
// Collects what libcsv reports, field by field and row by row.
#include "io/csv.h"

#include <csv.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

struct Collector {
  CsvTable table;
  std::vector<std::string> fields;
  const std::string& file;
  size_t count = 0;
  bool have_header = false;
  bool out_of_memory = false;  // nothing may be thrown through libcsv
  absl::Status status;

  void Row() {
    if (!status.ok()) return;
    if (!have_header) {
      have_header = true;
      table.header = std::exchange(fields, {});
      return CheckHeader();
    }
    const size_t row = table.rows.size() + 1;
    if (fields.size() != table.header.size()) {
      status =
          InvalidArgument("%s: row %d: expected %d fields as in the header, found %s%d", file, row, table.header.size(),
                          fields.size() > kMaxCsvColumns ? "more than " : "", std::min(fields.size(), kMaxCsvColumns));
    } else if (row > kMaxCsvRows || count > kMaxCsvFields) {
      status = MakeError(absl::StatusCode::kResourceExhausted, "%s: row %d: more than %d rows or %d fields", file, row,
                         kMaxCsvRows, kMaxCsvFields);
    } else {
      table.rows.push_back(std::exchange(fields, {}));
    }
  }

  void CheckHeader() {
    if (table.header.size() > kMaxCsvColumns) {
      status = MakeError(absl::StatusCode::kResourceExhausted, "%s: header: expected at most %d columns, found more",
                         file, kMaxCsvColumns);
      return;
    }
    std::vector<std::string> sorted = table.header;
    std::sort(sorted.begin(), sorted.end());
    if (sorted[0].empty()) status = InvalidArgument("%s: header: expected a name for every column, found none", file);
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) status = InvalidArgument("%s: header: the column %s occurs twice", file, Quoted(*twice));
  }
};

void OnField(void* text, size_t size, void* user) {
  Collector& collector = *static_cast<Collector*>(user);
  if (!collector.status.ok() || collector.out_of_memory) return;
  try {
    if (collector.fields.size() > kMaxCsvColumns) return;  // refused at the end of the row
    collector.fields.emplace_back(static_cast<const char*>(text), size);
    ++collector.count;
  } catch (const std::bad_alloc&) {
    collector.out_of_memory = true;
  }
}

void OnRow(int, void* user) {
  Collector& collector = *static_cast<Collector*>(user);
  if (collector.out_of_memory) return;
  try {
    collector.Row();
  } catch (const std::bad_alloc&) {
    collector.out_of_memory = true;
  }
}

// Frees the parser on every way out.
class Parser {
 public:
  Parser() { ok_ = csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0; }
  ~Parser() {
    if (ok_) csv_free(&parser_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] csv_parser* get() { return &parser_; }

 private:
  csv_parser parser_;
  bool ok_ = false;
};

}  // namespace

absl::StatusOr<CsvTable> ParseCsv(std::string_view bytes, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (const size_t zero = bytes.find('\0'); zero != std::string_view::npos) {
    return InvalidArgument("%s: expected text, found a null byte at %d", file, zero);
  }
  Parser parser;
  const absl::Status no_memory = MakeError(absl::StatusCode::kResourceExhausted, "%s: out of memory", file);
  if (!parser.ok()) return no_memory;
  Collector collector{.file = file};
  bool parsed = csv_parse(parser.get(), bytes.data(), bytes.size(), OnField, OnRow, &collector) == bytes.size();
  parsed = parsed && csv_fini(parser.get(), OnField, OnRow, &collector) == 0;
  if (collector.out_of_memory) return no_memory;
  HORUS_RETURN_IF_ERROR(collector.status);
  if (!parsed) {
    return InvalidArgument("%s: row %d: expected a closed quoted field followed by a comma or the end of the line: %s",
                           file, collector.table.rows.size() + (collector.have_header ? 1 : 0),
                           csv_strerror(csv_error(parser.get())));
  }
  if (!collector.have_header) return InvalidArgument("%s: expected a header row, found none", file);
  return std::move(collector.table);
}

}  // namespace horus
