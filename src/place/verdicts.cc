// SPDX-License-Identifier: Apache-2.0
// One job against nodes one by one.
#include <limits>

#include "base/status.h"
#include "place/alternatives.h"
#include "place/placer_impl.h"

namespace horus {

absl::Status Placer::Impl::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row, double& cost,
                                  Reason& reason) {
  if (with.CanRunOne(view)) return with.RunOne(on, view, node_row, cost, reason);
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result));
  if (!result.best.slots.empty()) {
    cost = result.best.cost;
    return absl::OkStatus();
  }
  Decision decision;
  HORUS_RETURN_IF_ERROR(explainer.Refused(on, view, one, result, decision));
  reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Placer::Impl::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, bool first,
                                      NodeVerdicts& verdicts) {
  constexpr double kNoCost = std::numeric_limits<double>::quiet_NaN();
  JobView view = ViewJob(way, options.probe_outside);  // of the whole gang: its devices must suit one
  JobSpec task = way;
  task.tasks = 1;
  view.job = &task;
  if (first) {
    verdicts.verdict.assign(rows.size(), Verdict::kReject);
    verdicts.cost.assign(rows.size(), kNoCost);
    verdicts.reason.assign(rows.size(), Reason::kNone);
  }
  std::vector<Reason> reasons(rows.size(), Reason::kNone);
  bool any_refused = false;
  scorer.SetJob(view);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!first && verdicts.verdict[i] == Verdict::kPlace) continue;
    HORUS_RETURN_IF_ERROR(OnNode(search, ledger, view, rows[i], verdicts.cost[i], reasons[i]));
    any_refused |= reasons[i] != Reason::kNone;
    if (reasons[i] == Reason::kNone) {
      verdicts.verdict[i] = Verdict::kPlace;
      verdicts.reason[i] = Reason::kNone;
    }
  }
  if (!any_refused) return absl::OkStatus();
  emptied.FollowEmptied(ledger);
  scorer.SetJob(view);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (reasons[i] == Reason::kNone || (!first && verdicts.verdict[i] == Verdict::kDefer)) continue;
    double cost = kNoCost;
    Reason reason = Reason::kNone;
    HORUS_RETURN_IF_ERROR(OnNode(emptied_search, emptied, view, rows[i], cost, reason));
    if (!first && reason != Reason::kNone) continue;  // rejected as before
    verdicts.verdict[i] = reason == Reason::kNone ? Verdict::kDefer : Verdict::kReject;
    verdicts.reason[i] = reason == Reason::kNone ? reasons[i] : reason;
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  Impl& my = *impl_;
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  std::vector<uint32_t> rows;
  for (const NodeId id : nodes) {
    const uint32_t* row = cluster.rows().node_of.Find(id);
    if (row == nullptr) {
      return MakeError(absl::StatusCode::kNotFound, "node %d: not in this cluster", id);
    }
    rows.push_back(*row);
  }
  my.ledger.Follow(cluster);
  if (read != nullptr) read();
  std::vector<JobSpec> ways;
  for (size_t i = 0; i < job.alternatives.size(); ++i) ways.push_back(WayOf(job, i));
  if (ways.empty()) ways.push_back(job);
  NodeVerdicts verdicts;
  for (size_t i = 0; i < ways.size(); ++i) HORUS_RETURN_IF_ERROR(my.VerdictsOf(ways[i], rows, i == 0, verdicts));
  return verdicts;
}

}  // namespace horus
