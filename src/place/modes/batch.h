// SPDX-License-Identifier: Apache-2.0
// Batch: jobs that wait decided together: who goes, by what its work is worth, and where.
//
// Enters:  a placer, a cluster, jobs in any order, the time, how far to look.
// Leaves:  a plan as MakePlan makes it; of small batches its work beside that of the one-by-one plan.
// Units:   useful work as in engine.h; costs in the policy's unit; times as JobSpec::submit_us.
// Cost:    selection.h; of small batches for all of whom there is room, the one-by-one plan twice, then at most
//          max_evaluations places priced (about a microsecond each).
// Thread class: one thread at a time, with the placer.
#pragma once

#include "place/placer.h"

namespace horus {

struct BatchOptions {
  int64_t now_us = 0;       // on the clock of JobSpec::submit_us
  int64_t patience_us = 0;  // a job that waits for so long is passed by nobody who wants such GPUs; 0 = for ever
  uint32_t window = 50;     // of the jobs that fit, in planning order, so many are compared
  bool prices = true;       // weigh jobs by what their kind of work is worth (prices.h)
  uint32_t max_rounds = 8;  // of the local search from one start
  uint32_t restarts = 12;   // other starts, for batches of at most kSmallBatch jobs
  uint64_t max_evaluations = 800'000;  // places priced in all
};

// Batches up to this size are searched with every device and every exchange; larger ones by lists of candidates.
inline constexpr size_t kSmallBatch = 64;

// Of policies that maximise work: where there is not room for all who fit, the job of the window whose place is worth
// most goes next (selection.h), within a priority; who fitted and finds no place any more waits as kPassedOver. If that
// is a gang, the largest go first where that places all the others too, at no less work. Nobody of a small batch waits
// for whom there is room one by one, all the others placed too. Where there is room for all, what is compared with the
// one-by-one plan. For policies that maximise work (Policy::maximises_work) the useful work of the devices concerned,
// where no fewer jobs of any priority above the batch's lowest may be placed. For the others first the number of jobs
// placed, by priority from the highest down, then the sum of the policy's costs, each job priced after those before it
// in planning order. Gangs, jobs with hard requests that are priced by node, and jobs without GPUs go where they would
// go one by one; once more at the end where that was nowhere. plan.work_before is then what the one-by-one plan would
// reach and work_after what this one does, over what the cluster does without the batch. Errors as MakePlan.
[[nodiscard]] absl::StatusOr<Plan> PlanBatch(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs,
                                             const BatchOptions& options = {},
                                             std::optional<std::span<const NodeId>> subset = std::nullopt,
                                             const ProgressFn& progress = nullptr);

}  // namespace horus
