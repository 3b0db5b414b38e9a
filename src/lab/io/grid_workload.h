// SPDX-License-Identifier: Apache-2.0
// One workload of grid.yaml: files or a made trace, and what becomes of it.
//
// Enters:  a mapping.
// Leaves:  one workload, or one a load; or "file:line: key: expected ..., found ...".
// Units:   docs/compare.md has the keys.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_LAB_IO_GRID_WORKLOAD_H_
#define HORUS_LAB_IO_GRID_WORKLOAD_H_

#include <vector>

#include "io/yaml.h"
#include "lab/io/grid_file.h"

namespace horus {

// `capacity_gpu_milli`: of the cluster.
[[nodiscard]] absl::Status ReadGridWorkload(const YamlValue& value, int64_t capacity_gpu_milli,
                                            std::vector<GridFileWorkload>& workloads);

}  // namespace horus

#endif  // HORUS_LAB_IO_GRID_WORKLOAD_H_
