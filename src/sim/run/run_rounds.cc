// SPDX-License-Identifier: Apache-2.0
// Policies that decide rounds: whoever may run in one plan, with leases those that run too.
#include <chrono>
#include <utility>

#include "base/status.h"
#include "sim/run/run.h"

namespace horus {

// Who takes part in the round, in the queue's order: of those that wait all that GPUs are left for by their number, up
// to and with as many as are tried when the first does not fit; with leases all that hold whole GPUs too.
absl::StatusOr<std::vector<uint32_t>> SimRun::Contenders() {
  std::vector<uint32_t> order, chosen;
  if (options_.preempt) {
    HORUS_ASSIGN_OR_RETURN(order, Ranking());
  } else {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, queue_.size()));
    order.assign(window.begin(), window.end());
  }
  int64_t left = static_cast<int64_t>(options_.preempt ? meter_.up() : meter_.idle());
  size_t refused = 0;
  for (const uint32_t job : order) {
    const bool holds = lives_[job].phase != Phase::kWaiting;
    const TraceJob& one = trace_.jobs[job];
    if (holds && (one.gpus_per_task == 0 || (one.gpu_milli != 0 && one.gpu_milli < kMilliPerGpu))) continue;
    if (!holds && refused == look_ahead_) continue;
    const bool fits = GpusOf(one) <= left;
    if (fits) left -= GpusOf(one);
    if (!fits && !holds) ++refused;
    chosen.push_back(job);
  }
  return chosen;
}

absl::Status SimRun::DecideRound() {
  // A round that finds all as the last one left it gives what that one gave, but for ranks of those who wait.
  if (queue_.size() == 0 && (!options_.preempt || changes_ == round_changes_)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> jobs, Contenders());
  std::vector<JobSpec> specs;
  for (const uint32_t job : jobs) specs.push_back(SpecOf(job));
  const auto begin = std::chrono::steady_clock::now();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer_->MakeRound(cluster_, specs));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  result_.decisions += jobs.size();
  if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  HORUS_RETURN_IF_ERROR(CarryOut(plan));
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (plan.decisions[i].verdict != Verdict::kReject || lives_[jobs[i]].phase != Phase::kWaiting) continue;
    HORUS_RETURN_IF_ERROR(queue_.Remove(jobs[i]));
    HORUS_RETURN_IF_ERROR(Reject(jobs[i]));
  }
  round_changes_ = changes_;
  return absl::OkStatus();
}

// What the cluster did already. All leave before the first comes, as there.
absl::Status SimRun::CarryOut(const Plan& plan) {
  for (const Action& action : plan.actions) {
    if (action.kind != ActionKind::kMigrate && action.kind != ActionKind::kPreempt) continue;
    const auto job = static_cast<uint32_t>(action.job->id);
    RunEnd end;
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    if (action.kind == ActionKind::kMigrate) {
      Vacate(job);
      continue;
    }
    ++result_.jobs[job].preemptions;
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kPreempt, job, SlotsOf(job)));
    Vacate(job);
    HORUS_RETURN_IF_ERROR(Charge(job, -1));
    HORUS_RETURN_IF_ERROR(Enqueue(job));
  }
  for (const Action& action : plan.actions) {
    const auto job = static_cast<uint32_t>(action.job->id);
    if (action.kind == ActionKind::kResize) SetHost(*action.job);
    if (action.kind == ActionKind::kMigrate) HORUS_RETURN_IF_ERROR(MoveTo(job, action));
    if (action.kind == ActionKind::kPlace) HORUS_RETURN_IF_ERROR(Admit(action));
  }
  refused_.Clear();
  return absl::OkStatus();
}

}  // namespace horus
