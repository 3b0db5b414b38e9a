// SPDX-License-Identifier: Apache-2.0
// ResidentMover: a resident leaves the ledger, is decided anew, and is booked again; for the modes that move jobs.
//
// Enters:  an engine that has started on the cluster.
// Leaves:  moves in a plan, with what all gain by them.
// Cost:    a search a resident, and the work of the devices that it leaves and comes to.
// Thread class: one thread at a time, with the placer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "place/engine.h"
#include "place/work.h"

namespace horus {

// The engine started, and a plan that changes nothing yet.
[[nodiscard]] absl::StatusOr<Plan> StartPlan(Engine& engine, const Cluster& cluster, WorkMeter& meter);

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
