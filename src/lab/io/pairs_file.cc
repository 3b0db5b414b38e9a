// SPDX-License-Identifier: Apache-2.0
// Reads tables of pairs, and finds pairs that are told twice.
#include "lab/io/pairs_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "interference/pair_model.h"
#include "interference/table_model.h"
#include "io/csv.h"
#include "lab/io/gavel_file.h"

namespace horus {
namespace {

constexpr size_t kMaxPairsFileBytes = size_t{1} << 26;
constexpr std::array<std::string_view, 8> kPairColumns = {"gpu",        "sharing_mode", "job_a",    "job_b",
                                                          "slowdown_a", "slowdown_b",   "campaign", "note"};
constexpr std::array<std::string_view, 5> kRequiredOfPairs = {"gpu", "job_a", "job_b", "slowdown_a", "slowdown_b"};

bool IsPossible(double slowdown) { return slowdown >= kLeastMeasuredSlowdown && slowdown <= kMostMeasuredSlowdown; }

std::string ExpectedSlowdown() {
  return Formatted("a ratio of step times, shared to alone, from %g to %g", kLeastMeasuredSlowdown,
                   kMostMeasuredSlowdown);
}

absl::StatusOr<double> ReadSlowdown(const CsvRow& row, std::string_view column) {
  if (row.Find(column).empty()) return std::numeric_limits<double>::quiet_NaN();
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, ExpectedSlowdown() + ", or blank"));
  if (IsPossible(value)) return value;
  return row.Wrong(column, ExpectedSlowdown() + ", or blank", row.Find(column));
}

absl::Status ReadMode(const CsvRow& row, SharingMode& mode) {
  HORUS_RETURN_IF_ERROR(row.ReadName("sharing_mode", ParseSharingMode, mode));
  if (mode == SharingMode::kTimeSlice || mode == SharingMode::kMps) return absl::OkStatus();
  return row.Wrong("sharing_mode", "time-slice, mps or blank (two jobs on one whole GPU)", row.Find("sharing_mode"));
}

// What is known of the two together; false if they contradict each other.
bool Merge(double& into, double other) {
  if (std::isnan(other)) return true;
  if (std::isnan(into)) {
    into = other;
    return true;
  }
  return std::abs(into - other) <= kMirrorTolerance * std::max(into, other);
}

bool LooksLikeJson(const std::string& file, std::string_view text) {
  if (file.ends_with(".json")) return true;
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

std::string CampaignOf(const std::string& file) {
  std::string name = file.substr(file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1);
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  return name;
}

// ---- Writes and reads predicted slowdowns, and makes a model of them.

constexpr size_t kMaxPredictedBytes = size_t{1} << 28;
constexpr std::array<std::string_view, 6> kPredictionColumns = {"gpu",   "sharing_mode", "victim",
                                                                "other", "slowdown",     "bound"};

absl::StatusOr<double> SlowdownIn(const CsvRow& row, std::string_view column, double least) {
  const std::string expected = Formatted("a slowdown from %.6g to %.6g", least, kMostMeasuredSlowdown);
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, expected));
  if (value >= least && value <= kMostMeasuredSlowdown) return value;
  return row.Wrong(column, expected, row.Find(column));
}

absl::StatusOr<PredictedPair> ReadRow(const CsvRow& row) {
  PredictedPair pair{.gpu = std::string(row.Find("gpu")),
                     .victim = std::string(row.Find("victim")),
                     .other = std::string(row.Find("other")),
                     .bound = std::numeric_limits<double>::quiet_NaN()};
  for (const std::string_view column : {"gpu", "victim", "other", "sharing_mode"}) {
    if (row.Find(column).empty()) return row.Wrong(column, "a name", "");
  }
  HORUS_RETURN_IF_ERROR(row.ReadName("sharing_mode", ParseSharingMode, pair.mode));
  HORUS_ASSIGN_OR_RETURN(pair.slowdown, SlowdownIn(row, "slowdown", 1));
  if (!row.Find("bound").empty()) HORUS_SET_OR_RETURN(pair.bound, SlowdownIn(row, "bound", pair.slowdown));
  return pair;
}

}  // namespace

