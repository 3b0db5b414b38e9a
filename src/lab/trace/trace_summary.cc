// SPDX-License-Identifier: Apache-2.0
// One pass over the jobs, one over the gaps between them.
#include "lab/trace/trace_summary.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace horus {
namespace {

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
    auto row = std::find_if(rows.begin(), rows.end(), [&](const TraceSizeRow& r) { return milli <= r.most_gpu_milli; });
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
  std::sort(rows.begin(), rows.end(), [](const TraceProfileRow& a, const TraceProfileRow& b) {
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
  std::sort(all.begin(), all.end());
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
