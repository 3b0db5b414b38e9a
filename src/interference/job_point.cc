// SPDX-License-Identifier: Apache-2.0
// The four columns of a JobPoint.
#include "interference/job_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/hash.h"
#include "interference/slice.h"

namespace horus {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

float LogOf(double value) { return value > 0 ? static_cast<float>(std::log(value)) : kUnknown; }

}  // namespace

std::string_view NameOf(PointColumn column) {
  switch (column) {
    case PointColumn::kLogStepUs:
      return "log_step_us";
    case PointColumn::kLogKernelUs:
      return "log_kernel_us";
    case PointColumn::kLogOperatorUs:
      return "log_operator_us";
    case PointColumn::kLogUtil:
      return "log_util";
  }
  return "unknown";
}

uint64_t PointSchemaHash() {
  std::string text = "interference columns, version 1";
  for (size_t i = 0; i < kPointColumns; ++i) {
    text += '\n';
    text += NameOf(static_cast<PointColumn>(i));
  }
  return Hash64(text);
}

double SquaredDistance(const JobPoint& a, const JobPoint& b) {
  double sum = 0;
  for (size_t c = 0; c < kPointColumns; ++c) {
    const double difference = static_cast<double>(a[c] - b[c]) / ScaleOf(c);
    if (!std::isnan(difference)) sum += difference * difference;
  }
  return sum;
}

Tenant TenantOf(const Demand& demand, const DeviceContext& device) {
  const auto whole_util = static_cast<double>(demand.gpu_util_pct.estimate);
  const auto share = static_cast<double>(device.compute_share);
  const double util = std::max(SliceUtilPct(whole_util, share) / 100, kLeastUtil);
  const auto bandwidth = static_cast<double>(demand.mem_bw_util_pct.estimate);
  const double step_us = static_cast<double>(demand.step_time_us.estimate) / SliceSpeed(whole_util, bandwidth, share);
  const auto log_kernels = static_cast<double>(demand.traits[static_cast<size_t>(Trait::kLogKernels)]);

  Tenant tenant{.profile_id = demand.profile_id};
  const auto set = [&tenant](PointColumn column, float value) { tenant.point[static_cast<size_t>(column)] = value; };
  set(PointColumn::kLogStepUs, LogOf(step_us));
  set(PointColumn::kLogKernelUs, log_kernels > 0 ? LogOf(util * step_us / std::pow(10, log_kernels)) : kUnknown);
  set(PointColumn::kLogOperatorUs, LogOf(static_cast<double>(demand.operator_us) / share));
  set(PointColumn::kLogUtil, LogOf(util));
  return tenant;
}

Demand DemandOf(uint64_t profile_id, const JobPoint& point) {
  const auto value = [&point](PointColumn column) {
    const float log = point[static_cast<size_t>(column)];
    return std::isnan(log) ? 0 : std::exp(static_cast<double>(log));
  };
  const double step_us = value(PointColumn::kLogStepUs), util = value(PointColumn::kLogUtil);
  const double kernel_us = value(PointColumn::kLogKernelUs);
  Demand demand{.profile_id = profile_id};
  const auto util_pct = static_cast<float>(std::min(100 * util, 100.0));
  const auto rounded_us = static_cast<int64_t>(std::llround(step_us));
  demand.gpu_util_pct = {util_pct, util_pct};
  demand.step_time_us = {rounded_us, rounded_us};
  demand.operator_us = static_cast<float>(value(PointColumn::kLogOperatorUs));
  if (kernel_us > 0) {
    demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(util * step_us / kernel_us));
  }
  return demand;
}

}  // namespace horus
