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
  kResize = 1,   // a resident stays where it is with the CPU and host memory of `job`, else unchanged; no slots
  kMigrate = 2,  // a resident goes to `slots`; it stays the same job
  kPreempt = 3,  // a resident leaves; no slots
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

// CPU and host memory of each task of a job.
struct HostHolding {
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend bool operator==(const HostHolding&, const HostHolding&) = default;
};

// What a plan takes from a resident, for whom, and what for. Values are useful work (work.h) per unit of time.
struct Move {
  ActionKind kind = ActionKind::kMigrate;  // or kPreempt, kResize
  JobId job = 0;
  std::vector<Slot> from;  // ascending (task, node, device)
  std::vector<Slot> to;    // empty for a preemption; of a resize as `from`
  double gain = 0;         // of the cluster by this move, after those before it; negative for what a victim loses; of a
                           // resize by how much the job's speed changes, by its sensitivity (1 = at its fair share)
  double cost = 0;         // of a migration: work lost while it is down, spread over the horizon
  HostHolding host_from;   // of a resize, and the next
  HostHolding host_to;
  friend bool operator==(const Move&, const Move&) = default;
};

// One place where a job would fit once its victims are gone.
struct PreemptionCandidate {
  NodeId node = 0;             // of the first slot
  std::vector<Slot> slots;     // where the job would go; ascending (task, node, device)
  std::vector<JobId> victims;  // ascending
  std::vector<double> losses;  // of each: useful work, weighted by priority
  double loss = 0;             // their sum
  bool exact = false;          // no cheaper set of victims makes room on this node
  friend bool operator==(const PreemptionCandidate&, const PreemptionCandidate&) = default;
};

struct Plan {
  std::vector<Action> actions;                  // in planning order
  std::vector<Decision> decisions;              // one per job, in planning order: (priority descending, submit_us, id)
  std::vector<SeenNode> seen;                   // the nodes that the actions use, ascending id
  uint64_t model_epoch = 0;                     // of the interference model that predicted the effects
  bool hypothetical = false;                    // answers a what-if: Apply refuses it
  bool has_work = false;                        // the next two were computed
  double work_before = 0;                       // useful work of the cluster (work.h)
  double work_after = 0;                        // and with the plan carried out
  std::vector<Move> moves;                      // one per action on a resident, in the order of the actions
  std::vector<PreemptionCandidate> candidates;  // of a preemption plan: ascending loss, the first is carried out
};

}  // namespace horus

#endif  // HORUS_PLACE_PLAN_H_
