// SPDX-License-Identifier: Apache-2.0
// Formats; reads the command line from /proc, and counts GPUs by type.
#include "cli/print.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "base/vectors.h"
#include "horus/version.h"
#include "predict/demand.h"

namespace horus::cli {
namespace {

// ---- Lays out text tables.

constexpr size_t kGap = 2;        // blanks between columns
constexpr size_t kMinWidth = 12;  // of a column that wraps

bool StartsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; }

size_t Length(std::string_view text) { return static_cast<size_t>(std::ranges::count_if(text, StartsCharacter)); }

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

// ---- Formats quantities.

constexpr double kThousand = 1000;
constexpr double kBinary = 1024;

// Four digits at most: 1.23, 12.3, 123, 1234; and so many more.
std::string Digits(double value, int more) {
  const double size = std::abs(value);
  const int places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f", places + more, value);
}

// `units`: with blanks between them; "-" is none.
std::string Scaled(double value, double base, std::string_view units, int more = 0) {
  const bool whole = value == std::floor(value);
  bool scaled = false;
  // 999.95 would print as 1000.
  while (units.find(' ') != units.npos && std::abs(value) >= base * 0.9995) {
    value /= base;
    units.remove_prefix(units.find(' ') + 1);
    scaled = true;
  }
  const std::string digits = whole && !scaled ? absl::StrFormat("%.0f", value) : Digits(value, more);
  const std::string_view unit = units.substr(0, units.find(' '));
  return unit == "-" ? digits : absl::StrCat(digits, " ", std::string(unit));
}

// ---- Progress on a terminal.

constexpr std::chrono::milliseconds kPatience{1000};  // shorter work says nothing
constexpr std::chrono::milliseconds kInterval{100};

constexpr size_t kBarWidth = 24;

// "40 s", "12 min", "3 h 20 min".
std::string TimeLeft(double seconds) {
  constexpr double kMinute = 60;
  const auto minutes = static_cast<int64_t>(seconds / kMinute + 0.5);
  if (seconds < 2 * kMinute) return absl::StrFormat("%.0f s", seconds);
  constexpr int64_t kHour = 60;
  if (minutes < 2 * kHour) return absl::StrFormat("%d min", minutes);
  return absl::StrFormat("%d h %d min", minutes / kHour, minutes % kHour);
}

// ---- Errors on stderr.

std::string WholePrintable(std::string_view text) { return Printable(text, text.size()); }

// "; did you mean 'cluster.yaml'?" of a file that is not there, among those beside where it should be.
std::string NearestFile(std::string_view message) {
  constexpr size_t kMostFiles = 1000;
  const size_t end = message.find(": cannot open: No such file");
  if (end == std::string_view::npos || message.ends_with('?')) return "";
  message = message.substr(0, end);
  if (message.ends_with('\'')) {
    message.remove_suffix(1);
    message.remove_prefix(message.rfind('\'') + 1);
  }
  const std::filesystem::path path(message);
  std::vector<std::string> names;
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator at(folder, error), none; !error && at != none && names.size() < kMostFiles;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return DidYouMean(path.filename().string(), std::vector<std::string_view>(names.begin(), names.end()));
}

// ---- Records.

// In single quotes where a shell would take a byte for something else.
std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void CountGpus(const Catalogue& catalogue, const NodeSpec& node, Json& gpus) {
  for (const DeviceSpec& device : node.devices) {
    Json& count = gpus[std::string(catalogue.at(device.type).name)];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
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

std::string Paragraph(std::string_view text, std::string_view indent, size_t width) {
  std::string lines;
  for (const std::string& line : Wrap(text, width - indent.size())) lines.append(indent).append(line).append("\n");
  return lines;
}

std::string Printable(std::string_view text, size_t max_length) {
  const std::string quoted = Quoted(text, max_length);
  return quoted.substr(1, quoted.size() - 2);
}

Table::Table(std::string_view columns) {
  for (std::string& title : std::vector<std::string>(absl::StrSplit(std::string(columns), '|'))) {
    Column column;
    for (; title.starts_with('>') || title.starts_with('~'); title.erase(0, 1))
      (title[0] == '>' ? column.right : column.wraps) = true;
    column.title = std::move(title);
    columns_.push_back(std::move(column));
  }
}

std::vector<size_t> Table::Widths(size_t available) const {
  std::vector<size_t> widths = VectorOf<size_t>(columns_, [](const Column& column) { return Length(column.title); });
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
        const std::string cell = y < cells[i].size() ? cells[i][y] : "";
        const std::string pad(widths[i] - std::min(widths[i], Length(cell)), ' ');
        line += columns_[i].right ? pad + cell : cell + pad;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  };
  const auto titles = VectorOf<std::string>(columns_, &Column::title);
  // A table without titles has no title line.
  if (titles != std::vector<std::string>(titles.size())) append(titles);
  for (const auto& row : rows_) append(row);
  return text;
}

std::string Count(double count) { return Scaled(count, kThousand, "- k M G T"); }

std::string Flops(double flops) { return Scaled(flops, kThousand, "FLOP kFLOP MFLOP GFLOP TFLOP PFLOP EFLOP"); }

std::string Bytes(double bytes, int more) { return Scaled(bytes, kBinary, "B KiB MiB GiB TiB PiB", more); }

std::string Mib(int64_t mib, int more) {
  if (mib >= kUnboundedMemMib) return "unknown";
  return Bytes(static_cast<double>(mib) * static_cast<double>(kBytesPerMib), more);
}

std::string Duration(double us) { return Scaled(us, kThousand, "us ms s"); }

std::string Percent(double pct) {
  return std::abs(pct) >= 9.95 || pct == 0 ? absl::StrFormat("%.0f %%", pct) : absl::StrFormat("%.1f %%", pct);
}

std::string Factor(double factor, int more) {
  return std::isinf(factor) ? "none" : absl::StrFormat("%.*fx", 2 + more, factor);
}

std::string Cores(int64_t milli) { return Plain(static_cast<double>(milli) / kMilliPerCore); }

std::string Plain(double number, int more) { return absl::StrFormat("%.*g", 6 + more, number); }

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + kPatience) {}

Progress::~Progress() { Erase(); }

void Progress::Erase() {
  if (shown_ > 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
  shown_ = 0;
}

void Progress::Show(const std::string& line) {
  Erase();
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = line.size();
}

bool Progress::IsDue() {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now < next_) return false;
  next_ = now + kInterval;
  return true;
}

void Progress::Update(std::string_view what, uint64_t done, uint64_t total) {
  if (IsDue()) Show(absl::StrFormat("horus: %s %d of %d", what, done, total));
}

std::function<bool(double)> Progress::OfShare(std::string what) {
  return [this, what = std::move(what)](double done) {
    constexpr uint64_t kWhole = 1000;
    Update(what, static_cast<uint64_t>(done * kWhole), kWhole);
    return true;
  };
}

void Progress::UpdateBar(std::string_view what, uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!bar_since_) {
    bar_since_ = now;
    bar_first_ = done;
  }
  if (total == 0 || !IsDue()) return;
  const auto full = static_cast<size_t>(kBarWidth * done / total);
  const std::string bar = std::string(full, '#') + std::string(kBarWidth - full, '.');
  std::string left;
  if (done > bar_first_) {
    const double seconds = std::chrono::duration<double>(now - *bar_since_).count();
    left =
        ", " + TimeLeft(seconds / static_cast<double>(done - bar_first_) * static_cast<double>(total - done)) + " left";
  }
  Show(absl::StrFormat("horus: %s [%s] %d of %d%s", what, bar, done, total, left));
}

