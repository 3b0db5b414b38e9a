// SPDX-License-Identifier: Apache-2.0
// Preemption by rank: jobs that wait take the places of jobs that run and rank behind them.
#include <algorithm>

#include "base/status.h"
#include "place/modes/what_if.h"
#include "sim/run/run.h"

namespace horus {

// All jobs that wait, hold places or run, in the order in which the queue would serve them now.
absl::StatusOr<std::vector<uint32_t>> SimRun::Ranking() {
  const std::vector<JobId> held = cluster_.JobIds();
  for (const JobId job : held) HORUS_RETURN_IF_ERROR(queue_.Push(QueuedOf(static_cast<uint32_t>(job))));
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> order, queue_.Window(now_us_, queue_.size()));
  for (const JobId job : held) HORUS_RETURN_IF_ERROR(queue_.Remove(job));
  return std::vector<uint32_t>(order.begin(), order.end());
}

absl::Status SimRun::Preempt(uint32_t job) {
  ++result_.jobs[job].preemptions;
  return PutBack(job, SimEventKind::kPreempt);
}

absl::StatusOr<bool> SimRun::FitsWithout(const JobSpec& spec, std::span<const uint32_t> victims) {
  std::vector<SupposedChange> changes;
  for (const uint32_t victim : victims) changes.push_back({.kind = ChangeKind::kRelease, .job = victim});
  HORUS_ASSIGN_OR_RETURN(const Plan plan, WhatIf(*placer_, cluster_, changes, {&spec, 1}, false));
  return plan.decisions.front().verdict == Verdict::kPlace;
}

// Of those behind, in rank order, few that make room for the job: the last ones, but for those whose places it can do
// without. None where all of them do not.
absl::StatusOr<std::vector<uint32_t>> SimRun::VictimsFor(const JobSpec& spec, std::span<const uint32_t> behind) {
  std::vector<uint32_t> victims;
  for (size_t count = 1;; count = std::min(2 * count, behind.size())) {
    victims.assign(behind.end() - static_cast<std::ptrdiff_t>(count), behind.end());
    HORUS_ASSIGN_OR_RETURN(const bool fits, FitsWithout(spec, victims));
    if (fits) break;
    if (count == behind.size()) return std::vector<uint32_t>();
  }
  for (size_t i = 0; i < victims.size() && victims.size() > 1;) {
    const uint32_t spared = victims[i];
    victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
    HORUS_ASSIGN_OR_RETURN(const bool fits, FitsWithout(spec, victims));
    if (fits) continue;
    victims.insert(victims.begin() + static_cast<std::ptrdiff_t>(i), spared);
    ++i;
  }
  return victims;
}

absl::Status SimRun::DecideByRank() {
  if (queue_.size() == 0) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, Ranking());
  std::vector<uint32_t> behind;  // who holds places and ranks behind the job at hand, best first
  const auto holds = [&](uint32_t job) { return lives_[job].phase != Phase::kWaiting; };
  std::copy_if(order.begin(), order.end(), std::back_inserter(behind), holds);
  size_t refused = 0;
  for (const uint32_t job : order) {
    if (holds(job)) {
      behind.erase(std::remove(behind.begin(), behind.end(), job), behind.end());
      continue;
    }
    bool left_queue = false;
    HORUS_RETURN_IF_ERROR(Try(job, behind, left_queue));
    if (!left_queue && ++refused == look_ahead_) break;
  }
  return absl::OkStatus();
}

}  // namespace horus
