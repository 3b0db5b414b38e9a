// SPDX-License-Identifier: Apache-2.0
// OwnBound: how much a job may be slowed on a GPU type, by what it states itself, by the promises of a service
// (Demand::slowdown_bound) and by the latency it must keep.
//
// Enters:  a job and its demand on the type.
// Leaves:  the lowest of these bounds; or that the latency is not kept even alone.
// Units:   slowdown = shared / alone; microseconds.
// Cost:    none without a latency bound, else about 50 us (interference/laws.h).
#pragma once

#include "place/job/job.h"

namespace horus {

// That a slowdown is at most `bound` with probability `confidence`.
struct Promise {
  float bound = 0;       // 0 = the placer's default
  float confidence = 0;  // 0 = that of the model's upper bounds
  friend bool operator==(const Promise&, const Promise&) = default;
};

// Of a job whose latency is too long even alone; all 0 for others.
struct LateAlone {
  float bound_us = 0;
  float p99_us = 0;       // alone, by the upper bound of the step time; at most kMostServiceUs
  float expected_us = 0;  // the same by its estimate; 0 where the step time is no prediction
  friend bool operator==(const LateAlone&, const LateAlone&) = default;
};

struct OwnBound {
  float slowdown = 0;  // 0 = nothing is stated: the placer's default; 1 where `late` says that nothing is left to lose
  LateAlone late;
};

// The job passed ValidateJob.
[[nodiscard]] OwnBound OwnBoundOf(const JobSpec& job, const Demand& demand);

}  // namespace horus
