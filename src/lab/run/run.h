// SPDX-License-Identifier: Apache-2.0
// SimJobs: jobs of a simulation, how they come to places and leave them; run.cc decides which. Of this folder only:
// simulator.h is the door.
//
// Enters:  the arguments of Simulate, checked; plans.
// Leaves:  the cluster, the queue and the result as they are then.
// Units:   microseconds of the trace's clock; jobs by their position in the trace.
// Thread class: one thread at a time.
#pragma once

#include <cmath>

#include "base/status.h"
#include "lab/run/beliefs.h"
#include "lab/run/use_meter.h"

namespace horus {

class SimJobs {
 protected:
  // So often a job may fail beside others who were learned of; then it runs alone. A chosen limit: a placer that does
  // not heed what was learned would try for ever.
  static constexpr int32_t kMostFailures = 16;
  static constexpr double kWeightUnitUs = 3.6e9;  // a job of an hour counts 1. Weights count as ratios alone
  enum class Phase : uint8_t { kAbsent, kWaiting, kLaunching, kRunning, kGone };
  struct Life {
    Work left = 0;                             // when it ran last
    absl::InlinedVector<uint32_t, 2> devices;  // that it holds
    Phase phase = Phase::kAbsent;
    HostShare host;  // granted or stated, of each GPU; 0 = its part of the fair share
    double host_speed = 1;
    bool alone = false;  // it failed beside others
    bool began = false;  // it did some work before
  };

  SimJobs(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster,
          Queue& queue, const SimOptions& options, const SimObserver& observer)
      : trace_(trace),
        truth_(truth),
        cluster_(cluster),
        queue_(queue),
        options_(options),
        observer_(observer),
        weights_(options.weights != SimWeights::kQueue        ? options.weights
                 : options.know_run_times && ServesShortest() ? SimWeights::kShortest
                                                              : SimWeights::kPrices),
        charges_owners_(queue.name() == "drf"),
        map_(cluster),
        execution_(truth, map_, trace.jobs.size(), options.checkpoint_us),
        meter_(cluster, map_, options.workload == nullptr ? WorkloadOf(trace, cluster.catalogue()) : options.workload),
        profiling_(trace, beliefs, options, cluster, map_),
        types_(KnownTypes(trace, cluster.catalogue())),
        lives_(trace.jobs.size()) {
    result_.jobs.resize(trace.jobs.size());
    result_.devices = cluster.device_count();
  }

  [[nodiscard]] absl::Status Tell(SimEventKind kind, uint32_t job, std::span<const Slot> slots = {}) const {
    if (observer_ == nullptr || observer_({kind, now_us_, job, slots})) return absl::OkStatus();
    return Cancelled("simulation: cancelled at %d us", now_us_);
  }

  [[nodiscard]] static bool HasType(const std::vector<GpuTypeId>& types, GpuTypeId type) {
    return std::ranges::find(types, type) != types.end();
  }

  // ---- What the placer and the queue are told.
  [[nodiscard]] bool ServesShortest() const { return queue_.name() == "sjf" || queue_.name() == "srtf"; }

  // What the job's work counts beside that of others, before prices.
  [[nodiscard]] float WeightOf(const TraceJob& job) const {
    if (weights_ != SimWeights::kShortest || job.endless) return 1;
    // Powers of two, so that jobs of about one length are one kind.
    const double weight = std::exp2(std::round(std::log2(kWeightUnitUs / static_cast<double>(job.duration_us))));
    return std::clamp(static_cast<float>(weight), 1 / kMaxWorkWeight, kMaxWorkWeight);
  }

  [[nodiscard]] JobSpec SpecOf(uint32_t job) const {
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
                 .weight = WeightOf(one),
                 .submit_us = one.submit_us,
                 .deadline_us = one.deadline_us};
    if (StatesBound(one.id, options_.bounded_milli)) spec.slowdown_bound = static_cast<float>(options_.job_bound);
    if (one.gpus_per_task == 0) return spec;
    if (options_.sensitivities != nullptr) spec.sensitivity = (*options_.sensitivities)[one.profile];
    const auto too_small = too_small_.find(job);
    for (const TypeDemand& demand : profiling_.BeliefsOf(job)) {
      if (one.gpu_types != kNotStated && !HasType(types_[one.gpu_types], demand.type)) continue;
      if (too_small != too_small_.end() && (!demand.type.valid() || HasType(too_small->second, demand.type))) continue;
      spec.demands.push_back(demand);
    }
    return spec;
  }

