// SPDX-License-Identifier: Apache-2.0
// Of the jobs that may be tried now the one that its place suits best, and what each job's work counts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "sim/run.h"

namespace horus {
namespace {

constexpr double kWeightUnitUs = 3.6e9;  // a job of an hour counts 1. Weights count as ratios alone
constexpr size_t kPriceEvery = 64;       // starts between two price lists. A chosen value

}  // namespace

float SimRun::WeightOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  if (options_.weights == SimWeights::kPrices && !prices_.empty() && one.profile < prices_.size()) {
    return prices_[one.profile];
  }
  if (options_.weights != SimWeights::kShortest || one.endless) return 1;
  // Powers of two, so that jobs of about one length are one kind.
  const double weight = std::exp2(std::round(std::log2(kWeightUnitUs / static_cast<double>(one.duration_us))));
  return std::clamp(static_cast<float>(weight), 1 / kMaxWorkWeight, kMaxWorkWeight);
}

// With `sign` -1 for a job that is gone.
void SimRun::CountThere(uint32_t job, int32_t sign) {
  const TraceJob& one = trace_.jobs[job];
  if (one.profile < gpus_there_.size()) gpus_there_[one.profile] += static_cast<double>(sign * GpusOf(one));
}

// What waits and runs, each job by its GPUs: nobody need know how long they take.
absl::Status SimRun::UpdatePrices() {
  if (options_.weights != SimWeights::kPrices || queue_.size() == 0 || starts_ < price_at_) return absl::OkStatus();
  price_at_ = starts_ + kPriceEvery;
  if (!pricer_ || priced_epoch_ != placer_->model().epoch()) {
    priced_epoch_ = placer_->model().epoch();
    HORUS_ASSIGN_OR_RETURN(pricer_, WorkPrices::Create(beliefs_, cluster_, *placer_, options_.lp_library));
  }
  HORUS_ASSIGN_OR_RETURN(prices_, pricer_->Of(gpus_there_));
  return absl::OkStatus();
}

// Jobs that the placer cannot tell apart: where one would go, so would the others.
SimRun::Kind SimRun::KindOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  const auto too_small = too_small_.find(job);
  return {one.profile,       one.gpu_types,   one.tasks,
          one.gpus_per_task, one.gpu_milli,   one.kind,
          one.cpu_milli,     one.mem_mib,     lives_[job].alone,
          WeightOf(job),     IsProfiled(job), too_small == too_small_.end() ? 0 : too_small->second.size()};
}

absl::Status SimRun::DecideBest() {
  while (queue_.size() > 0) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
    std::vector<Kind> tried;
    std::optional<std::pair<double, uint32_t>> best;  // cost in units of work, and job
    Plan best_plan;
    bool changed = false;
    for (const uint64_t id : window) {
      const auto job = static_cast<uint32_t>(id);
      if (best && trace_.jobs[job].priority < trace_.jobs[best->second].priority) break;
      const Kind kind = KindOf(job);
      if (std::find(tried.begin(), tried.end(), kind) != tried.end()) continue;
      tried.push_back(kind);
      if (std::binary_search(refused_.begin(), refused_.end(), id)) continue;
      HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(SpecOf(job)));
      const Decision& decision = plan.decisions.front();
      if (decision.verdict == Verdict::kDefer) {
        refused_.insert(std::lower_bound(refused_.begin(), refused_.end(), id), id);
      } else if (decision.verdict != Verdict::kPlace) {
        HORUS_RETURN_IF_ERROR(Settle(job, plan, changed));
        break;
      } else {
        // Of such policies a cost is in units of the job's own work.
        const double unit = placer_->policy().maximises_work() ? static_cast<double>(WeightOf(job)) : 1;
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
