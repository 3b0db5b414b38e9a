// SPDX-License-Identifier: Apache-2.0
// Trace: what jobs came, when, what they asked for and how much work they brought.
//
// Enters:  jobs from a reader (io/traces/trace_file.h), a generator (synthetic.h) or a caller, through TraceBuilder.
// Leaves:  a plain value; ValidateTrace says "trace: job[17]: field: expected ..., found ...".
// Units:   microseconds from the trace's own zero, thousandths of a GPU and of a core, MiB; host resources per task.
// Cost:    88 bytes a job, each name once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "place/job/job.h"

namespace horus {

inline constexpr uint32_t kNotStated = std::numeric_limits<uint32_t>::max();  // instead of a position in a table

// Work is stated in one way: `duration_us` or `steps`. An endless job (a service; one that still ran when the trace
// ended) states no work: it runs until the simulation ends, and its `duration_us` is how long the trace saw it run.
struct TraceJob {
  uint64_t id = 0;
  int64_t submit_us = 0;
  int64_t duration_us = 0;           // alone, on the hardware of the trace; 0 = not stated
  int64_t steps = 0;                 // 0 = not stated
  int64_t deadline_us = 0;           // the clock of submit_us, and after it; 0 = none
  int64_t cpu_milli = 0;             // per task, as the next
  int64_t mem_mib = 0;               // host memory
  uint32_t profile = kNotStated;     // in Trace::profiles
  uint32_t owner = kNotStated;       // in Trace::owners
  uint32_t gpu_types = kNotStated;   // in Trace::type_lists; not stated = any
  uint32_t step_times = kNotStated;  // in Trace::step_times
  int32_t tasks = 1;                 // a gang: all of them or none
  int32_t gpus_per_task = 1;         // 0 = a job for the host alone
  int32_t priority = 0;              // higher first
  uint16_t gpu_milli = 0;            // per GPU; 0 = shares as its demand allows; below 1000 only with one GPU a task
  JobKind kind = JobKind::kTraining;
  bool endless = false;
  friend bool operator==(const TraceJob&, const TraceJob&) = default;
};
static_assert(sizeof(TraceJob) == 88);

// One step of a job alone, and what it takes of each resource; these overlap, so that their sum may exceed the step.
struct TraceStepTimes {
  int64_t step_us = 0;     // above 0
  int64_t host_us = 0;     // loading and preparing data
  int64_t gpu_us = 0;      // forward and backward
  int64_t network_us = 0;  // exchanging gradients
  friend auto operator<=>(const TraceStepTimes&, const TraceStepTimes&) = default;
};

using GpuTypeNames = std::vector<std::string>;  // that a job may run on, as the trace spells them; ascending, unique

// Equal content is equal values: jobs lie in one order, and each table lists what jobs refer to in the order of the
// first job that does.
struct Trace {
  std::vector<TraceJob> jobs;         // ascending (submit_us, id), ids unique
  std::vector<std::string> profiles;  // what jobs run, e.g. "ResNet-50 (batch size 64)"
  std::vector<std::string> owners;
  std::vector<GpuTypeNames> type_lists;
  std::vector<TraceStepTimes> step_times;
  friend bool operator==(const Trace&, const Trace&) = default;
};

inline constexpr size_t kMaxTraceJobs = 4'000'000;            // 352 MB; the largest public trace has 1.3 million
inline constexpr int64_t kMaxTraceTimeUs = int64_t{1} << 55;  // 1,142 years: GPUs x time fits 128 bits, and to spare
inline constexpr int64_t kMaxTraceSteps = int64_t{1} << 55;   // beyond any job
inline constexpr size_t kMaxTraceTypes = kMaxDemandsPerJob;   // of one job
inline constexpr char kTypeSeparator = '|';                   // between GPU types in files; in no name

// A whole number that a job states, by its name in files and errors.
struct TraceField {
  const char* name = nullptr;
  int64_t least = 0, most = 0;
  std::variant<int64_t TraceJob::*, int32_t TraceJob::*, uint16_t TraceJob::*, bool TraceJob::*> member;

