// SPDX-License-Identifier: Apache-2.0
// The loop over events: those who finish, then those who come, then decisions.
#include "sim/simulator.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/id_map.h"
#include "base/status.h"

namespace horus {
namespace {

constexpr int64_t kNoEvent = std::numeric_limits<int64_t>::max();

class Run {
 public:
  Run(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster, Queue& queue,
      Placer& placer, const SimOptions& options, const SimObserver& observer)
      : trace_(trace),
        beliefs_(beliefs),
        cluster_(cluster),
        queue_(queue),
        placer_(placer),
        options_(options),
        observer_(observer),
        look_ahead_(options.look_ahead == 0 ? queue.look_ahead() : options.look_ahead),
        execution_(truth, Devices(cluster), trace.jobs.size()),
        alone_(trace.jobs.size(), false) {
    result_.jobs.resize(trace.jobs.size());
    uint32_t first = 0;
    for (const NodeId node : cluster.NodeIds()) {
      first_device_.Insert(node, first);
      first += static_cast<uint32_t>(cluster.Node(node)->spec.devices.size());
    }
  }

  absl::StatusOr<SimResult> Go();

 private:
  static std::vector<DeviceContext> Devices(const Cluster& cluster) {
    std::vector<DeviceContext> devices;
    for (const NodeId node : cluster.NodeIds()) {
      const NodeInfo info = *cluster.Node(node);
      for (const DeviceSpec& device : info.spec.devices)
        devices.push_back({device.type, device.mode, device.compute_share});
    }
    return devices;
  }

  [[nodiscard]] absl::Status CheckJob(size_t job) const;
  void ResolveTypes();
  [[nodiscard]] JobSpec SpecOf(uint32_t job) const;
  [[nodiscard]] QueuedJob QueuedOf(uint32_t job) const;
  [[nodiscard]] int64_t NextEvent() const;
  [[nodiscard]] Work MostOfWork() const;
  void PassTime(int64_t to_us);
  [[nodiscard]] absl::Status Tell(SimEventKind kind, uint32_t job) const;
  [[nodiscard]] absl::Status FinishDue();
  [[nodiscard]] absl::Status TakeArrivals();
  [[nodiscard]] absl::Status Decide();
  [[nodiscard]] absl::Status Try(uint32_t job, bool& left_queue);
  [[nodiscard]] absl::Status Start(uint32_t job, const std::vector<Slot>& slots);
  [[nodiscard]] absl::Status Stop(uint32_t job, SimEnd end);

