// SPDX-License-Identifier: Apache-2.0
// Text tables that fit a terminal: columns aligned, long cells wrapped at words.
//
// Enters:  column titles and rows of cells.     Leaves: lines of at most `width` characters where words allow.
// Units:   characters (UTF-8 code points).
// Cost:    linear in the text.           Thread class: value.
#ifndef HORUS_CLI_TABLE_H_
#define HORUS_CLI_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace horus::cli {

inline constexpr size_t kPageWidth = 100;

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  bool wraps = false;  // may become narrower than its longest cell
};

[[nodiscard]] inline Column Right(std::string title) { return {std::move(title), Align::kRight, false}; }

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // Missing cells are empty. A cell may hold several lines.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string Render(std::string_view indent = "", size_t width = kPageWidth) const;

 private:
  [[nodiscard]] std::vector<size_t> Widths(size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` broken at words into lines of at most `width` characters; words that are longer are cut.
[[nodiscard]] std::vector<std::string> Wrap(std::string_view text, size_t width);

// Names from files made printable: control bytes as \xNN, cut at `max_length` bytes.
[[nodiscard]] std::string Printable(std::string_view text, size_t max_length = 60);

}  // namespace horus::cli

#endif  // HORUS_CLI_TABLE_H_