  [[nodiscard]] int64_t Get(const TraceJob& job) const {
    return std::visit([&](auto of) { return static_cast<int64_t>(job.*of); }, member);
  }
  // `value` is within the limits.
  void Set(int64_t value, TraceJob& job) const {
    std::visit([&](auto of) { job.*of = static_cast<std::remove_reference_t<decltype(job.*of)>>(value); }, member);
  }
};
inline constexpr auto kTraceFields = std::to_array<TraceField>(
    {{"submit_us", 0, kMaxTraceTimeUs, &TraceJob::submit_us},
     {"duration_us", 0, kMaxTraceTimeUs, &TraceJob::duration_us},
     {"steps", 0, kMaxTraceSteps, &TraceJob::steps},
     {"endless", 0, 1, &TraceJob::endless},
     {"tasks", 1, kMaxGpusPerJob, &TraceJob::tasks},
     {"gpus_per_task", 0, kMaxGpusPerJob, &TraceJob::gpus_per_task},
     {"gpu_milli", 0, kMilliPerGpu, &TraceJob::gpu_milli},
     {"cpu_milli", 0, kMaxHostQuantity, &TraceJob::cpu_milli},
     {"mem_mib", 0, kMaxHostQuantity, &TraceJob::mem_mib},
     {"priority", std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), &TraceJob::priority}});

// OK, or INVALID_ARGUMENT; RESOURCE_EXHAUSTED above kMaxTraceJobs.
[[nodiscard]] absl::Status ValidateTrace(const Trace& trace);
// The fields of one job but for what its tables hold: "<field>: expected ..., found ...".
[[nodiscard]] absl::Status ValidateTraceJob(const TraceJob& job);
// Of a profile, an owner or a GPU type: 1 to kMaxNameBytes bytes without control characters or spaces around it.
[[nodiscard]] absl::Status ValidateTraceName(const char* field, std::string_view name);
[[nodiscard]] absl::Status ValidateStepTimes(const TraceStepTimes& times);

// Of the content; equal on every machine. Two traces of one digest are one workload.
[[nodiscard]] uint64_t TraceDigest(const Trace& trace);

[[nodiscard]] inline int64_t GpusOf(const TraceJob& job) { return int64_t{job.tasks} * job.gpus_per_task; }
// What it asks for in all; one that states no share counts whole GPUs.
[[nodiscard]] inline int64_t GpuMilliOf(const TraceJob& job) {
  // Bounded: at most kMaxGpusPerJob.
  return GpusOf(job) * (job.gpu_milli == 0 ? kMilliPerGpu : job.gpu_milli);
}
[[nodiscard]] inline std::string_view ProfileOf(const Trace& trace, const TraceJob& job) {
  return job.profile == kNotStated ? std::string_view() : trace.profiles[job.profile];
}
[[nodiscard]] inline std::string_view OwnerOf(const Trace& trace, const TraceJob& job) {
  return job.owner == kNotStated ? std::string_view() : trace.owners[job.owner];
}

// ---- TraceBuilder: jobs in any order become a trace, each name held once.
// Cost: a sort at the end; a search by name for each that is stated.

class TraceBuilder {
 public:
  // The position of a name; kNotStated for an empty one.
  [[nodiscard]] uint32_t Profile(std::string_view name) { return Intern(name, trace_.profiles, profiles_); }
  [[nodiscard]] uint32_t Owner(std::string_view name) { return Intern(name, trace_.owners, owners_); }
  // In any order and repeated; kNotStated for none.
  [[nodiscard]] uint32_t GpuTypes(GpuTypeNames names) {
    if (names.empty()) return kNotStated;
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    const auto [at, fresh] = types_.emplace(std::move(names), static_cast<uint32_t>(trace_.type_lists.size()));
    if (fresh) trace_.type_lists.push_back(at->first);
    return at->second;
  }
  [[nodiscard]] uint32_t StepTimes(const TraceStepTimes& times) {
    const auto [at, fresh] = step_times_.emplace(times, static_cast<uint32_t>(trace_.step_times.size()));
    if (fresh) trace_.step_times.push_back(times);
    return at->second;
  }

  void Add(const TraceJob& job) { trace_.jobs.push_back(job); }
  [[nodiscard]] size_t size() const { return trace_.jobs.size(); }

  // The builder is empty afterwards.
  [[nodiscard]] absl::StatusOr<Trace> Finish();

