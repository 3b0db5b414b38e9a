// SPDX-License-Identifier: Apache-2.0
// Demands that a file states itself: measured elsewhere, or plain requests.
//
// Enters:  the mapping "GPU type or any -> figures" of one job.
// Leaves:  TypeDemands marked as given; or "file:line: key: expected ..., found ...".
// Units:   in the key names of the file; per GPU of the job.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_IO_DEMAND_YAML_H_
#define HORUS_IO_DEMAND_YAML_H_

#include <span>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/yaml_reader.h"
#include "place/job.h"

namespace horus {

// `allowed`: the job's gpu_types. A demand for "any" is then given to each of them; without them it stays "any".
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> ReadDemands(const YamlValue& value, const Catalogue& catalogue,
                                                                  std::span<const GpuTypeId> allowed);

// A name of the catalogue; the error suggests near ones.
[[nodiscard]] absl::StatusOr<GpuTypeId> ReadGpuTypeName(const YamlValue& value, const Catalogue& catalogue);

}  // namespace horus

#endif  // HORUS_IO_DEMAND_YAML_H_