  const Trace& trace_;
  std::span<const ProfileDemands> beliefs_;
  Cluster& cluster_;
  Queue& queue_;
  Placer& placer_;
  const SimOptions& options_;
  const SimObserver& observer_;
  size_t look_ahead_;
  Execution execution_;
  IdMap<uint32_t> first_device_;               // by node
  std::vector<std::vector<GpuTypeId>> types_;  // by type list; those that the cluster's catalogue knows
  std::vector<bool> alone_;                    // by job: it failed beside others
  std::vector<uint64_t> refused_;              // since a job left; ascending
  SimResult result_;
  Work most_work_ = 0;  // 0 = does not count
  int64_t now_us_ = 0;
  size_t arrived_ = 0;
  int64_t decide_at_us_ = kNoEvent;
};

absl::Status Run::CheckJob(size_t job) const {
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

void Run::ResolveTypes() {
  for (const GpuTypeNames& names : trace_.type_lists) {
    std::vector<GpuTypeId>& types = types_.emplace_back();
    for (const std::string& name : names) {
      if (const auto type = cluster_.catalogue().Find(name); type.ok()) types.push_back(*type);
    }
  }
}

JobSpec Run::SpecOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  JobSpec spec{.id = job,
               .kind = one.kind,
               .tasks = one.tasks,
               .gpus_per_task = one.gpus_per_task,
               .gpu_milli = one.gpu_milli,
               .exclusive = alone_[job],
               .cpu_milli = one.cpu_milli,
               .mem_mib = one.mem_mib,
               .priority = one.priority,
               .submit_us = one.submit_us,
               .deadline_us = one.deadline_us};
  if (one.gpus_per_task == 0) return spec;
  for (const TypeDemand& demand : beliefs_[one.profile]) {
    if (one.gpu_types != kNotStated) {
      const std::vector<GpuTypeId>& allowed = types_[one.gpu_types];
      if (std::find(allowed.begin(), allowed.end(), demand.type) == allowed.end()) continue;
    }
    spec.demands.push_back(demand);
  }
  return spec;
}

QueuedJob Run::QueuedOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  QueuedJob queued{.id = job,
                   .owner = one.owner,
                   .submit_us = one.submit_us,
                   .priority = one.priority,
                   .tasks = one.tasks,
                   .gpus = static_cast<int32_t>(GpusOf(one)),
                   .gpu_milli = one.gpu_milli == 0 ? kMilliPerGpu : one.gpu_milli,
                   .cpu_milli = one.cpu_milli * one.tasks,
                   .mem_mib = one.mem_mib * one.tasks,
                   .total_us = options_.know_run_times && !one.endless ? one.duration_us : 0,
                   .deadline_us = one.deadline_us};
  if (one.gpus_per_task == 0) return queued;
  const Demand& demand = beliefs_[one.profile].front().demand;
  queued.gpu_util_pct = demand.gpu_util_pct;
  queued.gpu_mem_mib = demand.mem_mib;
  return queued;
}

absl::Status Run::Tell(SimEventKind kind, uint32_t job) const {
  if (observer_ == nullptr || observer_({kind, now_us_, job})) return absl::OkStatus();
  return MakeError(absl::StatusCode::kCancelled, "simulation: cancelled at %d us", now_us_);
}

int64_t Run::NextEvent() const {
  int64_t next = decide_at_us_;
  if (arrived_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[arrived_].submit_us);
  if (!execution_.empty()) next = std::min(next, execution_.Next().time_us);
  return next;
}

Work Run::MostOfWork() const {
  Work all = 0;
  for (const TraceJob& job : trace_.jobs) {
    if (job.endless) return 0;
    all += Work(job.duration_us) * kFullRate * GpusOf(job);
  }
  return all - all * (100 - kMostWorkPct) / 100;
}

void Run::PassTime(int64_t to_us) {
  const absl::int128 passed = to_us - now_us_;
  const bool waits = queue_.size() > 0;
  result_.use.device_us += passed * cluster_.device_count();
  result_.use.used_us += passed * execution_.devices_used();
  if (waits) result_.use.backlog_device_us += passed * cluster_.device_count();
  if (const Work missing = most_work_ - execution_.done(); missing > 0) {
    const Work rate = execution_.rate();
    const bool reached = missing <= passed * rate;
    result_.most_done_us = reached ? now_us_ + static_cast<int64_t>((missing + rate - 1) / rate) : -1;
  }
  execution_.PassTime(to_us, waits);
  now_us_ = to_us;
}

absl::Status Run::Stop(uint32_t job, SimEnd end) {
  SimJob& record = result_.jobs[job];
  Work left;
  RunSums sums;
  HORUS_RETURN_IF_ERROR(execution_.Stop(job, left, sums));
  record.sums.done += sums.done;
  record.sums.undisturbed += sums.undisturbed;
  record.sums.backlogged += sums.backlogged;
  record.ran_us += now_us_ - record.start_us;
  record.end = end;
  if (end == SimEnd::kFinished) record.end_us = now_us_;
  return cluster_.Release(job);
}

absl::Status Run::FinishDue() {
  while (!execution_.empty() && execution_.Next().time_us == now_us_) {
    const uint32_t job = execution_.Next().job;
    HORUS_RETURN_IF_ERROR(Stop(job, SimEnd::kFinished));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kFinish, job));
    refused_.clear();
  }
  return absl::OkStatus();
}

absl::Status Run::TakeArrivals() {
  for (; arrived_ < trace_.jobs.size() && trace_.jobs[arrived_].submit_us == now_us_; ++arrived_) {
    const auto job = static_cast<uint32_t>(arrived_);
    HORUS_RETURN_IF_ERROR(queue_.Push(QueuedOf(job)));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kArrive, job));
  }
  return absl::OkStatus();
}

