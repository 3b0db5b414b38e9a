// SPDX-License-Identifier: Apache-2.0
// One policy of grid.yaml: its placer, its queue and how it decides.
//
// Enters:  a mapping, and what holds for every policy of the file.
// Leaves:  checked settings; or "file:line: key: expected ..., found ...".
// Units:   docs/compare.md has the keys.
// Cost:    linear.                       Thread class: pure functions.
#ifndef HORUS_LAB_IO_GRID_POLICY_H_
#define HORUS_LAB_IO_GRID_POLICY_H_

#include <span>
#include <string_view>

#include "io/yaml.h"
#include "lab/io/grid_file.h"

namespace horus {

// Keys of a policy but for its name.
[[nodiscard]] std::span<const std::string_view> GridPolicyKeys();
// What the mapping states; the rest stays as it is. Policy and queue are made once, as a check.
[[nodiscard]] absl::Status ReadGridPolicy(const YamlMap& map, GridFilePolicy& entry);

}  // namespace horus

#endif  // HORUS_LAB_IO_GRID_POLICY_H_
