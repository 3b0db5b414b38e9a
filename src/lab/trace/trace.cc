// SPDX-License-Identifier: Apache-2.0
// The rules of a trace, one field after the other, and its digest.
#include "lab/trace/trace.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

absl::Status Outside(const char* field, int64_t least, int64_t most, int64_t found) {
  return InvalidArgument("%s: expected %d to %d, found %d", field, least, most, found);
}

bool Within(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

absl::Status ValidateWork(const TraceJob& job) {
  if (!Within(job.duration_us, 0, kMaxTraceTimeUs)) return Outside("duration_us", 0, kMaxTraceTimeUs, job.duration_us);
  if (!Within(job.steps, 0, kMaxTraceSteps)) return Outside("steps", 0, kMaxTraceSteps, job.steps);
  if (job.endless) {
    if (job.steps == 0) return absl::OkStatus();
    return InvalidArgument("steps: expected 0 for an endless job, found %d", job.steps);
  }
  if ((job.duration_us > 0) != (job.steps > 0)) return absl::OkStatus();
  return InvalidArgument("duration_us, steps: expected exactly one above 0, found %d and %d", job.duration_us,
                         job.steps);
}

absl::Status ValidateIds(const std::vector<TraceJob>& jobs) {
  std::vector<uint64_t> ids;
  ids.reserve(jobs.size());
  for (const TraceJob& job : jobs) ids.push_back(job.id);
  std::ranges::sort(ids);
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return absl::OkStatus();
  return InvalidArgument("trace: id: expected each once, found %d twice", *twice);
}

// What the builder's callers name; that names are unique and in the order of first use is the builder's work.
absl::Status ValidateTables(const Trace& trace) {
  for (const auto& [field, names] : {std::pair("profiles", &trace.profiles), std::pair("owners", &trace.owners)}) {
    for (size_t i = 0; i < names->size(); ++i) {
      const absl::Status status = ValidateTraceName(field, (*names)[i]);
      if (!status.ok()) return At(Formatted("trace: %s[%d]", field, i), status);
    }
  }
  for (size_t i = 0; i < trace.step_times.size(); ++i) {
    const absl::Status status = ValidateStepTimes(trace.step_times[i]);
    if (!status.ok()) return At(Formatted("trace: step_times[%d]", i), status);
  }
  return absl::OkStatus();
}

absl::Status ValidatePositions(const Trace& trace, const TraceJob& job) {
  const std::tuple<const char*, uint32_t, size_t> positions[] = {
      {"profile", job.profile, trace.profiles.size()},
      {"owner", job.owner, trace.owners.size()},
      {"gpu_types", job.gpu_types, trace.type_lists.size()},
      {"step_times", job.step_times, trace.step_times.size()}};
  for (const auto& [field, position, size] : positions) {
    if (position < size || position == kNotStated) continue;
    return InvalidArgument("%s: expected a position below %d, found %d", field, size, position);
  }
  return absl::OkStatus();
}

absl::Status ValidateJobs(const Trace& trace) {
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    absl::Status status = ValidateTraceJob(job);
    if (status.ok()) status = ValidatePositions(trace, job);
    if (!status.ok()) return At(Formatted("trace: job[%d]", i), status);
    if (i == 0) continue;
    const TraceJob& before = trace.jobs[i - 1];
    if (before.submit_us > job.submit_us || (before.submit_us == job.submit_us && before.id > job.id)) {
      return InvalidArgument(
          "trace: job[%d]: submit_us: expected jobs ascending by (submit_us, id), found (%d, %d) "
          "after (%d, %d)",
          i, job.submit_us, job.id, before.submit_us, before.id);
    }
  }
  return ValidateIds(trace.jobs);
}

// What a digest is made of, in order.
class Digest {
 public:
  void Add(uint64_t value) { hash_ = CombineHash(hash_, value); }
  void Add(std::string_view text) { Add(Hash64(text)); }
  [[nodiscard]] uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = Hash64("horus trace 1");
};

}  // namespace

