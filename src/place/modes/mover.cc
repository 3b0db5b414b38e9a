// SPDX-License-Identifier: Apache-2.0
#include "place/modes/mover.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace horus {

absl::StatusOr<Plan> StartPlan(Engine& engine, const Cluster& cluster, WorkMeter& meter) {
  HORUS_RETURN_IF_ERROR(engine.Start(cluster));
  Plan plan;
  plan.model_epoch = engine.scorer().model().epoch();
  plan.has_work = true;
  HORUS_RETURN_IF_ERROR(meter.OfAll(engine.ledger(), plan.work_before));
  plan.work_after = plan.work_before;
  return plan;
}

absl::StatusOr<ResidentMover::Outcome> ResidentMover::Move(JobId id, double cost,
                                                           const std::function<bool(double gain)>& accepts,
                                                           Plan& plan) {
  Ledger& ledger = engine_.ledger();
  const ClusterRows& rows = cluster_.rows();
  const JobRow& row = rows.jobs[rows.RowOfJob(id)];
  const auto job = std::make_shared<const JobSpec>(rows.SpecOf(row));
  std::shared_ptr<const JobSpec> there = job;
  const PlacedSlots from = row.slots;
  const Slots was = SlotsOf(ledger, from);
  double here = 0, left = 0, before = 0, after = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, here));
  const size_t mark = ledger.Mark();
  ledger.Remove(*job, from);
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, left));
  const JobView view = ViewJob(*job);
  Outcome outcome;
  HORUS_ASSIGN_OR_RETURN(outcome.decision, engine_.Decide(view));
  const Decision& decision = outcome.decision;
  double gain = 0;
  if (decision.verdict == Verdict::kPlace && decision.slots != was) {
    const PlacedSlots to = engine_.found().best.slots;
    if (std::shared_ptr<const JobSpec> decided = AsDecided(*job, decision)) there = std::move(decided);
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, before));
    meter_.KnowAt(*job, to);
    ledger.Place(*there, to);
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, after));
    gain = (left - here) + (after - before);  // what the two have in common cancels
    outcome.moved = accepts(gain);
    for (const PlacedSlots* slots : {&from, &to}) {
      for (const PlacedSlot& slot : *slots) {
        if (outcome.moved) touched_.push_back(slot.node_row);
      }
    }
  }
  if (!outcome.moved) {
    ledger.UndoTo(mark);
    return outcome;
  }
  plan.work_after += gain;
  plan.moves.push_back(
      {.kind = ActionKind::kMigrate, .job = id, .from = was, .to = decision.slots, .gain = gain, .cost = cost});
  plan.actions.push_back({ActionKind::kMigrate, std::move(there), decision.slots});
  plan.decisions.push_back(decision);
  return outcome;
}

}  // namespace horus
