// SPDX-License-Identifier: Apache-2.0
// Rebalance, evacuate, review: plans that move jobs which run, for the gain, off some nodes, or out of trouble.
//
// Enters:  a placer, a cluster, what a migration costs and how many there may be.
// Leaves:  a plan of migrations, each with gain and cost; the work of the cluster before and after.
// Units:   seconds; useful work per unit of time as in engine.h.
// Cost:    once the work of every device; then one search a look at a job, of which there are at most max_searches.
// Thread class: one thread at a time, with the placer.
#pragma once

#include "place/placer.h"

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

// ---- Evacuate: everything off some nodes, in one plan.
// Cost: a search a job that is there, and once the work of every device.

// The jobs with a task on one of the nodes, in planning order, each where the policy wants it now: anywhere but there.
// A gang moves as a whole and may come back to its other nodes. What finds no place stays, and its decision says why;
// those after it are placed as though it stayed. The nodes' own states do not change: drain them first, so that
// nothing new comes.
// `progress`: jobs decided, of all that are there.
// NOT_FOUND (a node), CANCELLED, and what model or policy return.
[[nodiscard]] absl::StatusOr<Plan> Evacuate(Placer& placer, const Cluster& cluster, std::span<const NodeId> nodes,
                                            const ProgressFn& progress = nullptr);

// ---- Review: which jobs that share keep what they were promised, and what to do about those that do not.
// Cost: a prediction for every kind of shared device, and a search for each job in trouble, at most max_searches.

// The values cross the C boundary: never renumber.
enum class Advice : uint8_t {
  kStay = 0,
  kMove = 1,      // the plan moves it
  kRunAlone = 2,  // no place is better: it, or who is beside it, has to leave
};

// A job where it is slowest among the devices that it shares.
struct TenantReview {
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  Slowdown slowdown;
  double held = 1;       // what is held against its bound: the slowdown not exceeded with its confidence
  double bound = 0;      // its own or the placer's; infinity = none
  double pack_work = 0;  // of all who are on that device, 1 = one of them alone; below 1 taking turns does more
  bool trial = false;    // as of a Decision: by the upper bounds that work is below 1
  Advice advice = Advice::kStay;
  [[nodiscard]] bool broken() const;  // its bound is
  [[nodiscard]] bool loses() const;   // its pack does less than one job alone
};

struct ReviewResult {
  std::vector<TenantReview> tenants;  // broken bounds first, the furthest ahead; then by pack_work; then by id
  Plan plan;                          // the moves; empty where none helps
};

// Who is fine stays. Who is not moves where the policy wants it now: for a broken bound wherever all bounds are kept,
// to do more work where that gains more than the downtime costs. Whom an earlier move relieves stays too. `options`: as
// of Rebalance, min_gain included. INVALID_ARGUMENT (options), CANCELLED, and what model or policy return.
[[nodiscard]] absl::StatusOr<ReviewResult> Review(Placer& placer, const Cluster& cluster,
                                                  const RebalanceOptions& options = {});

}  // namespace horus
