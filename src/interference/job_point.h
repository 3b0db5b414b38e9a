// SPDX-License-Identifier: Apache-2.0
// Tenant and JobPoint: what the learned models read of a job on a device.
//
// Enters:  a Demand and the device that it is meant for.
// Leaves:  four logarithms of its demand, and whose they are.
// Units:   natural logarithms of microseconds and of a share 0-1; NaN = unknown.
// Cost:    four logarithms.               Thread class: pure function over values.
#ifndef HORUS_INTERFERENCE_JOB_POINT_H_
#define HORUS_INTERFERENCE_JOB_POINT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interference/model.h"
#include "predict/demand.h"

namespace horus {

// Part of the schema of interference bundles: a change of order or meaning needs another PointSchemaHash().
enum class PointColumn : uint8_t {
  kLogStepUs,      // one step alone
  kLogKernelUs,    // time that the device is busy for one kernel, on average
  kLogOperatorUs,  // an operator, weighted by its time
  kLogUtil,        // share of the step in which the device is busy, at least kLeastUtil
};
inline constexpr size_t kPointColumns = 4;
inline constexpr double kLeastUtil = 0.01;  // keeps the logarithm finite; NVML reports whole per cents

using JobPoint = std::array<float, kPointColumns>;

struct Tenant {
  uint64_t profile_id = 0;  // 0 = none
  JobPoint point = {};
};

// On a MIG instance the job is busier and its step longer, as slice.h says.
[[nodiscard]] Tenant TenantOf(const Demand& demand, const DeviceContext& device);

// A demand on a whole GPU of which TenantOf makes this point again, but for rounding; unknown columns stay unknown.
[[nodiscard]] Demand DemandOf(uint64_t profile_id, const JobPoint& point);

// What makes jobs different: times five times as long, or half as busy again. Not taken from data, so that a job unlike
// all that were measured is as far away as it is.
inline constexpr double kTimeScale = 1.6;  // ln 5
inline constexpr double kUtilScale = 0.4;  // ln 1.5
[[nodiscard]] constexpr double ScaleOf(size_t column) {
  return column == static_cast<size_t>(PointColumn::kLogUtil) ? kUtilScale : kTimeScale;
}

// In those units; what is unknown of either is no difference.
[[nodiscard]] double SquaredDistance(const JobPoint& a, const JobPoint& b);

[[nodiscard]] std::string_view NameOf(PointColumn column);
[[nodiscard]] uint64_t PointSchemaHash();

}  // namespace horus

#endif  // HORUS_INTERFERENCE_JOB_POINT_H_
