// SPDX-License-Identifier: Apache-2.0
// Of the jobs that may be tried now the one that its place suits best.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "sim/run/run.h"

namespace horus {
// Jobs that the placer cannot tell apart: where one would go, so would the others.
SimRun::Kind SimRun::KindOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  const auto too_small = too_small_.find(job);
  return {one.profile,
          one.gpu_types,
          one.tasks,
          one.gpus_per_task,
          one.gpu_milli,
          one.kind,
          one.priority,
          one.cpu_milli,
          one.mem_mib,
          lives_[job].alone,
          pricing_.WeightOf(job),
          profiling_.IsProfiled(job),
          too_small == too_small_.end() ? 0 : too_small->second.size()};
}

absl::Status SimRun::DecideBest() {
  while (queue_.size() > 0) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
    std::vector<Kind> tried;
    std::optional<std::pair<double, uint32_t>> best;  // cost in units of work, and job
    Plan best_plan;
    bool changed = false;
    for (size_t i = 0; i < window.size(); ++i) {
      const uint64_t id = window[i];
      const auto job = static_cast<uint32_t>(id);
      if (best && trace_.jobs[job].priority < trace_.jobs[best->second].priority) break;
      const Kind kind = KindOf(job);
      if (std::find(tried.begin(), tried.end(), kind) != tried.end()) continue;
      tried.push_back(kind);
      if (refused_.HasJob(id) || refused_.HasKind(kind)) continue;
      const JobSpec spec = SpecOf(job);
      HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
      const Decision& decision = plan.decisions.front();
      if (decision.verdict == Verdict::kDefer) {
        refused_.AddKind(kind);
      } else if (HadBetterWait(spec, decision, window, i)) {
        refused_.AddJob(id);
      } else if (decision.verdict != Verdict::kPlace) {
        HORUS_RETURN_IF_ERROR(Settle(job, plan, changed));
        break;
      } else {
        // Of such policies a cost is in units of the job's own work.
        const double unit = placer_->policy().maximises_work() ? static_cast<double>(pricing_.WeightOf(job)) : 1;
        const double cost = unit * decision.winner.cost;
        if (best && best->first <= cost) continue;
        best.emplace(cost, job);
        best_plan = std::move(plan);
      }
    }
    if (changed) continue;
    if (!best) break;
    HORUS_RETURN_IF_ERROR(Settle(best->second, best_plan, changed));
  }
  return absl::OkStatus();
}

}  // namespace horus