absl::Status ValidateTraceName(const char* field, std::string_view name) {
  const bool sized = !name.empty() && name.size() <= kMaxNameBytes;
  const bool clean =
      std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7F'; });
  if (sized && clean && name.front() != ' ' && name.back() != ' ') return absl::OkStatus();
  return InvalidArgument("%s: expected 1 to %d bytes without control characters or spaces around them, found %s", field,
                         kMaxNameBytes, Quoted(name));
}

absl::Status ValidateStepTimes(const TraceStepTimes& times) {
  if (!Within(times.step_us, 1, kMaxTraceTimeUs)) return Outside("step_us", 1, kMaxTraceTimeUs, times.step_us);
  if (!Within(times.host_us, 0, kMaxTraceTimeUs)) return Outside("host_us", 0, kMaxTraceTimeUs, times.host_us);
  if (!Within(times.gpu_us, 0, kMaxTraceTimeUs)) return Outside("gpu_us", 0, kMaxTraceTimeUs, times.gpu_us);
  if (Within(times.network_us, 0, kMaxTraceTimeUs)) return absl::OkStatus();
  return Outside("network_us", 0, kMaxTraceTimeUs, times.network_us);
}

absl::Status ValidateTraceJob(const TraceJob& job) {
  if (!Within(job.submit_us, 0, kMaxTraceTimeUs)) return Outside("submit_us", 0, kMaxTraceTimeUs, job.submit_us);
  HORUS_RETURN_IF_ERROR(ValidateWork(job));
  if (job.deadline_us != 0 && !Within(job.deadline_us, job.submit_us + 1, job.submit_us + kMaxTraceTimeUs)) {
    return InvalidArgument("deadline_us: expected 0, or above submit_us %d by at most %d, found %d", job.submit_us,
                           kMaxTraceTimeUs, job.deadline_us);
  }
  if (!Within(job.tasks, 1, kMaxGpusPerJob)) return Outside("tasks", 1, kMaxGpusPerJob, job.tasks);
  if (!Within(job.gpus_per_task, 0, kMaxGpusPerJob)) {
    return Outside("gpus_per_task", 0, kMaxGpusPerJob, job.gpus_per_task);
  }
  if (GpusOf(job) > kMaxGpusPerJob) {
    return InvalidArgument("tasks, gpus_per_task: expected a product of at most %d, found %d", kMaxGpusPerJob,
                           GpusOf(job));
  }
  if (job.gpu_milli > kMilliPerGpu) return Outside("gpu_milli", 0, kMilliPerGpu, job.gpu_milli);
  if (job.gpu_milli > 0 && job.gpu_milli < kMilliPerGpu && job.gpus_per_task != 1) {
    return InvalidArgument("gpu_milli: expected 0 or %d unless gpus_per_task is 1, found %d", kMilliPerGpu,
                           job.gpu_milli);
  }
  if (job.gpus_per_task == 0 && job.gpu_milli != 0) {
    return InvalidArgument("gpu_milli: expected 0 without GPUs, found %d", job.gpu_milli);
  }
  if (!Within(job.cpu_milli, 0, kMaxHostQuantity)) return Outside("cpu_milli", 0, kMaxHostQuantity, job.cpu_milli);
  if (!Within(job.mem_mib, 0, kMaxHostQuantity)) return Outside("mem_mib", 0, kMaxHostQuantity, job.mem_mib);
  if (job.kind <= JobKind::kBestEffort) return absl::OkStatus();
  return Outside("kind", 0, static_cast<int64_t>(JobKind::kBestEffort), static_cast<int64_t>(job.kind));
}

absl::Status ValidateTrace(const Trace& trace) {
  if (trace.jobs.size() > kMaxTraceJobs) {
    return ResourceExhausted("trace: expected at most %d jobs, found %d", kMaxTraceJobs, trace.jobs.size());
  }
  HORUS_RETURN_IF_ERROR(ValidateTables(trace));
  return ValidateJobs(trace);
}

