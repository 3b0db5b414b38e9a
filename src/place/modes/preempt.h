// SPDX-License-Identifier: Apache-2.0
// Preemption: who would have to go for a job of higher priority, at the least useful work lost.
//
// Enters:  a placer, a cluster, the job, how far to look.
// Leaves:  the cheapest places with their victims and what each loses; a plan that preempts and places.
// Units:   useful work as in engine.h, so the loss of a victim is weighted by its priority.
// Cost:    once the work of every resident; then at most max_checks sets of victims, a few microseconds each.
// Thread class: one thread at a time, with the placer.
#pragma once

#include "place/placer.h"

namespace horus {

struct PreemptOptions {
  uint32_t max_candidates = 8;    // places told
  uint64_t max_checks = 500'000;  // sets of victims tried in all: bounds the time of the call
};

// Victims are residents of lower priority than the job, gangs as a whole. For a job of one task the cheapest set is
// found for each node, exactly as long as leaving tenants never hurt those who stay; PreemptionCandidate::exact says
// so, and is false where a limit cut the search short. For several tasks one candidate by the heuristic "cheapest node
// first": tasks are put one after another where the next one costs least, then victims that the gang can do without
// stay. Where the job fits as things are there are no candidates and the plan just places it; where nobody can make
// room it has a refusal and no actions. The plan has one decision, the job's. Errors as MakePlan.
[[nodiscard]] absl::StatusOr<Plan> PlanPreemption(Placer& placer, const Cluster& cluster, const JobSpec& job,
                                                  const PreemptOptions& options = {},
                                                  std::optional<std::span<const NodeId>> subset = std::nullopt);

}  // namespace horus
