// SPDX-License-Identifier: Apache-2.0
// Engine: what a placer plans with — ledger, scorer, searches, and what it remembers of refusals — for the placer and
// the modes.
//
// Enters:  the cluster it is to follow, or a part of it; jobs.
// Leaves:  plans, places, decisions and verdicts found on its own ledger, which modes book on and take back.
// Cost:    as placer.h; whatever is booked is taken back by the next Follow.
// Thread class: one thread at a time.
#pragma once

#include "place/appraise.h"
#include "place/placer.h"

namespace horus {

class PlanGrants;  // host/plan_grants.h
class RoundPolicy;
class WorkPricer;  // search/prices.h

// UNIMPLEMENTED where the job wants its slowdown bounded with a probability that the model does not know.
[[nodiscard]] absl::Status CheckConfidence(const JobSpec& job, const InterferenceModel& model);

// A job's way to run, the decision on it, and where it goes.
struct ChosenWay {
  Decision decision;
  PlacedSlots slots;
  std::shared_ptr<JobSpec> job;  // null unless placed
  double worth = 0;
};

class Engine {
 public:
  // `options` were checked.
  Engine(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Policy> policy,
         const PlacerOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- The cluster (engine.cc).
  // The ledger as the cluster is. UNIMPLEMENTED: a RoundPolicy. NOT_FOUND: a node of the subset, which is the only one
  // considered from then on.
  [[nodiscard]] absl::Status Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset = {});
  // The same whatever the policy.
  [[nodiscard]] absl::Status Follow(const Cluster& cluster, std::optional<std::span<const NodeId>> subset = {});

