// SPDX-License-Identifier: Apache-2.0
// What a trace looks like: counts, sizes, arrivals, durations, profiles.
//
// Enters:  a trace.                      Leaves: a plain value.
// Units:   microseconds, thousandths of a GPU; GPU time in microseconds of a whole GPU, as doubles.
// Cost:    a sort of the durations.      Thread class: pure function.
#ifndef HORUS_LAB_TRACE_TRACE_SUMMARY_H_
#define HORUS_LAB_TRACE_TRACE_SUMMARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/trace/trace.h"

namespace horus {

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

#endif  // HORUS_LAB_TRACE_TRACE_SUMMARY_H_
