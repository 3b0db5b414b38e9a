// SPDX-License-Identifier: Apache-2.0
// CSV: a table with a header, read whole; the only door to libcsv.
//
// Enters:  bytes of a file (RFC 4180: commas, double quotes, any newline, UTF-8 byte order mark allowed).
// Leaves:  the header and the rows as text; every row has as many fields as the header.
// Units:   rows count from 1 after the header; blank lines are not rows.
// Cost:    linear.                       Thread class: pure function.
#ifndef HORUS_IO_CSV_H_
#define HORUS_IO_CSV_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace horus

#endif  // HORUS_IO_CSV_H_
