// SPDX-License-Identifier: Apache-2.0
// One job against nodes one by one.
#include <limits>

#include "base/status.h"
#include "place/alternatives.h"
#include "place/placer_impl.h"

namespace horus {

absl::Status Placer::Impl::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row,
                                  NodeAnswer& answer) {
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result));
  answer = {.cost = result.best.cost, .known = true};
  if (!result.best.slots.empty()) return absl::OkStatus();
  Decision decision;
  HORUS_RETURN_IF_ERROR(explainer.Refused(on, view, one, result, decision));
  answer.reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Placer::Impl::OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                                  std::vector<NodeAnswer>& answers) {
  scorer.SetJob(view);
  if (with.CanRunEach(view)) return with.RunEach(on, view, rows, answers);
  answers.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(OnNode(with, on, view, rows[i], answers[i]));
  return absl::OkStatus();
}

absl::Status Placer::Impl::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts) {
  JobView view = ViewJob(way, options.probe_outside);  // of the whole gang: its devices must suit one
  JobSpec task = way;
  task.tasks = 1;
  view.job = &task;
  std::vector<size_t> at;  // the rows that are asked
  std::vector<uint32_t> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (verdicts.verdict[i] == Verdict::kPlace) continue;
    at.push_back(i);
    asked.push_back(rows[i]);
  }
  std::vector<NodeAnswer> now;
  HORUS_RETURN_IF_ERROR(OnEach(search, ledger, view, asked, now));
  std::vector<size_t> left_at;
  std::vector<uint32_t> left;
  for (size_t i = 0; i < at.size(); ++i) {
    if (now[i].reason == Reason::kNone) {
      verdicts.verdict[at[i]] = Verdict::kPlace;
      verdicts.reason[at[i]] = Reason::kNone;
      verdicts.cost[at[i]] = now[i].cost;
    } else if (verdicts.verdict[at[i]] == Verdict::kReject) {
      left_at.push_back(i);
      left.push_back(asked[i]);
    }
  }
  if (left.empty()) return absl::OkStatus();
  emptied.FollowEmptied(ledger);
  std::vector<NodeAnswer> empty, certain;
  HORUS_RETURN_IF_ERROR(OnEach(emptied_search, emptied, view, left, empty));
  if (RestsOnPredictions(task)) {
    const JobSpec job = CertainOf(task);
    JobView certain_view = ViewJob(CertainOf(way), options.probe_outside);
    certain_view.job = &job;
    HORUS_RETURN_IF_ERROR(OnEach(emptied_search, emptied, certain_view, left, certain));
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const size_t row = at[left_at[i]];
    const bool never = (certain.empty() ? empty : certain)[i].reason != Reason::kNone;
    if (never && verdicts.reason[row] != Reason::kNone) continue;  // rejected by a way before
    verdicts.verdict[row] = never ? Verdict::kReject : Verdict::kDefer;
    verdicts.reason[row] = empty[i].reason != Reason::kNone ? empty[i].reason : now[left_at[i]].reason;
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  Impl& my = *impl_;
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, my.scorer.model()));
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
  verdicts.verdict.assign(rows.size(), Verdict::kReject);
  verdicts.cost.assign(rows.size(), std::numeric_limits<double>::quiet_NaN());
  verdicts.reason.assign(rows.size(), Reason::kNone);
  for (const JobSpec& way : ways) HORUS_RETURN_IF_ERROR(my.VerdictsOf(way, rows, verdicts));
  return verdicts;
}

}  // namespace horus