PairsReader::PairsReader(const Catalogue& catalogue, std::vector<std::string> jobs)
    : catalogue_(catalogue), jobs_(std::move(jobs)) {
  std::ranges::sort(jobs_);
}

absl::Status PairsReader::Read(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPairsFileBytes));
  return Parse(path, text);
}

absl::Status PairsReader::Parse(const std::string& file, std::string_view text) {
  return LooksLikeJson(file, text) ? ParseGavel(file, text) : ParseTable(file, text);
}

absl::Status PairsReader::ParseTable(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kRequiredOfPairs, kPairColumns));
  const CsvColumns columns = ColumnsOf(table);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const CsvRow row(table, columns, i, file);
    NamedPair pair{.where = row.where()};
    HORUS_ASSIGN_OR_RETURN(pair.gpu, FindGpu(pair.where + ": gpu", row.Find("gpu")));
    HORUS_RETURN_IF_ERROR(ReadMode(row, pair.mode));
    HORUS_ASSIGN_OR_RETURN(pair.job_a, row.Label("job_a"));
    HORUS_ASSIGN_OR_RETURN(pair.job_b, row.Label("job_b"));
    HORUS_RETURN_IF_ERROR(CheckJob(pair.where, "job_a", pair.job_a));
    HORUS_RETURN_IF_ERROR(CheckJob(pair.where, "job_b", pair.job_b));
    HORUS_ASSIGN_OR_RETURN(pair.slowdown_a, ReadSlowdown(row, "slowdown_a"));
    HORUS_ASSIGN_OR_RETURN(pair.slowdown_b, ReadSlowdown(row, "slowdown_b"));
    if (std::isnan(pair.slowdown_a) && std::isnan(pair.slowdown_b))
      return InvalidArgument("%s: expected a value in at least one of slowdown_a, slowdown_b, found none", pair.where);
    HORUS_ASSIGN_OR_RETURN(pair.campaign, row.Label("campaign"));
    HORUS_RETURN_IF_ERROR(Add(std::move(pair)));
  }
  return absl::OkStatus();
}

absl::Status PairsReader::ParseGavel(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const GavelSpeeds speeds, ParseGavelSpeeds(file, text));
  skipped_.several += speeds.several;
  std::map<std::pair<uint32_t, uint32_t>, double> alone;  // GPU and job -> steps a second
  for (const GavelAlone& one : speeds.alone) alone.emplace(std::pair{one.gpu, one.job}, one.steps_per_s);
  const auto alone_of = [&](uint32_t gpu, uint32_t job) {
    const auto at = alone.find({gpu, job});
    return at == alone.end() ? 0 : at->second;
  };
  for (const GavelTogether& both : speeds.together) {
    const std::string& job = speeds.jobs[both.job];
    const std::string& other = speeds.jobs[both.other];
    NamedPair pair{.job_a = job, .job_b = other, .campaign = CampaignOf(file)};
    pair.where = file + ": " + Quoted(speeds.gpus[both.gpu]) + ": " + Quoted(job) + " beside " + Quoted(other);
    if (both.job_steps_per_s == 0 && both.other_steps_per_s == 0) {
      ++skipped_.apart;
      continue;
    }
    const double alone_a = alone_of(both.gpu, both.job);
    const double alone_b = alone_of(both.gpu, both.other);
    if (alone_a == 0 || alone_b == 0) {
      ++skipped_.no_alone;
      continue;
    }
    HORUS_ASSIGN_OR_RETURN(pair.gpu, FindGpu(pair.where, speeds.gpus[both.gpu]));
    HORUS_RETURN_IF_ERROR(CheckJob(pair.where, "job", job));
    HORUS_RETURN_IF_ERROR(CheckJob(pair.where, "other job", other));
    pair.slowdown_a = alone_a / both.job_steps_per_s;
    pair.slowdown_b = alone_b / both.other_steps_per_s;
    for (const double slowdown : {pair.slowdown_a, pair.slowdown_b}) {
      if (IsPossible(slowdown)) continue;
      return InvalidArgument("%s: expected %s, found %g (%g and %g steps/s alone, %g and %g together)", pair.where,
                             ExpectedSlowdown(), slowdown, alone_a, alone_b, both.job_steps_per_s,
                             both.other_steps_per_s);
    }
    HORUS_RETURN_IF_ERROR(Add(std::move(pair)));
  }
  return absl::OkStatus();
}

