// SPDX-License-Identifier: Apache-2.0
// Sharing modes, demands, nodes and jobs between the C ABI and the rooms, checked on the way in.
#pragma once

#include "capi/boundary.h"
#include "device/catalogue.h"
#include "device/sharing_mode.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/interference.h"
#include "place/job/job.h"
#include "place/state/node.h"
#include "predict/demand.h"

namespace horus::capi {

// ---- Sharing modes between the C ABI, where 0 is left for "default", and the device room, where 0 is exclusive.
// Cost: an addition.

[[nodiscard]] constexpr int32_t SharingToC(SharingMode mode) { return static_cast<int32_t>(mode) + 1; }

static_assert(SharingToC(SharingMode::kExclusive) == HORUS_SHARING_EXCLUSIVE);
static_assert(SharingToC(SharingMode::kTimeSlice) == HORUS_SHARING_TIME_SLICE);
static_assert(SharingToC(SharingMode::kMps) == HORUS_SHARING_MPS);
static_assert(SharingToC(SharingMode::kMig) == HORUS_SHARING_MIG);
static_assert(SharingToC(SharingMode::kTimeSliceOrMps) == HORUS_SHARING_TIME_SLICE_OR_MPS);

[[nodiscard]] inline absl::StatusOr<SharingMode> SharingFromC(int32_t mode, int32_t last = HORUS_SHARING_MIG) {
  HORUS_RETURN_IF_ERROR(CheckConstant("sharing_mode", "HORUS_SHARING_*", HORUS_SHARING_EXCLUSIVE, last, mode));
  return static_cast<SharingMode>(mode - 1);
}
// The default, where devices are seen one by one, is slices of time.
[[nodiscard]] inline absl::StatusOr<SharingMode> SharingOrTimeSlice(int32_t mode) {
  return SharingFromC(mode == 0 ? HORUS_SHARING_TIME_SLICE : mode);
}
[[nodiscard]] inline absl::StatusOr<SharingMode> SharingOrTimeSlice(const int32_t* column, size_t row) {
  return SharingOrTimeSlice(column == nullptr ? 0 : column[row]);
}

// ---- Demands between the C ABI and the rooms.

[[nodiscard]] absl::StatusOr<Demand> DemandFromC(const horus_demand* given);
[[nodiscard]] horus_demand DemandToC(const Demand& demand);

// `count` demands; errors name the element.
[[nodiscard]] absl::StatusOr<std::vector<Demand>> DemandsFromC(size_t count, const horus_demand* const* demands);

// The columns of a job: GPU types by name (null = any) beside the demand on each.
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> TypeDemandsFromC(const Catalogue& catalogue, size_t count,
                                                                       const char* const* gpu_types,
                                                                       const horus_demand* const* demands);

// ---- Nodes from the C ABI: columns to device descriptions.
// Cost: linear in devices and labels.

[[nodiscard]] absl::StatusOr<NodeSpec> NodeFromC(const Catalogue& catalogue, const horus_node* given);

// HORUS_STATE_*.
[[nodiscard]] absl::StatusOr<AdminState> StateFromC(int32_t state);

// ---- Jobs from the C ABI.
// Cost: linear in demands and selectors.

[[nodiscard]] absl::StatusOr<JobSpec> JobFromC(const Catalogue& catalogue, const horus_job* given);

// None for null.
[[nodiscard]] absl::StatusOr<SharedSensitivity> SensitivityFromC(const horus_sensitivity* given);

// RESOURCE_EXHAUSTED above `max_jobs`.
[[nodiscard]] absl::StatusOr<std::vector<JobSpec>> JobsFromC(const Catalogue& catalogue, size_t count,
                                                             const horus_job* const* jobs, uint64_t max_jobs);

// The way back, with all that the job points to in one piece of memory: bytes that it takes wherever they lie, and the
// job laid out in that many.
[[nodiscard]] size_t JobBytes(const Catalogue& catalogue, const JobSpec& job);
const horus_job* PutJob(const Catalogue& catalogue, const JobSpec& job, void* bytes);

}  // namespace horus::capi
