// SPDX-License-Identifier: Apache-2.0
// Jobs come to places, begin to work there, and leave them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "sim/run/run.h"

namespace horus {

// Counts the job's places as taken, or with `sign` -1 as given back.
void SimRun::Occupy(uint32_t job, int32_t sign) {
  ++changes_;
  const auto host = host_nodes_.find(job);
  meter_.Take(trace_.jobs[job], lives_[job].devices,
              host == host_nodes_.end() ? std::span<const uint32_t>() : host->second, sign);
}

std::vector<Slot> SimRun::SlotsOf(uint32_t job) const {
  std::vector<Slot> slots;
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
void SimRun::CompareWithTruth(const std::vector<TenantEffect>& effects) {
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

// Books nothing: the cluster has the job on those slots already.
void SimRun::Hold(uint32_t job, const std::vector<Slot>& slots) {
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

void SimRun::Vacate(uint32_t job) {
  Occupy(job, -1);
  lives_[job].devices.clear();
  host_nodes_.erase(job);
  foretold_.erase(job);
}

// What the job's owner holds.
absl::Status SimRun::Charge(uint32_t job, int32_t sign) {
  if (!charges_owners_) return absl::OkStatus();
  const QueueResources asked = ResourcesOf(QueuedOf(job));
  QueueResources& held = owners_[trace_.jobs[job].owner];
  held.gpu_milli += sign * asked.gpu_milli;
  held.cpu_milli += sign * asked.cpu_milli;
  held.mem_mib += sign * asked.mem_mib;
  return queue_.SetOwnerUsage(trace_.jobs[job].owner, held);
}

// The job leaves its places, whether it worked there yet or not.
absl::Status SimRun::LetGo(uint32_t job) {
  Vacate(job);
  HORUS_RETURN_IF_ERROR(cluster_.Release(job));
  return Charge(job, -1);
}

// The job holds its places and begins to work there at once, or after what that takes.
absl::Status SimRun::Launch(uint32_t job) {
  const int64_t delay_us = options_.latency_us + (lives_[job].began ? options_.restart_us : 0);
  lives_[job].phase = Phase::kLaunching;
  if (delay_us == 0) return Start(job);
  launches_.Set(now_us_ + delay_us, job);
  return absl::OkStatus();
}

absl::Status SimRun::LaunchDue() {
  while (const std::optional<uint32_t> job = launches_.TakeDue(now_us_)) {
    HORUS_RETURN_IF_ERROR(Start(*job));
    refused_.Clear();  // others were refused while it held the places, which it may not have got
  }
  return absl::OkStatus();
}

absl::Status SimRun::Start(uint32_t job) {
  Life& life = lives_[job];
  GpuTypeId type;
  if (const Memory memory = MemoryFor(job, type); memory != Memory::kFits) {
    if (memory == Memory::kShortAlone) too_small_[job].push_back(type);
    return EndStart(job, SimEventKind::kOutOfMemory);
  }
  bool runs = true;
  HORUS_RETURN_IF_ERROR(execution_.Start(
      job,
      {.profile = trace_.jobs[job].profile, .devices = life.devices, .left = life.left, .host_speed = life.host_speed},
      runs));
  SimJob& record = result_.jobs[job];
  if (runs) {
    life.phase = Phase::kRunning;
    if (life.began) ++record.restarts;
    life.began = true;
    if (record.start_us < 0) record.start_us = now_us_;
    ShareHosts(life.devices);
    for (const uint32_t device : life.devices) watching_.Restart(device);
    if (!life.devices.empty()) profiling_.Begin(job, map_.node_of(life.devices[0]), now_us_);
    if (const auto at = foretold_.find(job); at != foretold_.end()) {
      CompareWithTruth(at->second);
      foretold_.erase(at);
    }
    return Tell(SimEventKind::kStart, job, SlotsOf(job));
  }
  return EndStart(job, SimEventKind::kFail);
}

// Whoever comes last asks the device for what is no longer there.
SimRun::Memory SimRun::MemoryFor(uint32_t job, GpuTypeId& type) const {
  const uint32_t profile = trace_.jobs[job].profile;
  for (const uint32_t device : lives_[job].devices) {
    const DeviceSpec& spec = map_.device(device);
    type = spec.type;
    const int64_t own = truth_.MemMib(profile, type);
    if (own == 0) continue;
    if (own > spec.mem_mib) return Memory::kShortAlone;
    int64_t all = own;
    for (const uint32_t tenant : execution_.TenantsOf(device)) {
      all += truth_.MemMib(trace_.jobs[tenant].profile, type);
    }
    if (all > spec.mem_mib) return Memory::kShort;
  }
  return Memory::kFits;
}

// The job could not begin to work where it is: it waits again, to be alone, or there is nowhere else for it.
absl::Status SimRun::EndStart(uint32_t job, SimEventKind why) {
  SimJob& record = result_.jobs[job];
  ++(why == SimEventKind::kFail ? record.failures : record.out_of_memory);
  bool learned = false;
  if (why == SimEventKind::kFail && record.failures < kMostFailures) {
    HORUS_ASSIGN_OR_RETURN(learned, LearnFailure(job));
  }
  lives_[job].alone = !learned;
  HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
  HORUS_RETURN_IF_ERROR(LetGo(job));
  if (trace_.jobs[job].gpus_per_task == 0 || !SpecOf(job).demands.empty()) return Enqueue(job);
  return Reject(job);
}

absl::Status SimRun::Reject(uint32_t job) {
  lives_[job].phase = Phase::kGone;
  pricing_.Count(job, -1);
  result_.jobs[job].end = SimEnd::kRejected;
  return Tell(SimEventKind::kReject, job);
}

// Ends a run, or a launch.
absl::Status SimRun::StopWork(uint32_t job, RunEnd& end) {
  Life& life = lives_[job];
  end = {.left = life.left, .left_on_disk = life.left};
  if (life.phase == Phase::kLaunching) {
    launches_.Cancel(job);
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(execution_.Stop(job, end));
  ShareHosts(life.devices);
  for (const uint32_t device : life.devices) watching_.Restart(device);
  profiling_.Stop(job);
  life.left = end.left;
  SimJob& record = result_.jobs[job];
  record.sums.done += end.sums.done;
  record.sums.undisturbed += end.sums.undisturbed;
  record.sums.backlogged += end.sums.backlogged;
  record.ran_us += end.ran_us;
  return absl::OkStatus();
}

absl::StatusOr<Plan> SimRun::AskPlacer(const JobSpec& spec) {
  const auto begin = std::chrono::steady_clock::now();
  HORUS_ASSIGN_OR_RETURN(Plan plan, placer_->MakePlan(cluster_, {&spec, 1}));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  ++result_.decisions;
  return plan;
}

// Carries out what the placer decided of a job that waits.
absl::Status SimRun::Settle(uint32_t job, Plan& plan, bool& left_queue) {
  if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  const Verdict verdict = plan.decisions.front().verdict;
  left_queue = verdict != Verdict::kDefer;
  if (verdict == Verdict::kPlace) {
    std::vector<TenantEffect>& effects = plan.decisions.front().effects;
    if (std::ssize(effects) > GpusOf(trace_.jobs[job])) foretold_[job] = std::move(effects);
    return Admit(plan.actions.front());
  }
  if (verdict == Verdict::kDefer) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(queue_.Remove(job));
  return Reject(job);
}

// A job that waits holds the places of the action from now on.
absl::Status SimRun::Admit(const Action& action) {
  const auto job = static_cast<uint32_t>(action.job->id);
  pricing_.CountStart();
  HORUS_RETURN_IF_ERROR(queue_.Serve(job, now_us_));
  Hold(job, action.slots);
  SetHost(*action.job);
  HORUS_RETURN_IF_ERROR(Charge(job, 1));
  return Launch(job);
}

// `behind`: who may be preempted for the job, the last first to go; those who were are taken out.
absl::Status SimRun::Try(uint32_t job, std::vector<uint32_t>& behind, bool& left_queue) {
  const JobSpec spec = SpecOf(job);
  HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
  if (plan.decisions.front().verdict == Verdict::kDefer && !behind.empty()) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> victims, VictimsFor(spec, behind));
    for (const uint32_t victim : victims) {
      HORUS_RETURN_IF_ERROR(Preempt(victim));
      behind.erase(std::find(behind.begin(), behind.end(), victim));
    }
    if (!victims.empty()) {
      HORUS_ASSIGN_OR_RETURN(plan, placer_->MakePlan(cluster_, {&spec, 1}));
    }
  }
  return Settle(job, plan, left_queue);
}

// A job that was refused is asked again when another has left: those that come take room, they make none.
absl::Status SimRun::Decide() {
  for (bool changed = true; changed && queue_.size() > 0;) {
    changed = false;
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
    for (size_t i = 0; i < window.size(); ++i) {
      if (refused_.HasJob(window[i])) continue;
      const auto job = static_cast<uint32_t>(window[i]);
      const Kind kind = KindOf(job);
      if (!refused_.HasKind(kind)) {
        const JobSpec spec = SpecOf(job);
        HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
        if (!HadBetterWait(spec, plan.decisions.front(), window, i)) {
          HORUS_RETURN_IF_ERROR(Settle(job, plan, changed));
          if (changed) break;
          refused_.AddKind(kind);
        }
      }
      refused_.AddJob(window[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
