// SPDX-License-Identifier: Apache-2.0
// What-if: decisions on a cluster as it would be after some changes, none of which happens.
//
// Enters:  a placer, a const cluster, changes in order, jobs to decide after them.
// Leaves:  a plan that cannot be applied: decisions, and the work before and after.
// Units:   as job.h and decision.h; work as in engine.h.
// Cost:    that of the plan, and O(slots) a change; the work of every device where it is asked for.
// Thread class: one thread at a time, with the placer.
#pragma once

#include "place/placer.h"

namespace horus {

// The values cross the C boundary: never renumber, append only.
enum class ChangeKind : int32_t {
  kRelease = 0,      // `job` leaves
  kNodeState = 1,    // `node` becomes `state`
  kDeviceState = 2,  // device `device` of `node` becomes `state`
  kPlace = 3,        // `spec` runs on `slots`, whether it fits there or not
  kMigrate = 4,      // `job` goes on on `slots`
};

struct SupposedChange {
  ChangeKind kind = ChangeKind::kRelease;
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  AdminState state = AdminState::kUp;
  JobSpec spec;
  Slots slots;
};

// Decides `jobs` as MakePlan would after `changes`. A job that left may be among them; one that was placed counts as
// resident. work_before is that of the cluster as it is, work_after with the changes and the jobs; both only with
// `work`. Errors name the change: NOT_FOUND (job, node, device), ALREADY_EXISTS, INVALID_ARGUMENT; as MakePlan.
[[nodiscard]] absl::StatusOr<Plan> WhatIf(Placer& placer, const Cluster& cluster,
                                          std::span<const SupposedChange> changes, std::span<const JobSpec> jobs,
                                          bool work = true, const ProgressFn& progress = nullptr);

}  // namespace horus
