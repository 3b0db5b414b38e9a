// SPDX-License-Identifier: Apache-2.0
// What `horus inspect --beside` says: how two jobs slow each other on one GPU, in each mode that it has.
//
// Enters:  two jobs, GPU types, the catalogue's names.   Leaves: text or JSON.
// Units:   slowdown = step time shared / alone on the whole GPU.
// Cost:    microseconds a type.                    Thread class: pure functions over values.
#pragma once

#include <array>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "predict/demand.h"

namespace horus::cli {

struct BesideJob {
  std::string path;
  std::string run;              // as RunText says it
  std::vector<Demand> demands;  // parallel to the GPU types
};

[[nodiscard]] absl::StatusOr<std::string> BesideReport(const std::array<BesideJob, 2>& jobs,
                                                       std::span<const GpuTypeId> types, const Catalogue& catalogue,
                                                       const InterferenceModel& model, bool json);

}  // namespace horus::cli
