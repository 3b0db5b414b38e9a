// SPDX-License-Identifier: Apache-2.0
// GPU types between the C ABI and the device room.
//
// Enters:  horus_gpu or GpuType.          Leaves: the other; ranges are checked by Catalogue::Extend.
// Units:   as in device/gpu_type.h.
// Cost:    linear in texts and profiles.  Thread class: pure functions.
#ifndef HORUS_CAPI_GPU_CONVERT_H_
#define HORUS_CAPI_GPU_CONVERT_H_

#include "base/status.h"
#include "device/gpu_type.h"
#include "horus/demand.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<GpuType> GpuFromC(const horus_gpu* given);

// Text of the result is borrowed from the argument.
[[nodiscard]] horus_gpu GpuToC(const GpuType& type);
[[nodiscard]] horus_mig_profile MigToC(const MigProfile& profile);

}  // namespace horus::capi

#endif  // HORUS_CAPI_GPU_CONVERT_H_