uint64_t TraceDigest(const Trace& trace) {
  Digest digest;
  for (const std::vector<std::string>* names : {&trace.profiles, &trace.owners}) {
    digest.Add(names->size());
    for (const std::string& name : *names) digest.Add(name);
  }
  digest.Add(trace.type_lists.size());
  for (const GpuTypeNames& list : trace.type_lists) {
    digest.Add(list.size());
    for (const std::string& name : list) digest.Add(name);
  }
  digest.Add(trace.step_times.size());
  for (const TraceStepTimes& times : trace.step_times) {
    for (const int64_t us : {times.step_us, times.host_us, times.gpu_us, times.network_us}) {
      digest.Add(static_cast<uint64_t>(us));
    }
  }
  digest.Add(trace.jobs.size());
  for (const TraceJob& job : trace.jobs) {
    digest.Add(job.id);
    for (const int64_t value : {job.submit_us, job.duration_us, job.steps, job.deadline_us, job.cpu_milli, job.mem_mib,
                                int64_t{job.tasks}, int64_t{job.gpus_per_task}, int64_t{job.priority}}) {
      digest.Add(static_cast<uint64_t>(value));
    }
    for (const uint32_t position : {job.profile, job.owner, job.gpu_types, job.step_times}) {
      digest.Add(uint64_t{position});
    }
    digest.Add(uint64_t{job.gpu_milli} << 16 | static_cast<uint64_t>(job.kind) << 8 | (job.endless ? 1u : 0u));
  }
  return digest.value();
}

namespace {

// ---- Interns what jobs refer to, and renumbers it by first use.

// Moves the entries of `table` that `member` of the jobs refers to into the order of first use.
template <typename Entry>
void Renumber(uint32_t TraceJob::* member, std::vector<TraceJob>& jobs, std::vector<Entry>& table) {
  std::vector<uint32_t> now(table.size(), kNotStated);
  std::vector<Entry> used;
  for (TraceJob& job : jobs) {
    uint32_t& position = job.*member;
    if (position == kNotStated) continue;
    if (now[position] == kNotStated) {
      now[position] = static_cast<uint32_t>(used.size());
      used.push_back(std::move(table[position]));
    }
    position = now[position];
  }
  table = std::move(used);
}

}  // namespace

uint32_t TraceBuilder::Intern(std::string_view name, std::vector<std::string>& names, Positions& positions) {
  if (name.empty()) return kNotStated;
  const auto at = positions.find(name);
  if (at != positions.end()) return at->second;
  const auto position = static_cast<uint32_t>(names.size());
  names.emplace_back(name);
  positions.emplace(names.back(), position);
  return position;
}

uint32_t TraceBuilder::GpuTypes(GpuTypeNames names) {
  if (names.empty()) return kNotStated;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const auto [at, fresh] = types_.emplace(std::move(names), static_cast<uint32_t>(trace_.type_lists.size()));
  if (fresh) trace_.type_lists.push_back(at->first);
  return at->second;
}

uint32_t TraceBuilder::StepTimes(const TraceStepTimes& times) {
  const auto [at, fresh] = step_times_.emplace(times, static_cast<uint32_t>(trace_.step_times.size()));
  if (fresh) trace_.step_times.push_back(times);
  return at->second;
}

absl::StatusOr<Trace> TraceBuilder::Finish() {
  Trace trace = std::exchange(trace_, {});
  *this = TraceBuilder();
  CanonicaliseTrace(trace);
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  return trace;
}

void CanonicaliseTrace(Trace& trace) {
  std::ranges::sort(trace.jobs, [](const TraceJob& a, const TraceJob& b) {
    return a.submit_us != b.submit_us ? a.submit_us < b.submit_us : a.id < b.id;
  });
  Renumber(&TraceJob::profile, trace.jobs, trace.profiles);
  Renumber(&TraceJob::owner, trace.jobs, trace.owners);
  Renumber(&TraceJob::gpu_types, trace.jobs, trace.type_lists);
  Renumber(&TraceJob::step_times, trace.jobs, trace.step_times);
}

}  // namespace horus
