// SPDX-License-Identifier: Apache-2.0
// One entry of `nodes:` in cluster.yaml.
//
// Enters:  a YAML mapping, the catalogue, and names of racks so far.
// Leaves:  the node's description and how often it is there; or "file:line: key: expected ..., found ...".
// Units:   in the key names of the file.
// Cost:    linear in the entry and its devices.   Thread class: pure functions.
#ifndef HORUS_IO_NODE_YAML_H_
#define HORUS_IO_NODE_YAML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "device/catalogue.h"
#include "io/yaml_reader.h"
#include "place/state/node.h"

namespace horus {

// Racks by name, numbered from 1 in order of appearance; 0 is "not stated".
using RackNumbers = SeededMap<std::string, uint64_t>;

struct NodeEntry {
  NodeSpec spec;  // of the first replica; the id is the next free one unless `has_id`
  AdminState state = AdminState::kUp;
  bool has_id = false;
  size_t count = 1;
};

// `max_count`: how many nodes may still come.
[[nodiscard]] absl::StatusOr<NodeEntry> ReadNodeEntry(const YamlValue& value, const Catalogue& catalogue,
                                                      size_t max_count, RackNumbers& racks);

// Name of replica `index` of `count`: the name itself, or with "-000", "-001", ... when there are several.
[[nodiscard]] std::string ReplicaName(const std::string& name, size_t index, size_t count);

}  // namespace horus

#endif  // HORUS_IO_NODE_YAML_H_
