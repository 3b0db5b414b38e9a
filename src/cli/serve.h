// SPDX-License-Identifier: Apache-2.0
// What a served model needs on each GPU type, printed.
//
// Enters:  a service (predict/service.h) on GPU types, or what of it was to be found there.
// Leaves:  text or JSON.
// Units:   as in the rooms.
// Cost:    linear in GPU types.          Thread class: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu_type.h"
#include "features/run_spec.h"
#include "predict/service.h"

namespace horus::cli {

inline constexpr double kUsPerMs = 1e3;

struct ServedOn {
  GpuType gpu;
  Service service;
  std::optional<ServiceSolution> solved;  // where something was to be found; `service` is at its value
};

struct ServicesReport {
  std::string path;
  RunSpec run;
  ServiceLoad load;
  std::optional<ServiceUnknown> unknown;
  std::vector<ServedOn> rows;
  bool all = false;  // the types that do not serve are counted, not listed
};

[[nodiscard]] std::string ServicesText(const ServicesReport& report);
[[nodiscard]] std::string ServicesJson(const ServicesReport& report);

// "2 requests a second, 1024 tokens in and 256 out, each further one within 60 ms"
[[nodiscard]] std::string LoadText(const ServiceLoad& load, std::optional<ServiceUnknown> unknown = std::nullopt);

// "load", "context", "gpus": words of --solve.
inline constexpr std::string_view kServiceUnknowns[] = {"load", "context", "gpus"};

}  // namespace horus::cli
