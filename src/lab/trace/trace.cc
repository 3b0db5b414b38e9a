// SPDX-License-Identifier: Apache-2.0
// The rules of a trace, one field after the other, and its digest. Every change goes through its order and its tables
// again, so that equal workloads stay equal values.
#include "lab/trace/trace.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

absl::Status CheckWithin(const char* field, int64_t least, int64_t most, int64_t found) {
  if (found >= least && found <= most) return absl::OkStatus();
  return InvalidArgument("%s: expected %d to %d, found %d", field, least, most, found);
}

absl::Status ValidateWork(const TraceJob& job) {
  if (job.endless) {
    if (job.steps == 0) return absl::OkStatus();
    return InvalidArgument("steps: expected 0 for an endless job, found %d", job.steps);
  }
  if ((job.duration_us > 0) != (job.steps > 0)) return absl::OkStatus();
  return InvalidArgument("duration_us, steps: expected exactly one above 0, found %d and %d", job.duration_us,
                         job.steps);
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
  std::vector<uint64_t> ids;
  ids.reserve(trace.jobs.size());
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    ids.push_back(job.id);
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
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice == ids.end()) return absl::OkStatus();
  return InvalidArgument("trace: id: expected each once, found %d twice", *twice);
}

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

__extension__ typedef __int128 Wide;  // GPUs x time, and products of two times

constexpr int32_t kWholeMilli = 1000;  // of a quantile

absl::StatusOr<int64_t> KnownDuration(const Trace& trace, size_t index) {
  const int64_t us = trace.jobs[index].duration_us;
  if (us > 0 && us <= kMaxTraceTimeUs) return us;
  return InvalidArgument("trace: job[%d]: duration: expected 1 to %d us, found %d%s", index, kMaxTraceTimeUs, us,
                         trace.jobs[index].steps > 0 ? " (it states steps: their speed is the caller's)" : "");
}

absl::StatusOr<Wide> WorkOf(const Trace& trace) {
  Wide work = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].endless) continue;
    HORUS_ASSIGN_OR_RETURN(const int64_t us, KnownDuration(trace, i));
    work += static_cast<Wide>(GpuMilliOf(trace.jobs[i])) * us;
  }
  return work;
}

absl::StatusOr<int64_t> SpanOf(const Trace& trace, int64_t capacity_gpu_milli) {
  if (capacity_gpu_milli <= 0)
    return InvalidArgument("capacity_gpu_milli: expected above 0, found %d", capacity_gpu_milli);
  const int64_t span = trace.jobs.empty() ? 0 : trace.jobs.back().submit_us - trace.jobs.front().submit_us;
  if (span > 0) return span;
  return InvalidArgument("trace: submit_us: expected jobs at two times at least, found %d jobs at one",
                         trace.jobs.size());
}

void MoveTo(int64_t submit_us, TraceJob& job) {
  if (job.deadline_us > 0) job.deadline_us += submit_us - job.submit_us;
  job.submit_us = submit_us;
}