  // Of a job that waits or runs.
  [[nodiscard]] QueuedJob QueuedOf(uint32_t job) const {
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

  [[nodiscard]] absl::Status Enqueue(uint32_t job) {
    lives_[job].phase = Phase::kWaiting;
    result_.jobs[job].end = SimEnd::kWaiting;
    return queue_.Push(QueuedOf(job));
  }

  // What the placer sees of a job.
  using Kind = std::tuple<uint32_t, uint32_t, int32_t, int32_t, uint16_t, JobKind, int32_t, int64_t, int64_t, bool,
                          float, bool, size_t>;

  // Jobs that the placer cannot tell apart: where one would go, so would the others.
  [[nodiscard]] Kind KindOf(uint32_t job) const {
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
            WeightOf(one),
            profiling_.IsProfiled(job),
            too_small == too_small_.end() ? 0 : too_small->second.size()};
  }

  [[nodiscard]] double LeftUs(uint32_t job) const {
    const Work left = lives_[job].phase == Phase::kRunning ? execution_.LeftOf(job) : lives_[job].left;
    return static_cast<double>(left) / static_cast<double>(kFullRate);
  }

  // ---- Jobs come to places and leave them.
  // A job that waits holds the places of the action from now on.
  [[nodiscard]] absl::Status Admit(const Action& action) {
    const auto job = static_cast<uint32_t>(action.job->id);
    HORUS_RETURN_IF_ERROR(queue_.Serve(job, now_us_));
    Hold(job, action.slots);
    HORUS_RETURN_IF_ERROR(SetHost(*action.job));
    HORUS_RETURN_IF_ERROR(Charge(job, 1));
    return Launch(job);
  }

  // Books nothing: the cluster has the job on those slots already.
  void Hold(uint32_t job, std::span<const Slot> slots) {
    for (const Slot& slot : slots) {
      const uint32_t node = map_.at(slot.node);
      if (slot.device == kNoDevice) {
        host_nodes_[job].push_back(node);
      } else {
        lives_[job].devices.push_back(map_.first_device(node) + static_cast<uint32_t>(slot.device));
      }
    }
    Occupy(job, 1);
    result_.jobs[job].end = SimEnd::kRunning;
  }

  void Vacate(uint32_t job) {
    Occupy(job, -1);
    lives_[job].devices.clear();
    host_nodes_.erase(job);
    predicted_.erase(job);
  }

  // What the job's owner holds.
  [[nodiscard]] absl::Status Charge(uint32_t job, int32_t sign) {
    if (!charges_owners_) return absl::OkStatus();
    const QueueResources asked = ResourcesOf(QueuedOf(job));
    QueueResources& held = owners_[trace_.jobs[job].owner];
    held.gpu_milli += sign * asked.gpu_milli;
    held.cpu_milli += sign * asked.cpu_milli;
    held.mem_mib += sign * asked.mem_mib;
    return queue_.SetOwnerUsage(trace_.jobs[job].owner, held);
  }

  // Counts the job's places as taken, or with `sign` -1 as given back.
  void Occupy(uint32_t job, int32_t sign) {
    ++changes_;
    const auto host = host_nodes_.find(job);
    meter_.Take(trace_.jobs[job], lives_[job].devices,
                host == host_nodes_.end() ? std::span<const uint32_t>() : host->second, sign);
  }

  [[nodiscard]] Slots SlotsOf(uint32_t job) const {
    Slots slots;
    if (observer_ == nullptr) return slots;
    const std::span<const uint32_t> devices = lives_[job].devices;
    for (size_t i = 0; i < devices.size(); ++i) {
      const uint32_t node = map_.node_of(devices[i]);
      const auto task = static_cast<int32_t>(i) / trace_.jobs[job].gpus_per_task;
      slots.push_back({map_.id(node), static_cast<int32_t>(devices[i] - map_.first_device(node)), task});
    }
    if (const auto at = host_nodes_.find(job); at != host_nodes_.end()) {
      for (const uint32_t node : at->second)
        slots.push_back({map_.id(node), kNoDevice, static_cast<int32_t>(slots.size())});
    }
    return slots;
  }

