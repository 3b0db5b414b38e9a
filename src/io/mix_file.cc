// SPDX-License-Identifier: Apache-2.0
// Reads Gavel's traces and tables of shares.
#include "io/mix_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "io/csv_row.h"
#include "io/file.h"
#include "io/run_columns.h"

namespace horus {
namespace {

constexpr size_t kMaxMixBytes = size_t{1} << 30;
constexpr double kMostAmount = 1e18;  // of steps, or a share: far above any; chosen

// Where a trace's fields lie: job type first in both. Gavel's simulations write 7 fields, its physical runs 10.
struct TraceLayout {
  size_t fields, steps, gpus;
};
constexpr std::array<TraceLayout, 2> kLayouts = {{{7, 4, 6}, {10, 5, 6}}};

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t from = 0;;) {
    const size_t tab = line.find('\t', from);
    fields.push_back(line.substr(from, tab == std::string_view::npos ? tab : tab - from));
    if (tab == std::string_view::npos) return fields;
    from = tab + 1;
  }
}

std::optional<int64_t> WholeFrom1(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

absl::Status ParseTraceLine(const std::string& where, std::string_view line, size_t number, MixFile& mix) {
  const std::vector<std::string_view> fields = Fields(line);
  const auto layout = std::find_if(kLayouts.begin(), kLayouts.end(),
                                   [&](const TraceLayout& one) { return one.fields == fields.size(); });
  if (layout == kLayouts.end()) {
    return InvalidArgument("%s: expected 7 or 10 fields between tabs, found %d", where, fields.size());
  }
  const std::optional<int64_t> steps = WholeFrom1(fields[layout->steps]);
  if (!steps) {
    return InvalidArgument("%s: field %d: expected steps, a whole number from 1, found %s", where, layout->steps + 1,
                           Quoted(fields[layout->steps]));
  }
  const std::optional<int64_t> gpus = WholeFrom1(fields[layout->gpus]);
  if (!gpus) {
    return InvalidArgument("%s: field %d: expected GPUs, a whole number from 1, found %s", where, layout->gpus + 1,
                           Quoted(fields[layout->gpus]));
  }
  if (*gpus > 1) {
    ++mix.several;
  } else {
    mix.rows.push_back({std::string(fields[0]), static_cast<double>(*steps), number});
  }
  return absl::OkStatus();
}

absl::StatusOr<MixFile> ParseTrace(const std::string& file, std::string_view text) {
  MixFile mix{.file = file, .is_trace = true, .rows = {}};
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty()) continue;
    if (mix.rows.size() == kMostMixRows) {
      return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d jobs, found more", file,
                       kMostMixRows);
    }
    HORUS_RETURN_IF_ERROR(ParseTraceLine(file + ":" + std::to_string(number), line, number, mix));
  }
  return mix;
}

absl::StatusOr<MixFile> ParseShares(const std::string& file, std::string_view text) {
  static constexpr std::array<std::string_view, 2> kColumns = {"profile", "share"};
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kColumns, kColumns));
  const CsvColumns columns = ColumnsOf(table);
  MixFile mix{.file = file, .rows = {}};
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, columns, i, file);
    HORUS_ASSIGN_OR_RETURN(const std::string profile, row.Label("profile"));
    if (profile.empty()) return row.Wrong("profile", "a name", "");
    constexpr const char* kExpected = "a number from 0";
    HORUS_ASSIGN_OR_RETURN(const double share, row.Number("share", kExpected));
    if (!(share >= 0 && share <= kMostAmount)) return row.Wrong("share", kExpected, row.Find("share"));
    mix.rows.push_back({profile, share, i + 1});
  }
  return mix;
}

absl::Status Unknown(const MixFile& file, const MixRow& row, const SpeedTable& table) {
  const std::vector<std::string_view> names(table.profiles.begin(), table.profiles.end());
  const std::string near = Nearest(row.profile, names);
  return InvalidArgument("%s: row %d: profile: expected one whose speeds are known%s, found %s", file.file, row.row,
                         near.empty() ? "" : " (near: " + near + ")", Quoted(row.profile));
}

}  // namespace

absl::StatusOr<MixFile> ParseMixFile(const std::string& file, std::string_view text) {
  const bool has_tabs = text.substr(0, text.find('\n')).find('\t') != std::string_view::npos;
  return has_tabs ? ParseTrace(file, text) : ParseShares(file, text);
}

absl::StatusOr<MixFile> ReadMixFile(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxMixBytes));
  return ParseMixFile(path, text);
}

absl::StatusOr<Mix> JoinMix(std::span<const MixFile> files, const SpeedTable& table, uint32_t reference) {
  std::map<std::string_view, uint32_t> positions;
  for (uint32_t i = 0; i < table.profiles.size(); ++i) positions.emplace(table.profiles[i], i);
  Mix mix;
  for (const MixFile& file : files) {
    mix.several += file.several;
    for (const MixRow& row : file.rows) {
      const auto at = positions.find(row.profile);
      if (at != positions.end()) {
        const double unit = file.is_trace ? 1 : table.Alone(UnitType(table, at->second, reference), at->second);
        mix.jobs.push_back({at->second, row.amount * unit});
      } else if (file.is_trace) {
        ++mix.unknown[row.profile];
      } else {
        return Unknown(file, row, table);
      }
    }
  }
  if (!mix.jobs.empty()) return mix;
  return InvalidArgument("mix: expected work of a profile whose speeds are known, found none in %d file(s)",
                         files.size());
}

}  // namespace horus
