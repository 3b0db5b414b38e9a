// SPDX-License-Identifier: Apache-2.0
// What every call that plans shares: the placer and the cluster in use, subsets, the caller's progress function.
//
// Enters:  handles and the caller's arguments.
// Leaves:  a plan handle; errors of the planning, BUSY, cluster and placer of different GPU types.
// Units:   none.
// Cost:    one lock a call.               Thread class: as horus_placer_plan.
#ifndef HORUS_CAPI_PLANNING_H_
#define HORUS_CAPI_PLANNING_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "capi/handles.h"
#include "place/modes/rebalance.h"

namespace horus::capi {

// The caller's progress function, told by share and asked between shares whether to go on.
class CallerProgress {
 public:
  CallerProgress(horus_progress function, void* user) : function_(function), user_(user) {}
  [[nodiscard]] explicit operator bool() const { return function_ != nullptr; }
  // False = cancel, here and below.
  [[nodiscard]] bool Tell(double done);
  // The last share again, at most once a millisecond: a call through a foreign language costs about a microsecond.
  [[nodiscard]] bool Ask();
  // Told by positions; null where the caller gave no function. Borrows.
  [[nodiscard]] ProgressFn Shares();

 private:
  horus_progress function_;
  void* user_;
  double done_ = 0;
  std::chrono::steady_clock::time_point asked_ = {};
};

// `read` may be called when the cluster is needed no more (ReadFn in placer.h).
using Planning = std::function<absl::StatusOr<Plan>(Placer&, const Cluster&, const ReadFn& read)>;

// Runs `planning` with the placer marked as in use and metered, and the cluster locked until it was read.
[[nodiscard]] absl::StatusOr<std::unique_ptr<horus_plan>> PlanWith(horus_placer& placer, const horus_cluster& cluster,
                                                                   CallerProgress& progress, const Planning& planning);

// The same for what makes no plan handle.
using PlacerWork = std::function<absl::Status(Placer&, const Cluster&, const ReadFn& read)>;
[[nodiscard]] absl::Status UsePlacer(horus_placer& placer, const horus_cluster& cluster, CallerProgress& progress,
                                     const PlacerWork& work);

// No column = all nodes.
[[nodiscard]] absl::StatusOr<std::optional<std::span<const NodeId>>> SubsetFromC(size_t count,
                                                                                 const uint64_t* node_ids);
// `job_ids` checked, and left to the caller.
[[nodiscard]] absl::StatusOr<RebalanceOptions> RebalanceFromC(const horus_rebalance_options& c);

}  // namespace horus::capi

#endif  // HORUS_CAPI_PLANNING_H_
