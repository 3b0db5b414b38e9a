// SPDX-License-Identifier: Apache-2.0
// The loop over events: those who finish, those who come, those who begin to work, then decisions.
#include "sim/run/run.h"

#include <algorithm>
#include <string>

#include "base/status.h"

namespace horus {
SimRun::SimRun(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster,
               Queue& queue, Placer& placer, const SimOptions& options, const SimObserver& observer)
    : trace_(trace),
      beliefs_(beliefs),
      truth_(truth),
      cluster_(cluster),
      queue_(queue),
      placer_(&placer),
      options_(options),
      observer_(observer),
      look_ahead_(options.look_ahead == 0 ? queue.look_ahead() : options.look_ahead),
      charges_owners_(queue.name() == "drf"),
      map_(cluster),
      execution_(truth, map_.Contexts(), trace.jobs.size(), options.checkpoint_us),
      meter_(cluster, map_, options.workload == nullptr ? WorkloadOf(trace, cluster.catalogue()) : options.workload),
      profiling_(trace, beliefs, options, cluster, map_),
      watching_(options, map_, execution_, profiling_),
      pricing_(trace, beliefs, cluster, options),
      lives_(trace.jobs.size()) {
  result_.jobs.resize(trace.jobs.size());
  result_.devices = cluster.device_count();
}

absl::Status SimRun::CheckJob(size_t job) const {
  const TraceJob& one = trace_.jobs[job];
  if (one.duration_us <= 0 && !one.endless) {
    return InvalidArgument("simulation: job[%d]: duration_us: expected a run time, found steps alone", job);
  }
  if (one.endless && options_.horizon_us == 0) {
    return InvalidArgument("simulation: horizon_us: expected one, for job[%d] never ends", job);
  }
  if (one.gpus_per_task == 0) return absl::OkStatus();
  if (one.profile == kNotStated || one.profile >= beliefs_.size() || beliefs_[one.profile].empty()) {
    return InvalidArgument("simulation: job[%d]: profile: expected one that something is believed of, found '%s'", job,
                           std::string(ProfileOf(trace_, one)));
  }
  return absl::OkStatus();
}

Work SimRun::MostOfWork() const {
  Work all = 0;
  for (const TraceJob& job : trace_.jobs) {
    if (job.endless) return 0;
    all += Work(job.duration_us) * kFullRate * GpusOf(job);
  }
  return all - all * (100 - kMostWorkPct) / 100;
}

absl::Status SimRun::Tell(SimEventKind kind, uint32_t job, std::span<const Slot> slots) const {
  if (observer_ == nullptr || observer_({kind, now_us_, job, slots})) return absl::OkStatus();
  return MakeError(absl::StatusCode::kCancelled, "simulation: cancelled at %d us", now_us_);
}

int64_t SimRun::NextEvent() const {
  int64_t next = decide_at_us_;
  if (arrived_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[arrived_].submit_us);
  if (!execution_.empty()) next = std::min(next, execution_.Next().time_us);
  next = std::min({next, launches_.next_us(), watching_.next_us(), profiling_.next_us()});
  const bool holds = cluster_.job_count() > 0;
  if (holds && options_.rebalance_us > 0) {
    next = std::min(next, now_us_ - now_us_ % options_.rebalance_us + options_.rebalance_us);
  }
  // When all is done, what happens to nodes no longer counts.
  const bool counts = holds || queue_.size() > 0 || arrived_ < trace_.jobs.size();
  if (counts) next = std::min(next, std::max(now_us_, node_events_.next_us()));
  return next;
}

absl::Status SimRun::CountRound(int64_t at_us) {
  const auto is_round = [&](int64_t every) { return every > 0 && at_us % every == 0; };
  if (!is_round(options_.round_us) && !is_round(options_.rebalance_us)) return absl::OkStatus();
  if (++rounds_ <= options_.most_rounds) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "simulation: expected at most %d rounds of decisions and rebalances, found more at %d us",
                   options_.most_rounds, at_us);
}

void SimRun::PassTime(int64_t to_us) {
  const absl::int128 passed = to_us - now_us_;
  const bool waits = queue_.size() > 0;
  meter_.PassTime(to_us - now_us_, waits);
  if (const Work missing = most_work_ - execution_.done(); missing > 0) {
    const Work rate = execution_.rate();
    const bool reached = missing <= passed * rate;
    result_.most_done_us = reached ? now_us_ + static_cast<int64_t>((missing + rate - 1) / rate) : -1;
  }
  execution_.PassTime(to_us, waits);
  now_us_ = to_us;
}

