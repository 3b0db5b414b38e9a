// SPDX-License-Identifier: Apache-2.0
// The loop over events: those who finish, those who come, those who begin to work, then decisions.
#include "lab/run/run.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "lab/synergy/plan_round.h"
#include "place/modes/batch.h"
#include "place/modes/what_if.h"

namespace horus {
namespace {

bool ServesShortest(const Queue& queue) { return queue.name() == "sjf" || queue.name() == "srtf"; }

}  // namespace

SimWeights SimRun::WeightsOf(const SimOptions& options, const Queue& queue) {
  if (options.weights != SimWeights::kQueue) return options.weights;
  return options.know_run_times && ServesShortest(queue) ? SimWeights::kShortest : SimWeights::kPrices;
}

SimRun::Way SimRun::WayOf(const SimOptions& options, const Queue& queue, const Placer& placer, SimWeights weights) {
  if (options.one_by_one || options.preempt || RoundPolicyOf(placer) != nullptr || !placer.policy().maximises_work()) {
    return Way::kOneByOne;
  }
  if (queue.name() == "fifo" || queue.name() == "las") return Way::kChooses;
  return ServesShortest(queue) && weights == SimWeights::kShortest ? Way::kMayWait : Way::kOneByOne;
}

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
      weights_(WeightsOf(options, queue)),
      way_(WayOf(options, queue, placer, weights_)),
      promises_(options.know_run_times && ServesShortest(queue)),
      look_ahead_(options.look_ahead != 0  ? options.look_ahead
                  : way_ == Way::kOneByOne ? queue.look_ahead()
                                           : BatchOptions{}.window),
      charges_owners_(queue.name() == "drf"),
      map_(cluster),
      execution_(truth, map_.Contexts(), trace.jobs.size(), options.checkpoint_us),
      meter_(cluster, map_, options.workload == nullptr ? WorkloadOf(trace, cluster.catalogue()) : options.workload),
      profiling_(trace, beliefs, options, cluster, map_),
      device_observer_(options, map_, execution_, profiling_),
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
  return Cancelled("simulation: cancelled at %d us", now_us_);
}

int64_t SimRun::NextEvent() const {
  int64_t next = decide_at_us_;
  if (arrived_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[arrived_].submit_us);
  if (!execution_.empty()) next = std::min(next, execution_.Next().time_us);
  next = std::min({next, launches_.next_us(), device_observer_.next_us(), profiling_.next_us()});
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
  return ResourceExhausted("simulation: expected at most %d rounds of decisions and rebalances, found more at %d us",
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
    HORUS_RETURN_IF_ERROR(Enqueue(job));
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kArrive, job));
  }
  return absl::OkStatus();
}

absl::Status SimRun::DecideWhenDue() {
  const int64_t round = options_.round_us;
  if (round == 0 || now_us_ % round == 0) {
    decide_at_us_ = kNoEvent;
    HORUS_RETURN_IF_ERROR(RoundPolicyOf(*placer_) != nullptr ? DecideRound()
                          : options_.preempt                 ? DecideByRank()
                          : way_ == Way::kChooses            ? DecideBatch()
                                                             : Decide());
    HORUS_RETURN_IF_ERROR(Regrant());
    // Ranks change while jobs run.
    const bool again = options_.preempt && round > 0 && cluster_.job_count() > 0;
    if (!again || queue_.size() == 0) return absl::OkStatus();
  }
  const bool renews = options_.preempt && RoundPolicyOf(*placer_) != nullptr && changes_ != round_changes_;
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
    HORUS_RETURN_IF_ERROR(ObserveDue());
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

// What the placer and the queue are told of a job.

namespace {

bool Has(const std::vector<GpuTypeId>& types, GpuTypeId type) { return std::ranges::find(types, type) != types.end(); }

}  // namespace

void SimRun::ResolveTypes() {
  for (const GpuTypeNames& names : trace_.type_lists) {
    std::vector<GpuTypeId>& types = types_.emplace_back();
    for (const std::string& name : names) {
      if (const auto type = cluster_.catalogue().FindKnown(name)) types.push_back(*type);
    }
  }
}

JobSpec SimRun::SpecOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  JobSpec spec{.id = job,
               .kind = one.kind,
               .tasks = one.tasks,
               .gpus_per_task = one.gpus_per_task,
               .gpu_milli = one.gpu_milli,
               .exclusive = lives_[job].alone,
               .cpu_milli = one.cpu_milli,
               .mem_mib = one.mem_mib,
               .priority = one.priority,
               .weight = WeightOf(one, weights_),
               .submit_us = one.submit_us,
               .deadline_us = one.deadline_us};
  if (StatesBound(one.id, options_.bounded_milli)) spec.slowdown_bound = static_cast<float>(options_.job_bound);
  if (one.gpus_per_task == 0) return spec;
  if (options_.sensitivities != nullptr) spec.sensitivity = (*options_.sensitivities)[one.profile];
  const auto too_small = too_small_.find(job);
  for (const TypeDemand& demand : profiling_.BeliefsOf(job)) {
    if (one.gpu_types != kNotStated) {
      if (!Has(types_[one.gpu_types], demand.type)) continue;
    }
    if (too_small != too_small_.end() && (!demand.type.valid() || Has(too_small->second, demand.type))) continue;
    spec.demands.push_back(demand);
  }
  return spec;
}

