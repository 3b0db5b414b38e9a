// SPDX-License-Identifier: Apache-2.0
// What is behind a Placer: its ledgers, searches and what it remembers of refusals; for this room alone.
//
// Enters:  as placer.h.
// Leaves:  the steps that plans, verdicts and modes share.
// Thread class: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "base/status.h"
#include "interference/host_model.h"
#include "place/appraise.h"
#include "place/engine.h"
#include "place/placer.h"
#include "place/search/scorer.h"
#include "place/search/search.h"
#include "place/state/ledger.h"

namespace horus {

// UNIMPLEMENTED where the job wants its slowdown bounded with a probability that the model does not know.
[[nodiscard]] absl::Status CheckConfidence(const JobSpec& job, const InterferenceModel& model);

// Positions of the jobs in planning order; refuses jobs that are wrong, resident, given twice, or ask for what `model`
// does not know. Those of `gone` do not count as resident.
[[nodiscard]] absl::StatusOr<JobOrder> PlanningOrder(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                     const InterferenceModel& model, const IdMap<bool>* gone = nullptr);

[[nodiscard]] inline bool RestsOnPredictions(const JobSpec& job) {
  return std::ranges::any_of(job.demands, [](const TypeDemand& entry) { return IsOnlyPredicted(entry.demand); });
}
// The job as far as it is certain: bounds that are only predicted refuse nothing any more.
[[nodiscard]] JobSpec CertainOf(const JobSpec& job);

class WorkPricer;

struct Placer::Impl {
  Impl(std::shared_ptr<const InterferenceModel> given, std::shared_ptr<const Policy> policy, const FitLimits& limits,
       const PlacerOptions& wanted)
      : options(wanted),
        model(given),
        scorer(WithHostTime(std::move(given)), std::move(policy), limits, wanted.cache_bytes / 2, wanted.exhaustive),
        search(scorer, wanted.cache_bytes / 4),
        emptied_search(scorer, wanted.cache_bytes / 8),
        explainer(scorer),
        rounds(dynamic_cast<const RoundPolicy*>(&scorer.policy())) {
    search.set_rack_oversubscription(wanted.rack_oversubscription);
    search.set_max_candidates(wanted.max_candidates, wanted.seed);
    emptied_search.set_rack_oversubscription(wanted.rack_oversubscription);
    ledger.SetSharingQuota(wanted.sharing_quota);
  }

