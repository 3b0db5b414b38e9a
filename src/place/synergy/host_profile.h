// SPDX-License-Identifier: Apache-2.0
// Optimistic profiling: a sensitivity matrix from a few runs at full memory (Synergy, OSDI 2022).
//
// Enters:  what the job reads and what feeds it, and a callback that measures an epoch with so many cores.
// Leaves:  the matrix, relative to the fair share; how many runs it took.
// Units:   per GPU: thousandths of a core, MiB; of the whole job: dataset MiB, MiB/s, seconds an epoch.
// Cost:    at most one measurement a core; memory points are computed.   Thread class: pure function but for the
// callback.
#ifndef HORUS_PLACE_SYNERGY_HOST_PROFILE_H_
#define HORUS_PLACE_SYNERGY_HOST_PROFILE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "place/sensitivity.h"

namespace horus {

struct HostProfileRequest {
  int32_t gpus = 1;              // of the job
  HostShare fair;                // per GPU: what speeds are relative to; at least one core
  int64_t max_cpu_milli = 0;     // per GPU: where measuring starts; at least the fair share
  std::vector<int64_t> mem_mib;  // per GPU: the memory points, ascending
  int64_t process_mib = 0;       // per GPU: memory that the process needs and cannot cache with
  int64_t dataset_mib = 0;       // what one epoch reads
  int64_t memory_mib_s = 0;      // bandwidth of the cache
  int64_t disk_mib_s = 0;        // bandwidth of the storage
  double tolerance = 0.10;       // halve the cores while this much of the speed is all that is lost (Synergy: 10 %)
};

struct HostProfile {
  Sensitivity matrix;
  int32_t runs = 0;  // measurements that it took
};

// Seconds of an epoch with so many cores per GPU and the whole dataset cached.
using MeasureEpochFn = std::function<absl::StatusOr<double>(int64_t cpu_milli)>;

// Seconds of an epoch that takes `compute_s` with everything cached: the slower of computing and of fetching, where
// the cache keeps a fixed part of the dataset and every epoch hits exactly that.
[[nodiscard]] double EpochSeconds(const HostProfileRequest& request, double compute_s, int64_t mem_mib);

// Measures from max_cpu_milli down to one core: half as many while the speed stays within the tolerance, else one
// core less; the fair share always. INVALID_ARGUMENT "host profile: <field>: expected ..., found ..."; what `measure`
// returns; INVALID_ARGUMENT where that is no time.
[[nodiscard]] absl::StatusOr<HostProfile> ProfileOptimistically(const HostProfileRequest& request,
                                                                const MeasureEpochFn& measure);

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_HOST_PROFILE_H_
