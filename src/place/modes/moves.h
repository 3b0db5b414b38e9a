// SPDX-License-Identifier: Apache-2.0
// What the modes share: slots in rows and slots in ids, and a resident that is decided anew.
//
// Enters:  a ledger, slots; an engine that follows a cluster, and a resident of it.
// Leaves:  the same slots as the other side calls them; a move in a plan.
// Units:   as decision.h; useful work as in work.h.
// Cost:    O(slots); a search a resident.   Thread class: pure functions; one thread at a time, with the engine.
#ifndef HORUS_PLACE_MODES_MOVES_H_
#define HORUS_PLACE_MODES_MOVES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "place/decision.h"
#include "place/engine.h"
#include "place/plan.h"
#include "place/state/ledger.h"
#include "place/work.h"

namespace horus {

[[nodiscard]] std::vector<Slot> SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed);

// Moves residents to where the policy wants them as things stand in the ledger, which the plan follows.
class ResidentMover {
 public:
  // All must outlive it. The engine has started on the cluster.
  ResidentMover(Engine& engine, WorkMeter& meter, const Cluster& cluster)
      : engine_(engine), meter_(meter), cluster_(cluster) {}

  // The decision about the job as though it were not there. Where it has another place and `accepts` takes what all
  // gain by that, the job is moved, in the ledger and in the plan, whose work_after follows; else all is as it was.
  struct Outcome {
    Decision decision;
    bool moved = false;
  };
  [[nodiscard]] absl::StatusOr<Outcome> Move(JobId id, double cost, const std::function<bool(double gain)>& accepts,
                                             Plan& plan);
  // Notes in the plan what it saw of the nodes that jobs left and came to.
  void AddSeen(Plan& plan) const { engine_.AddSeen(touched_, plan); }

 private:
  Engine& engine_;
  WorkMeter& meter_;
  const Cluster& cluster_;
  std::vector<uint32_t> touched_;  // rows of nodes
};

}  // namespace horus

#endif  // HORUS_PLACE_MODES_MOVES_H_
