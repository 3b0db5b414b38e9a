// SPDX-License-Identifier: Apache-2.0
// From lines to rows of named columns, and from those to jobs.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "io/csv.h"
#include "lab/io/traces/format.h"

namespace horus {
namespace {

CsvColumns ColumnsOf(const Header& header) {
  CsvColumns columns;
  for (size_t i = 0; i < header.size(); ++i) columns.emplace(header[i], i);
  return columns;
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
      if (std::find(rules_.knows.begin(), rules_.knows.end(), name) != rules_.knows.end()) continue;
      const std::string near = Nearest(name, rules_.knows);
      return wrong("a column of docs/traces.md", Quoted(name) + (near.empty() ? "" : " (near: " + near + ")"));
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

}  // namespace

bool HasAll(const Header& header, const std::vector<std::string_view>& needs) {
  return std::all_of(needs.begin(), needs.end(), [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  });
}

absl::Status TraceSink::Add(const CsvRow& row, const TraceJob& job) {
  if (const absl::Status status = ValidateTraceJob(job); !status.ok()) {
    return MakeError(status.code(), "%s: %s", row.where(), std::string(status.message()));
  }
  if (builder_.size() >= kMaxTraceJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d jobs, found more", row.where(),
                     kMaxTraceJobs);
  }
  if (!ids_.insert(job.id).second) {
    return InvalidArgument("%s: id: expected each once, found %d again", row.where(), job.id);
  }
  builder_.Add(job);
  return absl::OkStatus();
}

absl::StatusOr<Trace> TraceSink::Finish() {
  absl::StatusOr<Trace> trace = builder_.Finish();
  if (!trace.ok()) return MakeError(trace.status().code(), "%s: %s", file_, std::string(trace.status().message()));
  for (TraceJob& job : trace->jobs) job.endless = job.endless || last_.contains(job.id);
  return trace;
}

absl::Status ReadRows(std::string_view bytes, const std::string& file, const FormatRules& rules, TraceSink& sink,
                      RowProblems& problems) {
  RowReader reader(file, rules, sink, problems);
  HORUS_RETURN_IF_ERROR(ScanCsv(bytes, file, rules.separator, [&](const CsvLine& line) { return reader.Visit(line); }));
  return reader.End();
}

}  // namespace horus
