// SPDX-License-Identifier: Apache-2.0
// The policies synergy-*: a placer's plan is one round of a rule. Rounds of jobs that run already are asked for here.
//
// Enters:  a placer with such a policy, a const cluster, jobs in the order in which they count.
// Leaves:  a plan with a decision for each job.
// Cost:    as round.h, and a look at every node.
// Thread class: one thread at a time, with the placer.
#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "lab/synergy/round.h"
#include "place/engine.h"
#include "place/policies/policies.h"

namespace horus {

[[nodiscard]] std::unique_ptr<Policy> MakeSynergyPolicy(SynergyRule rule, const PolicyOptions& options);

// Of a placer whose policy decides rounds; else null.
[[nodiscard]] const RoundPolicy* RoundPolicyOf(const Placer& placer);

// One round over jobs in the order given, those that run among them (leases, README.md). Of a resident the id alone
// counts: it takes part as it is in the cluster, on its own places where the rule lets it (kResize where its cores or
// memory change, else no action), or it moves (kMigrate), or leaves (kPreempt, with a decision that says why).
// Residents that are not given stay. A decision for each job, in the order given. Errors as Placer::MakePlan;
// UNIMPLEMENTED: the policy decides job by job; INVALID_ARGUMENT: a resident without whole GPUs.
[[nodiscard]] absl::StatusOr<Plan> MakeRound(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs);

}  // namespace horus
