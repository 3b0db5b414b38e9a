// SPDX-License-Identifier: Apache-2.0
// Every change goes through the order and the tables of a trace again, so that equal workloads stay equal values.
#include "lab/trace/trace_edit.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"

namespace horus {
namespace {

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
  if (capacity_gpu_milli <= 0) {
    return InvalidArgument("capacity_gpu_milli: expected above 0, found %d", capacity_gpu_milli);
  }
  const int64_t span = trace.jobs.empty() ? 0 : trace.jobs.back().submit_us - trace.jobs.front().submit_us;
  if (span > 0) return span;
  return InvalidArgument("trace: submit_us: expected jobs at two times at least, found %d jobs at one",
                         trace.jobs.size());
}

void MoveTo(int64_t submit_us, TraceJob& job) {
  if (job.deadline_us > 0) job.deadline_us += submit_us - job.submit_us;
  job.submit_us = submit_us;
}

}  // namespace

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
  if (count > trace.jobs.size()) {
    return InvalidArgument("sample: expected at most the %d jobs of the trace, found %d", trace.jobs.size(), count);
  }
  std::vector<std::pair<uint64_t, uint32_t>> lots;
  lots.reserve(trace.jobs.size());
  for (uint32_t i = 0; i < trace.jobs.size(); ++i) {
    lots.emplace_back(CombineHash(Mix64(seed), trace.jobs[i].id), i);
  }
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
  if (quantile_milli < 1 || quantile_milli > kWholeMilli) {
    return InvalidArgument("quantile_milli: expected 1 to %d, found %d", kWholeMilli, quantile_milli);
  }
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
  for (TraceJob& job : trace.jobs) {
    MoveTo(first + static_cast<int64_t>(static_cast<Wide>(job.submit_us - first) * target / span), job);
  }
  CanonicaliseTrace(trace);  // jobs that came one after the other may now come at once
  return trace;
}

namespace {

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
