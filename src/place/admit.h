// SPDX-License-Identifier: Apache-2.0
// Admission: whether those on a node, and the policy, let a job onto it at all; asked after its own constraints.
//
// Enters:  a policy, a node in a ledger, a job.
// Leaves:  kNone, kAntiAffinity or kPolicy.
// Units:   none.
// Cost:    none for jobs without groups and policies that admit everywhere, else O(groups, tenants of the node).
// Thread class: pure functions.
#ifndef HORUS_PLACE_ADMIT_H_
#define HORUS_PLACE_ADMIT_H_

#include <cstdint>

#include "place/decision.h"
#include "place/job.h"
#include "place/ledger.h"
#include "place/policy.h"
#include "place/scorer.h"

namespace horus {

[[nodiscard]] Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job);

// JobView::request, and the owner as soon as some resident shares with its owner alone; before that owners would only
// split what is known of requests.
[[nodiscard]] uint64_t RequestOn(const Ledger& ledger, const JobView& view);

}  // namespace horus

#endif  // HORUS_PLACE_ADMIT_H_