  // Where the job shares a device: what was believed of each tenant there, and what is so.
  void CompareWithTruth(std::span<const TenantEffect> effects) {
    for (size_t begin = 0; begin < effects.size();) {
      size_t end = begin + 1;  // of the same device
      while (end < effects.size() && effects[end].node == effects[begin].node &&
             effects[end].device == effects[begin].device) {
        ++end;
      }
      const uint32_t device =
          map_.first_device(map_.at(effects[begin].node)) + static_cast<uint32_t>(effects[begin].device);
      const size_t tenants = execution_.TenantsOf(device).size();
      for (size_t i = begin; tenants > 1 && tenants == end - begin && i < end; ++i) {
        const double share = execution_.ShareOn(static_cast<uint32_t>(effects[i].job), device);
        if (share == 0) continue;
        result_.belief_error += std::abs(std::log(static_cast<double>(effects[i].after.estimate) * share));
        ++result_.beliefs;
      }
      begin = end;
    }
  }

  // The job leaves its places, whether it worked there yet or not.
  [[nodiscard]] absl::Status LetGo(uint32_t job) {
    Vacate(job);
    HORUS_RETURN_IF_ERROR(cluster_.Release(job));
    return Charge(job, -1);
  }

  // The job holds its places and begins to work there at once, or after what that takes.
  [[nodiscard]] absl::Status Launch(uint32_t job) {
    const int64_t delay_us = options_.latency_us + (lives_[job].began ? options_.restart_us : 0);
    lives_[job].phase = Phase::kLaunching;
    if (delay_us == 0) return Start(job);
    launches_.Set(now_us_ + delay_us, job);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status LaunchDue() {
    while (const std::optional<uint32_t> job = launches_.TakeDue(now_us_)) {
      HORUS_RETURN_IF_ERROR(Start(*job));
      refused_.Clear();  // others were refused while it held the places, which it may not have got
    }
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status Start(uint32_t job) {
    Life& life = lives_[job];
    GpuTypeId type;
    if (const Memory memory = MemoryFor(job, type); memory != Memory::kFits) {
      if (memory == Memory::kShortAlone) too_small_[job].push_back(type);
      return EndStart(job, SimEventKind::kOutOfMemory);
    }
    HORUS_ASSIGN_OR_RETURN(const bool runs, execution_.Start(job, {.profile = trace_.jobs[job].profile,
                                                                   .devices = life.devices,
                                                                   .left = life.left,
                                                                   .host_speed = life.host_speed}));
    if (!runs) return EndStart(job, SimEventKind::kFail);
    SimJob& record = result_.jobs[job];
    life.phase = Phase::kRunning;
    if (std::exchange(life.began, true)) ++record.restarts;
    if (record.start_us < 0) record.start_us = now_us_;
    HORUS_RETURN_IF_ERROR(ShareHosts(life.devices));
    ObserveAnew(life.devices);
    if (!life.devices.empty()) profiling_.Begin(job, map_.node_of(life.devices[0]), now_us_);
    if (const auto at = predicted_.find(job); at != predicted_.end()) {
      CompareWithTruth(at->second);
      predicted_.erase(at);
    }
    return Tell(SimEventKind::kStart, job, SlotsOf(job));
  }

  enum class Memory : uint8_t { kFits, kShort, kShortAlone };

  // Whoever comes last asks the device for what is no longer there.
  [[nodiscard]] Memory MemoryFor(uint32_t job, GpuTypeId& type) const {
    const uint32_t profile = trace_.jobs[job].profile;
    for (const uint32_t device : lives_[job].devices) {
      const DeviceSpec& spec = map_.device(device);
      type = spec.type;
      const int64_t own = truth_.MemMib(profile, type);
      if (own == 0) continue;
      if (own > spec.mem_mib) return Memory::kShortAlone;
      int64_t all = own;
      for (const uint32_t tenant : execution_.TenantsOf(device))
        all += truth_.MemMib(trace_.jobs[tenant].profile, type);
      if (all > spec.mem_mib) return Memory::kShort;
    }
    return Memory::kFits;
  }

  [[nodiscard]] absl::Status Reject(uint32_t job) {
    lives_[job].phase = Phase::kGone;
    result_.jobs[job].end = SimEnd::kRejected;
    return Tell(SimEventKind::kReject, job);
  }

  // The job could not begin to work where it is: it waits again, to be alone, or there is nowhere else for it.
  [[nodiscard]] absl::Status EndStart(uint32_t job, SimEventKind why) {
    SimJob& record = result_.jobs[job];
    ++(why == SimEventKind::kFail ? record.failures : record.out_of_memory);
    bool learned = false;
    if (why == SimEventKind::kFail && record.failures < kMostFailures) HORUS_SET_OR_RETURN(learned, LearnFailure(job));
    lives_[job].alone = !learned;
    HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
    refused_.Clear();  // while it held the places
    HORUS_RETURN_IF_ERROR(LetGo(job));
    if (trace_.jobs[job].gpus_per_task == 0 || !SpecOf(job).demands.empty()) return Enqueue(job);
    return Reject(job);
  }

  // Ends a run, or a launch.
  [[nodiscard]] absl::StatusOr<RunEnd> StopWork(uint32_t job) {
    Life& life = lives_[job];
    if (life.phase == Phase::kLaunching) {
      launches_.Cancel(job);
      return RunEnd{.left = life.left, .left_on_disk = life.left};
    }
    HORUS_ASSIGN_OR_RETURN(const RunEnd end, execution_.Stop(job));
    HORUS_RETURN_IF_ERROR(ShareHosts(life.devices));
    ObserveAnew(life.devices);
    profiling_.Stop(job);
    life.left = end.left;
    SimJob& record = result_.jobs[job];
    record.sums.done += end.sums.done;
    record.sums.undisturbed += end.sums.undisturbed;
    record.sums.backlogged += end.sums.backlogged;
    record.ran_us += end.ran_us;
    return end;
  }

  // The job, which left its places, works again at those of the action.
  [[nodiscard]] absl::Status MoveTo(uint32_t job, const Action& action) {
    Hold(job, action.slots);
    lives_[job].phase = Phase::kLaunching;
    HORUS_RETURN_IF_ERROR(SetHost(*action.job));
    ++result_.jobs[job].migrations;
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kMigrate, job, SlotsOf(job)));
    return Launch(job);
  }

