// SPDX-License-Identifier: Apache-2.0
// Joins throughput files to one table and finds pairs that contradict their mirror; reads Gavel's traces and tables of
// shares.
#include "lab/io/speeds_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "io/csv.h"
#include "lab/io/pairs_file.h"
#include "lab/io/traces/trace_file.h"

namespace horus {
namespace {

constexpr size_t kMaxSpeedsBytes = size_t{1} << 26;

bool Agree(double x, double y) { return std::abs(x - y) <= kMirrorTolerance * std::max(x, y); }

// ---- The mix of work.

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

absl::Status SpeedsReader::Read(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSpeedsBytes));
  return Parse(path, text);
}

absl::Status SpeedsReader::Parse(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const GavelSpeeds speeds, ParseGavelSpeeds(file, text));
  const size_t first = gpus_.size();
  for (const std::string& gpu : speeds.gpus) {
    for (const auto& [known, where] : gpus_) {
      if (known != gpu) continue;
      return InvalidArgument("%s: expected GPU types that no other file measured, found %s (before: %s)", file,
                             Quoted(gpu), where);
    }
  }
  for (const std::string& gpu : speeds.gpus) gpus_.emplace_back(gpu, file);
  skipped_.several += speeds.several;
  for (const GavelAlone& one : speeds.alone) {
    if (one.steps_per_s > 0) alone_[{first + one.gpu, speeds.jobs[one.job]}] = one.steps_per_s;
  }
  for (const GavelAlone& one : speeds.gangs) {
    if (one.steps_per_s > 0) gangs_[{speeds.jobs[one.job], one.gpus, first + one.gpu}] = one.steps_per_s;
  }
  for (const GavelTogether& both : speeds.together)
    HORUS_RETURN_IF_ERROR(AddPair(file, first + both.gpu, speeds, both));
  return CheckSize(file);
}

absl::Status SpeedsReader::CheckSize(const std::string& file) const {
  std::set<std::string_view> names;
  for (const auto& [key, speed] : alone_) names.insert(key.second);
  std::set<std::pair<std::string_view, int32_t>> gangs;
  for (const auto& [key, speed] : gangs_) gangs.emplace(std::get<0>(key), std::get<1>(key));
  const size_t profiles = names.size() + gangs.size();
  if (gpus_.size() <= kMostWorkTypes && profiles <= kMostWorkProfiles) return absl::OkStatus();
  return ResourceExhausted("%s: expected at most %d GPU types and %d profiles in all files, found %d and %d", file,
                           kMostWorkTypes, kMostWorkProfiles, gpus_.size(), profiles);
}

absl::Status SpeedsReader::AddPair(const std::string& file, size_t gpu, const GavelSpeeds& speeds,
                                   const GavelTogether& both) {
  const std::string& job = speeds.jobs[both.job];
  const std::string& other = speeds.jobs[both.other];
  const auto alone_job = alone_.find({gpu, job});
  const auto alone_other = alone_.find({gpu, other});
  if (alone_job == alone_.end() || alone_other == alone_.end()) {
    ++skipped_.no_alone;
    return absl::OkStatus();
  }
  double speed_first = std::min(1.0, both.job_steps_per_s / alone_job->second);
  double speed_second = std::min(1.0, both.other_steps_per_s / alone_other->second);
  const bool leads = job <= other;
  if (!leads) std::swap(speed_first, speed_second);
  const auto number = [this](const std::string& name) {
    return jobs_.try_emplace(name, static_cast<uint32_t>(jobs_.size())).first->second;
  };
  const auto [at, is_new] = pairs_.emplace(PairKey{gpu, number(std::min(job, other)), number(std::max(job, other))},
                                           Pair{speed_first, speed_second, leads});
  if (is_new) return absl::OkStatus();
  Pair& known = at->second;
  const auto where = [&] {
    return Formatted("%s: %s: %s beside %s", file, Quoted(gpus_[gpu].first), Quoted(job), Quoted(other));
  };
  // A file of unique keys tells a pair twice only from both sides.
  if (known.first_leads == leads || known.mirrored) return InvalidArgument("%s: expected each pair once", where());
  known.mirrored = true;
  if (Agree(known.speed_first, speed_first) && Agree(known.speed_second, speed_second)) return absl::OkStatus();
  return InvalidArgument(
      "%s: expected the speeds that its mirror entry tells, %g and %g of those alone, found %g and %g", where(),
      known.speed_first, known.speed_second, speed_first, speed_second);
}

SpeedTable SpeedsReader::Table(Gangs gangs) const {
  SpeedTable table;
  std::set<std::string> names;
  for (const auto& [key, speed] : alone_) names.insert(key.second);
  if (gangs == Gangs::kAlone) {
    for (const auto& [key, speed] : gangs_)
      names.insert({std::get<0>(key), GangName(std::get<0>(key), std::get<1>(key))});
  }
  table.profiles.assign(names.begin(), names.end());
  const auto position = [&table](const std::string& name) {
    return static_cast<uint32_t>(std::lower_bound(table.profiles.begin(), table.profiles.end(), name) -
                                 table.profiles.begin());
  };
  for (const auto& [gpu, file] : gpus_) table.gpus.push_back(gpu);
  // Bounded: CheckSize: at most kMostWorkTypes times kMostWorkProfiles.
  table.alone.assign(table.gpus.size() * table.profiles.size(), 0);
  // Bounded: CheckSize: at most kMostWorkTypes times kMostWorkProfiles.
  for (const auto& [key, speed] : alone_) table.alone[key.first * table.profiles.size() + position(key.second)] = speed;
  for (const auto& [key, speed] : gangs_) {
    if (gangs == Gangs::kLeftOut) break;
    const auto& [name, gpus, gpu] = key;
    const GangProfile gang{position(GangName(name, gpus)), position(name), gpus};
    if (table.gangs.empty() || table.gangs.back().profile != gang.profile) table.gangs.push_back(gang);
    // Bounded: CheckSize: at most kMostWorkTypes times kMostWorkProfiles.
    table.alone[gpu * table.profiles.size() + gang.profile] = speed;
  }
  std::vector<uint32_t> positions(jobs_.size());
  for (const auto& [name, number] : jobs_) positions[number] = position(name);
  for (const auto& [key, pair] : pairs_) {
    const auto& [gpu, first, second] = key;
    table.pairs.push_back({.gpu = static_cast<uint32_t>(gpu),
                           .a = positions[first],
                           .b = positions[second],
                           .speed_a = pair.speed_first,
                           .speed_b = pair.speed_second});
  }
  std::ranges::sort(table.pairs, {}, [](const PairSpeed& pair) { return std::tie(pair.gpu, pair.a, pair.b); });
  return table;
}

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
