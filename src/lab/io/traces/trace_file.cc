// SPDX-License-Identifier: Apache-2.0
// The front door of all trace formats: finds out which one it is, reads its rows, counts what is wrong.
#include "lab/io/traces/trace_file.h"

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "lab/io/traces/format.h"

namespace horus {
namespace {

// ---- Cells of traces to integers, exactly.

__extension__ typedef __int128 Wide;

constexpr Wide kMostDigits = Wide{1'000'000'000} * 1'000'000'000 * 1'000'000'000;  // beyond any limit

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// All digits of `text` behind `value`; digits beyond what 128 bits hold are dropped where they cannot matter.
void Append(std::string_view digits, Wide& value, Wide* scale) {
  for (const char digit : digits) {
    if (value >= kMostDigits || (scale != nullptr && *scale >= kMostDigits)) continue;
    // Bounded: checked above: less than kMostDigits.
    value = value * 10 + (digit - '0');
    // Bounded: checked above: less than kMostDigits.
    if (scale != nullptr) *scale *= 10;
  }
}

// ---- From lines to rows of named columns, and from those to jobs.

CsvColumns ColumnsOf(const Header& header) {
  CsvColumns columns;
  for (size_t i = 0; i < header.size(); ++i) columns.emplace(header[i], i);
  return columns;
}

bool HasAll(const Header& header, const std::vector<std::string_view>& needs) {
  return std::ranges::all_of(needs,
                             [&](std::string_view name) { return std::ranges::find(header, name) != header.end(); });
}

class RowReader {
 public:
  RowReader(const std::string& file, const FormatRules& rules, TraceSink& sink, RowProblems& problems)
      : file_(file), rules_(rules), sink_(sink), problems_(problems) {}

  // A wrong header ends the reading, a wrong row may be skipped.
  absl::Status Visit(const CsvLine& line) {
    if (needs_header_) {
      needs_header_ = false;
      const bool is_header = line.broken == nullptr && (!rules_.both || HasAll(line.fields, rules_.needs));
      if (is_header || !rules_.both) return TakeHeader(line);
    }
    sink_.NextRow();
    return problems_.Take(Row(line));
  }

  [[nodiscard]] absl::Status End() const {
    if (!needs_header_ || rules_.both) return absl::OkStatus();
    return InvalidArgument("%s: expected a header row, found none", file_);
  }

 private:
  absl::Status TakeHeader(const CsvLine& line) {
    const auto wrong = [&](const std::string& expected, const std::string& found) {
      return InvalidArgument("%s: line %d: header: expected %s, found %s", file_, line.line, expected, found);
    };
    if (line.broken != nullptr) return wrong("a header row", line.broken);
    if (line.fields.size() > kMaxCsvColumns) return wrong(Formatted("at most %d columns", kMaxCsvColumns), "more");
    header_ = line.fields;
    columns_ = ColumnsOf(header_);
    if (columns_.size() != header_.size()) return wrong("each column once", "one twice");
    for (const std::string_view name : rules_.needs) {
      if (!columns_.contains(name)) return wrong("a column " + std::string(name), "none");
    }
    if (!rules_.closed) return absl::OkStatus();
    for (const std::string& name : header_) {
      if (std::ranges::find(rules_.knows, name) != rules_.knows.end()) continue;
      const std::string near = Nearest(name, rules_.knows);
      return wrong("a column of docs/simulate.md", Quoted(name) + (near.empty() ? "" : " (near: " + near + ")"));
    }
    return absl::OkStatus();
  }

  absl::Status ChooseHeader(const CsvLine& line) {
    std::string widths;
    for (const Header& header : rules_.without_header) {
      if (header.size() == line.fields.size()) {
        header_ = header;
        columns_ = ColumnsOf(header_);
        return absl::OkStatus();
      }
      widths += (widths.empty() ? "" : " or ") + std::to_string(header.size());
    }
    return InvalidArgument("%s: line %d: expected %s fields, found %d", file_, line.line, widths, line.fields.size());
  }

  absl::Status Row(const CsvLine& line) {
    std::string where = Formatted("%s: line %d", file_, line.line);
    if (line.broken != nullptr) {
      return InvalidArgument("%s: expected quoted fields that are closed and followed by a separator: %s", where,
                             line.broken);
    }
    if (header_.empty()) HORUS_RETURN_IF_ERROR(ChooseHeader(line));
    if (line.fields.size() != header_.size()) {
      return InvalidArgument("%s: expected %d fields as in the %s, found %d", where, header_.size(),
                             rules_.without_header.empty() ? "header" : "first row", line.fields.size());
    }
    return rules_.read(CsvRow(columns_, line.fields, std::move(where)), sink_);
  }

  const std::string& file_;
  const FormatRules& rules_;
  TraceSink& sink_;
  RowProblems& problems_;
  bool needs_header_ = rules_.without_header.empty() || rules_.both;
  Header header_;
  CsvColumns columns_;
};

constexpr std::string_view kAutoName = "auto";

// By TraceFormat, which begins with kAuto.
const std::vector<FormatRules>& AllRules() {
  static const std::vector<FormatRules> all = [] {
    std::vector<FormatRules> rules = PublishedRules();
    rules.insert(rules.begin(), PlainRules());
    return rules;
  }();
  return all;
}

const FormatRules& RulesOf(TraceFormat format) { return AllRules()[static_cast<size_t>(format) - 1]; }

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
  for (const Header& columns : RulesOf(TraceFormat::kGavel).without_header) {
    if (tabbed.size() == columns.size()) return TraceFormat::kGavel;
  }
  const std::vector<std::string> header = FirstRow(bytes, file, ',');
  std::vector<TraceFormat> found;
  if (HasAll(header, {"submit_us"}) || HasAll(header, {"submit_s"})) found.push_back(TraceFormat::kPlain);
  for (const FormatRules& rules : AllRules()) {
    if (!rules.needs.empty() && HasAll(header, rules.needs)) found.push_back(rules.format);
  }
  if (found.size() == 1) return found.front();
  return InvalidArgument(
      "%s: line 1: header: expected the columns of one trace format (docs/simulate.md), found those of "
      "%s; name the format: plain, openb, gavel, chronus, muri or pai",
      file, found.empty() ? "none" : "several");
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
    if (error) return Unavailable("%s: cannot list: %s", path, error.message());
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) return InvalidArgument("traces: expected at least one file, found none");
  if (files.size() <= kMaxTraceFiles) return files;
  return ResourceExhausted("traces: expected at most %d files, found %d", kMaxTraceFiles, files.size());
}

}  // namespace

