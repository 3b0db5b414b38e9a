// SPDX-License-Identifier: Apache-2.0
// The allocation experiment with jobs of measured pairs behind the pods: what is allocated against what sharing costs.
//
// Enters:  the pods and nodes of allocation_run.h, a table of measured pairs, a policy, a bound on slowdowns, a seed.
// Leaves:  allocation at load 100, the slowdowns of the tenants then, and what is left of the allocation after them.
// Units:   per cent of all GPUs; slowdown = speed alone / speed shared.
// Cost:    as a run of allocation_run.h.        Thread class: one thread a run.
#ifndef HORUS_BENCH_QUALITY_ALLOCATION_SHARING_H_
#define HORUS_BENCH_QUALITY_ALLOCATION_SHARING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/quality/allocation_run.h"
#include "bench/quality/pair_slowdowns.h"

namespace horus::bench {

struct SharedOutcome {
  double allocation = 0;    // at load 100
  double useful = 0;        // the same, each GPU's share divided by its tenant's slowdown
  double work = 0;          // summed normalised throughput of all tenants of all GPUs (docs/place.md)
  double slowdown_p50 = 1;  // of the tenants of pods that ask for part of a GPU
  double slowdown_p95 = 1;
  double above_pct = 0;  // of them beyond kUsualBound
};
inline constexpr double kUsualBound = 1.5;  // the default of policy horus

// Each pod is a job of the table, drawn once by its row in the list; on GPUs of every type the table holds alike. It is
// belief and truth at once: what a policy that knows it can do. Arrivals stop at load 100. `bound`: on slowdowns, 0 =
// the policy's default.
[[nodiscard]] absl::StatusOr<SharedOutcome> RunShared(const Experiment& experiment, const PairSlowdowns& table,
                                                      std::string_view policy, double bound, uint64_t seed);

}  // namespace horus::bench

#endif  // HORUS_BENCH_QUALITY_ALLOCATION_SHARING_H_