absl::Status SimRun::FinishDue() {
  while (!execution_.empty() && execution_.Next().time_us == now_us_) {
    const uint32_t job = execution_.Next().job;
    RunEnd end;
    profiling_.Finish(job);
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kFinish, job, SlotsOf(job)));
    HORUS_RETURN_IF_ERROR(LetGo(job));
    refused_.Clear();
    lives_[job].phase = Phase::kGone;
    pricing_.Count(job, -1);
    result_.jobs[job].end = SimEnd::kFinished;
    result_.jobs[job].end_us = now_us_;
  }
  return absl::OkStatus();
}

absl::Status SimRun::TakeArrivals() {
  for (; arrived_ < trace_.jobs.size() && trace_.jobs[arrived_].submit_us == now_us_; ++arrived_) {
    const auto job = static_cast<uint32_t>(arrived_);
    const TraceJob& one = trace_.jobs[arrived_];
    lives_[job].left = Work(one.endless ? kMaxTraceTimeUs : one.duration_us) * kFullRate;
    pricing_.Count(job, 1);
    HORUS_RETURN_IF_ERROR(Enqueue(job));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kArrive, job));
  }
  return absl::OkStatus();
}

absl::Status SimRun::DecideWhenDue() {
  const int64_t round = options_.round_us;
  if (round == 0 || now_us_ % round == 0) {
    decide_at_us_ = kNoEvent;
    if (queue_.size() > 0) HORUS_RETURN_IF_ERROR(pricing_.Update(*placer_));
    HORUS_RETURN_IF_ERROR(placer_->policy().round() != nullptr ? DecideRound()
                          : options_.preempt                   ? DecideByRank()
                          : options_.best_of_window            ? DecideBest()
                                                               : Decide());
    // Ranks change while jobs run.
    const bool again = options_.preempt && round > 0 && cluster_.job_count() > 0;
    if (!again || queue_.size() == 0) return absl::OkStatus();
  }
  const bool renews = options_.preempt && placer_->policy().round() != nullptr && changes_ != round_changes_;
  if (queue_.size() > 0 || renews) decide_at_us_ = now_us_ - now_us_ % round + round;
  return absl::OkStatus();
}

absl::StatusOr<SimResult> SimRun::Go() {
  for (size_t job = 0; job < trace_.jobs.size(); ++job) HORUS_RETURN_IF_ERROR(CheckJob(job));
  ResolveTypes();
  HORUS_ASSIGN_OR_RETURN(node_events_, NodeEvents::Create(options_.outages, map_));
  if (!trace_.jobs.empty()) now_us_ = trace_.jobs.front().submit_us;
  execution_.PassTime(now_us_, false);
  most_work_ = MostOfWork();
  const int64_t horizon = options_.horizon_us == 0 ? kNoEvent : options_.horizon_us;
  for (int64_t next = NextEvent(); next < horizon; next = NextEvent()) {
    HORUS_RETURN_IF_ERROR(CountRound(next));
    PassTime(next);
    HORUS_RETURN_IF_ERROR(FinishDue());
    HORUS_RETURN_IF_ERROR(WatchDue());
    HORUS_RETURN_IF_ERROR(NodesDue());
    HORUS_RETURN_IF_ERROR(ProfilingDue());
    HORUS_RETURN_IF_ERROR(TakeArrivals());
    HORUS_RETURN_IF_ERROR(LaunchDue());
    HORUS_RETURN_IF_ERROR(RebalanceDue());
    HORUS_RETURN_IF_ERROR(DecideWhenDue());
  }
  if (horizon != kNoEvent && horizon > now_us_) PassTime(horizon);
  for (uint32_t job = 0; job < trace_.jobs.size(); ++job) {
    if (result_.jobs[job].end != SimEnd::kRunning) continue;
    RunEnd end;
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    HORUS_RETURN_IF_ERROR(LetGo(job));
  }
  result_.use = meter_.use();
  result_.end_us = now_us_;
  result_.backlog_us = execution_.backlog_us();
  return std::move(result_);
}

}  // namespace horus
