// SPDX-License-Identifier: Apache-2.0
// What experiments make of a trace: fewer jobs, other arrivals, clipped durations.
//
// Enters:  a trace that ValidateTrace accepts.
// Leaves:  another one; or "trace: ...: expected ..., found ...". Ids stay, but for MergeTraces.
// Units:   as trace.h; shares and loads in thousandths.
// Cost:    linear or a sort.             Thread class: pure functions.
#ifndef HORUS_LAB_TRACE_TRACE_EDIT_H_
#define HORUS_LAB_TRACE_TRACE_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/trace/trace.h"

namespace horus {

// How long a job takes alone, in microseconds; 0 = not known. Jobs that state steps need the speeds of their caller.
using DurationOf = std::function<int64_t(const TraceJob&)>;
[[nodiscard]] inline int64_t StatedDuration(const TraceJob& job) { return job.endless ? 0 : job.duration_us; }

using JobPredicate = std::function<bool(const Trace&, const TraceJob&)>;
[[nodiscard]] JobPredicate IsSingleGpu();  // one task of one GPU, or of a share of it
[[nodiscard]] JobPredicate RunsOneOf(std::vector<std::string> profiles);

[[nodiscard]] Trace FilterTrace(const Trace& trace, const JobPredicate& keep);

// The first `count` jobs, or all.
[[nodiscard]] Trace TakeFirst(const Trace& trace, size_t count);
// `count` jobs that `seed` draws without replacement, each set equally likely; which ones depends on ids alone.
[[nodiscard]] absl::StatusOr<Trace> TakeSample(const Trace& trace, size_t count, uint64_t seed);

// Several traces as one, all from the same zero. Ids are new: 0, 1, ... by submission, then by the order given.
[[nodiscard]] absl::StatusOr<Trace> MergeTraces(std::span<const Trace> traces);

// Every job is there at 0; deadlines move with submissions, here and below.
[[nodiscard]] Trace Backlog(Trace trace);

// Work of jobs that take longer than the `quantile_milli` quantile (nearest rank) of all that end is cut to it, steps
// in proportion and at least one. The duration of each must be known.
[[nodiscard]] absl::StatusOr<Trace> ClipDurations(Trace trace, int32_t quantile_milli,
                                                  const DurationOf& duration = StatedDuration);

// Offered load = sum of GPUs x duration of the jobs that end / (capacity x time from first to last submission).
[[nodiscard]] absl::StatusOr<double> OfferedLoad(const Trace& trace, int64_t capacity_gpu_milli,
                                                 const DurationOf& duration = StatedDuration);
// Stretches or shrinks the time between submissions, all alike, to that load; the first stays where it is. To within
// the microsecond that the span is rounded to.
[[nodiscard]] absl::StatusOr<Trace> ScaleArrivals(Trace trace, int64_t capacity_gpu_milli, int32_t load_milli,
                                                  const DurationOf& duration = StatedDuration);

// Jobs of n tasks with one whole GPU each, as most traces state them, become gangs of whole nodes: one task of n GPUs
// up to `gpus_per_node`, n / gpus_per_node full nodes for multiples of it; others stay. Host resources add up.
[[nodiscard]] absl::StatusOr<Trace> Consolidate(Trace trace, int32_t gpus_per_node);

}  // namespace horus

#endif  // HORUS_LAB_TRACE_TRACE_EDIT_H_
