// SPDX-License-Identifier: Apache-2.0
// Lays out text tables.
#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace horus::cli {
namespace {

constexpr size_t kGap = 2;        // blanks between columns
constexpr size_t kMinWidth = 12;  // of a column that wraps

bool StartsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; }

size_t Length(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

// Bytes of the first `count` characters.
size_t Prefix(std::string_view text, size_t count) {
  size_t bytes = 0;
  for (; bytes < text.size(); ++bytes) {
    if (StartsCharacter(text[bytes]) && count-- == 0) break;
  }
  return bytes;
}

size_t LongestLine(std::string_view cell) {
  size_t longest = 0;
  while (!cell.empty()) {
    const size_t end = std::min(cell.find('\n'), cell.size());
    longest = std::max(longest, Length(cell.substr(0, end)));
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return longest;
}

void WrapLine(std::string_view line, size_t width, std::vector<std::string>& lines) {
  std::string current;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (word.empty()) continue;
    if (!current.empty() && Length(current) + 1 + Length(word) > width) lines.push_back(std::exchange(current, ""));
    while (Length(word) > width) {
      const size_t cut = Prefix(word, width);
      lines.emplace_back(word.substr(0, cut));
      word.remove_prefix(cut);
    }
    if (!current.empty()) current += ' ';
    current += word;
  }
  lines.push_back(std::move(current));
}

void AppendCell(const std::string& cell, size_t width, const Column& column, std::string& line) {
  const size_t length = Length(cell);
  const size_t pad = width > length ? width - length : 0;
  if (column.align == Align::kRight) line.append(pad, ' ');
  line += cell;
  if (column.align == Align::kLeft) line.append(pad, ' ');
}

}  // namespace

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    WrapLine(text.substr(0, end), std::max<size_t>(width, 1), lines);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string Printable(std::string_view text, size_t max_length) {
  const std::string quoted = Quoted(text, max_length);
  return quoted.substr(1, quoted.size() - 2);
}

std::vector<size_t> Table::Widths(size_t available) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(Length(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], LongestLine(row[i]));
  }
  size_t total = kGap * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  // The widest column that wraps gives way first.
  while (total > available) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!columns_[i].wraps || widths[i] <= kMinWidth) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string Table::Render(std::string_view indent, size_t width) const {
  const std::vector<size_t> widths = Widths(width > indent.size() ? width - indent.size() : 1);
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t i = 0; i < widths.size(); ++i) {
      cells.push_back(Wrap(i < row.size() ? row[i] : "", std::max<size_t>(widths[i], 1)));
      height = std::max(height, cells.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string line(indent);
      for (size_t i = 0; i < widths.size(); ++i) {
        if (i > 0) line.append(kGap, ' ');
        AppendCell(y < cells[i].size() ? cells[i][y] : "", widths[i], columns_[i], line);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  // A table without titles has no title line.
  const bool titled =
      std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); });
  if (titled) append(titles);
  for (const auto& row : rows_) append(row);
  return text;
}

}  // namespace horus::cli
