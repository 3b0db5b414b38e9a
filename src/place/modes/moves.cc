// SPDX-License-Identifier: Apache-2.0
// A job leaves the ledger, is decided, and is booked again.
#include "place/modes/moves.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace horus {

std::vector<Slot> SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed) {
  std::vector<Slot> slots;
  slots.reserve(placed.size());
  for (const PlacedSlot& slot : placed) slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
  return slots;
}

absl::StatusOr<ResidentMover::Outcome> ResidentMover::Move(JobId id, double cost,
                                                           const std::function<bool(double gain)>& accepts,
                                                           Plan& plan) {
  Ledger& ledger = engine_.ledger();
  const ClusterRows& rows = cluster_.rows();
  const JobRow& row = rows.jobs[rows.RowOfJob(id)];
  auto job = std::make_shared<const JobSpec>(rows.SpecOf(row));
  const std::vector<PlacedSlot> from(row.slots.begin(), row.slots.end());
  const std::vector<Slot> was = SlotsOf(ledger, from);
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
    const std::vector<PlacedSlot> to = engine_.found().best.slots;
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, before));
    meter_.KnowAt(*job, to);
    ledger.Place(*job, to);
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, after));
    gain = (left - here) + (after - before);  // what the two have in common cancels
    outcome.moved = accepts(gain);
    for (const std::span<const PlacedSlot> slots : {std::span(from), std::span(to)}) {
      for (const PlacedSlot& slot : slots) {
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
  plan.actions.push_back({ActionKind::kMigrate, std::move(job), decision.slots});
  plan.decisions.push_back(decision);
  return outcome;
}

}  // namespace horus
