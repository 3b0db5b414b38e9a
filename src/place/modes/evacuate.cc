// SPDX-License-Identifier: Apache-2.0
// Each job in turn leaves the ledger, in which the nodes are drained, and is decided anew.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "place/modes/mover.h"
#include "place/modes/rebalance.h"

namespace horus {
namespace {

class Evacuation {
 public:
  Evacuation(Placer& placer, const Cluster& cluster)
      : engine_(placer.engine()), cluster_(cluster), meter_(cluster, engine_.scorer()) {}

  absl::StatusOr<Plan> Run(std::span<const NodeId> nodes, const ProgressFn& progress);

 private:
  absl::Status Drain(std::span<const NodeId> nodes);
  void Gather();

  Engine& engine_;
  const Cluster& cluster_;
  WorkMeter meter_;
  std::vector<uint32_t> rows_;  // of the nodes, ascending
  std::vector<JobSpec> jobs_;   // that are there
};

absl::Status Evacuation::Drain(std::span<const NodeId> nodes) {
  for (const NodeId id : nodes) {
    const uint32_t* row = cluster_.rows().node_of.Find(id);
    if (row == nullptr) {
      return NotFound("evacuate: node %d: not in this cluster", id);
    }
    rows_.push_back(*row);
  }
  std::ranges::sort(rows_);
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  for (const uint32_t row : rows_) engine_.ledger().SetNodeState(row, AdminState::kDrained);
  return absl::OkStatus();
}

void Evacuation::Gather() {
  const ClusterRows& rows = cluster_.rows();
  for (const JobId id : cluster_.JobIds()) {
    const JobRow& job = rows.jobs[rows.RowOfJob(id)];
    const bool there = std::ranges::any_of(job.slots, [&](const PlacedSlot& slot) {
      return std::binary_search(rows_.begin(), rows_.end(), slot.node_row);
    });
    if (there) jobs_.push_back(rows.SpecOf(job));
  }
}

absl::StatusOr<Plan> Evacuation::Run(std::span<const NodeId> nodes, const ProgressFn& progress) {
  HORUS_ASSIGN_OR_RETURN(Plan plan, StartPlan(engine_, cluster_, meter_));
  HORUS_RETURN_IF_ERROR(Drain(nodes));
  Gather();
  ResidentMover mover(engine_, meter_, cluster_);
  IdMap<bool> gone;
  for (const JobSpec& job : jobs_) gone.Insert(job.id, true);
  HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine_.Order(cluster_, jobs_, &gone));
  for (size_t i = 0; i < order.size(); ++i) {
    if (progress != nullptr && !progress(i, order.size())) {
      return Cancelled("evacuate: cancelled after %d of %d jobs", i, order.size());
    }
    HORUS_ASSIGN_OR_RETURN(ResidentMover::Outcome outcome,
                           mover.Move(jobs_[order[i]].id, 0, [](double) { return true; }, plan));
    if (!outcome.moved) plan.decisions.push_back(std::move(outcome.decision));
  }
  mover.AddSeen(plan);
  return plan;
}

}  // namespace

absl::StatusOr<Plan> Evacuate(Placer& placer, const Cluster& cluster, std::span<const NodeId> nodes,
                              const ProgressFn& progress) {
  return Evacuation(placer, cluster).Run(nodes, progress);
}

}  // namespace horus
