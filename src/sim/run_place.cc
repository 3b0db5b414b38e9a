// SPDX-License-Identifier: Apache-2.0
// Jobs come to places, begin to work there, and leave them.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "sim/run.h"

namespace horus {

// Books nothing: the cluster has the job on those slots already.
void SimRun::Hold(uint32_t job, const std::vector<Slot>& slots) {
  Life& life = lives_[job];
  for (const Slot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    const uint32_t device = *first_device_.Find(slot.node) + static_cast<uint32_t>(slot.device);
    life.devices.push_back(device);
    devices_used_ += holders_[device]++ == 0 ? 1 : 0;
  }
  result_.jobs[job].end = SimEnd::kRunning;
  if (!charges_owners_) return;
  const QueueResources asked = ResourcesOf(QueuedOf(job));
  QueueResources& held = owners_[trace_.jobs[job].owner];
  held = {held.gpu_milli + asked.gpu_milli, held.cpu_milli + asked.cpu_milli, held.mem_mib + asked.mem_mib};
}

// The job leaves its places, whether it worked there yet or not.
absl::Status SimRun::LetGo(uint32_t job) {
  Life& life = lives_[job];
  for (const uint32_t device : life.devices) devices_used_ -= --holders_[device] == 0 ? 1 : 0;
  life.devices.clear();
  HORUS_RETURN_IF_ERROR(cluster_.Release(job));
  if (!charges_owners_) return absl::OkStatus();
  const QueueResources asked = ResourcesOf(QueuedOf(job));
  QueueResources& held = owners_[trace_.jobs[job].owner];
  held = {held.gpu_milli - asked.gpu_milli, held.cpu_milli - asked.cpu_milli, held.mem_mib - asked.mem_mib};
  return queue_.SetOwnerUsage(trace_.jobs[job].owner, held);
}

// The job holds its places and begins to work there at once, or after what that takes.
absl::Status SimRun::Launch(uint32_t job) {
  const int64_t delay_us = options_.latency_us + (lives_[job].began ? options_.restart_us : 0);
  lives_[job].phase = Phase::kLaunching;
  if (delay_us == 0) return Start(job);
  launches_.emplace(now_us_ + delay_us, job);
  return absl::OkStatus();
}

absl::Status SimRun::LaunchDue() {
  while (!launches_.empty() && launches_.begin()->first == now_us_) {
    const uint32_t job = launches_.begin()->second;
    launches_.erase(launches_.begin());
    HORUS_RETURN_IF_ERROR(Start(job));
    refused_.clear();  // others were refused while it held the places, which it may not have got
  }
  return absl::OkStatus();
}

absl::Status SimRun::Start(uint32_t job) {
  Life& life = lives_[job];
  bool runs = true;
  HORUS_RETURN_IF_ERROR(
      execution_.Start(job, {.profile = trace_.jobs[job].profile, .devices = life.devices, .left = life.left}, runs));
  SimJob& record = result_.jobs[job];
  if (runs) {
    life.phase = Phase::kRunning;
    if (life.began) ++record.restarts;
    life.began = true;
    if (record.start_us < 0) record.start_us = now_us_;
    return Tell(SimEventKind::kStart, job);
  }
  ++record.failures;
  life.alone = true;
  HORUS_RETURN_IF_ERROR(LetGo(job));
  HORUS_RETURN_IF_ERROR(Enqueue(job));
  return Tell(SimEventKind::kFail, job);
}

// Ends a run, or a launch.
absl::Status SimRun::StopWork(uint32_t job, RunEnd& end) {
  Life& life = lives_[job];
  end = {.left = life.left, .left_on_disk = life.left};
  if (life.phase == Phase::kLaunching) {
    const auto at =
        std::find_if(launches_.begin(), launches_.end(), [&](const auto& one) { return one.second == job; });
    launches_.erase(at);
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(execution_.Stop(job, end));
  life.left = end.left;
  SimJob& record = result_.jobs[job];
  record.sums.done += end.sums.done;
  record.sums.undisturbed += end.sums.undisturbed;
  record.sums.backlogged += end.sums.backlogged;
  record.ran_us += end.ran_us;
  return absl::OkStatus();
}

// `behind`: who may be preempted for the job, the last first to go; those who were are taken out. Null = nobody.
absl::Status SimRun::Try(uint32_t job, std::vector<uint32_t>* behind, bool& left_queue) {
  const auto begin = std::chrono::steady_clock::now();
  const JobSpec spec = SpecOf(job);
  HORUS_ASSIGN_OR_RETURN(Plan plan, placer_.MakePlan(cluster_, {&spec, 1}));
  if (plan.decisions.front().verdict == Verdict::kDefer && behind != nullptr && !behind->empty()) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> victims, VictimsFor(spec, *behind));
    for (const uint32_t victim : victims) {
      HORUS_RETURN_IF_ERROR(Preempt(victim));
      behind->erase(std::find(behind->begin(), behind->end(), victim));
    }
    if (!victims.empty()) {
      HORUS_ASSIGN_OR_RETURN(plan, placer_.MakePlan(cluster_, {&spec, 1}));
    }
  }
  if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  ++result_.decisions;
  const Verdict verdict = plan.decisions.front().verdict;
  left_queue = verdict != Verdict::kDefer;
  if (verdict == Verdict::kPlace) {
    HORUS_RETURN_IF_ERROR(queue_.Serve(job, now_us_));
    Hold(job, plan.actions.front().slots);
    return Launch(job);
  }
  if (verdict == Verdict::kDefer) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(queue_.Remove(job));
  lives_[job].phase = Phase::kGone;
  result_.jobs[job].end = SimEnd::kRejected;
  return Tell(SimEventKind::kReject, job);
}

// A job that was refused is asked again when another has left: those that come take room, they make none.
absl::Status SimRun::Decide() {
  for (bool changed = true; changed && queue_.size() > 0;) {
    changed = false;
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
    for (const uint64_t job : window) {
      const auto at = std::lower_bound(refused_.begin(), refused_.end(), job);
      if (at != refused_.end() && *at == job) continue;
      HORUS_RETURN_IF_ERROR(Try(static_cast<uint32_t>(job), nullptr, changed));
      if (changed) break;
      refused_.insert(at, job);
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
