// SPDX-License-Identifier: Apache-2.0
// horus/trace.h: traces from columns, and what they look like.
#include "horus/trace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/guard.h"
#include "capi/sim_handles.h"
#include "capi/structs.h"
#include "sim/trace/trace_build.h"
#include "sim/trace/trace_summary.h"

namespace horus::capi {
namespace {

static_assert(HORUS_NOT_STATED == kNotStated);

// A table of names in the caller's order, as positions of a builder.
struct NameTable {
  const char* name;
  size_t count;
  const char* const* names;
};

absl::StatusOr<std::vector<uint32_t>> Intern(const NameTable& table, const auto& add) {
  HORUS_RETURN_IF_ERROR(RequireColumn(table.names, table.name, table.count));
  if (table.count > kMaxTraceJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d, found %d", table.name,
                     kMaxTraceJobs, table.count);
  }
  std::vector<uint32_t> positions;
  for (size_t i = 0; i < table.count; ++i) {
    const std::string place = Element(table.name, i);
    HORUS_ASSIGN_OR_RETURN(const std::string text, ReadText(table.names[i], place.c_str()));
    HORUS_ASSIGN_OR_RETURN(const uint32_t position, add(place.c_str(), text));
    positions.push_back(position);
  }
  return positions;
}

absl::StatusOr<GpuTypeNames> TypesOf(const char* place, std::string_view text) {
  GpuTypeNames names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(kTypeSeparator, begin), text.size());
    names.emplace_back(text.substr(begin, end - begin));
    HORUS_RETURN_IF_ERROR(ValidateTraceName(place, names.back()));
    begin = end + 1;
  }
  if (names.size() <= kMaxTraceTypes) return names;
  return InvalidArgument("%s: expected at most %d GPU types, found %d", place, kMaxTraceTypes, names.size());
}

struct Tables {
  std::vector<uint32_t> profiles, owners, type_lists;  // by the caller's position that of the builder
};

absl::StatusOr<Tables> TablesFromC(const horus_trace_columns& c, TraceBuilder& builder) {
  using Position = absl::StatusOr<uint32_t>;
  const auto add_profile = [&](const char* place, const std::string& name) -> Position {
    HORUS_RETURN_IF_ERROR(ValidateTraceName(place, name));
    return builder.Profile(name);
  };
  const auto add_owner = [&](const char* place, const std::string& name) -> Position {
    HORUS_RETURN_IF_ERROR(ValidateTraceName(place, name));
    return builder.Owner(name);
  };
  const auto add_list = [&](const char* place, const std::string& list) -> Position {
    HORUS_ASSIGN_OR_RETURN(GpuTypeNames names, TypesOf(place, list));
    return builder.GpuTypes(std::move(names));
  };
  Tables tables;
  HORUS_ASSIGN_OR_RETURN(tables.profiles, Intern({"profile_names", c.profile_count, c.profile_names}, add_profile));
  HORUS_ASSIGN_OR_RETURN(tables.owners, Intern({"owner_names", c.owner_count, c.owner_names}, add_owner));
  HORUS_ASSIGN_OR_RETURN(tables.type_lists, Intern({"type_lists", c.type_list_count, c.type_lists}, add_list));
  return tables;
}

template <typename T, typename Field>
void Get(const T* column, size_t row, Field& field) {
  if (column != nullptr) field = static_cast<Field>(column[row]);
}

// As Get, but 0 keeps the default.
template <typename T, typename Field>
void GetUnlessZero(const T* column, size_t row, Field& field) {
  if (column != nullptr) SetUnlessZero(field, column[row]);
}

absl::Status GetPosition(const char* name, const uint32_t* column, size_t row, const std::vector<uint32_t>& positions,
                         uint32_t& field) {
  if (column == nullptr || column[row] == HORUS_NOT_STATED) return absl::OkStatus();
  if (column[row] >= positions.size()) {
    return InvalidArgument("%s: expected less than %d, or HORUS_NOT_STATED, found %d", name, positions.size(),
                           column[row]);
  }
  field = positions[column[row]];
  return absl::OkStatus();
}

