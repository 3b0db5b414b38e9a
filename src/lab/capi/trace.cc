// SPDX-License-Identifier: Apache-2.0
// horus/trace.h: traces from columns and drawn ones, and what they look like.
#include "horus/lab/trace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/error.h"
#include "capi/planning.h"
#include "capi/structs.h"
#include "lab/capi/sim_convert.h"
#include "lab/trace/synthetic.h"
#include "lab/trace/trace.h"
#include "lab/trace/trace_edit.h"

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
    return ResourceExhausted("%s: expected at most %d, found %d", table.name, kMaxTraceJobs, table.count);
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

absl::StatusOr<GpuTypeNames> GpuTypesOf(const char* place, std::string_view text) {
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
    HORUS_ASSIGN_OR_RETURN(GpuTypeNames names, GpuTypesOf(place, list));
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
  if (c.kinds != nullptr) {
    HORUS_RETURN_IF_ERROR(
        CheckConstant("kinds", "HORUS_JOB_*", HORUS_JOB_TRAINING, HORUS_JOB_BEST_EFFORT, c.kinds[row]));
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
    return ResourceExhausted("count: expected at most %d jobs, found %d", kMaxTraceJobs, c.count);
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

namespace {

// ---- horus/trace.h: the jobs of a trace, as columns.

void PutJob(const Trace& trace, size_t row, const horus_trace_jobs& c) {
  const TraceJob& job = trace.jobs[row];
  Put(c.ids, row, job.id);
  Put(c.submit_us, row, job.submit_us);
  Put(c.duration_us, row, job.duration_us);
  Put(c.steps, row, job.steps);
  Put(c.endless, row, job.endless ? 1 : 0);
  Put(c.deadline_us, row, job.deadline_us);
  Put(c.tasks, row, job.tasks);
  Put(c.gpus_per_task, row, job.gpus_per_task == 0 ? HORUS_JOB_NO_GPUS : job.gpus_per_task);
  Put(c.gpu_milli, row, job.gpu_milli);
  Put(c.cpu_milli, row, job.cpu_milli);
  Put(c.mem_mib, row, job.mem_mib);
  Put(c.kinds, row, static_cast<int32_t>(job.kind));
  Put(c.priorities, row, job.priority);
  Put(c.profiles, row, job.profile);
  Put(c.owners, row, job.owner);
  Put(c.gpu_types, row, job.gpu_types);
  const TraceStepTimes times = job.step_times == kNotStated ? TraceStepTimes() : trace.step_times[job.step_times];
  Put(c.step_us, row, times.step_us);
  Put(c.host_us, row, times.host_us);
  Put(c.gpu_us, row, times.gpu_us);
  Put(c.network_us, row, times.network_us);
}

// ---- horus/trace.h, synthetic traces: presets and what the caller changes of them.

static_assert(HORUS_ARRIVALS_BACKLOG == static_cast<int>(Arrivals::kBacklog) + 1 &&
              HORUS_ARRIVALS_POISSON == static_cast<int>(Arrivals::kPoisson) + 1 &&
              HORUS_ARRIVALS_BURSTY == static_cast<int>(Arrivals::kBursty) + 1);

constexpr char kDefaultPreset[] = "philly";

absl::StatusOr<std::vector<SyntheticSize>> SizesFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.size_gpus, "size_gpus", c.size_count));
  std::vector<SyntheticSize> sizes;
  for (size_t i = 0; i < c.size_count; ++i) {
    sizes.push_back({c.size_gpus[i], c.size_weights == nullptr ? 1 : c.size_weights[i]});
  }
  return sizes;
}

absl::StatusOr<std::vector<SyntheticDuration>> DurationsFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumns(
      c.duration_count, {{c.duration_shares_milli, "duration_shares_milli"}, {c.duration_us, "duration_us"}}));
  std::vector<SyntheticDuration> durations;
  for (size_t i = 0; i < c.duration_count; ++i) durations.push_back({c.duration_shares_milli[i], c.duration_us[i]});
  return durations;
}

