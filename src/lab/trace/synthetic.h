// SPDX-License-Identifier: Apache-2.0
// Synthetic traces: arrivals, sizes, durations and a mix of models drawn from stated distributions.
//
// Enters:  a seed and what the trace should look like.
// Leaves:  a trace; the same for equal options on every machine. Job i is drawn from (seed, i) alone, so that a longer
//          trace begins with the shorter one.
// Units:   microseconds, thousandths; weights are relative.
// Cost:    0.5 us a job.
#pragma once

#include "lab/trace/trace.h"

namespace horus {

enum class Arrivals : uint8_t {
  kBacklog = 0,  // all at 0
  kPoisson = 1,  // gaps are exponential
  kBursty = 2,   // gaps are exponential with one of two means: the hyper-exponential distribution with balanced means
                 // (Whitt 1982), set by the squared coefficient of variation of its gaps; bursts of geometric length
};

struct SyntheticSize {
  int32_t gpus = 1;  // tasks of one GPU
  uint32_t weight = 1;
};

// A point of the cumulative distribution of durations; between points it is linear.
struct SyntheticDuration {
  int32_t share_milli = 0;  // of jobs that take at most
  int64_t duration_us = 0;
};

struct SyntheticProfile {
  std::string name;
  uint32_t weight = 1;
  int64_t cpu_milli = 0;  // per task
  int64_t mem_mib = 0;
};

struct SyntheticOptions {
  uint64_t seed = 1;
  int64_t jobs = 1000;
  Arrivals arrivals = Arrivals::kPoisson;
  int64_t mean_gap_us = 0;         // 0 = what gives `load_milli` on `capacity_gpu_milli`, in expectation
  int64_t capacity_gpu_milli = 0;  // read where mean_gap_us is 0, as the next
  int32_t load_milli = 0;
  int32_t gap_scv_milli = 0;                 // of bursty arrivals, at least 1000; see PhillyGapScvMilli
  std::vector<SyntheticSize> sizes;          // of size and duration nothing depends on the other
  std::vector<SyntheticDuration> durations;  // ascending in both; the first at share 0, the last at 1000
  std::vector<SyntheticProfile> profiles;
  int32_t owners = 0;  // at most kMaxSyntheticOwners: "owner-0", ...; equally likely
};

inline constexpr uint64_t kMaxSyntheticWeight = uint64_t{1} << 40;  // sum of the weights of a list
inline constexpr int32_t kMaxGapScvMilli = 1'000'000;               // the largest measured one is 145,385
inline constexpr int32_t kMaxSyntheticOwners = 1'000'000;

[[nodiscard]] absl::StatusOr<Trace> MakeSynthetic(const SyntheticOptions& options);

// What a job takes on average, in microseconds x GPUs: what a load is made of.
[[nodiscard]] double MeanGpuTime(const SyntheticOptions& options);

// Measured on public traces made from Microsoft's Philly cluster; synthetic.cc names source and command.
[[nodiscard]] std::vector<SyntheticSize> PhillySizes();
[[nodiscard]] std::vector<SyntheticDuration> PhillyDurations();
// Median of the eleven virtual clusters with more than 500 jobs in Gavel's trace: `horus traces show FILE --json` of
// each.
inline constexpr int32_t kPhillyGapScvMilli = 29'753;

// `count` profiles "profile-0", ... of one weight.
[[nodiscard]] std::vector<SyntheticProfile> NumberedProfiles(int32_t count);

// "philly": Philly's sizes and durations, bursty, 16 numbered profiles, 1,000 jobs at load 1 on 64 GPUs.
// "horus2020": the workload of Horus as far as it is published: 2,500 jobs of 13 model types, batches 16 to 256.
// NOT_FOUND for another name. Callers change what they like.
[[nodiscard]] absl::StatusOr<SyntheticOptions> SyntheticPreset(std::string_view name);

}  // namespace horus