// Of a job that waits or runs.
QueuedJob SimRun::QueuedOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  const bool runs = lives_[job].phase == Phase::kRunning;
  const int64_t ran_us = result_.jobs[job].ran_us + (runs ? execution_.RanUs(job) : 0);
  QueuedJob queued{
      .id = job,
      .owner = one.owner,
      .submit_us = one.submit_us,
      .priority = one.priority,
      .tasks = one.tasks,
      .gpus = static_cast<int32_t>(GpusOf(one)),
      .gpu_milli = one.gpu_milli == 0 ? kMilliPerGpu : one.gpu_milli,
      .cpu_milli = one.cpu_milli * one.tasks,
      .mem_mib = one.mem_mib * one.tasks,
      .total_us = options_.know_run_times && !one.endless ? one.duration_us : 0,
      .attained_gpu_us = std::min(ran_us, kMostQueueTimeUs / std::max<int64_t>(1, GpusOf(one))) * GpusOf(one),
      .deadline_us = one.deadline_us};
  if (queued.total_us > 0) {
    const Work left = runs ? execution_.LeftOf(job) : lives_[job].left;
    queued.remaining_us = static_cast<int64_t>((std::max(Work(0), left) + kFullRate - 1) / kFullRate);
  }
  if (one.gpus_per_task == 0) return queued;
  const Demand& demand = profiling_.BeliefsOf(job).front().demand;
  queued.gpu_util_pct = demand.gpu_util_pct;
  queued.gpu_mem_mib = demand.mem_mib;
  return queued;
}

absl::Status SimRun::Enqueue(uint32_t job) {
  lives_[job].phase = Phase::kWaiting;
  result_.jobs[job].end = SimEnd::kWaiting;
  return queue_.Push(QueuedOf(job));
}

// Cores and host memory: what jobs have of them, and how fast they are with it.

// A job that holds places has these cores and this host memory from now on.
absl::Status SimRun::SetHost(const JobSpec& spec) {
  if (!truth_.HostMatters()) return absl::OkStatus();
  const auto job = static_cast<uint32_t>(spec.id);
  const int32_t gpus = trace_.jobs[job].gpus_per_task;
  if (gpus > 0) lives_[job].host = {spec.cpu_milli / gpus, spec.mem_mib / gpus};
  return UpdateHostSpeed(job);
}

// Of each GPU what the job was granted or asks for; else the GPU's fair share of the node, which those that work there
// and state nothing part evenly.
absl::Status SimRun::UpdateHostSpeed(uint32_t job) {
  Life& life = lives_[job];
  double slowest = 1;
  for (size_t i = 0; i < life.devices.size(); ++i) {
    const uint32_t device = life.devices[i];
    HostShare share = map_.fair_share(map_.node_of(device));
    const auto unstated = [&](int64_t HostShare::* part) {
      const std::span<const uint32_t> tenants = execution_.TenantsOf(device);
      const auto count =
          std::ranges::count_if(tenants, [&](uint32_t tenant) { return lives_[tenant].host.*part == 0; });
      return share.*part / std::max<int64_t>(1, count);
    };
    share = {life.host.cpu_milli > 0 ? life.host.cpu_milli : unstated(&HostShare::cpu_milli),
             life.host.mem_mib > 0 ? life.host.mem_mib : unstated(&HostShare::mem_mib)};
    const double speed = truth_.HostSpeed(trace_.jobs[job].profile, share);
    slowest = i == 0 ? speed : std::min(slowest, speed);
  }
  if (slowest == life.host_speed) return absl::OkStatus();
  life.host_speed = slowest;
  return life.phase == Phase::kRunning ? execution_.SetHostSpeed(job, slowest) : absl::OkStatus();
}

