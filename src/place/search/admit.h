// SPDX-License-Identifier: Apache-2.0
// Admission: whether a node, and then a device of it, takes a job as things are: every constraint in its order.
//
// Enters:  a policy, a node in a ledger, a job.
// Leaves:  the first constraint that fails, kNone if none does; of a device its price too.
// Cost:    none for jobs without groups and policies that admit everywhere, else O(groups, tenants of the node).
#pragma once

#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

// Whatever the node's devices are like: its state and labels, host resources for `tasks` tasks, groups, the policy.
[[nodiscard]] Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job,
                               int64_t tasks = 1, Shortfall* shortfall = nullptr);

// On a device of an admitted node, the scorer's current job being `view`: its state, slowdowns and price, then whether
// those who are there and the job accept each other's owners. `memo`: by Scorer::Judge instead of Weigh.
[[nodiscard]] absl::StatusOr<DeviceVerdict> JudgeDevice(Scorer& scorer, const Ledger& ledger, const JobView& view,
                                                        uint32_t device, bool memo);

// The last of these: refuses a device that fits where owners do not accept each other.
void BarDevice(const Ledger& ledger, uint32_t device, const JobView& view, DeviceVerdict& verdict);

// As Ledger::BarsFrom.
[[nodiscard]] Reason BarsFrom(const Ledger& ledger, uint32_t device, const JobView& view);

// JobView::request, and what else decides where it may go: the owner as soon as some resident shares with its owner
// alone (before that owners would only split what is known of requests), and whether the sharing quota is used up.
[[nodiscard]] uint64_t RequestOn(const Ledger& ledger, const JobView& view);

}  // namespace horus
