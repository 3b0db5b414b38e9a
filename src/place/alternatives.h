// SPDX-License-Identifier: Apache-2.0
// Alternatives: the ways to run one job, and which of their places is worth most.
//
// Enters:  a job with alternatives; the decision on each of them.
// Leaves:  the job as one way runs it; the worth of a decision.
// Units:   GPUs of work: 1 = what one GPU does alone in the job's most efficient way.
// Cost:    a copy of the job a way; O(tenants on the devices).   Thread class: pure functions.
#ifndef HORUS_PLACE_ALTERNATIVES_H_
#define HORUS_PLACE_ALTERNATIVES_H_

#include <cstddef>

#include "place/decision.h"
#include "place/job.h"

namespace horus {

// The job as its alternative `index` runs it, without alternatives.
[[nodiscard]] JobSpec WayOf(const JobSpec& job, size_t index);

// Of a decision that places the way: useful work that the cluster gains, less `gpu_price` for each GPU that it takes.
// docs/place.md has the formula and its reason.
[[nodiscard]] double WorthOf(const JobSpec& job, size_t index, const Decision& decision, double gpu_price);

}  // namespace horus

#endif  // HORUS_PLACE_ALTERNATIVES_H_
