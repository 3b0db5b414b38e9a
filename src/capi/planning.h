// SPDX-License-Identifier: Apache-2.0
// What every call that plans shares: the placer and the cluster in use, subsets, progress.
//
// Enters:  handles and the caller's arguments.
// Leaves:  a plan handle; errors of the planning, BUSY, cluster and placer of different GPU types.
// Units:   none.
// Cost:    one lock a call.               Thread class: as horus_placer_plan.
#ifndef HORUS_CAPI_PLANNING_H_
#define HORUS_CAPI_PLANNING_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "capi/handles.h"
#include "place/modes/rebalance.h"

namespace horus::capi {

// `read` may be called when the cluster is needed no more (ReadFn in placer.h).
using Planning = std::function<absl::StatusOr<Plan>(Placer&, const Cluster&, const ReadFn& read)>;

// Runs `planning` with the placer marked as in use and the cluster locked until it was read.
[[nodiscard]] absl::StatusOr<std::unique_ptr<horus_plan>> PlanWith(horus_placer& placer, const horus_cluster& cluster,
                                                                   const Planning& planning);

// The same for what makes no plan handle.
using PlacerWork = std::function<absl::Status(Placer&, const Cluster&, const ReadFn& read)>;
[[nodiscard]] absl::Status UsePlacer(horus_placer& placer, const horus_cluster& cluster, const PlacerWork& work);

// No column = all nodes.
[[nodiscard]] absl::StatusOr<std::optional<std::span<const NodeId>>> SubsetFromC(size_t count,
                                                                                 const uint64_t* node_ids);
// `job_ids` checked, and left to the caller.
[[nodiscard]] absl::StatusOr<RebalanceOptions> RebalanceFromC(const horus_rebalance_options& c);
[[nodiscard]] ProgressFn ProgressFromC(horus_progress progress, void* user);

}  // namespace horus::capi

#endif  // HORUS_CAPI_PLANNING_H_