absl::Status Run::Start(uint32_t job, const std::vector<Slot>& slots) {
  const TraceJob& one = trace_.jobs[job];
  std::vector<uint32_t> devices;
  for (const Slot& slot : slots) {
    if (slot.device != kNoDevice) {
      devices.push_back(*first_device_.Find(slot.node) + static_cast<uint32_t>(slot.device));
    }
  }
  const Work work = Work(one.endless ? kMaxTraceTimeUs : one.duration_us) * kFullRate;
  bool runs = true;
  HORUS_RETURN_IF_ERROR(execution_.Start(job, one.profile, devices, work, runs));
  SimJob& record = result_.jobs[job];
  if (runs) {
    record.start_us = now_us_;
    record.end = SimEnd::kRunning;
    return Tell(SimEventKind::kStart, job);
  }
  ++record.failures;
  alone_[job] = true;
  HORUS_RETURN_IF_ERROR(cluster_.Release(job));
  HORUS_RETURN_IF_ERROR(queue_.Push(QueuedOf(job)));
  return Tell(SimEventKind::kFail, job);
}

absl::Status Run::Try(uint32_t job, bool& left_queue) {
  const auto begin = std::chrono::steady_clock::now();
  const JobSpec spec = SpecOf(job);
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer_.MakePlan(cluster_, {&spec, 1}));
  if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  ++result_.decisions;
  const Verdict verdict = plan.decisions.front().verdict;
  left_queue = verdict != Verdict::kDefer;
  if (verdict == Verdict::kPlace) {
    HORUS_RETURN_IF_ERROR(queue_.Serve(job, now_us_));
    return Start(job, plan.actions.front().slots);
  }
  if (verdict == Verdict::kDefer) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(queue_.Remove(job));
  result_.jobs[job].end = SimEnd::kRejected;
  return Tell(SimEventKind::kReject, job);
}

// A job that was refused is asked again when another has left: those that come take room, they make none.
absl::Status Run::Decide() {
  decide_at_us_ = kNoEvent;
  for (bool changed = true; changed && queue_.size() > 0;) {
    changed = false;
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
    for (const uint64_t job : window) {
      const auto at = std::lower_bound(refused_.begin(), refused_.end(), job);
      if (at != refused_.end() && *at == job) continue;
      HORUS_RETURN_IF_ERROR(Try(static_cast<uint32_t>(job), changed));
      if (changed) break;
      refused_.insert(at, job);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SimResult> Run::Go() {
  for (size_t job = 0; job < trace_.jobs.size(); ++job) HORUS_RETURN_IF_ERROR(CheckJob(job));
  ResolveTypes();
  if (!trace_.jobs.empty()) now_us_ = trace_.jobs.front().submit_us;
  execution_.PassTime(now_us_, false);
  most_work_ = MostOfWork();
  const int64_t horizon = options_.horizon_us == 0 ? kNoEvent : options_.horizon_us;
  for (int64_t next = NextEvent(); next < horizon; next = NextEvent()) {
    PassTime(next);
    HORUS_RETURN_IF_ERROR(FinishDue());
    HORUS_RETURN_IF_ERROR(TakeArrivals());
    const int64_t round = options_.round_us;
    if (round == 0 || now_us_ % round == 0) {
      HORUS_RETURN_IF_ERROR(Decide());
    } else if (queue_.size() > 0) {
      decide_at_us_ = now_us_ - now_us_ % round + round;
    }
  }
  if (horizon != kNoEvent && horizon > now_us_) PassTime(horizon);
  for (uint32_t job = 0; job < trace_.jobs.size(); ++job) {
    if (result_.jobs[job].end == SimEnd::kRunning) HORUS_RETURN_IF_ERROR(Stop(job, SimEnd::kRunning));
  }
  result_.end_us = now_us_;
  result_.backlog_us = execution_.backlog_us();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth,
                                   Cluster& cluster, Queue& queue, Placer& placer, const SimOptions& options,
                                   const SimObserver& observer) {
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  if (options.horizon_us < 0 || options.round_us < 0) {
    return InvalidArgument("simulation: horizon_us and round_us: expected 0 or more, found %d and %d",
                           options.horizon_us, options.round_us);
  }
  if (cluster.job_count() > 0 || queue.size() > 0) {
    return InvalidArgument("simulation: expected a cluster and a queue without jobs, found %d and %d",
                           cluster.job_count(), queue.size());
  }
  return Run(trace, beliefs, truth, cluster, queue, placer, options, observer).Go();
}

}  // namespace horus