 private:
  using Positions = std::map<std::string, uint32_t, std::less<>>;
  [[nodiscard]] static uint32_t Intern(std::string_view name, std::vector<std::string>& names, Positions& positions) {
    if (name.empty()) return kNotStated;
    const auto at = positions.find(name);
    if (at != positions.end()) return at->second;
    const auto position = static_cast<uint32_t>(names.size());
    names.emplace_back(name);
    positions.emplace(names.back(), position);
    return position;
  }

  Trace trace_;
  Positions profiles_, owners_;
  std::map<GpuTypeNames, uint32_t> types_;
  std::map<TraceStepTimes, uint32_t> step_times_;
};

// Sorts the jobs and puts the tables into the order of first use, without what no job refers to.
void CanonicaliseTrace(Trace& trace);

// ---- What experiments make of a trace: fewer jobs, other arrivals, clipped durations.

using JobPredicate = std::function<bool(const Trace&, const TraceJob&)>;
[[nodiscard]] JobPredicate IsSingleGpu();  // one task of one GPU, or of a share of it
[[nodiscard]] JobPredicate RunsOneOf(std::vector<std::string> profiles);

[[nodiscard]] Trace FilterTrace(const Trace& trace, const JobPredicate& keep);

// `count` jobs that `seed` draws without replacement, each set equally likely; which ones depends on ids alone.
[[nodiscard]] absl::StatusOr<Trace> TakeSample(const Trace& trace, size_t count, uint64_t seed);

// Several traces as one, all from the same zero. Ids are new: 0, 1, ... by submission, then by the order given.
[[nodiscard]] absl::StatusOr<Trace> MergeTraces(std::span<const Trace> traces);

// Every job is there at 0; deadlines move with submissions, here and below.
[[nodiscard]] Trace Backlog(Trace trace);

// Jobs that take longer than the `quantile_milli` quantile (nearest rank) of all that end are cut to it. Here and below
// each job that ends must state its duration.
[[nodiscard]] absl::StatusOr<Trace> ClipDurations(Trace trace, int32_t quantile_milli);

// Stretches or shrinks the time between submissions, all alike, to that offered load: the sum of GPUs x duration of the
// jobs that end / (capacity x time from first to last submission). The first stays where it is. To within the
// microsecond that the span is rounded to.
[[nodiscard]] absl::StatusOr<Trace> ScaleArrivals(Trace trace, int64_t capacity_gpu_milli, int32_t load_milli);

// ---- What a trace looks like: counts, sizes, arrivals, durations, profiles.
// Cost: a sort of the durations.

// Jobs whose GPUs in all are above the row before and up to this; the last row has no end.
struct TraceSizeRow {
  int64_t most_gpu_milli = 0;
  int64_t jobs = 0;
  double gpu_us = 0;  // of those that state a duration and end
};

struct TraceProfileRow {
  std::string profile;  // empty: jobs that state none
  int64_t jobs = 0;
  double gpu_us = 0;
};

// Shares of jobs, in thousandths, at which durations are listed.
inline constexpr std::array<int32_t, 28> kDurationShares = {0,   10,  50,  100, 150, 200, 250, 300, 350, 400,
                                                            450, 500, 550, 600, 650, 700, 750, 800, 850, 900,
                                                            950, 960, 970, 980, 990, 995, 999, 1000};

struct TraceSummary {
  int64_t jobs = 0;
  int64_t endless = 0;
  int64_t by_steps = 0;  // state steps
  int64_t best_effort = 0;
  int64_t deadlines = 0;
  int64_t gpus = 0;    // of all jobs together
  int64_t gangs = 0;   // jobs of more than one task
  int64_t owners = 0;  // that are named
  int64_t shares = 0;  // ask for less than one GPU
  int64_t first_submit_us = 0, last_submit_us = 0;
  double mean_gap_us = 0;  // between submissions; 0 below two jobs
  double gap_scv = 0;  // squared coefficient of variation of the gaps: 1 = as random arrivals; 0 where the mean is 0
  double gpu_us = 0;
  std::vector<TraceSizeRow> sizes;        // without rows of no job
  std::vector<TraceProfileRow> profiles;  // most jobs first, then by name
  std::vector<int64_t> durations_us;      // at kDurationShares, nearest rank; empty where no job states one
  uint64_t digest = 0;
};

[[nodiscard]] TraceSummary SummariseTrace(const Trace& trace);

}  // namespace horus
