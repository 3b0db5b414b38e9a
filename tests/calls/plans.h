// SPDX-License-Identifier: Apache-2.0
// What actions that plan share.
#ifndef HORUS_TESTS_CALLS_PLANS_H_
#define HORUS_TESTS_CALLS_PLANS_H_

#include <cstdint>
#include <vector>

#include "calls/arguments.h"
#include "calls/world.h"

namespace horus::calls {

// Reads all that a plan says, checks it, and keeps it to be applied now or later.
void Keep(World& world, horus_plan* plan, bool what_if);
// Applies the plan that was kept last: all that it said happens, or it is refused because the cluster moved.
void ApplyLast(World& world);

[[nodiscard]] std::vector<uint64_t> SomeNodes(World& world);  // empty = all
void SomeJobs(World& world, JobsArgument& out);
[[nodiscard]] horus_placer* SomePlacer(World& world);
// A progress callback that stops the call at once; `user` is the world.
int32_t StopNow(void* user, double done);

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_PLANS_H_
