// SPDX-License-Identifier: Apache-2.0
// Nodes from the C ABI: columns to device descriptions.
//
// Enters:  horus_node and the cluster's catalogue.
// Leaves:  NodeSpec; errors name node, column and element. What the cluster checks is not checked twice.
// Units:   as in place/node.h.
// Cost:    linear in devices and labels.  Thread class: pure functions.
#ifndef HORUS_CAPI_NODE_CONVERT_H_
#define HORUS_CAPI_NODE_CONVERT_H_

#include "base/status.h"
#include "horus/cluster.h"
#include "place/state/node.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<NodeSpec> NodeFromC(const Catalogue& catalogue, const horus_node* given);

// HORUS_STATE_*.
[[nodiscard]] absl::StatusOr<AdminState> StateFromC(int32_t state);

}  // namespace horus::capi

#endif  // HORUS_CAPI_NODE_CONVERT_H_
