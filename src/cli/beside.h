// SPDX-License-Identifier: Apache-2.0
// What `horus inspect --beside` says: how two jobs slow each other on one GPU, in each mode that it has, and of
// services what their users then get.
//
// Enters:  two jobs, GPU types, the catalogue's names.   Leaves: text or JSON.
// Units:   slowdown = step time shared / alone on the whole GPU.
// Cost:    microseconds a type.                    Thread class: pure functions over values.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "features/run_spec.h"
#include "interference/model.h"
#include "predict/demand.h"
#include "predict/service.h"

namespace horus::cli {

struct BesideJob {
  std::string path;
  std::string run;                     // as RunText says it
  std::string load;                    // of a service, as LoadText says it
  std::vector<Demand> demands;         // parallel to the GPU types
  std::vector<Service> services = {};  // likewise, of a service; else none
  Framework engine = Framework::kPyTorch;
};

[[nodiscard]] absl::StatusOr<std::string> BesideReport(const std::array<BesideJob, 2>& jobs,
                                                       std::span<const GpuTypeId> types, const Catalogue& catalogue,
                                                       const InterferenceModel& model, bool json);

}  // namespace horus::cli
