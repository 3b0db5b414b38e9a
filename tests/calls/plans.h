// SPDX-License-Identifier: Apache-2.0
// What actions that plan share.
#ifndef HORUS_TESTS_CALLS_PLANS_H_
#define HORUS_TESTS_CALLS_PLANS_H_

#include <cstdint>
#include <vector>

#include "calls/arguments.h"
#include "calls/harness.h"

namespace horus::calls {

// Reads all that a plan says, checks it, and keeps it to be applied now or later.
void Keep(Harness& harness, horus_plan* plan, bool what_if);
// What it has beside its decisions.
horus_plan_info InfoOf(Harness& harness, const horus_plan* plan);
// Applies the plan that was kept last: all that it said happens, or it is refused because the cluster moved.
void ApplyLast(Harness& harness);

[[nodiscard]] std::vector<uint64_t> SomeNodes(Harness& harness);  // empty = all
void SomeJobs(Harness& harness, JobsArgument& out);
[[nodiscard]] horus_placer* SomePlacer(Harness& harness);
// A progress callback that stops the call at once; `user` is the harness.
int32_t StopNow(void* user, double done);

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_PLANS_H_
