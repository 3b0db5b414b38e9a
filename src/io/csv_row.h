// SPDX-License-Identifier: Apache-2.0
// CsvRow: one row of a table, read by column name, and checks of headers; errors name file, row and column.
//
// Enters:  a parsed table and a row of it.
// Leaves:  text, numbers and names; or "rows.csv: row 12: batch: expected ..., found ...".
// Units:   rows count from 1 after the header.
// Cost:    a binary search a cell.       Thread class: a view; table and columns must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/csv.h"

namespace horus {

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
