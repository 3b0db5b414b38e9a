// SPDX-License-Identifier: Apache-2.0
// What files of results tell alike: what made them, and of which cluster they are.
//
// Enters:  the command as it runs; a cluster's nodes.
// Leaves:  members of a JSON document.
#pragma once

#include <span>
#include <string>

#include "device/catalogue.h"
#include "io/json_text.h"
#include "place/state/node.h"

namespace horus::cli {

// Of the source that the command was built from: 12 hexadecimal digits, with "-dirty" where files had changed, or what
// HORUS_REVISION said; "unknown" where neither did.
extern const char* const kRevision;

[[nodiscard]] std::string VersionText();  // "0.1.0"

// Of this process, to be pasted into a shell; empty where the system does not tell.
[[nodiscard]] std::string CommandLine();

// Adds `horus` (version), `revision` and `command`.
void AddRecord(Json& document);

// `gpus`: how many by type, in the order of the nodes.
[[nodiscard]] Json ClusterJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes);
// Further `nodes[]` (`name`, `gpus`), in order.
[[nodiscard]] Json ClusterWithNodesJson(const Catalogue& catalogue, std::span<const NodeSpec> nodes);

// As the timeline calls it: its name, or where it has none its number.
[[nodiscard]] std::string NameOf(const NodeSpec& node);

}  // namespace horus::cli
