// SPDX-License-Identifier: Apache-2.0
// Changes: what a plan does to a cluster, and on which nodes it relies.
//
// Enters:  nothing; made by the placer and its modes.
// Leaves:  actions, all or nothing (Cluster::Apply).
// Cost:    about 900 bytes a job, and a copy of the JobSpec.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "place/job/job.h"

namespace horus {

enum class ActionKind : uint8_t {
  kPlace = 0,
  kResize = 1,   // a resident gets the CPU and host memory of `job`, and nothing else changes; no slots
  kMigrate = 2,  // a resident moves to `slots`
  kPreempt = 3,  // a resident leaves; no slots
};

struct Action {
  ActionKind kind = ActionKind::kPlace;
  std::shared_ptr<const JobSpec> job;  // never null
  Slots slots;                         // ascending (task, node, device)
};
using Actions = absl::InlinedVector<Action, 1>;

// The version of a node on which the plan relies.
struct SeenNode {
  NodeId node = 0;
  uint64_t version = 0;
  friend bool operator==(const SeenNode&, const SeenNode&) = default;
};
using SeenNodes = absl::InlinedVector<SeenNode, 1>;

struct Changes {
  Actions actions;            // in planning order
  SeenNodes seen;             // the nodes that the actions use, ascending id
  bool hypothetical = false;  // answers a what-if: Apply refuses it
};

}  // namespace horus