absl::Status PairsReader::CheckJob(const std::string& where, const char* column, const std::string& name) const {
  if (std::binary_search(jobs_.begin(), jobs_.end(), name)) return absl::OkStatus();
  const std::vector<std::string_view> names(jobs_.begin(), jobs_.end());
  const std::string near = Nearest(name, names);
  return InvalidArgument("%s: %s: expected a job of the jobs file%s, found %s", where, column,
                         near.empty() ? "" : " (near: " + near + ")", Quoted(name));
}

absl::StatusOr<GpuTypeId> PairsReader::FindGpu(const std::string& where, std::string_view name) const {
  const absl::StatusOr<GpuTypeId> id = catalogue_.Find(name);
  if (id.ok()) return *id;
  return InvalidArgument("%s: %s", where, std::string(id.status().message()));
}

absl::Status PairsReader::Add(NamedPair pair) {
  const auto [first, second] = std::minmax(pair.job_a, pair.job_b);
  const auto [at, is_new] =
      known_.emplace(Key{pair.gpu, pair.mode, pair.campaign, first, second}, Known{pairs_.size()});
  if (is_new) {
    if (pairs_.size() >= kMostPairRuns)
      return ResourceExhausted("%s: expected at most %d pairs, found more", pair.where, kMostPairRuns);
    pairs_.push_back(std::move(pair));
    return absl::OkStatus();
  }
  NamedPair& known = pairs_[at->second.position];
  if (known.job_a == pair.job_a || std::exchange(at->second.mirrored, true)) {
    return InvalidArgument(
        "%s: expected each pair once a GPU type, sharing mode and campaign, found %s beside %s again "
        "(before: %s)",
        pair.where, Quoted(pair.job_a), Quoted(pair.job_b), known.where);
  }
  const NamedPair before = known;
  if (Merge(known.slowdown_a, pair.slowdown_b) && Merge(known.slowdown_b, pair.slowdown_a)) return absl::OkStatus();
  return InvalidArgument("%s: slowdowns of %s beside %s: expected what %s says, %g and %g, found %g and %g", pair.where,
                         Quoted(pair.job_b), Quoted(pair.job_a), before.where, before.slowdown_a, before.slowdown_b,
                         pair.slowdown_b, pair.slowdown_a);
}

std::string PredictedText(std::span<const PredictedPair> rows) {
  std::string text = "gpu,sharing_mode,victim,other,slowdown,bound\n";
  for (const PredictedPair& row : rows) {
    const std::string bound = std::isnan(row.bound) ? "" : Formatted("%.9g", row.bound);
    AppendFormatted(&text, "%s,%s,%s,%s,%.9g,%s\n", row.gpu, std::string(SharingModeName(row.mode)),
                    CsvField(row.victim), CsvField(row.other), row.slowdown, bound);
  }
  return text;
}

absl::StatusOr<std::vector<PredictedPair>> ParsePredicted(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, std::span(kPredictionColumns).first<5>(), kPredictionColumns));
  const CsvColumns columns = ColumnsOf(table);
  std::vector<PredictedPair> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(PredictedPair row, ReadRow(CsvRow(table, columns, i, file)));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<PredictedPair>> ReadPredicted(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPredictedBytes));
  return ParsePredicted(path, text);
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> ModelOfPredicted(
    std::span<const PredictedPair> rows, const std::map<std::string, uint64_t>& jobs, const Catalogue& catalogue,
    std::shared_ptr<const InterferenceModel> fallback) {
  std::vector<TableEntry> entries;
  for (const PredictedPair& row : rows) {
    const auto victim = jobs.find(row.victim), other = jobs.find(row.other);
    if (victim == jobs.end() || other == jobs.end()) continue;
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(row.gpu));
    entries.push_back({.type = type,
                       .mode = row.mode,
                       .victim = victim->second,
                       .other = other->second,
                       .slowdown = row.slowdown,
                       .most = std::isnan(row.bound) ? 0 : row.bound});
  }
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const InterferenceModel> model,
                         TableModel::Create(entries, std::move(fallback), 0));
  return model;
}

}  // namespace horus
