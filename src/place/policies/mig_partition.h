// SPDX-License-Identifier: Apache-2.0
// How to cut one GPU for the jobs that are to run on it: the partition of the best total speed (MISO, SoCC 2022).
//
// Enters:  a GPU type with MIG profiles, the demands of the jobs on that type.
// Leaves:  a profile for each job; for whoever may cut a card anew, which a placement never does.
// Units:   speed = on the instance / on the whole GPU, 0-1 (laws.h); MiB.
// Cost:    jobs x profiles x compute slices x memory slices.   Thread class: pure function.
#ifndef HORUS_PLACE_POLICIES_MIG_PARTITION_H_
#define HORUS_PLACE_POLICIES_MIG_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "device/gpu_type.h"
#include "predict/demand.h"

namespace horus {

struct MigPartition {
  std::vector<int16_t> profiles;  // of each job's instance: index in GpuType::mig
  double speed = 0;               // of all jobs together
  friend bool operator==(const MigPartition&, const MigPartition&) = default;
};

// One instance for each job, its memory bound and `headroom_mib` included. Among equal speeds the fewest slices are
// taken. INVALID_ARGUMENT for a type without MIG or a null demand, FAILED_PRECONDITION where no partition
// holds the jobs.
[[nodiscard]] absl::StatusOr<MigPartition> ChooseMigPartition(const GpuType& type, std::span<const Demand* const> jobs,
                                                              int64_t headroom_mib = 500);

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_MIG_PARTITION_H_