  // CANCELLED where GoOnFn says so.
  [[nodiscard]] absl::Status GoOn() const {
    if (go_on == nullptr || go_on()) return absl::OkStatus();
    return Cancelled("plan: cancelled");
  }
  absl::Status SelectNodes(const Cluster& cluster, std::optional<std::span<const NodeId>> subset);
  // What the subset leaves out: devices, or nodes for a job without GPUs.
  [[nodiscard]] uint32_t Excluded(const JobView& view) const {
    return IsCpuOnly(*view.job) ? excluded_nodes : excluded_devices;
  }
  [[nodiscard]] bool IsProbe(const JobSpec& job, const PlacedSlot& slot) const {
    if (!options.probe_outside || slot.device == kNoDevice) return false;
    const Demand* demand = FindDemand(job, ledger.state(ledger.device_of(slot)).type);
    return demand != nullptr && IsUnknown(*demand);
  }
  absl::Status DecideWay(const JobSpec& way, ChosenWay& choice);
  // Of a way that was refused: alone, if only the bound of its memory does not fit.
  absl::Status DecideByExpectation(const JobSpec& way, ChosenWay& choice);
  // Of a job that was refused, with why in `result`: under a cap, where that helps.
  absl::Status PlaceCapped(const JobView& view, Decision& decision);
  [[nodiscard]] bool MayBeCapped(const JobSpec& job) const;
  // The largest slowdown that a cap and neighbours together may bring.
  [[nodiscard]] double MostCapped(const JobSpec& job) const;
  // Caps it; demands that the cap alone stretches beyond `most` are gone. False: none is left.
  [[nodiscard]] static bool Cap(JobSpec& job, int32_t cap_pct, double most);
  // Of a placed job: the mode of its devices, chosen where they can have either.
  absl::Status ChooseMode(const JobView& view, std::span<const PlacedSlot> slots, Decision& decision);
  absl::Status GainsBeside(const JobView& view, std::span<const PlacedSlot> slots, uint32_t device, Decision& decision);
  // The work that `next` adds on the device; 0 where it does not come.
  absl::Status GainOf(const JobSpec& next, uint32_t device, double& gain);
  // Refuses what only MakePlan decides: ways to run, and probes.
  absl::Status CheckSettled(const JobSpec& job) const;
  [[nodiscard]] bool IsOpen(const JobSpec& job) const {
    const auto unknown = [](const TypeDemand& entry) { return IsUnknown(entry.demand); };
    return !job.alternatives.empty() || (options.probe_outside && std::ranges::any_of(job.demands, unknown));
  }
  // The way of most worth among those that can be placed; ties go to the first.
  absl::Status Choose(const JobSpec& job, ChosenWay& choice);
  absl::StatusOr<Decision> Decide(const JobView& view, bool sm_caps = false);
  class Grants;  // cores and host memory beside shared GPUs (host/plan_grants.h)
  // Decides the jobs in that order on the ledger as it is; books all but the last, or all.
  absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                        const ProgressFn& progress, Grants* host, Plan& plan);
  // Appends those nodes, once each, as the ledger follows them.
  void AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const;
  absl::StatusOr<Decision> DecideEmptied(const JobView& view);
  // Of one way to run a job, for nodes that no way before took.
  absl::Status VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts);
  // The cost of the job's place on each node by itself, or the reason why it has none.
  absl::Status OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                      std::vector<NodeAnswer>& answers);
  // The same of nodes that refused the job, if it runs there alone by what is expected (DecideByExpectation).
  absl::Status ByExpectation(Search& with, const Ledger& on, const JobSpec& way, std::span<const uint32_t> rows,
                             std::vector<NodeAnswer>& answers);
  // Sets `named` to the rows of `asked`. Callers mostly name the same nodes again.
  absl::Status NameNodes(const Cluster& cluster, std::span<const NodeId> asked);
  absl::Status OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row, NodeAnswer& answer);

  [[nodiscard]] const std::vector<uint32_t>* selected() const { return subset ? &nodes : nullptr; }
  [[nodiscard]] std::span<const uint32_t> considered(const Ledger& of) const { return subset ? nodes : of.order(); }

  PlacerOptions options;
  GoOnFn go_on;
  std::shared_ptr<const InterferenceModel> model;  // as given; the scorer's minds host time
  Scorer scorer;
  Search search;
  Search emptied_search;
  Explainer explainer;
  const RoundPolicy* rounds;  // the policy, if it is one
  Ledger ledger;
  struct Named {
    uint64_t structure = 0;  // ClusterRows::structure
    std::vector<NodeId> ids;
    std::vector<uint32_t> rows;
  };
  Named named;
  Ledger emptied;
  bool subset = false;            // only `nodes` are considered
  std::vector<uint32_t> nodes;    // rows of the subset, ascending id
  uint32_t excluded_devices = 0;  // of nodes outside the subset
  uint32_t excluded_nodes = 0;
  std::vector<const JobSpec*> waiting;  // some of those who are decided next: a mode is chosen for them
  JobView way_view, capped_view;        // of the way that was decided last: the next one uses its memory
  SearchResult result;
  IdMap<Decision> emptied_decisions;   // by JobView::request, for all nodes of the emptied ledger as it is
  uint64_t emptied_at = 0;             // Ledger::changes() of the emptied ledger then
  IdMap<Decision> refused;             // the same, while the ledger stays as it is
  uint64_t refused_at = 0;             // Ledger::changes() then
  std::shared_ptr<WorkPricer> pricer;  // of batches (modes/prices.h); null until one comes
  std::shared_ptr<Grants> grants;      // shared: its type is known to placer.cc alone
};

}  // namespace horus
