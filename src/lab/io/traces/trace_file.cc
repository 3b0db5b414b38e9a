// SPDX-License-Identifier: Apache-2.0
// The front door of all trace formats: finds out which one it is, reads its rows, counts what is wrong.
#include "lab/io/traces/trace_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "io/csv.h"
#include "lab/io/traces/format.h"
#include "lab/trace/trace_edit.h"

namespace horus {
namespace {

constexpr std::string_view kAutoName = "auto";

std::array<const FormatRules*, 6> AllRules() {
  return {&PlainRules(), &OpenbRules(), &GavelRules(), &ChronusRules(), &MuriRules(), &PaiRules()};
}

const FormatRules* RulesOf(TraceFormat format) {
  for (const FormatRules* rules : AllRules()) {
    if (rules->format == format) return rules;
  }
  return nullptr;
}

// The first row, whatever it is; nothing of an empty file.
std::vector<std::string> FirstRow(std::string_view bytes, const std::string& file, char separator) {
  std::vector<std::string> first;
  const absl::Status status = ScanCsv(bytes, file, separator, [&](const CsvLine& line) -> absl::Status {
    first = line.fields;
    return absl::CancelledError();
  });
  static_cast<void>(status);  // cancelled, or nothing there
  return first;
}

absl::StatusOr<TraceFormat> FindFormat(std::string_view bytes, const std::string& file) {
  const std::vector<std::string> tabbed = FirstRow(bytes, file, '\t');
  for (const Header& columns : GavelRules().without_header) {
    if (tabbed.size() == columns.size()) return TraceFormat::kGavel;
  }
  const std::vector<std::string> header = FirstRow(bytes, file, ',');
  std::vector<TraceFormat> found;
  if (HasAll(header, {"submit_us"}) || HasAll(header, {"submit_s"})) found.push_back(TraceFormat::kPlain);
  for (const FormatRules* rules : AllRules()) {
    if (!rules->needs.empty() && HasAll(header, rules->needs)) found.push_back(rules->format);
  }
  if (found.size() == 1) return found.front();
  return InvalidArgument(
      "%s: line 1: header: expected the columns of one trace format (docs/traces.md), found those of "
      "%d; name the format: plain, openb, gavel, chronus, muri or pai",
      file, found.size());
}

void Join(TraceRead& all, TraceRead one) {
  all.rows += one.rows;
  all.skipped += one.skipped;
  for (std::string& message : one.messages) {
    if (all.messages.size() < kKeptMessages) all.messages.push_back(std::move(message));
  }
  for (const auto& [reason, count] : one.left_out) all.left_out[reason] += count;
}

absl::StatusOr<std::vector<std::string>> FilesOf(std::span<const std::string> paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
      if (at->is_regular_file(error)) inside.push_back(at->path().string());
    }
    if (error) {
      return MakeError(absl::StatusCode::kUnavailable, "%s: cannot list: %s", path, error.message());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) return InvalidArgument("traces: expected at least one file, found none");
  if (files.size() <= kMaxTraceFiles) return files;
  return MakeError(absl::StatusCode::kResourceExhausted, "traces: expected at most %d files, found %d", kMaxTraceFiles,
                   files.size());
}

}  // namespace

std::string_view TraceFormatName(TraceFormat format) {
  const FormatRules* rules = RulesOf(format);
  return rules == nullptr ? kAutoName : rules->name;
}

absl::StatusOr<TraceFormat> ParseTraceFormat(std::string_view name) {
  if (name == kAutoName) return TraceFormat::kAuto;
  std::vector<std::string_view> names = {kAutoName};
  for (const FormatRules* rules : AllRules()) {
    if (rules->name == name) return rules->format;
    names.push_back(rules->name);
  }
  return MakeError(absl::StatusCode::kNotFound, "trace format: %s", ExpectedOneOf(names, name));
}

absl::Status RowProblems::Take(const absl::Status& status) {
  if (status.ok() || !skip || status.code() != absl::StatusCode::kInvalidArgument) return status;
  ++skipped;
  if (messages.size() < kKeptMessages) messages.emplace_back(status.message());
  return absl::OkStatus();
}

absl::StatusOr<TraceRead> ParseTrace(std::string_view bytes, const std::string& file, const TraceReadOptions& options,
                                     std::string_view pai_job_table) {
  TraceRead read{.format = options.format};
  if (read.format == TraceFormat::kAuto) {
    HORUS_ASSIGN_OR_RETURN(read.format, FindFormat(bytes, file));
  }
  RowProblems problems{.skip = options.skip_bad};
  PaiJobs jobs;
  if (!pai_job_table.empty()) {
    if (read.format != TraceFormat::kPai) {
      return InvalidArgument("%s: expected a trace of the format pai beside pai_job_table, found %s", file,
                             std::string(TraceFormatName(read.format)));
    }
    HORUS_ASSIGN_OR_RETURN(jobs, ReadPaiJobs(pai_job_table, options.pai_job_table, problems));
  }
  TraceSink sink(file);
  if (!pai_job_table.empty()) sink.pai_jobs = &jobs;
  HORUS_RETURN_IF_ERROR(ReadRows(bytes, file, *RulesOf(read.format), sink, problems));
  HORUS_ASSIGN_OR_RETURN(read.trace, sink.Finish());
  read.rows = sink.rows();
  read.skipped = problems.skipped;
  read.messages = std::move(problems.messages);
  read.left_out = sink.left_out();
  return read;
}

absl::StatusOr<TraceRead> ReadTrace(const std::string& path, const TraceReadOptions& options) {
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxTraceBytes));
  if (options.pai_job_table.empty()) return ParseTrace(bytes, path, options);
  HORUS_ASSIGN_OR_RETURN(const std::string jobs, ReadFile(options.pai_job_table, kMaxTraceBytes));
  return ParseTrace(bytes, path, options, jobs);
}

absl::StatusOr<TraceRead> ReadTraces(std::span<const std::string> paths, const TraceReadOptions& options) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(paths));
  if (files.size() == 1) return ReadTrace(files.front(), options);
  TraceRead all;
  std::vector<Trace> traces;
  for (const std::string& file : files) {
    HORUS_ASSIGN_OR_RETURN(TraceRead one, ReadTrace(file, options));
    all.format = traces.empty() || all.format == one.format ? one.format : TraceFormat::kAuto;
    traces.push_back(std::move(one.trace));
    Join(all, std::move(one));
  }
  HORUS_ASSIGN_OR_RETURN(all.trace, MergeTraces(traces));
  return all;
}

}  // namespace horus
