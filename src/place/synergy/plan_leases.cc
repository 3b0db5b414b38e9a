// SPDX-License-Identifier: Apache-2.0
// What becomes of jobs that run when a round decides them again.
#include <utility>

#include "base/status.h"
#include "place/modes/moves.h"
#include "place/synergy/plan_round.h"

namespace horus {

Move Placer::Impl::Round::MoveOf(ActionKind kind, size_t at, double speed) const {
  const Lease& lease = leases_[at];
  const JobSpec& was = *lease.spec;
  Move move{.kind = kind, .job = was.id, .from = SlotsOf(my_.ledger, lease.slots)};
  const HostShare held = {was.cpu_milli / was.gpus_per_task, was.mem_mib / was.gpus_per_task};
  const Sensitivity* matrix = was.sensitivity.get();
  move.gain = speed - (matrix == nullptr ? 1 : matrix->Speed(held));
  move.host_from = {was.cpu_milli, was.mem_mib};
  return move;
}

void Placer::Impl::Round::Renew(size_t at, const SynergyGrant& grant, std::shared_ptr<const JobSpec> granted,
                                std::span<const PlacedSlot> slots, Decision decision) {
  const Lease& lease = leases_[at];
  const bool stays = grant.slices == lease.slices;
  const bool alike = granted->cpu_milli == lease.spec->cpu_milli && granted->mem_mib == lease.spec->mem_mib;
  if (!stays || !alike) {
    Move move = MoveOf(stays ? ActionKind::kResize : ActionKind::kMigrate, at, grant.speed);
    move.to = decision.slots;
    move.host_to = {granted->cpu_milli, granted->mem_mib};
    for (const PlacedSlot& slot : lease.slots) touched_.push_back(slot.node_row);
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
    plan_.actions.push_back({move.kind, std::move(granted), stays ? std::vector<Slot>() : decision.slots});
    plan_.moves.push_back(std::move(move));
  }
  plan_.decisions[at] = std::move(decision);
}

void Placer::Impl::Round::Expire(size_t at) {
  for (const PlacedSlot& slot : leases_[at].slots) touched_.push_back(slot.node_row);
  plan_.moves.push_back(MoveOf(ActionKind::kPreempt, at, 0));
  plan_.actions.push_back({ActionKind::kPreempt, leases_[at].spec, {}});
}

absl::StatusOr<Plan> Placer::MakeRound(const Cluster& cluster, std::span<const JobSpec> jobs, const ReadFn& read) {
  Impl& my = *impl_;
  if (my.scorer.policy().round() == nullptr) {
    return MakeError(absl::StatusCode::kUnimplemented, "policy %s: expected one that decides rounds",
                     std::string(my.scorer.policy().name()));
  }
  if (jobs.size() > my.options.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "round: expected at most %d jobs, found %d",
                     my.options.max_jobs, jobs.size());
  }
  std::vector<JobSpec> known(jobs.begin(), jobs.end());
  std::vector<Impl::Round::Lease> leases(jobs.size());
  IdMap<bool> gone;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < jobs.size(); ++i) {
    order.push_back(i);
    const uint32_t row = cluster.rows().RowOfJob(jobs[i].id);
    if (row == kNoRow || gone.contains(jobs[i].id)) continue;
    const JobRow& held = cluster.rows().jobs[row];
    known[i] = cluster.rows().SpecOf(held);
    if (!TakesRounds(known[i])) {
      return InvalidArgument("round: job %s: expected whole GPUs of one that runs, found others",
                             IdAndName(known[i].id, known[i].name));
    }
    leases[i] = {std::make_shared<const JobSpec>(known[i]), {held.slots.begin(), held.slots.end()}, {}};
    gone.Insert(jobs[i].id, true);
  }
  HORUS_RETURN_IF_ERROR(PlanningOrder(cluster, known, my.scorer.model(), &gone).status());
  HORUS_RETURN_IF_ERROR(my.SelectNodes(cluster, std::nullopt));
  my.ledger.Follow(cluster);
  for (const Impl::Round::Lease& lease : leases) {
    if (lease.spec != nullptr) my.ledger.Remove(*lease.spec, lease.slots);
  }
  return Impl::Round(my, known, order, nullptr, std::move(leases)).Make(cluster, read, &gone);
}

}  // namespace horus
