// SPDX-License-Identifier: Apache-2.0
// What a served model needs on each GPU type, printed.
//
// Enters:  a service (predict/service.h) on GPU types.
// Leaves:  text or JSON.
// Units:   as in the rooms.
// Cost:    linear in GPU types.          Thread class: pure functions.
#pragma once

#include <span>
#include <string>

#include "device/gpu_type.h"
#include "features/run_spec.h"
#include "predict/service.h"

namespace horus::cli {

inline constexpr double kUsPerMs = 1e3;

// `all`: the types that do not serve are counted, not listed.
[[nodiscard]] std::string ServicesReport(const std::string& path, const RunSpec& run, const ServiceLoad& load,
                                         std::span<const GpuType> gpus, std::span<const Service> services, bool all,
                                         bool json);

}  // namespace horus::cli
