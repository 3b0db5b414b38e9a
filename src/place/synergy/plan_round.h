// SPDX-License-Identifier: Apache-2.0
// A plan as one round of a synergy rule; of this folder only.
//
// Enters:  a placer's parts; jobs in order, some of which may run.
// Leaves:  a plan.
// Units:   as round.h and placer.h.
// Cost:    that of the round, and a search for each job that it leaves out.
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_SYNERGY_PLAN_ROUND_H_
#define HORUS_PLACE_SYNERGY_PLAN_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/id_map.h"
#include "place/placer_impl.h"
#include "place/synergy/cluster_round.h"
#include "place/synergy/refusal.h"

namespace horus {

class Placer::Impl::Round {
 public:
  // Where a job of the round runs until now.
  struct Lease {
    std::shared_ptr<const JobSpec> spec;
    std::vector<PlacedSlot> slots;
    std::vector<SynergySlice> slices;  // of the round's servers; none where a node is not up
  };

  Round(Impl& my, std::span<const JobSpec> jobs, std::span<const uint32_t> order, const ProgressFn& progress,
        std::vector<Lease> leases = {})
      : my_(my),
        settings_(*my.scorer.policy().round()),
        jobs_(jobs),
        order_(order),
        progress_(progress),
        leases_(std::move(leases)) {
    leases_.resize(order.size());
  }

  // Those of `gone` are jobs of the round, and not in the ledger.
  absl::StatusOr<Plan> Make(const Cluster& cluster, const ReadFn& read, const IdMap<bool>* gone = nullptr);

 private:
  using Servers = std::vector<uint32_t>;

  absl::Status Step();  // between two jobs
  [[nodiscard]] const JobSpec& JobAt(size_t at) const { return jobs_[order_[at]]; }

  // The jobs that the rule knows, and where they may run.
  absl::Status Gather();
  // Servers whose labels, groups and kind of GPU admit the job: as they are, or idle and up.
  absl::Status Admitting(const JobSpec& job, bool idle, const Servers*& servers);
  void Resize(const SynergyResize& resize);
  absl::Status Grant(size_t at, const SynergyGrant& grant);
  [[nodiscard]] std::vector<PlacedSlot> ChooseSlots(size_t at, const SynergyGrant& grant) const;
  // What becomes of a job that ran: it stays, moves or leaves.
  void Renew(size_t at, const SynergyGrant& grant, std::shared_ptr<const JobSpec> granted,
             std::span<const PlacedSlot> slots, Decision decision);
  void Expire(size_t at);
  [[nodiscard]] Move MoveOf(ActionKind kind, size_t at, double speed) const;
  absl::Status PlaceOther(size_t at);
  // Whoever the round left out, with all others in their places.
  absl::Status RefuseRest();
  absl::Status Refuse(size_t at, const RoundRefusals& refusals);
  void Add(std::shared_ptr<const JobSpec> job, std::span<const PlacedSlot> slots, Decision decision, size_t at) {
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
    plan_.actions.push_back({ActionKind::kPlace, std::move(job), decision.slots});
    plan_.decisions[at] = std::move(decision);
  }

  Impl& my_;
  const SynergySettings& settings_;
  std::span<const JobSpec> jobs_;
  std::span<const uint32_t> order_;
  const ProgressFn& progress_;
  std::vector<Lease> leases_;  // by position in the order
  uint64_t done_ = 0;
  Plan plan_;
  std::vector<uint32_t> touched_;  // node rows
  ClusterRound state_;
  std::vector<RoundJob> wanted_;                    // by position in the order; without spec: not for the rule
  std::vector<size_t> runnable_;                    // positions of those that some server admits
  IdMap<std::unique_ptr<Servers>> admitting_;       // by JobView::request
  IdMap<std::unique_ptr<Servers>> admitting_idle_;  // the same
  IdMap<bool> fits_alone_;                          // by that and the sensitivity
};

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_PLAN_ROUND_H_