void PrintProblem(std::string_view what) { std::fprintf(stderr, "horus: %s\n", WholePrintable(what).c_str()); }

int FailToParse(std::string_view problem) {
  if (problem.ends_with('\n')) problem.remove_suffix(1);
  for (const absl::string_view line : absl::StrSplit(absl::string_view(problem.data(), problem.size()), '\n'))
    std::fprintf(stderr, "%s\n", WholePrintable({line.data(), line.size()}).c_str());
  return kExitBadInput;
}

int Fail(const absl::Status& status) {
  const std::string_view message(status.message().data(), status.message().size());
  PrintProblem(std::string(message) + NearestFile(message));
  return status.code() == absl::StatusCode::kInternal ? kExitInternal : kExitBadInput;
}

int Print(const absl::StatusOr<std::string>& text) {
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDecided;
}

std::string VersionText() {
  return absl::StrCat(HORUS_VERSION_MAJOR, ".", HORUS_VERSION_MINOR, ".", HORUS_VERSION_PATCH);
}

std::string CommandLine() {
  std::string bytes = ReadFile("/proc/self/cmdline", kMaxProcBytes).value_or("");
  if (bytes.empty()) return "";
  if (bytes.back() == '\0') bytes.pop_back();  // each word ends with one
  std::string line;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(bytes, '\0')))
    absl::StrAppend(&line, line.empty() ? "" : " ", ShellWord(word));
  return line;
}

void AddRecord(Json& document) {
  document["horus"] = VersionText();
  document["revision"] = kRevision;
  document["command"] = CommandLine();
}

Json ClusterJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes) {
  Json gpus = Json::object();
  for (const NodeSpec& node : nodes) CountGpus(catalogue, node, gpus);
  return {{"gpus", std::move(gpus)}};
}

Json ClusterWithNodesJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes) {
  Json cluster = ClusterJson(catalogue, nodes);
  Json& list = cluster["nodes"] = Json::array();
  for (const NodeSpec& node : nodes) {
    Json gpus = Json::object();
    CountGpus(catalogue, node, gpus);
    list.push_back({{"name", NameOf(node)}, {"gpus", std::move(gpus)}});
  }
  return cluster;
}

std::string NameOf(const NodeSpec& node) { return node.name.empty() ? absl::StrCat(node.id) : node.name; }

}  // namespace horus::cli