absl::StatusOr<std::vector<SyntheticProfile>> ProfilesFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.profile_names, "profile_names", c.profile_count));
  std::vector<SyntheticProfile> profiles;
  for (size_t i = 0; i < c.profile_count; ++i) {
    SyntheticProfile profile;
    HORUS_ASSIGN_OR_RETURN(profile.name, ReadText(c.profile_names[i], Element("profile_names", i).c_str()));
    if (c.profile_weights != nullptr) profile.weight = c.profile_weights[i];
    if (c.profile_cpu_milli != nullptr) profile.cpu_milli = c.profile_cpu_milli[i];
    if (c.profile_mem_mib != nullptr) profile.mem_mib = c.profile_mem_mib[i];
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

absl::Status CheckCounts(const horus_synthetic_options& c) {
  for (const auto& [name, count] :
       {std::pair("size_count", c.size_count), std::pair("duration_count", c.duration_count),
        std::pair("profile_count", c.profile_count)}) {
    if (count <= kMaxTraceJobs) continue;
    return ResourceExhausted("%s: expected at most %d, found %d", name, kMaxTraceJobs, count);
  }
  return CheckConstant("arrivals", "HORUS_ARRIVALS_*", HORUS_ARRIVALS_PRESET, HORUS_ARRIVALS_BURSTY, c.arrivals);
}

absl::StatusOr<SyntheticOptions> OptionsFromC(const horus_synthetic_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_synthetic_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(CheckCounts(c));
  HORUS_ASSIGN_OR_RETURN(const std::string preset, ReadOptionalText(c.preset, "preset"));
  HORUS_ASSIGN_OR_RETURN(SyntheticOptions options, SyntheticPreset(preset.empty() ? kDefaultPreset : preset));
  options.seed = c.seed;
  SetUnlessZero(options.jobs, c.jobs);
  if (c.arrivals != HORUS_ARRIVALS_PRESET) options.arrivals = static_cast<Arrivals>(c.arrivals - 1);
  SetUnlessZero(options.mean_gap_us, c.mean_gap_us);
  SetUnlessZero(options.capacity_gpu_milli, c.capacity_gpu_milli);
  SetUnlessZero(options.load_milli, c.load_milli);
  SetUnlessZero(options.gap_scv_milli, c.gap_scv_milli);
  if (options.gap_scv_milli == 0) options.gap_scv_milli = kPhillyGapScvMilli;
  SetUnlessZero(options.owners, c.owners);
  if (c.size_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.sizes, SizesFromC(c));
  }
  if (c.duration_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.durations, DurationsFromC(c));
  }
  if (c.profile_count > 0) {
    HORUS_ASSIGN_OR_RETURN(options.profiles, ProfilesFromC(c));
  }
  return options;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_trace_create(const horus_trace_columns* columns, horus_trace** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(horus::Trace trace, TraceFromC(columns));
    return Give(new horus_trace{std::make_shared<const horus::Trace>(std::move(trace))}, out);
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
  return Guard(error, {{trace, "trace"}}, [&]() -> absl::Status {
    return Answer(ToC(*trace->value, horus::SummariseTrace(*trace->value)), summary);
  });
}

// ---- horus/trace.h: the jobs of a trace, as columns.

const char* horus_trace_owner_name(const horus_trace* trace, size_t index) {
  return trace != nullptr && index < trace->value->owners.size() ? trace->value->owners[index].c_str() : nullptr;
}

const char* horus_trace_type_name(const horus_trace* trace, size_t list, size_t index) {
  if (trace == nullptr || list >= trace->value->type_lists.size()) return nullptr;
  const horus::GpuTypeNames& names = trace->value->type_lists[list];
  return index < names.size() ? names[index].c_str() : nullptr;
}

horus_status horus_trace_get_jobs(const horus_trace* trace, const horus_trace_jobs* jobs, size_t* count,
                                  horus_error* error) {
  return Guard(error, {{trace, "trace"}, {count, "count"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus_trace_jobs columns, ReadStruct(jobs));
    const size_t rows = trace->value->jobs.size();
    return WriteRows(rows, columns.capacity, count, [&](size_t row) { PutJob(*trace->value, row, columns); });
  });
}

// ---- horus/trace.h, synthetic traces: presets and what the caller changes of them.

horus_status horus_trace_create_synthetic(const horus_synthetic_options* options, horus_trace** out,
                                          horus_error* error) {
  return Guard(error, {{out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::SyntheticOptions asked, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(horus::Trace trace, horus::MakeSynthetic(asked));
    auto made = std::make_unique<horus_trace>();
    made->value = std::make_shared<const horus::Trace>(std::move(trace));
    return Give(made.release(), out);
  });
}
