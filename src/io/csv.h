// SPDX-License-Identifier: Apache-2.0
// CSV: a table with a header, read whole, or rows one after the other; its rows read by column name, with errors that
// name file, row and column. The only door to libcsv.
//
// Enters:  bytes of a file (RFC 4180: commas, double quotes, any newline, UTF-8 byte order mark allowed).
// Leaves:  the header and the rows as text; every row has as many fields as the header. Of a row text, numbers and
//          names; or "rows.csv: row 12: batch: expected ..., found ...".
// Units:   rows count from 1 after the header; blank lines are not rows. Lines count from 1, by line feeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

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

// ---- CsvRow: one row of a table, read by column name, and checks of headers.
// Cost: a binary search a cell.   Thread class: a view; table and columns must outlive it.

inline constexpr int64_t kMaxCsvCount = std::numeric_limits<int32_t>::max();
inline constexpr size_t kMaxLabelBytes = 60;  // as CheckTrainingSet

using CsvColumns = std::map<std::string_view, size_t>;  // header name -> field

[[nodiscard]] CsvColumns ColumnsOf(const CsvTable& table);

// The refusal of a column that is not among `known`.
[[nodiscard]] absl::Status UnknownColumn(const std::string& file, std::string_view found,
                                         std::span<const std::string_view> known);

// Every required column is there.
[[nodiscard]] absl::Status CheckRequiredColumns(const CsvTable& table, const std::string& file,
                                                std::span<const std::string_view> required);

// Both checks, for a table whose columns are all known by name.
[[nodiscard]] absl::Status CheckColumns(const CsvTable& table, const std::string& file,
                                        std::span<const std::string_view> required,
                                        std::span<const std::string_view> known);

class CsvRow {
 public:
  CsvRow(const CsvTable& table, const CsvColumns& columns, size_t index, const std::string& file)
      : CsvRow(columns, table.rows[index], file + ": row " + std::to_string(index + 1)) {}
  // `where` begins errors; `fields` has every position of `columns`.
  CsvRow(const CsvColumns& columns, const std::vector<std::string>& fields, std::string where)
      : columns_(columns), fields_(fields), where_(std::move(where)) {}

  [[nodiscard]] const std::string& where() const { return where_; }

  // Without spaces around it; blank where the column is absent.
  [[nodiscard]] std::string_view Find(std::string_view column) const;

  [[nodiscard]] absl::Status Wrong(std::string_view column, std::string_view expected, std::string_view found) const;

  // A finite number.
  [[nodiscard]] absl::StatusOr<double> Number(std::string_view column, std::string_view expected) const;

  // At most kMaxLabelBytes printable ASCII characters; may be blank.
  [[nodiscard]] absl::StatusOr<std::string> Label(std::string_view column) const;

  // A blank cell leaves `out` alone.
  [[nodiscard]] absl::Status ReadCount(std::string_view column, int64_t least, int64_t& out) const;

  template <typename Enum>
  [[nodiscard]] absl::Status ReadName(std::string_view column, absl::StatusOr<Enum> (*parse)(std::string_view),
                                      Enum& out) const {
    const std::string_view text = Find(column);
    if (text.empty()) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(out, At(where_, parse(text)));
    return absl::OkStatus();
  }

 private:
  const CsvColumns& columns_;
  const std::vector<std::string>& fields_;
  std::string where_;
};

}  // namespace horus
