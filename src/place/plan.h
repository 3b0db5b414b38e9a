// SPDX-License-Identifier: Apache-2.0
// Plan: a list of actions on a cluster, made without changing it, applied all or nothing.
//
// Enters:  nothing; made by a planner for one state of a cluster.
// Leaves:  a value that Cluster::Apply carries out, or refuses when a node that it touches has changed.
// Units:   see job.h and decision.h.
// Cost:    about 500 bytes a job.         Thread class: value, share freely.
#ifndef HORUS_PLACE_PLAN_H_
#define HORUS_PLACE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "place/decision.h"
#include "place/job.h"

namespace horus {

enum class ActionKind : uint8_t {
  kPlace = 0,
  kResize = 1,   // reserved: Apply answers UNIMPLEMENTED
  kMigrate = 2,  // reserved
  kPreempt = 3,  // reserved
};

struct Action {
  ActionKind kind = ActionKind::kPlace;
  std::shared_ptr<const JobSpec> job;  // never null
  std::vector<Slot> slots;             // ascending (task, node, device)
};

// What the plan knew of a node that it touches.
struct SeenNode {
  NodeId node = 0;
  uint64_t version = 0;
  friend bool operator==(const SeenNode&, const SeenNode&) = default;
};

struct Plan {
  std::vector<Action> actions;      // in planning order
  std::vector<Decision> decisions;  // one per job, in planning order: (priority descending, submit_us, id)
  std::vector<SeenNode> seen;       // the nodes that the actions use, ascending id
  uint64_t model_epoch = 0;         // of the interference model that predicted the effects
};

}  // namespace horus

#endif  // HORUS_PLACE_PLAN_H_
