// SPDX-License-Identifier: Apache-2.0
// One job against nodes one by one.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/status.h"
#include "place/engine.h"

namespace horus {

absl::Status Engine::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row,
                            NodeAnswer& answer) {
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result_));
  answer = {.cost = result_.best.cost, .known = true};
  Decision decision;
  if (!result_.best.slots.empty()) {
    // Whether several GPUs pay is known of a whole job alone, not of a task of one.
    const bool whole = GpuCount(*view.job) > 1 && !view.types.front().tenant.distributed;
    if (!whole || !scorer_.policy().maximises_work()) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(explainer_.Placed(on, view, result_, decision));
    if (!explainer_.GangPays(view, result_, decision)) answer.reason = Reason::kPolicy;
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(explainer_.Refused(on, view, one, result_, decision));
  answer.reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Engine::OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                            std::vector<NodeAnswer>& answers) {
  scorer_.SetJob(view);
  if (with.CanRunEach(view)) return with.RunEach(on, view, rows, answers);
  answers.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(OnNode(with, on, view, rows[i], answers[i]));
  return absl::OkStatus();
}

absl::Status Engine::ByExpectation(Search& with, const Ledger& on, const JobSpec& way, std::span<const uint32_t> rows,
                                   std::vector<NodeAnswer>& answers) {
  JobSpec job = way;
  if (!AloneByExpectation(job)) return absl::OkStatus();
  std::vector<size_t> at;
  std::vector<uint32_t> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (answers[i].reason == Reason::kNone) continue;
    at.push_back(i);
    asked.push_back(rows[i]);
  }
  if (asked.empty()) return absl::OkStatus();
  JobView view = ViewJob(job, options_.probe_outside);
  JobSpec task = job;
  task.tasks = 1;
  view.job = &task;
  std::vector<NodeAnswer> alone;
  HORUS_RETURN_IF_ERROR(OnEach(with, on, view, asked, alone));
  for (size_t i = 0; i < at.size(); ++i) {
    if (alone[i].reason == Reason::kNone) answers[at[i]] = alone[i];
  }
  return absl::OkStatus();
}

absl::Status Engine::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts) {
  JobView view = ViewJob(way, options_.probe_outside);  // of the whole gang: its devices must suit one
  JobSpec task = way;
  task.tasks = 1;
  view.job = &task;
  std::vector<size_t> at;       // positions in `rows` that are asked; empty = all
  std::vector<uint32_t> asked;  // their rows
  const bool all = std::ranges::find(verdicts.verdict, Verdict::kPlace) == verdicts.verdict.end();
  for (size_t i = 0; i < rows.size() && !all; ++i) {
    if (verdicts.verdict[i] == Verdict::kPlace) continue;
    at.push_back(i);
    asked.push_back(rows[i]);
  }
  std::vector<NodeAnswer> now;
  HORUS_RETURN_IF_ERROR(OnEach(search_, ledger_, view, all ? rows : asked, now));
  HORUS_RETURN_IF_ERROR(ByExpectation(search_, ledger_, way, all ? rows : asked, now));
  std::vector<size_t> left_at;  // in `now`
  std::vector<uint32_t> left;
  for (size_t i = 0; i < now.size(); ++i) {
    const size_t row = all ? i : at[i];
    if (now[i].reason == Reason::kNone) {
      verdicts.verdict[row] = Verdict::kPlace;
      verdicts.reason[row] = Reason::kNone;
      verdicts.cost[row] = now[i].cost;
    } else if (verdicts.verdict[row] == Verdict::kReject) {
      left_at.push_back(i);
      left.push_back(rows[row]);
    }
  }
  if (left.empty()) return absl::OkStatus();
  emptied_.FollowEmptied(ledger_);
  std::vector<NodeAnswer> empty, certain;
  HORUS_RETURN_IF_ERROR(OnEach(emptied_search_, emptied_, view, left, empty));
  HORUS_RETURN_IF_ERROR(ByExpectation(emptied_search_, emptied_, way, left, empty));
  if (RestsOnPredictions(task)) {
    const JobSpec job = CertainOf(task);
    JobView certain_view = ViewJob(CertainOf(way), options_.probe_outside);
    certain_view.job = &job;
    HORUS_RETURN_IF_ERROR(OnEach(emptied_search_, emptied_, certain_view, left, certain));
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const size_t row = all ? left_at[i] : at[left_at[i]];
    const bool never = (certain.empty() ? empty : certain)[i].reason != Reason::kNone;
    if (never && verdicts.reason[row] != Reason::kNone) continue;  // rejected by a way before
    verdicts.verdict[row] = never ? Verdict::kReject : Verdict::kDefer;
    verdicts.reason[row] = empty[i].reason != Reason::kNone ? empty[i].reason : now[left_at[i]].reason;
  }
  return absl::OkStatus();
}

absl::Status Engine::NameNodes(const Cluster& cluster, std::span<const NodeId> asked) {
  const ClusterRows& rows = cluster.rows();
  if (named_.structure == rows.structure && std::ranges::equal(named_.ids, asked)) return absl::OkStatus();
  Named now{.structure = rows.structure, .ids = {asked.begin(), asked.end()}};
  now.rows.reserve(asked.size());
  for (const NodeId id : asked) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) return NotFound("node %d: not in this cluster", id);
    now.rows.push_back(*row);
  }
  named_ = std::move(now);
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Engine::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, scorer_.model()));
  HORUS_RETURN_IF_ERROR(NameNodes(cluster, nodes));
  const std::span<const uint32_t> rows = named_.rows;
  ledger_.Follow(cluster);
  if (read != nullptr) read();
  std::vector<JobSpec> ways;
  for (size_t i = 0; i < job.alternatives.size(); ++i) ways.push_back(WayOf(job, i));
  if (ways.empty()) ways.push_back(job);
  NodeVerdicts verdicts;
  verdicts.verdict.assign(rows.size(), Verdict::kReject);
  verdicts.cost.assign(rows.size(), std::numeric_limits<double>::quiet_NaN());
  verdicts.reason.assign(rows.size(), Reason::kNone);
  for (const JobSpec& way : ways) HORUS_RETURN_IF_ERROR(VerdictsOf(way, rows, verdicts));
  return verdicts;
}

}  // namespace horus
