// SPDX-License-Identifier: Apache-2.0
// Batch: a window of jobs decided together, never worse than one by one.
//
// Enters:  a placer, a cluster, jobs in any order, how long to look.
// Leaves:  a plan as MakePlan makes it; its work beside that of the one-by-one plan.
// Units:   useful work as in engine.h; costs in the policy's unit.
// Cost:    the one-by-one plan twice, then at most max_evaluations places priced (about a microsecond each).
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_MODES_BATCH_H_
#define HORUS_PLACE_MODES_BATCH_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "place/decision.h"
#include "place/placer.h"

namespace horus {

struct BatchOptions {
  uint32_t max_rounds = 8;             // of the local search from one start
  uint32_t restarts = 12;              // other starts, for batches of at most kSmallBatch jobs
  uint64_t max_evaluations = 800'000;  // places priced in all
};

// Batches up to this size are searched with every device and every exchange; larger ones by lists of candidates.
inline constexpr size_t kSmallBatch = 64;

// What is compared with the one-by-one plan. For policies that maximise work (Policy::maximises_work) the useful work
// of the devices concerned, where no fewer jobs of any priority above the batch's lowest may be placed. For the others
// first the number of jobs placed, by priority from the highest down, then the sum of the policy's costs, each job
// priced after those before it in planning order. Gangs, jobs with hard requests that are priced by node, and jobs
// without GPUs go where they would go one by one; once more at the end where that was nowhere.
// plan.work_before is what the one-by-one plan would reach and work_after what this one does, over what the cluster
// does without the batch. Errors as MakePlan.
[[nodiscard]] absl::StatusOr<Plan> PlanBatch(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs,
                                             const BatchOptions& options = {},
                                             std::optional<std::span<const NodeId>> subset = std::nullopt,
                                             const ProgressFn& progress = nullptr);

}  // namespace horus

#endif  // HORUS_PLACE_MODES_BATCH_H_
