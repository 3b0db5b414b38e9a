// SPDX-License-Identifier: Apache-2.0
// Admission: whether a policy lets a job onto a node at all; asked after the node's own constraints.
//
// Enters:  a policy, a node in a ledger, a job.
// Leaves:  kNone or kPolicy.
// Units:   none.
// Cost:    none for policies that admit everywhere, else O(tenants of the node).   Thread class: pure functions.
#ifndef HORUS_PLACE_ADMIT_H_
#define HORUS_PLACE_ADMIT_H_

#include <cstdint>

#include "place/decision.h"
#include "place/job.h"
#include "place/ledger.h"
#include "place/policy.h"

namespace horus {

[[nodiscard]] Reason AdmitNode(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job);

}  // namespace horus

#endif  // HORUS_PLACE_ADMIT_H_