// ---- One pass over the jobs, one over the gaps between them.

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
// None, a share, then powers of two.
constexpr int64_t kSizes[] = {0, 999, 1000, 2000, 4000, 8000, 16'000, 32'000, 64'000, kNoEnd};
constexpr size_t kShareSum = 1000;  // of kDurationShares

double GpuTime(const TraceJob& job) {
  if (job.endless) return 0;
  return static_cast<double>(GpuMilliOf(job)) / kMilliPerGpu * static_cast<double>(job.duration_us);
}

void Count(const TraceJob& job, TraceSummary& summary) {
  summary.endless += job.endless ? 1 : 0;
  summary.by_steps += job.steps > 0 ? 1 : 0;
  summary.best_effort += job.kind == JobKind::kBestEffort ? 1 : 0;
  summary.deadlines += job.deadline_us > 0 ? 1 : 0;
  summary.gpus += GpusOf(job);
  summary.gangs += job.tasks > 1 ? 1 : 0;
  summary.shares += job.gpu_milli > 0 && job.gpu_milli < kMilliPerGpu ? 1 : 0;
  summary.gpu_us += GpuTime(job);
}

void AddGaps(const Trace& trace, TraceSummary& summary) {
  if (trace.jobs.empty()) return;
  summary.first_submit_us = trace.jobs.front().submit_us;
  summary.last_submit_us = trace.jobs.back().submit_us;
  if (trace.jobs.size() < 2) return;
  const auto gaps = static_cast<double>(trace.jobs.size() - 1);
  summary.mean_gap_us = static_cast<double>(summary.last_submit_us - summary.first_submit_us) / gaps;
  if (summary.mean_gap_us == 0) return;
  double squares = 0;
  for (size_t i = 1; i < trace.jobs.size(); ++i) {
    const double gap = static_cast<double>(trace.jobs[i].submit_us - trace.jobs[i - 1].submit_us);
    const double off = gap / summary.mean_gap_us - 1;
    squares += off * off;
  }
  summary.gap_scv = squares / gaps;
}

std::vector<TraceSizeRow> Sizes(const Trace& trace) {
  std::vector<TraceSizeRow> rows;
  for (const int64_t most : kSizes) rows.push_back({.most_gpu_milli = most});
  for (const TraceJob& job : trace.jobs) {
    const int64_t milli = GpuMilliOf(job);
    auto row = std::ranges::find_if(rows, [&](const TraceSizeRow& r) { return milli <= r.most_gpu_milli; });
    ++row->jobs;
    row->gpu_us += GpuTime(job);
  }
  std::erase_if(rows, [](const TraceSizeRow& row) { return row.jobs == 0; });
  return rows;
}

std::vector<TraceProfileRow> Profiles(const Trace& trace) {
  std::vector<TraceProfileRow> rows(trace.profiles.size() + 1);
  for (size_t i = 0; i < trace.profiles.size(); ++i) rows[i].profile = trace.profiles[i];
  for (const TraceJob& job : trace.jobs) {
    TraceProfileRow& row = job.profile == kNotStated ? rows.back() : rows[job.profile];
    ++row.jobs;
    row.gpu_us += GpuTime(job);
  }
  if (rows.back().jobs == 0) rows.pop_back();
  std::ranges::sort(rows, [](const TraceProfileRow& a, const TraceProfileRow& b) {
    return std::tie(b.jobs, a.profile) < std::tie(a.jobs, b.profile);
  });
  return rows;
}

std::vector<int64_t> Durations(const Trace& trace) {
  std::vector<int64_t> all;
  for (const TraceJob& job : trace.jobs) {
    if (!job.endless && job.duration_us > 0) all.push_back(job.duration_us);
  }
  if (all.empty()) return all;
  std::ranges::sort(all);
  std::vector<int64_t> at;
  for (const int32_t share : kDurationShares) {
    // Bounded: at most kMaxTraceJobs times 1,000.
    const size_t rank = (all.size() * static_cast<size_t>(share) + kShareSum - 1) / kShareSum;
    at.push_back(all[std::max<size_t>(rank, 1) - 1]);
  }
  return at;
}

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
  HORUS_RETURN_IF_ERROR(CheckWithin("step_us", 1, kMaxTraceTimeUs, times.step_us));
  HORUS_RETURN_IF_ERROR(CheckWithin("host_us", 0, kMaxTraceTimeUs, times.host_us));
  HORUS_RETURN_IF_ERROR(CheckWithin("gpu_us", 0, kMaxTraceTimeUs, times.gpu_us));
  return CheckWithin("network_us", 0, kMaxTraceTimeUs, times.network_us);
}

absl::Status ValidateTraceJob(const TraceJob& job) {
  for (const TraceField& field : kTraceFields)
    HORUS_RETURN_IF_ERROR(CheckWithin(field.name, field.least, field.most, field.Get(job)));
  HORUS_RETURN_IF_ERROR(ValidateWork(job));
  const bool past = job.deadline_us <= job.submit_us;
  if (job.deadline_us != 0 && (past || job.deadline_us - kMaxTraceTimeUs > job.submit_us)) {
    return InvalidArgument("deadline_us: expected 0, or above submit_us %d by at most %d, found %d", job.submit_us,
                           kMaxTraceTimeUs, job.deadline_us);
  }
  if (GpusOf(job) > kMaxGpusPerJob) {
    return InvalidArgument("tasks, gpus_per_task: expected a product of at most %d, found %d", kMaxGpusPerJob,
                           GpusOf(job));
  }
  if (job.gpu_milli > 0 && job.gpu_milli < kMilliPerGpu && job.gpus_per_task != 1) {
    return InvalidArgument("gpu_milli: expected 0 or %d unless gpus_per_task is 1, found %d", kMilliPerGpu,
                           job.gpu_milli);
  }
  if (job.gpus_per_task == 0 && job.gpu_milli != 0)
    return InvalidArgument("gpu_milli: expected 0 without GPUs, found %d", job.gpu_milli);
  return CheckWithin("kind", 0, static_cast<int64_t>(JobKind::kBestEffort), static_cast<int64_t>(job.kind));
}