// Somebody began or ended work on these devices.
absl::Status SimRun::ShareHosts(std::span<const uint32_t> devices) {
  if (!truth_.HostMatters()) return absl::OkStatus();
  for (const uint32_t device : devices) {
    for (const uint32_t tenant : execution_.TenantsOf(device)) HORUS_RETURN_IF_ERROR(UpdateHostSpeed(tenant));
  }
  return absl::OkStatus();
}

// Whom the plan gives other cores and memory, once the cluster has it.
absl::Status SimRun::Resize(const Plan& plan) {
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kResize) HORUS_RETURN_IF_ERROR(SetHost(*action.job));
  }
  return absl::OkStatus();
}

// Those who work get what others gave back.
absl::Status SimRun::Regrant() {
  if (options_.sensitivities == nullptr || !placer_->policy().grants_host()) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer_->MakePlan(cluster_, {}));
  if (plan.actions.empty()) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  return Resize(plan);
}

// Nodes fail, jobs go back to their last checkpoints, nodes come back.

absl::Status SimRun::NodesDue() {
  while (const std::optional<NodeEvent> event = node_events_.TakeDue(now_us_)) {
    const NodeId node = map_.id(event->node);
    const Slot whole[] = {{node, kNoDevice, 0}};
    meter_.SetUp(event->node, !event->down);
    ++changes_;
    HORUS_RETURN_IF_ERROR(Tell(event->down ? SimEventKind::kNodeDown : SimEventKind::kNodeUp, kNotStated, whole));
    HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs,
                           cluster_.SetNodeState(node, event->down ? AdminState::kDown : AdminState::kUp));
    refused_.Clear();
    if (!event->down) continue;
    for (const JobId job : jobs) HORUS_RETURN_IF_ERROR(Interrupt(static_cast<uint32_t>(job)));
  }
  return absl::OkStatus();
}

// What the job did since its last checkpoint is lost; it waits again.
absl::Status SimRun::Interrupt(uint32_t job) {
  RunEnd end;
  HORUS_RETURN_IF_ERROR(StopWork(job, end));
  const Work lost = end.left_on_disk - end.left;
  execution_.Lose(lost, lives_[job].devices.size());
  lives_[job].left = end.left_on_disk;
  result_.jobs[job].lost += lost;
  ++result_.jobs[job].interruptions;
  HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kInterrupt, job, SlotsOf(job)));
  HORUS_RETURN_IF_ERROR(LetGo(job));
  return Enqueue(job);
}

// What follows of what is seen of jobs while they run.

absl::Status SimRun::ObserveDue() {
  while (const std::optional<uint32_t> device = device_observer_.TakeDue()) {
    HORUS_ASSIGN_OR_RETURN(Revision revision, device_observer_.Observe(*device, placer_->policy()));
    if (revision.policy != nullptr) {
      HORUS_ASSIGN_OR_RETURN(revised_,
                             Placer::Create(placer_->shared_model(), std::move(revision.policy), placer_->options()));
      placer_ = revised_.get();
      refused_.Clear();
    }
    if (options_.learner != nullptr) refused_.Clear();
    if (revision.undo) HORUS_RETURN_IF_ERROR(Preempt(execution_.TenantsOf(*device).back()));  // who came last
  }
  return absl::OkStatus();
}

// Whether what the job could not bear was learned of.
absl::StatusOr<bool> SimRun::LearnFailure(uint32_t job) {
  HORUS_ASSIGN_OR_RETURN(const std::optional<bool> learned, device_observer_.Failed(job, lives_[job].devices));
  if (learned) refused_.Clear();
  return learned.value_or(false);
}

absl::Status SimRun::ProfilingDue() {
  while (const std::optional<uint32_t> job = profiling_.TakeDue(now_us_)) {
    HORUS_RETURN_IF_ERROR(PutBack(*job, SimEventKind::kProfiled));
  }
  return absl::OkStatus();
}

// Running jobs go elsewhere: rebalancing, and whoever is put back to wait.

// The job writes a checkpoint, loses its places and waits again.
absl::Status SimRun::PutBack(uint32_t job, SimEventKind why) {
  RunEnd end;
  HORUS_RETURN_IF_ERROR(StopWork(job, end));
  HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
  HORUS_RETURN_IF_ERROR(LetGo(job));
  refused_.Clear();
  return Enqueue(job);
}

