// SPDX-License-Identifier: Apache-2.0
// Reads Gavel's traces and tables of shares.
#include "lab/io/mix_file.h"

#include <array>

#include "base/file.h"
#include "base/text.h"
#include "io/csv.h"
#include "lab/io/traces/trace_file.h"

namespace horus {
namespace {

constexpr size_t kMaxMixBytes = size_t{1} << 30;
constexpr double kMostShare = 1e18;  // far above any; chosen

absl::StatusOr<MixFile> JobsOf(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const TraceRead read, ParseTrace(text, file, {.format = TraceFormat::kGavel}));
  MixFile mix{.file = file, .is_trace = true, .rows = {}};
  for (const TraceJob& job : read.trace.jobs) {
    if (GpusOf(job) > 1) {
      ++mix.several;
    } else {
      mix.rows.push_back({std::string(ProfileOf(read.trace, job)), static_cast<double>(job.steps)});
    }
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
    if (!(share >= 0 && share <= kMostShare)) return row.Wrong("share", kExpected, row.Find("share"));
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
  return has_tabs ? JobsOf(file, text) : ParseShares(file, text);
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
