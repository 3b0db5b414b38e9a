// SPDX-License-Identifier: Apache-2.0
// What a placement takes from later tasks beyond its own GPUs: free GPU that typical tasks can no longer use.
//
// Enters:  a candidate and the devices for the task.
// Leaves:  the loss, weighted by how often each class of tasks comes.
// Units:   GPUs, that is the unit of work: one GPU lost is one GPU's work lost.
// Cost:    two sums over the classes of the workload.   Thread class: pure function.
#ifndef HORUS_PLACE_POLICIES_FRAGMENTATION_H_
#define HORUS_PLACE_POLICIES_FRAGMENTATION_H_

#include <cstdint>
#include <span>

#include "place/policies/workload.h"
#include "place/policy.h"

namespace horus {

// Differences below this are not told apart: what comes next is not known better. Equal nodes then go to the lowest id,
// which fills nodes one after another and keeps others whole. Chosen from 0.1 to 0.16 on the nine pod lists of openb:
// the last is at worst 0.09 points below fgd (bench allocation).
inline constexpr double kFragmentStepGpus = 0.16;

// Workload::Usable before - after - the task's own GPUs, rounded down to whole steps; may be negative.
[[nodiscard]] double FragmentationCost(const NodeCandidate& candidate, std::span<const int32_t> devices,
                                       const Workload& workload);

}  // namespace horus

#endif  // HORUS_PLACE_POLICIES_FRAGMENTATION_H_
