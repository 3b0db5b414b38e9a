// SPDX-License-Identifier: Apache-2.0
// Review: which jobs that share keep what they were promised, and what to do about those that do not.
//
// Enters:  a placer with the model as it is now, a cluster.
// Leaves:  a line for every job beside others, with an advice; a plan that carries out the moves among them.
// Units:   slowdown = shared / alone; useful work per unit of time as in work.h; seconds.
// Cost:    a prediction for every kind of shared device, and a search for each job in trouble, at most max_searches.
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_MODES_REVIEW_H_
#define HORUS_PLACE_MODES_REVIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/plan.h"

namespace horus {

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

#endif  // HORUS_PLACE_MODES_REVIEW_H_