  // ---- Jobs in order (engine.cc).
  // Checks the jobs as MakePlan does, those of `gone` not counting as resident, and gives their planning order.
  [[nodiscard]] absl::StatusOr<JobOrder> Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                               const IdMap<bool>* gone = nullptr) const;
  // The same of jobs with ways to run or probes too, which most modes refuse.
  [[nodiscard]] absl::StatusOr<JobOrder> OrderAny(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                  const IdMap<bool>* gone = nullptr) const;
  // As Placer.
  [[nodiscard]] absl::StatusOr<Plan> MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                              std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                              const ReadFn& read);
  // Decides them in that order on the ledger as it is, and books them; fills `plan` as MakePlan does.
  [[nodiscard]] absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order,
                                      const ProgressFn& progress, Plan& plan) {
    return PlanJobs(jobs, order, /*book_last=*/true, progress, /*host=*/nullptr, plan);
  }
  // Appends those nodes to what the plan saw, once each.
  void AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const;
  // Some of those who are decided after the next one; forgotten by Start and Follow. A mode is chosen for them where a
  // device can have either.
  void SetWaiting(std::span<const JobSpec* const> jobs);

  // ---- One job on the ledger as it is, booking nothing (decide.cc).
  // The way of most worth among those that can be placed; ties go to the first.
  [[nodiscard]] absl::StatusOr<ChosenWay> Choose(const JobSpec& job);
  // Whether Decide never settles the job (ways to run, probes); whether Choose may place one that Decide does not.
  [[nodiscard]] bool IsOpen(const JobSpec& job) const;
  [[nodiscard]] bool HasOtherWays(const JobSpec& job) const;
  // Of the job as it is; found() has the place.
  [[nodiscard]] absl::StatusOr<Decision> Decide(const JobView& view) { return Decide(view, /*sm_caps=*/false); }
  [[nodiscard]] const SearchResult& found() const { return result_; }
  // The same without a word about refusals; `nodes`: rows, ascending id, null = all that are considered.
  [[nodiscard]] absl::Status Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found);
  // The policy's price of the placement's slots; of jobs that are not priced by node.
  [[nodiscard]] absl::Status Price(const JobView& view, Placement& placement);
  // The decision that puts the job where `found` says; the ledger does not hold it.
  [[nodiscard]] absl::StatusOr<Decision> Explain(const JobView& view, const SearchResult& found);
  // Whether the job would be a probe there (PlacerOptions::probe_outside).
  [[nodiscard]] bool IsProbe(const JobSpec& job, const PlacedSlot& slot) const;

  // ---- One job against nodes one by one (decide.cc). As Placer.
  [[nodiscard]] absl::StatusOr<NodeVerdicts> Verdicts(const Cluster& cluster, const JobSpec& job,
                                                      std::span<const NodeId> nodes, const ReadFn& read);

  // ---- The parts.
  // For long work without them: CANCELLED where GoOnFn says so.
  [[nodiscard]] absl::Status GoOn() const;
  void SetGoOn(GoOnFn go_on) { go_on_ = std::move(go_on); }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  [[nodiscard]] const Ledger& emptied();  // the cluster of the ledger empty and up
  [[nodiscard]] Scorer& scorer() { return scorer_; }
  [[nodiscard]] const Scorer& scorer() const { return scorer_; }
  [[nodiscard]] const std::shared_ptr<const InterferenceModel>& model() const { return model_; }
  [[nodiscard]] const PlacerOptions& options() const { return options_; }
  [[nodiscard]] const Policy& policy() const { return scorer_.policy(); }
  [[nodiscard]] WorkPricer& pricer();
  // Rows that are considered; of a subset alone, null = all.
  [[nodiscard]] std::span<const uint32_t> nodes() const { return considered(ledger_); }
  [[nodiscard]] const std::vector<uint32_t>* selected() const { return subset_ ? &nodes_ : nullptr; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  absl::Status SelectNodes(const Cluster& cluster, std::optional<std::span<const NodeId>> wanted);
  // Books all but the last, or all.
  absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                        const ProgressFn& progress, PlanGrants* host, Plan& plan);
  // Refuses what only MakePlan decides: ways to run, and probes.
  [[nodiscard]] absl::Status CheckSettled(const JobSpec& job) const;

  absl::StatusOr<Decision> Decide(const JobView& view, bool sm_caps);
  absl::StatusOr<Decision> DecideEmptied(const JobView& view);
  absl::StatusOr<ChosenWay> DecideWay(const JobSpec& way);
  void TakeFound(ChosenWay& choice);  // of a decision and a job: where it goes, and that a probe is alone
  // Of a way that was refused: alone, if only the bound of its memory does not fit.
  absl::Status DecideByExpectation(const JobSpec& way, ChosenWay& choice);
  // Of a job that was refused: under a cap, where that helps.
  absl::Status PlaceCapped(const JobView& view, Decision& decision);
  [[nodiscard]] bool MayBeCapped(const JobSpec& job) const;
  // The largest slowdown that a cap and neighbours together may bring.
  [[nodiscard]] double MostCapped(const JobSpec& job) const;
  // Of a placed job: the mode of its devices, chosen where they can have either.
  absl::Status ChooseMode(const JobView& view, std::span<const PlacedSlot> slots, Decision& decision);
  absl::Status GainsBeside(const JobView& view, std::span<const PlacedSlot> slots, uint32_t device, Decision& decision);
  // The work that `next` adds on the device; 0 where it does not come.
  absl::StatusOr<double> GainOf(const JobSpec& next, uint32_t device);
  // What the subset leaves out: devices, or nodes for a job without GPUs.
  [[nodiscard]] uint32_t Excluded(const JobView& view) const {
    return IsCpuOnly(*view.job) ? excluded_nodes_ : excluded_devices_;
  }

  // Of one way to run a job, for nodes that no way before took.
  absl::Status VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts);
  // The cost of the job's place on each node by itself, or the reason why it has none.
  absl::Status OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                      std::vector<NodeAnswer>& answers);
  // The same of nodes that refused the job, if it runs there alone by what is expected (DecideByExpectation).
  absl::Status ByExpectation(Search& with, const Ledger& on, const JobSpec& way, std::span<const uint32_t> rows,
                             std::vector<NodeAnswer>& answers);
  absl::Status OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row, NodeAnswer& answer);
  // Sets `named_` to the rows of `asked`. Callers mostly name the same nodes again.
  absl::Status NameNodes(const Cluster& cluster, std::span<const NodeId> asked);

  [[nodiscard]] std::span<const uint32_t> considered(const Ledger& of) const { return subset_ ? nodes_ : of.order(); }

  PlacerOptions options_;
  GoOnFn go_on_;
  std::shared_ptr<const InterferenceModel> model_;  // as given; the scorer's minds host time
  Scorer scorer_;
  Search search_;
  Search emptied_search_;
  Explainer explainer_;
  const RoundPolicy* rounds_;  // the policy, if it is one
  Ledger ledger_;
  struct Named {
    uint64_t structure = 0;  // ClusterRows::structure
    std::vector<NodeId> ids;
    std::vector<uint32_t> rows;
  };
  Named named_;
  Ledger emptied_;
  bool subset_ = false;            // only `nodes_` are considered
  std::vector<uint32_t> nodes_;    // rows of the subset, ascending id
  uint32_t excluded_devices_ = 0;  // of nodes outside the subset
  uint32_t excluded_nodes_ = 0;
  std::vector<const JobSpec*> waiting_;
  JobView way_view_, capped_view_;  // of the way that was decided last: the next one uses its memory
  SearchResult result_;
  IdMap<Decision> emptied_decisions_;   // by JobView::request, for all nodes of the emptied ledger as it is
  uint64_t emptied_at_ = 0;             // Ledger::changes() of the emptied ledger then
  IdMap<Decision> refused_;             // the same, while the ledger stays as it is
  uint64_t refused_at_ = 0;             // Ledger::changes() then
  std::unique_ptr<WorkPricer> pricer_;  // of batches; null until one comes
  std::unique_ptr<PlanGrants> grants_;  // cores and host memory beside shared GPUs
};

// Slots in ids of slots in rows, by task, node and device.
[[nodiscard]] Slots SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed);

// ---- A policy that decides all jobs of a plan in one round. The modes refuse it.

// Where a job of a round runs until now.
struct Lease {
  std::shared_ptr<const JobSpec> spec;  // null = nowhere
  PlacedSlots slots;
};

struct RoundRequest {
  std::span<const JobSpec> jobs;
  std::span<const uint32_t> order;    // in which they count
  std::span<const Lease> leases;      // of each by position in the order, not in the ledger; empty = nobody runs
  const IdMap<bool>* gone = nullptr;  // ids of the leases
  const ProgressFn& progress;
  const ReadFn& read;
};

class RoundPolicy : public Policy {
 public:
  // A decision for each job, in that order. The engine follows the cluster.
  [[nodiscard]] virtual absl::StatusOr<Plan> PlanRound(Engine& engine, const Cluster& cluster,
                                                       const RoundRequest& request) const = 0;
};

}  // namespace horus
