// SPDX-License-Identifier: Apache-2.0
// Rebalance: at most k migrations of residents that gain more useful work than they cost.
//
// Enters:  a placer, a cluster, what a migration costs and how many there may be.
// Leaves:  a plan of migrations, each with gain and cost; the work of the cluster before and after.
// Units:   seconds; useful work per unit of time as in work.h.
// Cost:    once the work of every device; then one search a look at a job, of which there are at most max_searches.
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_MODES_REBALANCE_H_
#define HORUS_PLACE_MODES_REBALANCE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "place/placer.h"
#include "place/plan.h"

namespace horus {

struct RebalanceOptions {
  uint32_t max_migrations = 16;
  double downtime_s = 30;   // checkpoint, move, restart: what the job does not work. Chosen: a few GB over a network
  double horizon_s = 3600;  // over which the gain is counted: how long the jobs are expected to stay as they are
  double min_gain = 0;      // a migration must gain more than its cost by this
  uint64_t max_searches = 10'000;  // places looked for in all: bounds the time of the call
};

// Greedy by net gain, exact in each step: among the residents within the search's budget, the move that gains most
// after its cost, where the policy's best or next best place for the job is the destination; then the next one.
// `jobs`: the only ones that may be moved; none = all. Nothing that gains is an empty plan, not an error.
// `progress`: migrations found, of max_migrations.
// INVALID_ARGUMENT (options), NOT_FOUND (a job), CANCELLED, and what model or policy return.
[[nodiscard]] absl::StatusOr<Plan> Rebalance(Placer& placer, const Cluster& cluster, const RebalanceOptions& options,
                                             std::optional<std::span<const JobId>> jobs = std::nullopt,
                                             const ProgressFn& progress = nullptr);

// INVALID_ARGUMENT (option, expected, found); for the modes that take the same options.
[[nodiscard]] absl::Status CheckRebalance(const RebalanceOptions& options);

}  // namespace horus

#endif  // HORUS_PLACE_MODES_REBALANCE_H_
