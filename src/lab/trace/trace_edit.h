// SPDX-License-Identifier: Apache-2.0
// What experiments make of a trace: fewer jobs, other arrivals, clipped durations.
//
// Enters:  a trace that ValidateTrace accepts.
// Leaves:  another one; or "trace: ...: expected ..., found ...". Ids stay, but for MergeTraces.
// Units:   as trace.h; shares and loads in thousandths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/trace/trace.h"

namespace horus {

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
