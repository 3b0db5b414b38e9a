// SPDX-License-Identifier: Apache-2.0
// What every command prints with: text tables that fit a terminal, quantities for people, a line of progress, errors
// with their exit codes, and what its JSON documents tell alike.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "io/json_text.h"
#include "place/state/node.h"

namespace horus::cli {

// ---- Text tables that fit a terminal: columns aligned, long cells wrapped at words.

inline constexpr size_t kPageWidth = 100;

class Table {
 public:
  // Titles with "|" between them. Before one, ">" puts its cells to the right, and "~" lets it become narrower than its
  // longest cell.
  explicit Table(std::string_view columns);
  // Missing cells are empty. A cell may hold several lines.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string Render(std::string_view indent = "", size_t width = kPageWidth) const;

 private:
  struct Column {
    std::string title;
    bool right = false, wraps = false;
  };
  [[nodiscard]] std::vector<size_t> Widths(size_t available) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` broken at words into lines of at most `width` characters; words that are longer are cut.
[[nodiscard]] std::vector<std::string> Wrap(std::string_view text, size_t width);
// The same as a paragraph: each line behind `indent`, which counts, and before a newline.
[[nodiscard]] std::string Paragraph(std::string_view text, std::string_view indent = "", size_t width = kPageWidth);

// Names from files made printable: control bytes as \xNN, cut at `max_length` bytes.
[[nodiscard]] std::string Printable(std::string_view text, size_t max_length = 60);

// ---- Quantities for people: three or four digits and a unit.

[[nodiscard]] std::string Count(double count);                  // "25.56 M"
[[nodiscard]] std::string Flops(double flops);                  // "8.18 GFLOP"
[[nodiscard]] std::string Bytes(double bytes, int more = 0);    // "3.21 GiB"; so many more digits
[[nodiscard]] std::string Mib(int64_t mib, int more = 0);       // as Bytes; "unknown" for kUnboundedMemMib
[[nodiscard]] std::string Duration(double us);                  // "12.3 ms"
[[nodiscard]] std::string Percent(double pct);                  // "87 %", "3.2 %"
[[nodiscard]] std::string Factor(double factor, int more = 0);  // "1.25x"
[[nodiscard]] std::string Cores(int64_t milli);                 // "8", "0.5"
[[nodiscard]] std::string Plain(double number, int more = 0);   // up to six digits, no unit

// ---- A line on stderr while work is long; silent when stderr is no terminal.
// Cost: one clock reading a call.

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(std::string_view what, uint64_t done, uint64_t total);
  // Shows the share of `what` that is done, from 0 to 1, and goes on.
  [[nodiscard]] std::function<bool(double)> OfShare(std::string what);
  // A bar, and how long the rest takes if it goes on as it went since the first call.
  void UpdateBar(std::string_view what, uint64_t done, uint64_t total);

 private:
  [[nodiscard]] bool IsDue();
  void Erase();
  void Show(const std::string& line);

  bool terminal_;
  size_t shown_ = 0;  // characters on the line
  std::chrono::steady_clock::time_point next_;
  std::optional<std::chrono::steady_clock::time_point> bar_since_;
  uint64_t bar_first_ = 0;  // done at the first call
};

// ---- Exit codes of the horus command; docs/reference/commands.py lists them.

inline constexpr int kExitDecided = 0;   // refusals included
inline constexpr int kExitInternal = 1;  // a bug of ours, or no memory
inline constexpr int kExitBadInput = 2;  // options, files, values
inline constexpr int kExitRefused = 3;   // with --strict: at least one job found no place

// Prints "horus: <what>" on one line: paths and names in it may have any bytes, and a terminal would obey some.
void PrintProblem(std::string_view what);

// Prints what the parser of options says, in as many lines.
[[nodiscard]] int FailToParse(std::string_view problem);

// Prints the text on stdout, or why there is none, as Fail.
[[nodiscard]] int Print(const absl::StatusOr<std::string>& text);

// Prints "horus: <message>" and chooses between internal error and bad input.
[[nodiscard]] int Fail(const absl::Status& status);

// ---- What files of results tell alike: what made them, and of which cluster they are.

// Of the source that the command was built from: 12 hexadecimal digits, with "-dirty" where files had changed, or what
// HORUS_REVISION said; "unknown" where neither did.
extern const char* const kRevision;

[[nodiscard]] std::string VersionText();  // "0.1.0"

inline constexpr size_t kMessageBytes = 400;              // of one line that says what was left out, as Printable
inline constexpr size_t kMaxProcBytes = size_t{1} << 24;  // of a file under /proc

// Of this process, to be pasted into a shell; empty where the system does not tell.
[[nodiscard]] std::string CommandLine();

// Adds `horus` (version), `revision` and `command`.
void AddRecord(Json& document);

// `gpus`: how many by type, in the order of the nodes.
[[nodiscard]] Json ClusterJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes);
// Further `nodes[]` (`name`, `gpus`), in order.
[[nodiscard]] Json ClusterWithNodesJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes);

// As the timeline calls it: its name, or where it has none its number.
[[nodiscard]] std::string NameOf(const NodeSpec& node);

}  // namespace horus::cli