absl::Status ValidateTrace(const Trace& trace) {
  if (trace.jobs.size() > kMaxTraceJobs)
    return ResourceExhausted("trace: expected at most %d jobs, found %d", kMaxTraceJobs, trace.jobs.size());
  HORUS_RETURN_IF_ERROR(ValidateTables(trace));
  return ValidateJobs(trace);
}

uint64_t TraceDigest(const Trace& trace) {
  uint64_t digest = Hash64("horus trace 1");
  const auto add = [&digest](uint64_t value) { digest = CombineHash(digest, value); };
  const auto add_names = [&](const std::vector<std::string>& names) {
    add(names.size());
    for (const std::string& name : names) add(Hash64(name));
  };
  for (const std::vector<std::string>* names : {&trace.profiles, &trace.owners}) add_names(*names);
  add(trace.type_lists.size());
  for (const GpuTypeNames& list : trace.type_lists) add_names(list);
  add(trace.step_times.size());
  for (const TraceStepTimes& times : trace.step_times) {
    for (const int64_t us : {times.step_us, times.host_us, times.gpu_us, times.network_us})
      add(static_cast<uint64_t>(us));
  }
  add(trace.jobs.size());
  for (const TraceJob& job : trace.jobs) {
    add(job.id);
    for (const int64_t value : {job.submit_us, job.duration_us, job.steps, job.deadline_us, job.cpu_milli, job.mem_mib,
                                int64_t{job.tasks}, int64_t{job.gpus_per_task}, int64_t{job.priority}}) {
      add(static_cast<uint64_t>(value));
    }
    for (const uint32_t position : {job.profile, job.owner, job.gpu_types, job.step_times}) add(position);
    add(uint64_t{job.gpu_milli} << 16 | static_cast<uint64_t>(job.kind) << 8 | (job.endless ? 1u : 0u));
  }
  return digest;
}

absl::StatusOr<Trace> TraceBuilder::Finish() {
  Trace trace = std::exchange(trace_, {});
  *this = TraceBuilder();
  CanonicaliseTrace(trace);
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  return trace;
}

void CanonicaliseTrace(Trace& trace) {
  std::ranges::sort(trace.jobs, {}, [](const TraceJob& job) { return std::tie(job.submit_us, job.id); });
  Renumber(&TraceJob::profile, trace.jobs, trace.profiles);
  Renumber(&TraceJob::owner, trace.jobs, trace.owners);
  Renumber(&TraceJob::gpu_types, trace.jobs, trace.type_lists);
  Renumber(&TraceJob::step_times, trace.jobs, trace.step_times);
}

JobPredicate IsSingleGpu() {
  return [](const Trace&, const TraceJob& job) { return GpusOf(job) == 1; };
}

JobPredicate RunsOneOf(std::vector<std::string> profiles) {
  std::set<std::string, std::less<>> names(profiles.begin(), profiles.end());
  return [names = std::move(names)](const Trace& trace, const TraceJob& job) {
    return names.contains(ProfileOf(trace, job));
  };
}

Trace FilterTrace(const Trace& trace, const JobPredicate& keep) {
  Trace kept = trace;
  kept.jobs.clear();
  for (const TraceJob& job : trace.jobs) {
    if (keep(trace, job)) kept.jobs.push_back(job);
  }
  CanonicaliseTrace(kept);
  return kept;
}

