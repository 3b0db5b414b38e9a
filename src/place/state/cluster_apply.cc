// SPDX-License-Identifier: Apache-2.0
// Applies a plan to a cluster: all of its actions, or none.
#include <algorithm>
#include <utility>
#include <vector>

#include "place/fit.h"
#include "place/state/cluster.h"
#include "place/state/cluster_undo.h"

namespace horus {
namespace {

std::string JobText(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

bool Leaves(const Action& action) { return action.kind == ActionKind::kMigrate || action.kind == ActionKind::kPreempt; }
bool Comes(const Action& action) { return action.kind == ActionKind::kPlace || action.kind == ActionKind::kMigrate; }

}  // namespace

absl::Status Cluster::ApplyLeave(const Action& action, std::span<const NodeId> seen, Undo& undo) {
  const uint32_t row = rows_.RowOfJob(action.job->id);
  if (row == kNoRow) return InvalidArgument("plan: %s: leaves twice", JobText(*action.job));
  for (const PlacedSlot& slot : rows_.jobs[row].slots) {
    const NodeId node = rows_.nodes[slot.node_row].spec->id;
    if (std::binary_search(seen.begin(), seen.end(), node)) continue;
    return InvalidArgument("plan: %s: is on node %d, which is not among the nodes that the plan saw",
                           JobText(*action.job), node);
  }
  rows_.states.ReserveFree();
  undo.Left(TakeJob(row));
  return absl::OkStatus();
}

absl::Status Cluster::ApplyCome(const Action& action, std::span<const NodeId> seen, Undo& undo) {
  const JobSpec& job = *action.job;
  for (const Slot& slot : action.slots) {
    if (std::binary_search(seen.begin(), seen.end(), slot.node)) continue;
    return InvalidArgument("plan: %s: node %d is not among the nodes that the plan saw", JobText(job), slot.node);
  }
  if (HasJob(job.id)) {
    return MakeError(absl::StatusCode::kAlreadyExists, "%s: is in this cluster already", JobText(job));
  }
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(std::vector<PlacedSlot> placed, ResolveSlots(job, action.slots));
  if (job_count() >= limits_.jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: a cluster holds at most %d jobs", JobText(job),
                     limits_.jobs);
  }
  if (const Reason reason = FirstBrokenRule(job, placed, PhysicalLimits(), /*runs=*/false); reason != Reason::kNone) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: does not fit where the plan puts it: %s", JobText(job),
                     std::string(ReasonText(reason)));
  }
  InsertJob(job, placed, /*adopted=*/false, /*over_committed=*/false);
  undo.Came(job.id);
  return absl::OkStatus();
}

absl::Status Cluster::CheckActions(const Plan& plan) const {
  if (plan.hypothetical) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "plan: answers a what-if, which cannot be applied");
  }
  std::vector<JobId> resized;
  for (const Action& action : plan.actions) {
    if (action.job == nullptr) return InvalidArgument("plan: an action has no job");
    if (action.kind == ActionKind::kResize) resized.push_back(action.job->id);
    if (action.kind > ActionKind::kPreempt) {
      return MakeError(absl::StatusCode::kUnimplemented, "plan: actions of kind %d are reserved",
                       static_cast<int>(action.kind));
    }
    if (action.kind == ActionKind::kPlace && HasJob(action.job->id)) {
      return MakeError(absl::StatusCode::kAlreadyExists, "%s: is in this cluster already", JobText(*action.job));
    }
    if (!Comes(action) && !action.slots.empty()) {
      return InvalidArgument("plan: %s: expected no slots for a job that is preempted or resized, found %d",
                             JobText(*action.job), action.slots.size());
    }
  }
  std::sort(resized.begin(), resized.end());
  const auto twice = std::adjacent_find(resized.begin(), resized.end());
  if (twice != resized.end()) return InvalidArgument("plan: job %d: is resized twice", *twice);
  return absl::OkStatus();
}

absl::Status Cluster::Apply(const Plan& plan) {
  HORUS_RETURN_IF_ERROR(CheckActions(plan));
  std::vector<NodeId> seen;
  for (const SeenNode& node : plan.seen) {
    const uint32_t* at = rows_.node_of.Find(node.node);
    if (at == nullptr) {
      return MakeError(absl::StatusCode::kAborted, "node %d: was removed since the plan was made", node.node);
    }
    const NodeRow& row = rows_.nodes[*at];
    if (row.version != node.version) {
      return MakeError(absl::StatusCode::kAborted, "node %s: has changed since the plan was made",
                       IdAndName(node.node, row.spec->name));
    }
    seen.push_back(node.node);
  }
  std::sort(seen.begin(), seen.end());
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kPlace || HasJob(action.job->id)) continue;
    return MakeError(absl::StatusCode::kNotFound, "%s: not in this cluster", JobText(*action.job));
  }
  Undo undo(*this, plan);
  // Whoever leaves or moves goes first, so that jobs can change places.
  for (const Action& action : plan.actions) {
    if (Leaves(action)) HORUS_RETURN_IF_ERROR(ApplyLeave(action, seen, undo));
  }
  std::vector<Growth> grown;
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kResize) HORUS_RETURN_IF_ERROR(ApplyResize(action, seen, undo, grown));
  }
  for (const Action& action : plan.actions) {
    if (Comes(action)) HORUS_RETURN_IF_ERROR(ApplyCome(action, seen, undo));
  }
  HORUS_RETURN_IF_ERROR(CheckGrown(grown));
  undo.Keep();
  return absl::OkStatus();
}

}  // namespace horus
