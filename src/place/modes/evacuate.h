// SPDX-License-Identifier: Apache-2.0
// Evacuate: everything off some nodes, in one plan.
//
// Enters:  a placer, a cluster, the nodes to be emptied.
// Leaves:  a plan of migrations; for every job that is there a decision, which is a refusal where nothing takes it.
// Units:   seconds; useful work per unit of time as in work.h.
// Cost:    a search a job that is there, and once the work of every device.
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_MODES_EVACUATE_H_
#define HORUS_PLACE_MODES_EVACUATE_H_

#include <span>

#include "absl/status/statusor.h"
#include "place/placer.h"
#include "place/plan.h"

namespace horus {

// The jobs with a task on one of the nodes, in planning order, each where the policy wants it now: anywhere but there.
// A gang moves as a whole and may come back to its other nodes. What finds no place stays, and its decision says why;
// those after it are placed as though it stayed. The nodes' own states do not change: drain them first, so that
// nothing new comes.
// `progress`: jobs decided, of all that are there.
// NOT_FOUND (a node), CANCELLED, and what model or policy return.
[[nodiscard]] absl::StatusOr<Plan> Evacuate(Placer& placer, const Cluster& cluster, std::span<const NodeId> nodes,
                                            const ProgressFn& progress = nullptr);

}  // namespace horus

#endif  // HORUS_PLACE_MODES_EVACUATE_H_