absl::StatusOr<Trace> TakeSample(const Trace& trace, size_t count, uint64_t seed) {
  if (count > trace.jobs.size())
    return InvalidArgument("sample: expected at most the %d jobs of the trace, found %d", trace.jobs.size(), count);
  std::vector<std::pair<uint64_t, uint32_t>> lots;
  lots.reserve(trace.jobs.size());
  for (uint32_t i = 0; i < trace.jobs.size(); ++i) lots.emplace_back(CombineHash(Mix64(seed), trace.jobs[i].id), i);
  std::ranges::sort(lots);
  Trace drawn = trace;
  drawn.jobs.clear();
  for (size_t i = 0; i < count; ++i) drawn.jobs.push_back(trace.jobs[lots[i].second]);
  CanonicaliseTrace(drawn);
  return drawn;
}

absl::StatusOr<Trace> MergeTraces(std::span<const Trace> traces) {
  TraceBuilder builder;
  std::vector<TraceJob> jobs;
  for (const Trace& trace : traces) {
    for (TraceJob job : trace.jobs) {
      job.profile = builder.Profile(ProfileOf(trace, job));
      job.owner = builder.Owner(OwnerOf(trace, job));
      if (job.gpu_types != kNotStated) job.gpu_types = builder.GpuTypes(trace.type_lists[job.gpu_types]);
      if (job.step_times != kNotStated) job.step_times = builder.StepTimes(trace.step_times[job.step_times]);
      jobs.push_back(job);
    }
  }
  std::ranges::stable_sort(jobs, [](const TraceJob& a, const TraceJob& b) { return a.submit_us < b.submit_us; });
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id = i;
    builder.Add(jobs[i]);
  }
  return builder.Finish();
}

Trace Backlog(Trace trace) {
  for (TraceJob& job : trace.jobs) MoveTo(0, job);
  CanonicaliseTrace(trace);
  return trace;
}

absl::StatusOr<Trace> ClipDurations(Trace trace, int32_t quantile_milli) {
  if (quantile_milli < 1 || quantile_milli > kWholeMilli)
    return InvalidArgument("quantile_milli: expected 1 to %d, found %d", kWholeMilli, quantile_milli);
  std::vector<int64_t> sorted;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].endless) continue;
    HORUS_ASSIGN_OR_RETURN(const int64_t us, KnownDuration(trace, i));
    sorted.push_back(us);
  }
  if (sorted.empty()) return trace;
  // Bounded: at most kMaxTraceJobs times 1,000.
  const size_t rank = (sorted.size() * static_cast<size_t>(quantile_milli) + kWholeMilli - 1) / kWholeMilli;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(rank - 1), sorted.end());
  for (TraceJob& job : trace.jobs) {
    if (!job.endless) job.duration_us = std::min(job.duration_us, sorted[rank - 1]);
  }
  return trace;
}

absl::StatusOr<Trace> ScaleArrivals(Trace trace, int64_t capacity_gpu_milli, int32_t load_milli) {
  if (load_milli <= 0) return InvalidArgument("load_milli: expected above 0, found %d", load_milli);
  HORUS_ASSIGN_OR_RETURN(const int64_t span, SpanOf(trace, capacity_gpu_milli));
  HORUS_ASSIGN_OR_RETURN(const Wide work, WorkOf(trace));
  const Wide wide = work * kWholeMilli / (static_cast<Wide>(capacity_gpu_milli) * load_milli);
  const int64_t first = trace.jobs.front().submit_us;
  if (wide < 1 || wide > kMaxTraceTimeUs - first) {
    return InvalidArgument(
        "trace: load: expected a capacity and a load that make the trace 1 to %d us long, found %d "
        "thousandths of a GPU and %d thousandths",
        kMaxTraceTimeUs - first, capacity_gpu_milli, load_milli);
  }
  const auto target = static_cast<int64_t>(wide);
  for (TraceJob& job : trace.jobs)
    MoveTo(first + static_cast<int64_t>(static_cast<Wide>(job.submit_us - first) * target / span), job);
  CanonicaliseTrace(trace);  // jobs that came one after the other may now come at once
  return trace;
}

TraceSummary SummariseTrace(const Trace& trace) {
  TraceSummary summary;
  summary.jobs = static_cast<int64_t>(trace.jobs.size());
  summary.owners = static_cast<int64_t>(trace.owners.size());
  for (const TraceJob& job : trace.jobs) Count(job, summary);
  AddGaps(trace, summary);
  summary.sizes = Sizes(trace);
  summary.profiles = Profiles(trace);
  summary.durations_us = Durations(trace);
  summary.digest = TraceDigest(trace);
  return summary;
}

}  // namespace horus
