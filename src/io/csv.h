// SPDX-License-Identifier: Apache-2.0
// CSV: a table with a header, read whole, or rows one after the other; the only door to libcsv.
//
// Enters:  bytes of a file (RFC 4180: commas, double quotes, any newline, UTF-8 byte order mark allowed).
// Leaves:  the header and the rows as text; every row has as many fields as the header.
// Units:   rows count from 1 after the header; blank lines are not rows. Lines count from 1, by line feeds.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace horus {

struct CsvTable {
  std::vector<std::string> header;  // distinct, none empty
  std::vector<std::vector<std::string>> rows;
};

inline constexpr size_t kMaxCsvRows = 1'000'000;
inline constexpr size_t kMaxCsvColumns = 1024;
inline constexpr size_t kMaxCsvFields = 20'000'000;  // of the whole table

// `file` is the name in errors: `rows.csv: row 12: ...`.
[[nodiscard]] absl::StatusOr<CsvTable> ParseCsv(std::string_view bytes, const std::string& file);

// One row, the header included; a view that is gone after the visit.
struct CsvLine {
  size_t line = 0;  // where it begins
  const std::vector<std::string>& fields;
  const char* broken = nullptr;  // why the row is no CSV, if it is none: then `fields` says nothing
};
using CsvVisitor = std::function<absl::Status(const CsvLine&)>;

inline constexpr size_t kMaxScannedRowLines = 100;  // of a row: bounds what an open quote costs

// Rows of any number of fields, of which kMaxCsvColumns and one more are told, in memory one at a time; stops at the
// first error of `visit` and returns it. After a broken row reading goes on with the line that follows its first.
[[nodiscard]] absl::Status ScanCsv(std::string_view bytes, const std::string& file, char separator,
                                   const CsvVisitor& visit);

// A text as one field of a row, in quotes where it needs them (RFC 4180).
[[nodiscard]] std::string CsvField(std::string_view text);

}  // namespace horus