absl::Status SimRun::RebalanceDue() {
  if (options_.rebalance_us == 0 || now_us_ % options_.rebalance_us != 0) return absl::OkStatus();
  // What was best stays so while nobody comes or goes and nothing is learned.
  const std::pair state(changes_, placer_->model().epoch());
  if (state == settled_) return absl::OkStatus();
  std::vector<JobId> movable = cluster_.JobIds();
  std::erase_if(movable, [&](JobId job) { return lives_[job].phase != Phase::kRunning; });
  if (movable.empty()) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, Rebalance(*placer_, cluster_, options_.rebalance, movable));
  if (plan.actions.empty()) {
    settled_ = state;
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  // All leave before the first comes, as in the cluster: they may change places.
  for (const Action& action : plan.actions) {
    const auto job = static_cast<uint32_t>(action.job->id);
    RunEnd end;
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    Vacate(job);
  }
  for (const Action& action : plan.actions) {
    HORUS_RETURN_IF_ERROR(MoveTo(static_cast<uint32_t>(action.job->id), action));
  }
  refused_.Clear();
  return absl::OkStatus();
}

// The job, which left its places, works again at those of the action.
absl::Status SimRun::MoveTo(uint32_t job, const Action& action) {
  Hold(job, action.slots);
  lives_[job].phase = Phase::kLaunching;
  HORUS_RETURN_IF_ERROR(SetHost(*action.job));
  ++result_.jobs[job].migrations;
  HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kMigrate, job, SlotsOf(job)));
  return Launch(job);
}

// Preemption by rank: jobs that wait take the places of jobs that run and rank behind them.

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

namespace {

// ---- Checks what a simulation is asked, and runs it.

absl::Status CheckOptions(const SimOptions& options, const Placer& placer, size_t profiles) {
  const std::pair<const char*, int64_t> times[] = {
      {"horizon_us", options.horizon_us}, {"round_us", options.round_us},
      {"restart_us", options.restart_us}, {"checkpoint_us", options.checkpoint_us},
      {"latency_us", options.latency_us}, {"rebalance_us", options.rebalance_us},
      {"observe_us", options.observe_us}, {"profiling_us", options.profiling_us}};
  for (const auto& [name, value] : times) {
    if (value >= 0 && value <= kMaxTraceTimeUs) continue;
    return InvalidArgument("simulation: %s: expected 0 to %d, found %d", name, kMaxTraceTimeUs, value);
  }
  if (options.weights == SimWeights::kShortest && !options.know_run_times) {
    return InvalidArgument("simulation: weights: expected others without know_run_times, found the shortest first");
  }
  if (options.rebalance_us > 0 && RoundPolicyOf(placer) != nullptr) {
    return InvalidArgument("simulation: rebalance_us: expected a policy that decides job by job, found %s",
                           std::string(placer.policy().name()));
  }
  if (options.sensitivities != nullptr && options.sensitivities->size() < profiles) {
    return InvalidArgument("simulation: sensitivities: expected one entry for each of %d profiles, found %d", profiles,
                           options.sensitivities->size());
  }
  if (options.measured != nullptr && options.measured->size() < profiles) {
    return InvalidArgument("simulation: measured: expected one entry for each of %d profiles, found %d", profiles,
                           options.measured->size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth,
                                   Cluster& cluster, Queue& queue, Placer& placer, const SimOptions& options,
                                   const SimObserver& observer) {
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  HORUS_RETURN_IF_ERROR(CheckOptions(options, placer, trace.profiles.size()));
  if (cluster.job_count() > 0 || queue.size() > 0) {
    return InvalidArgument("simulation: expected a cluster and a queue without jobs, found %d and %d",
                           cluster.job_count(), queue.size());
  }
  for (const NodeId node : cluster.NodeIds()) {
    const absl::StatusOr<NodeInfo> info = cluster.Node(node);
    for (const DeviceSpec& device : info->spec.devices) {
      if (device.mode != SharingMode::kTimeSliceOrMps) continue;
      return Unimplemented("simulation: node %d: expected devices of one sharing mode, found %s", node,
                           std::string(SharingModeName(device.mode)));
    }
  }
  return SimRun(trace, beliefs, truth, cluster, queue, placer, options, observer).Go();
}

}  // namespace horus