std::optional<int64_t> ScaledDecimal(std::string_view text, int64_t unit, int64_t most) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = point < text.size() ? text.substr(point + 1) : std::string_view();
  if (whole.empty() && part.empty()) return std::nullopt;
  if (!std::ranges::all_of(whole, IsDigit)) return std::nullopt;
  if (!std::ranges::all_of(part, IsDigit)) return std::nullopt;
  Wide value = 0;
  Append(whole, value, nullptr);
  if (value > most / unit) return std::nullopt;
  constexpr size_t kMostPlaces = 18;  // finer than any unit here, and times it within 128 bits
  Wide fraction = 0;
  Wide scale = 1;
  Append(part.substr(0, kMostPlaces), fraction, &scale);
  // Bounded: 128 bits; value x unit is at most `most`, fraction x unit at most 10^18 units.
  value = value * unit + (fraction * unit + scale / 2) / scale;
  if (value > most) return std::nullopt;
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> ScaledCell(const CsvRow& row, std::string_view column, int64_t unit, int64_t most) {
  const std::optional<int64_t> value = ScaledDecimal(row.Find(column), unit, most);
  if (value.has_value()) return *value;
  return row.Wrong(column, Formatted("a number from 0 to %d", most / unit), row.Find(column));
}

absl::StatusOr<int64_t> WholeCell(const CsvRow& row, std::string_view column, int64_t least, int64_t most) {
  std::string_view text = row.Find(column);
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view part = text.substr(std::min(point + 1, text.size()));
  Wide value = 0;
  const bool digits = !whole.empty() && std::ranges::all_of(whole, IsDigit) &&
                      std::ranges::all_of(part, [](char c) { return c == '0'; });
  if (digits) Append(whole, value, nullptr);
  if (minus) value = -value;
  if (digits && value >= least && value <= most) return static_cast<int64_t>(value);
  return row.Wrong(column, Formatted("a whole number from %d to %d", least, most), row.Find(column));
}

absl::StatusOr<std::string_view> NameCell(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.Find(column);
  if (text.empty() || ValidateTraceName("", text).ok()) return text;
  return row.Wrong(column, Formatted("at most %d bytes without control characters", kMaxNameBytes), text);
}

GpuTypeNames SplitTypes(std::string_view text) {
  GpuTypeNames names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(kTypeSeparator), text.size());
    if (end > 0) names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

absl::Status TraceSink::Add(const CsvRow& row, const TraceJob& job) {
  HORUS_RETURN_IF_ERROR(At(row.where(), ValidateTraceJob(job)));
  if (builder_.size() >= kMaxTraceJobs)
    return ResourceExhausted("%s: expected at most %d jobs, found more", row.where(), kMaxTraceJobs);
  if (!ids_.insert(job.id).second)
    return InvalidArgument("%s: id: expected each once, found %d again", row.where(), job.id);
  builder_.Add(job);
  return absl::OkStatus();
}

absl::StatusOr<Trace> TraceSink::Finish() {
  HORUS_ASSIGN_OR_RETURN(Trace trace, At(file_, builder_.Finish()));
  for (TraceJob& job : trace.jobs) job.endless = job.endless || last_.contains(job.id);
  return trace;
}

std::string_view TraceFormatName(TraceFormat format) {
  return format == TraceFormat::kAuto ? kAutoName : RulesOf(format).name;
}

absl::StatusOr<TraceFormat> ParseTraceFormat(std::string_view name) {
  if (name == kAutoName) return TraceFormat::kAuto;
  std::vector<std::string_view> names = {kAutoName};
  for (const FormatRules& rules : AllRules()) {
    if (rules.name == name) return rules.format;
    names.push_back(rules.name);
  }
  return NotFound("trace format: %s", ExpectedOneOf(names, name));
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
  if (read.format == TraceFormat::kAuto) HORUS_SET_OR_RETURN(read.format, FindFormat(bytes, file));
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
  const FormatRules& rules = RulesOf(read.format);
  RowReader reader(file, rules, sink, problems);
  HORUS_RETURN_IF_ERROR(ScanCsv(bytes, file, rules.separator, [&](const CsvLine& line) { return reader.Visit(line); }));
  HORUS_RETURN_IF_ERROR(reader.End());
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
