// SPDX-License-Identifier: Apache-2.0
// The plain CSV: one table says how each column is read, written and left out.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "lab/io/traces/format.h"

namespace horus {
namespace {

// Columns of whole numbers; a blank cell and an absent column are the default. ValidateTraceJob has the limits.
constexpr auto kWhole = [] {
  std::array<TraceField, kTraceFields.size() + 1> columns;
  std::ranges::copy(kTraceFields, columns.begin());
  columns.back() = {"deadline_us", 0, 2 * kMaxTraceTimeUs, &TraceJob::deadline_us};
  return columns;
}();

// The same in seconds, for people; read, never written.
struct SecondsColumn {
  const char* name;
  const char* instead_of;
  int64_t most_us;
  int64_t TraceJob::* member;
};
constexpr SecondsColumn kSeconds[] = {
    {"submit_s", "submit_us", kMaxTraceTimeUs, &TraceJob::submit_us},
    {"duration_s", "duration_us", kMaxTraceTimeUs, &TraceJob::duration_us},
    {"deadline_s", "deadline_us", 2 * kMaxTraceTimeUs, &TraceJob::deadline_us},
};

struct StepColumn {
  const char* name;
  int64_t TraceStepTimes::* member;
};
constexpr StepColumn kSteps[] = {{"step_us", &TraceStepTimes::step_us},
                                 {"host_us", &TraceStepTimes::host_us},
                                 {"gpu_us", &TraceStepTimes::gpu_us},
                                 {"network_us", &TraceStepTimes::network_us}};

constexpr std::array kKinds = {JobKind::kTraining, JobKind::kInference, JobKind::kBestEffort};

absl::Status ReadId(const CsvRow& row, const TraceSink& sink, TraceJob& job) {
  const std::string_view text = row.Find("id");
  job.id = sink.row_id();
  if (text.empty()) return absl::OkStatus();
  const std::optional<uint64_t> id = ParseNumber<uint64_t>(text);
  if (!id) return row.Wrong("id", "a whole number from 0 to 18446744073709551615", text);
  job.id = *id;
  return absl::OkStatus();
}

absl::Status ReadNumbers(const CsvRow& row, TraceJob& job) {
  for (const TraceField& column : kWhole) {
    if (row.Find(column.name).empty()) continue;
    HORUS_ASSIGN_OR_RETURN(const int64_t value, WholeCell(row, column.name, column.least, column.most));
    column.Set(value, job);
  }
  for (const SecondsColumn& column : kSeconds) {
    if (row.Find(column.name).empty()) continue;
    if (!row.Find(column.instead_of).empty())
      return row.Wrong(column.name, std::string("nothing beside ") + column.instead_of, row.Find(column.name));
    HORUS_ASSIGN_OR_RETURN(job.*column.member, ScaledCell(row, column.name, kUsPerSecond, column.most_us));
  }
  return absl::OkStatus();
}

absl::Status ReadNames(const CsvRow& row, TraceSink& sink, TraceJob& job) {
  HORUS_ASSIGN_OR_RETURN(const std::string_view profile, NameCell(row, "profile"));
  HORUS_ASSIGN_OR_RETURN(const std::string_view owner, NameCell(row, "owner"));
  GpuTypeNames types = SplitTypes(row.Find("gpu_types"));
  for (const std::string& type : types) {
    if (ValidateTraceName("", type).ok()) continue;
    return row.Wrong("gpu_types", "names apart by |, without spaces around them", type);
  }
  if (types.size() > kMaxTraceTypes)
    return row.Wrong("gpu_types", Formatted("at most %d names", kMaxTraceTypes), std::to_string(types.size()));
  if (const std::string_view kind = row.Find("kind"); !kind.empty()) {
    const auto known = std::ranges::find(kKinds, kind, JobKindName);
    if (known == kKinds.end()) return row.Wrong("kind", "training, inference or best-effort", kind);
    job.kind = *known;
  }
  job.profile = sink.builder().Profile(profile);
  job.owner = sink.builder().Owner(owner);
  job.gpu_types = sink.builder().GpuTypes(std::move(types));
  return absl::OkStatus();
}

absl::Status ReadStepTimes(const CsvRow& row, TraceSink& sink, TraceJob& job) {
  TraceStepTimes times;
  bool stated = false;
  for (const StepColumn& column : kSteps) {
    if (row.Find(column.name).empty()) continue;
    stated = true;
    HORUS_ASSIGN_OR_RETURN(times.*column.member, WholeCell(row, column.name, 0, kMaxTraceTimeUs));
  }
  if (!stated) return absl::OkStatus();
  if (times.step_us == 0) return row.Wrong("step_us", "above 0 where one of a step's times is stated", "0");
  job.step_times = sink.builder().StepTimes(times);
  return absl::OkStatus();
}

absl::Status ReadPlain(const CsvRow& row, TraceSink& sink) {
  TraceJob job;
  HORUS_RETURN_IF_ERROR(ReadId(row, sink, job));
  HORUS_RETURN_IF_ERROR(ReadNumbers(row, job));
  HORUS_RETURN_IF_ERROR(ReadNames(row, sink, job));
  HORUS_RETURN_IF_ERROR(ReadStepTimes(row, sink, job));
  return sink.Add(row, job);
}

std::vector<std::string_view> AllColumns() {
  std::vector<std::string_view> names = {"id", "profile", "owner", "gpu_types", "kind"};
  for (const TraceField& column : kWhole) names.push_back(column.name);
  for (const SecondsColumn& column : kSeconds) names.push_back(column.name);
  for (const StepColumn& column : kSteps) names.push_back(column.name);
  return names;
}

std::string TypesText(const Trace& trace, const TraceJob& job) {
  std::string text;
  if (job.gpu_types == kNotStated) return text;
  for (const std::string& name : trace.type_lists[job.gpu_types]) {
    if (!text.empty()) text += kTypeSeparator;
    text += name;
  }
  return text;
}

// Which columns say something of some job.
struct Written {
  std::vector<const TraceField*> whole;
  bool kind = false;
};

Written ColumnsToWrite(const Trace& trace) {
  Written written;
  const TraceJob plain;
  for (const TraceField& column : kWhole) {
    const auto says = [&](const TraceJob& job) { return column.Get(job) != column.Get(plain); };
    if (&column == &kWhole[0] || std::ranges::any_of(trace.jobs, says)) written.whole.push_back(&column);  // submit_us
  }
  written.kind = std::ranges::any_of(trace.jobs, [&](const TraceJob& job) { return job.kind != plain.kind; });
  return written;
}

void AppendJob(const Trace& trace, const TraceJob& job, const Written& written, std::string& out) {
  absl::StrAppend(&out, job.id);
  for (const TraceField* column : written.whole) absl::StrAppend(&out, ",", column->Get(job));
  const auto text = [&](bool wanted, std::string_view field) {
    if (!wanted) return;
    out += ',';
    out += CsvField(field);
  };
  text(!trace.profiles.empty(), ProfileOf(trace, job));
  text(!trace.owners.empty(), OwnerOf(trace, job));
  text(!trace.type_lists.empty(), TypesText(trace, job));
  text(written.kind, JobKindName(job.kind));
  if (trace.step_times.empty()) return;
  for (const StepColumn& column : kSteps) {
    out += ',';
    if (job.step_times != kNotStated) absl::StrAppend(&out, trace.step_times[job.step_times].*column.member);
  }
}

}  // namespace

FormatRules PlainRules() {
  return {.format = TraceFormat::kPlain, .name = "plain", .closed = true, .knows = AllColumns(), .read = ReadPlain};
}

std::string WritePlainTrace(const Trace& trace) {
  const Written written = ColumnsToWrite(trace);
  std::string out = "id";
  for (const TraceField* column : written.whole) absl::StrAppend(&out, ",", column->name);
  if (!trace.profiles.empty()) out += ",profile";
  if (!trace.owners.empty()) out += ",owner";
  if (!trace.type_lists.empty()) out += ",gpu_types";
  if (written.kind) out += ",kind";
  for (const StepColumn& column : kSteps) {
    if (!trace.step_times.empty()) absl::StrAppend(&out, ",", column.name);
  }
  out += '\n';
  for (const TraceJob& job : trace.jobs) {
    AppendJob(trace, job, written, out);
    out += '\n';
  }
  return out;
}

}  // namespace horus
