// SPDX-License-Identifier: Apache-2.0
// What a served model needs on each GPU type, printed; and the words that tell an engine to take no more.
//
// Enters:  a service (predict/service.h) on GPU types.
// Leaves:  text or JSON.
// Units:   as in the rooms.
// Cost:    linear in GPU types.          Thread class: pure functions.
#ifndef HORUS_CLI_SERVE_H_
#define HORUS_CLI_SERVE_H_

#include <span>
#include <string>
#include <string_view>

#include "device/gpu_type.h"
#include "features/run_spec.h"
#include "nlohmann/json_fwd.hpp"
#include "predict/service.h"

namespace horus::cli {

// "--gpu-memory-utilization 0.25 ...": vLLM 0.11, SGLang 0.5, trtllm-serve 1.0 and later.
[[nodiscard]] std::string EngineArguments(Framework engine, const Service& service, const ServiceLoad& load,
                                          const GpuType& gpu);
[[nodiscard]] std::string_view VerdictName(ServiceVerdict verdict);  // "served", "no-room", "overloaded", "late"
[[nodiscard]] nlohmann::ordered_json ServiceJson(Framework engine, const Service& service, const ServiceLoad& load,
                                                 const GpuType& gpu);

// `all`: the types that do not serve are counted, not listed.
[[nodiscard]] std::string ServicesReport(const std::string& path, const RunSpec& run, const ServiceLoad& load,
                                         std::span<const GpuType> gpus, std::span<const Service> services, bool all,
                                         bool json);

}  // namespace horus::cli

#endif  // HORUS_CLI_SERVE_H_