  // The job writes a checkpoint, loses its places and waits again.
  [[nodiscard]] absl::Status PutBack(uint32_t job, SimEventKind why) {
    HORUS_RETURN_IF_ERROR(StopWork(job).status());
    HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
    HORUS_RETURN_IF_ERROR(LetGo(job));
    refused_.Clear();
    return Enqueue(job);
  }

  [[nodiscard]] absl::Status Preempt(uint32_t job) {
    ++result_.jobs[job].preemptions;
    return PutBack(job, SimEventKind::kPreempt);
  }

  // What the job did since its last checkpoint is lost; it waits again.
  [[nodiscard]] absl::Status Interrupt(uint32_t job) {
    HORUS_ASSIGN_OR_RETURN(const RunEnd end, StopWork(job));
    const Work lost = end.left_on_disk - end.left;
    execution_.Lose(lost, lives_[job].devices.size());
    lives_[job].left = end.left_on_disk;
    result_.jobs[job].lost += lost;
    ++result_.jobs[job].interruptions;
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kInterrupt, job, SlotsOf(job)));
    HORUS_RETURN_IF_ERROR(LetGo(job));
    return Enqueue(job);
  }

  // ---- Cores and host memory: what jobs have of them, and how fast they are with it.
  // A job that holds places has these cores and this host memory from now on.
  [[nodiscard]] absl::Status SetHost(const JobSpec& spec) {
    if (!truth_.HostMatters()) return absl::OkStatus();
    const auto job = static_cast<uint32_t>(spec.id);
    const int32_t gpus = trace_.jobs[job].gpus_per_task;
    if (gpus > 0) lives_[job].host = {spec.cpu_milli / gpus, spec.mem_mib / gpus};
    return UpdateHostSpeed(job);
  }

  // Of each GPU what the job was granted or asks for; else the GPU's fair share of the node, which those that work
  // there and state nothing part evenly.
  [[nodiscard]] absl::Status UpdateHostSpeed(uint32_t job) {
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
  [[nodiscard]] absl::Status ShareHosts(std::span<const uint32_t> devices) {
    if (!truth_.HostMatters()) return absl::OkStatus();
    for (const uint32_t device : devices) {
      for (const uint32_t tenant : execution_.TenantsOf(device)) HORUS_RETURN_IF_ERROR(UpdateHostSpeed(tenant));
    }
    return absl::OkStatus();
  }

  // Whom the plan gives other cores and memory, once the cluster has it.
  [[nodiscard]] absl::Status Resize(const Plan& plan) {
    for (const Action& action : plan.actions) {
      if (action.kind == ActionKind::kResize) HORUS_RETURN_IF_ERROR(SetHost(*action.job));
    }
    return absl::OkStatus();
  }

  // ---- What is believed of jobs, and seen of them while they run.
  [[nodiscard]] const Demand* BeliefOn(uint32_t job, uint32_t device) const {
    return FindDemand(profiling_.BeliefsOf(job), map_.device(device).type);
  }

  [[nodiscard]] std::vector<const Demand*> BeliefsOfTenants(uint32_t device) const {
    std::vector<const Demand*> demands;
    for (const uint32_t tenant : execution_.TenantsOf(device)) demands.push_back(BeliefOn(tenant, device));
    return demands;
  }

  // Somebody came to the devices or left them now.
  void ObserveAnew(std::span<const uint32_t> devices) {
    for (const uint32_t device : devices) {
      observations_.Cancel(device);
      const bool shared = execution_.TenantsOf(device).size() >= 2;
      if (shared && options_.observe_us > 0) observations_.Set(now_us_ + options_.observe_us, device);
    }
  }

  // Whether what the job could not bear was learned of: not where it met others on several devices, for nobody could
  // tell who did not bear whom.
  [[nodiscard]] absl::StatusOr<bool> LearnFailure(uint32_t job) {
    std::vector<uint32_t> shared;
    std::ranges::copy_if(lives_[job].devices, std::back_inserter(shared),
                         [&](uint32_t device) { return !execution_.TenantsOf(device).empty(); });
    if (options_.learner == nullptr || shared.size() != 1) return false;
    std::vector<const Demand*> demands = BeliefsOfTenants(shared[0]);
    demands.push_back(BeliefOn(job, shared[0]));
    refused_.Clear();
    return options_.learner->Failed({now_us_, map_.context(shared[0]), demands, {}});
  }

  const Trace& trace_;
  const Truth& truth_;
  Cluster& cluster_;
  Queue& queue_;
  const SimOptions& options_;
  const SimObserver& observer_;
  SimWeights weights_;
  bool charges_owners_;  // the queue counts what owners hold
  const ClusterMap map_;
  Execution execution_;
  UseMeter meter_;
  Profiling profiling_;
  Alarms observations_;                                   // of devices whose tenants stay the same for a while
  Alarms launches_;                                       // of jobs that hold places and will begin to work
  std::vector<std::vector<GpuTypeId>> types_;             // by type list; those that the cluster's catalogue knows
  std::vector<Life> lives_;                               // by job
  std::map<uint32_t, QueueResources> owners_;             // what they hold
  std::map<uint32_t, std::vector<GpuTypeId>> too_small_;  // types on which a job's memory does not fit
  std::map<uint32_t, std::vector<uint32_t>> host_nodes_;  // of jobs without GPUs, by task
  std::map<uint32_t, TenantEffects> predicted_;           // of jobs that are to start
  RefusedJobs<Kind> refused_;                             // since a job left
  uint64_t changes_ = 0;                                  // jobs that came to places or left, nodes too
  SimResult result_;
  int64_t now_us_ = 0;
};

}  // namespace horus
