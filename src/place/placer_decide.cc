// SPDX-License-Identifier: Apache-2.0
// One job: the way to run it, its place or what refuses it, now and on the empty cluster.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "place/admit.h"
#include "place/alternatives.h"
#include "place/placer_impl.h"

namespace horus {
namespace {

constexpr size_t kMostKept = 4096;  // answers for requests that never fit; each has about 500 bytes

}  // namespace

JobSpec CertainOf(const JobSpec& job) {
  JobSpec certain = job;
  for (TypeDemand& entry : certain.demands) {
    Demand& demand = entry.demand;
    if (!IsOnlyPredicted(demand)) continue;
    demand.step_time_us = {1, 1};  // no latency is too long
    if ((demand.flags & kDemandTooLarge) == 0) demand.mem_mib = {};
  }
  return certain;
}

// Of the cluster empty and up: kPlace, or what refuses the job there: for good, unless a prediction alone says so.
absl::StatusOr<Decision> Placer::Impl::DecideEmptied(const JobView& view) {
  emptied.FollowEmptied(ledger);
  if (std::exchange(emptied_at, emptied.changes()) != emptied.changes() || emptied_decisions.size() >= kMostKept) {
    emptied_decisions.clear();
  }
  if (const Decision* known = emptied_decisions.Find(view.request)) return *known;
  SearchResult found;
  HORUS_RETURN_IF_ERROR(emptied_search.Run(emptied, view, selected(), found));
  Decision decision{.verdict = Verdict::kPlace};
  if (found.best.slots.empty()) {
    decision.verdict = Verdict::kReject;
    found.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.cpu_only = IsCpuOnly(*view.job);
    decision.refused_devices = found.refused;
    HORUS_RETURN_IF_ERROR(explainer.Refused(emptied, view, considered(emptied), found, decision));
    if (RestsOnPredictions(*view.job)) {
      const JobSpec job = CertainOf(*view.job);
      const JobView certain = ViewJob(job, options.probe_outside);
      scorer.SetJob(certain);
      HORUS_RETURN_IF_ERROR(emptied_search.Run(emptied, certain, selected(), found, /*why=*/false));
      scorer.SetJob(view);
      decision.predicted_never = !found.best.slots.empty();
      if (decision.predicted_never) decision.verdict = Verdict::kDefer;
    }
  }
  emptied_decisions.Insert(view.request, decision);
  return decision;
}

absl::StatusOr<Decision> Placer::Impl::Decide(const JobView& view) {
  HORUS_RETURN_IF_ERROR(GoOn());
  if (std::exchange(refused_at, ledger.changes()) != ledger.changes()) refused.clear();
  Decision decision;
  const uint64_t request = RequestOn(ledger, view);
  if (const Decision* known = refused.Find(request)) {
    decision = *known;
    decision.job = view.job->id;
    return decision;
  }
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(search.Run(ledger, view, selected(), result, !options.terse));
  if (!result.best.slots.empty()) {
    HORUS_RETURN_IF_ERROR(explainer.Placed(ledger, view, result, decision));
    decision.probe = options.probe_outside && IsUnknownAt(*view.job, result.best.slots.front());
    return decision;
  }
  if (!options.terse) {
    result.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.refused_devices = result.refused;
    HORUS_RETURN_IF_ERROR(explainer.Refused(ledger, view, considered(ledger), result, decision));
  }
  decision.verdict = Verdict::kDefer;
  HORUS_ASSIGN_OR_RETURN(Decision emptied_decision, DecideEmptied(view));
  if (emptied_decision.verdict != Verdict::kPlace) {
    decision = std::move(emptied_decision);
    decision.job = view.job->id;
  }
  refused.Insert(request, decision);
  return decision;
}

absl::Status Placer::Impl::DecideWay(const JobSpec& way, Choice& choice) {
  const JobView view = ViewJob(way, options.probe_outside);
  HORUS_ASSIGN_OR_RETURN(choice.decision, Decide(view));
  if (choice.decision.verdict != Verdict::kPlace) return absl::OkStatus();
  choice.slots = std::move(result.best.slots);
  choice.job = std::make_shared<JobSpec>(way);
  choice.job->exclusive |= choice.decision.probe;
  return absl::OkStatus();
}

absl::Status Placer::Impl::CheckSettled(const JobSpec& job) const {
  if (!job.alternatives.empty()) {
    return InvalidArgument("job %s: alternatives: expected none outside a plain plan, found %d",
                           IdAndName(job.id, job.name), job.alternatives.size());
  }
  const auto unknown = [](const TypeDemand& entry) { return IsUnknown(entry.demand); };
  if (options.probe_outside && std::any_of(job.demands.begin(), job.demands.end(), unknown)) {
    return InvalidArgument("job %s: demands: expected to be known outside a plain plan, found one to be probed",
                           IdAndName(job.id, job.name));
  }
  return absl::OkStatus();
}

absl::Status Placer::Impl::Choose(const JobSpec& job, Choice& choice) {
  if (job.alternatives.empty()) return DecideWay(job, choice);
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    Choice next;
    HORUS_RETURN_IF_ERROR(DecideWay(WayOf(job, i), next));
    next.decision.alternative = static_cast<int32_t>(i);
    if (next.job != nullptr) next.worth = WorthOf(job, i, next.decision, options.gpu_price);
    // Of refusals the first that is none for good.
    const bool better = next.job != nullptr ? choice.job == nullptr || next.worth > choice.worth
                                            : choice.job == nullptr && next.decision.verdict < choice.decision.verdict;
    if (i == 0 || better) choice = std::move(next);
  }
  return absl::OkStatus();
}

}  // namespace horus
