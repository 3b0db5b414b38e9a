// SPDX-License-Identifier: Apache-2.0
// horus/trace.h: traces from columns and drawn ones, and what they look like.
#include "horus/lab/trace.h"

#include "capi/planning.h"
#include "lab/capi/handles.h"
#include "lab/trace/synthetic.h"

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
  if (table.count > kMaxTraceJobs)
    return ResourceExhausted("%s: expected at most %d, found %d", table.name, kMaxTraceJobs, table.count);
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
  if (c.gpu_milli != nullptr && (c.gpu_milli[row] < 0 || c.gpu_milli[row] > kMilliPerGpu))
    return InvalidArgument("gpu_milli: expected 0 to %d, found %d", kMilliPerGpu, c.gpu_milli[row]);
  if (c.kinds != nullptr) {
    HORUS_RETURN_IF_ERROR(
        CheckConstant("kinds", "HORUS_JOB_*", HORUS_JOB_TRAINING, HORUS_JOB_BEST_EFFORT, c.kinds[row]));
  }
  if (c.deadline_us != nullptr && c.deadline_us[row] < 0)
    return InvalidArgument("deadline_us: expected 0 or above submit_us, found %d", c.deadline_us[row]);
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
#define HORUS_GET(from, to, field) Get(from.field, row, to.field);
  HORUS_EACH_FIELD(HORUS_GET, c, job, submit_us, duration_us, steps, endless, deadline_us, gpu_milli, cpu_milli,
                   mem_mib)
#undef HORUS_GET
  Get(c.ids, row, job.id);
  GetUnlessZero(c.tasks, row, job.tasks);
  GetUnlessZero(c.gpus_per_task, row, job.gpus_per_task);
  if (job.gpus_per_task == HORUS_JOB_NO_GPUS) job.gpus_per_task = 0;
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
  if (c.count > kMaxTraceJobs)
    return ResourceExhausted("count: expected at most %d jobs, found %d", kMaxTraceJobs, c.count);
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
  HORUS_COPY_FIELDS(summary, c, jobs, endless, by_steps, best_effort, deadlines, gpus, gangs, shares, owners,
                    first_submit_us, last_submit_us, mean_gap_us, gap_scv, gpu_us, digest)
  c.profiles = trace.profiles.size();
  return c;
}

uint64_t BytesOf(const std::vector<std::string>& names) {
  uint64_t bytes = names.capacity() * sizeof(std::string);
  for (const std::string& name : names) bytes += name.capacity();
  return bytes;
}

// ---- horus/trace.h: the jobs of a trace, as columns.

void PutJob(const Trace& trace, size_t row, const horus_trace_jobs& c) {
  const TraceJob& job = trace.jobs[row];
#define HORUS_PUT(from, to, field) Put(to.field, row, from.field);
  HORUS_EACH_FIELD(HORUS_PUT, job, c, submit_us, duration_us, steps, deadline_us, tasks, gpu_milli, cpu_milli, mem_mib)
  Put(c.ids, row, job.id);
  Put(c.endless, row, job.endless ? 1 : 0);
  Put(c.gpus_per_task, row, job.gpus_per_task == 0 ? HORUS_JOB_NO_GPUS : job.gpus_per_task);
  Put(c.kinds, row, static_cast<int32_t>(job.kind));
  Put(c.priorities, row, job.priority);
  Put(c.profiles, row, job.profile);
  Put(c.owners, row, job.owner);
  Put(c.gpu_types, row, job.gpu_types);
  const TraceStepTimes times = job.step_times == kNotStated ? TraceStepTimes() : trace.step_times[job.step_times];
  HORUS_EACH_FIELD(HORUS_PUT, times, c, step_us, host_us, gpu_us, network_us)
#undef HORUS_PUT
}

// ---- horus/trace.h, synthetic traces: presets and what the caller changes of them.

static_assert(HORUS_ARRIVALS_BACKLOG == static_cast<int>(Arrivals::kBacklog) + 1 &&
              HORUS_ARRIVALS_POISSON == static_cast<int>(Arrivals::kPoisson) + 1 &&
              HORUS_ARRIVALS_BURSTY == static_cast<int>(Arrivals::kBursty) + 1);

constexpr char kDefaultPreset[] = "philly";

absl::StatusOr<std::vector<SyntheticSize>> SizesFromC(const horus_synthetic_options& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.size_gpus, "size_gpus", c.size_count));
  std::vector<SyntheticSize> sizes;
  for (size_t i = 0; i < c.size_count; ++i)
    sizes.push_back({c.size_gpus[i], c.size_weights == nullptr ? 1 : c.size_weights[i]});
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
  HORUS_SET_FIELDS_UNLESS_ZERO(c, options, jobs, mean_gap_us, capacity_gpu_milli, load_milli, gap_scv_milli, owners)
  if (c.arrivals != HORUS_ARRIVALS_PRESET) options.arrivals = static_cast<Arrivals>(c.arrivals - 1);
  if (options.gap_scv_milli == 0) options.gap_scv_milli = kPhillyGapScvMilli;
  if (c.size_count > 0) HORUS_SET_OR_RETURN(options.sizes, SizesFromC(c));
  if (c.duration_count > 0) HORUS_SET_OR_RETURN(options.durations, DurationsFromC(c));
  if (c.profile_count > 0) HORUS_SET_OR_RETURN(options.profiles, ProfilesFromC(c));
  return options;
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
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(Trace trace, TraceFromC(columns));
    return Give(new horus_trace{std::make_shared<const Trace>(std::move(trace))}, out);
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
  return Guard(error, {{trace, "trace"}},
               [&] { return Answer(ToC(*trace->value, SummariseTrace(*trace->value)), summary); });
}

const char* horus_trace_owner_name(const horus_trace* trace, size_t index) {
  return trace != nullptr && index < trace->value->owners.size() ? trace->value->owners[index].c_str() : nullptr;
}

const char* horus_trace_type_name(const horus_trace* trace, size_t list, size_t index) {
  if (trace == nullptr || list >= trace->value->type_lists.size()) return nullptr;
  const GpuTypeNames& names = trace->value->type_lists[list];
  return index < names.size() ? names[index].c_str() : nullptr;
}

horus_status horus_trace_get_jobs(const horus_trace* trace, const horus_trace_jobs* jobs, size_t* count,
                                  horus_error* error) {
  return Guard(error, {{trace, "trace"}, {count, "count"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_trace_jobs columns, ReadStruct(jobs));
    const size_t rows = trace->value->jobs.size();
    return WriteRows(rows, columns.capacity, count, [&](size_t row) { PutJob(*trace->value, row, columns); });
  });
}

horus_status horus_trace_create_synthetic(const horus_synthetic_options* options, horus_trace** out,
                                          horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const SyntheticOptions asked, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(Trace trace, MakeSynthetic(asked));
    auto made = std::make_unique<horus_trace>();
    made->value = std::make_shared<const Trace>(std::move(trace));
    return Give(made.release(), out);
  });
}