// Values whose types here are narrower than the columns'.
absl::Status CheckNarrow(const horus_trace_columns& c, size_t row) {
  if (c.endless != nullptr) HORUS_RETURN_IF_ERROR(CheckFlag("endless", c.endless[row]));
  if (c.gpu_milli != nullptr && (c.gpu_milli[row] < 0 || c.gpu_milli[row] > kMilliPerGpu)) {
    return InvalidArgument("gpu_milli: expected 0 to %d, found %d", kMilliPerGpu, c.gpu_milli[row]);
  }
  if (c.kinds != nullptr && (c.kinds[row] < HORUS_JOB_TRAINING || c.kinds[row] > HORUS_JOB_BEST_EFFORT)) {
    return InvalidArgument("kinds: expected HORUS_JOB_* (%d to %d), found %d", HORUS_JOB_TRAINING,
                           HORUS_JOB_BEST_EFFORT, c.kinds[row]);
  }
  if (c.deadline_us != nullptr && c.deadline_us[row] < 0) {
    return InvalidArgument("deadline_us: expected 0 or above submit_us, found %d", c.deadline_us[row]);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> StepTimesFromC(const horus_trace_columns& c, size_t row, TraceBuilder& builder) {
  TraceStepTimes times;
  Get(c.step_us, row, times.step_us);
  if (times.step_us == 0) return kNotStated;
  Get(c.host_us, row, times.host_us);
  Get(c.gpu_us, row, times.gpu_us);
  Get(c.network_us, row, times.network_us);
  HORUS_RETURN_IF_ERROR(ValidateStepTimes(times));
  return builder.StepTimes(times);
}

absl::StatusOr<TraceJob> JobFromC(const horus_trace_columns& c, const Tables& tables, size_t row,
                                  TraceBuilder& builder) {
  HORUS_RETURN_IF_ERROR(CheckNarrow(c, row));
  TraceJob job{.id = row};
  Get(c.ids, row, job.id);
  Get(c.submit_us, row, job.submit_us);
  Get(c.duration_us, row, job.duration_us);
  Get(c.steps, row, job.steps);
  Get(c.endless, row, job.endless);
  Get(c.deadline_us, row, job.deadline_us);
  GetUnlessZero(c.tasks, row, job.tasks);
  GetUnlessZero(c.gpus_per_task, row, job.gpus_per_task);
  if (job.gpus_per_task == HORUS_JOB_NO_GPUS) job.gpus_per_task = 0;
  Get(c.gpu_milli, row, job.gpu_milli);
  Get(c.cpu_milli, row, job.cpu_milli);
  Get(c.mem_mib, row, job.mem_mib);
  Get(c.kinds, row, job.kind);
  Get(c.priorities, row, job.priority);
  HORUS_RETURN_IF_ERROR(GetPosition("profiles", c.profiles, row, tables.profiles, job.profile));
  HORUS_RETURN_IF_ERROR(GetPosition("owners", c.owners, row, tables.owners, job.owner));
  HORUS_RETURN_IF_ERROR(GetPosition("gpu_types", c.gpu_types, row, tables.type_lists, job.gpu_types));
  HORUS_ASSIGN_OR_RETURN(job.step_times, StepTimesFromC(c, row, builder));
  HORUS_RETURN_IF_ERROR(ValidateTraceJob(job));
  return job;
}

absl::StatusOr<Trace> TraceFromC(const horus_trace_columns* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_trace_columns c, ReadStruct(given));
  if (c.count > kMaxTraceJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "count: expected at most %d jobs, found %d", kMaxTraceJobs,
                     c.count);
  }
  TraceBuilder builder;
  HORUS_ASSIGN_OR_RETURN(const Tables tables, TablesFromC(c, builder));
  for (size_t row = 0; row < c.count; ++row) {
    const absl::StatusOr<TraceJob> job = JobFromC(c, tables, row, builder);
    if (!job.ok()) return At(Element("row", row), job.status());
    builder.Add(*job);
  }
  return builder.Finish();
}

horus_trace_summary ToC(const Trace& trace, const TraceSummary& summary) {
  horus_trace_summary c = HORUS_TRACE_SUMMARY_INIT;
  c.jobs = static_cast<uint64_t>(summary.jobs);
  c.endless = static_cast<uint64_t>(summary.endless);
  c.by_steps = static_cast<uint64_t>(summary.by_steps);
  c.best_effort = static_cast<uint64_t>(summary.best_effort);
  c.deadlines = static_cast<uint64_t>(summary.deadlines);
  c.gpus = static_cast<uint64_t>(summary.gpus);
  c.gangs = static_cast<uint64_t>(summary.gangs);
  c.shares = static_cast<uint64_t>(summary.shares);
  c.owners = static_cast<uint64_t>(summary.owners);
  c.profiles = trace.profiles.size();
  c.first_submit_us = summary.first_submit_us;
  c.last_submit_us = summary.last_submit_us;
  c.mean_gap_us = summary.mean_gap_us;
  c.gap_scv = summary.gap_scv;
  c.gpu_us = summary.gpu_us;
  c.digest = summary.digest;
  return c;
}

uint64_t BytesOf(const std::vector<std::string>& names) {
  uint64_t bytes = names.capacity() * sizeof(std::string);
  for (const std::string& name : names) bytes += name.capacity();
  return bytes;
}

}  // namespace

uint64_t BytesOf(const Trace& trace) {
  uint64_t bytes = sizeof trace + trace.jobs.capacity() * sizeof(TraceJob);
  bytes += BytesOf(trace.profiles) + BytesOf(trace.owners);
  for (const GpuTypeNames& list : trace.type_lists) bytes += sizeof list + BytesOf(list);
  return bytes + trace.step_times.capacity() * sizeof(TraceStepTimes);
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_trace_create(const horus_trace_columns* columns, horus_trace** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(horus::Trace trace, TraceFromC(columns));
    *out = new horus_trace{std::make_shared<const horus::Trace>(std::move(trace))};
    return absl::OkStatus();
  });
}

void horus_trace_free(horus_trace* trace) { delete trace; }

size_t horus_trace_count(const horus_trace* trace) { return trace == nullptr ? 0 : trace->value->jobs.size(); }

size_t horus_trace_profile_count(const horus_trace* trace) {
  return trace == nullptr ? 0 : trace->value->profiles.size();
}

uint64_t horus_trace_bytes_held(const horus_trace* trace) { return trace == nullptr ? 0 : BytesOf(*trace->value); }

const char* horus_trace_profile_name(const horus_trace* trace, size_t index) {
  return index < horus_trace_profile_count(trace) ? trace->value->profiles[index].c_str() : nullptr;
}

horus_status horus_trace_get_summary(const horus_trace* trace, horus_trace_summary* summary, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{trace, "trace"}}));
    HORUS_RETURN_IF_ERROR(CheckOutput(summary));
    WriteStruct(ToC(*trace->value, horus::SummariseTrace(*trace->value)), summary);
    return absl::OkStatus();
  });
}
