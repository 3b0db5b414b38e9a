// SPDX-License-Identifier: Apache-2.0
// Hands a placer's parts to the modes.
#include "place/engine.h"

#include "base/status.h"
#include "place/placer_impl.h"

namespace horus {

Engine::Engine(Placer& placer) : my_(*placer.impl_) {}

absl::Status Engine::Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  if (my_.scorer.policy().round() != nullptr) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     "policy %s: expected one that decides job by job, for it makes plans of whole rounds alone",
                     std::string(my_.scorer.policy().name()));
  }
  HORUS_RETURN_IF_ERROR(my_.SelectNodes(cluster, subset));
  my_.ledger.Follow(cluster);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> Engine::Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                    const IdMap<bool>* gone) const {
  if (jobs.size() > my_.options.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "plan: expected at most %d jobs, found %d",
                     my_.options.max_jobs, jobs.size());
  }
  for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(my_.CheckSettled(job));
  return PlanningOrder(cluster, jobs, my_.scorer.model(), gone);
}

absl::Status Engine::PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order,
                              const ProgressFn& progress, Plan& plan) {
  return my_.PlanJobs(jobs, order, /*book_last=*/true, progress, plan);
}

absl::StatusOr<Decision> Engine::Decide(const JobView& view) { return my_.Decide(view); }

absl::Status Engine::Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found) {
  HORUS_RETURN_IF_ERROR(my_.GoOn());
  my_.scorer.SetJob(view);
  return my_.search.Run(my_.ledger, view, nodes != nullptr ? nodes : my_.selected(), found,
                        /*why=*/false);
}

absl::Status Engine::GoOn() const { return my_.GoOn(); }

absl::Status Engine::Price(const JobView& view, Placement& placement) {
  my_.scorer.SetJob(view);
  return my_.search.PriceSlots(my_.ledger, view, placement);
}

absl::StatusOr<Decision> Engine::Explain(const JobView& view, const SearchResult& found) {
  Decision decision;
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  my_.scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(my_.explainer.Placed(my_.ledger, view, found, decision));
  return decision;
}

void Engine::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const { my_.AddSeen(node_rows, plan); }
const SearchResult& Engine::found() const { return my_.result; }
const Policy& Engine::policy() const { return my_.scorer.policy(); }
Ledger& Engine::ledger() { return my_.ledger; }
Scorer& Engine::scorer() { return my_.scorer; }
std::span<const uint32_t> Engine::nodes() const { return my_.considered(my_.ledger); }

}  // namespace horus
