// SPDX-License-Identifier: Apache-2.0
// Whether the columns of a cluster agree with its jobs.
#ifndef HORUS_TESTS_SUPPORT_INVARIANTS_H_
#define HORUS_TESTS_SUPPORT_INVARIANTS_H_

#include "absl/status/status.h"
#include "place/state/cluster.h"

namespace horus {

// INTERNAL with what is wrong: every column is computed again from the jobs.
[[nodiscard]] absl::Status CheckInvariants(const Cluster& cluster);

}  // namespace horus

#endif  // HORUS_TESTS_SUPPORT_INVARIANTS_H_
