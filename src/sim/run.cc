// SPDX-License-Identifier: Apache-2.0
// The loop over events: those who finish, those who come, those who begin to work, then decisions.
#include "sim/run.h"

#include <algorithm>
#include <string>

#include "base/status.h"

namespace horus {
namespace {

std::vector<DeviceSpec> Devices(const Cluster& cluster) {
  std::vector<DeviceSpec> devices;
  for (const NodeId node : cluster.NodeIds()) {
    const NodeInfo info = *cluster.Node(node);
    devices.insert(devices.end(), info.spec.devices.begin(), info.spec.devices.end());
  }
  return devices;
}

std::vector<DeviceContext> Contexts(std::span<const DeviceSpec> devices) {
  std::vector<DeviceContext> contexts;
  for (const DeviceSpec& device : devices) contexts.push_back({device.type, device.mode, device.compute_share});
  return contexts;
}

}  // namespace

SimRun::SimRun(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster,
               Queue& queue, Placer& placer, const SimOptions& options, const SimObserver& observer)
    : trace_(trace),
      beliefs_(beliefs),
      cluster_(cluster),
      queue_(queue),
      placer_(&placer),
      options_(options),
      observer_(observer),
      look_ahead_(options.look_ahead == 0 ? queue.look_ahead() : options.look_ahead),
      charges_owners_(queue.name() == "drf"),
      truth_(truth),
      devices_(Devices(cluster)),
      execution_(truth, Contexts(devices_), trace.jobs.size(), options.checkpoint_us),
      fragments_(cluster, options.workload == nullptr ? WorkloadOf(trace, cluster.catalogue()) : options.workload),
      nodes_(cluster.NodeIds()),
      lives_(trace.jobs.size()),
      holders_(cluster.device_count()),
      gpus_there_(beliefs.size()),
      devices_up_(cluster.device_count()) {
  result_.jobs.resize(trace.jobs.size());
  result_.devices = cluster.device_count();
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    node_of_id_.Insert(nodes_[node], node);
    first_device_.push_back(static_cast<uint32_t>(node_of_.size()));
    const NodeInfo info = *cluster.Node(nodes_[node]);
    const size_t devices = info.spec.devices.size();
    node_of_.resize(node_of_.size() + devices, node);
    const auto gpus = static_cast<int32_t>(std::max<size_t>(1, devices));
    host_shares_.push_back(FairShare(info.spec.cpu_milli, info.spec.mem_mib, gpus));
  }
  first_device_.push_back(static_cast<uint32_t>(node_of_.size()));
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
  const auto consider = [&next](const std::set<std::pair<int64_t, uint32_t>>& due) {
    if (!due.empty()) next = std::min(next, due.begin()->first);
  };
  consider(launches_);
  consider(watches_);
  consider(profiling_);
  const bool holds = cluster_.job_count() > 0;
  if (holds && options_.rebalance_us > 0) {
    next = std::min(next, now_us_ - now_us_ % options_.rebalance_us + options_.rebalance_us);
  }
  // When all is done, what happens to nodes no longer counts.
  const bool counts = holds || queue_.size() > 0 || arrived_ < trace_.jobs.size();
  if (counts && next_node_event_ < node_events_.size()) {
    next = std::min(next, std::max(now_us_, node_events_[next_node_event_].time_us));
  }
  return next;
}

void SimRun::PassTime(int64_t to_us) {
  const absl::int128 passed = to_us - now_us_;
  const bool waits = queue_.size() > 0;
  result_.use.device_us += passed * devices_up_;
  result_.use.used_us += passed * devices_used_;
  result_.use.free_us += passed * fragments_.free();
  result_.use.fragment_us += passed * fragments_.fragment();
  if (waits) result_.use.backlog_device_us += passed * devices_up_;
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
    if (IsProfiling(job)) SetProfiled(job);
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kFinish, job, SlotsOf(job)));
    HORUS_RETURN_IF_ERROR(LetGo(job));
    refused_.clear();
    lives_[job].phase = Phase::kGone;
    CountThere(job, -1);
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
    CountThere(job, 1);
    HORUS_RETURN_IF_ERROR(Enqueue(job));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kArrive, job));
  }
  return absl::OkStatus();
}

absl::Status SimRun::DecideWhenDue() {
  const int64_t round = options_.round_us;
  if (round == 0 || now_us_ % round == 0) {
    decide_at_us_ = kNoEvent;
    HORUS_RETURN_IF_ERROR(UpdatePrices());
    HORUS_RETURN_IF_ERROR(options_.preempt ? DecideByRank() : options_.best_of_window ? DecideBest() : Decide());
    // Ranks change while jobs run.
    const bool again = options_.preempt && round > 0 && cluster_.job_count() > 0;
    if (!again || queue_.size() == 0) return absl::OkStatus();
  }
  if (queue_.size() > 0) decide_at_us_ = now_us_ - now_us_ % round + round;
  return absl::OkStatus();
}

absl::StatusOr<SimResult> SimRun::Go() {
  for (size_t job = 0; job < trace_.jobs.size(); ++job) HORUS_RETURN_IF_ERROR(CheckJob(job));
  ResolveTypes();
  HORUS_RETURN_IF_ERROR(PrepareOutages());
  PrepareProfiling();
  if (!trace_.jobs.empty()) now_us_ = trace_.jobs.front().submit_us;
  execution_.PassTime(now_us_, false);
  most_work_ = MostOfWork();
  const int64_t horizon = options_.horizon_us == 0 ? kNoEvent : options_.horizon_us;
  for (int64_t next = NextEvent(); next < horizon; next = NextEvent()) {
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
  result_.end_us = now_us_;
  result_.backlog_us = execution_.backlog_us();
  return std::move(result_);
}

}  // namespace horus
