// SPDX-License-Identifier: Apache-2.0
// Keeps for each tenant of a device the share that the truth gives it, and for each job the slowest of its devices.
#include "lab/run/execution.h"

#include <cmath>

#include "base/status.h"

namespace horus {
namespace {

// A share or speed in billionths. A job that runs is never at a stand: the least is one billionth.
int64_t Billionths(double value) { return std::max<int64_t>(1, std::llround(value * static_cast<double>(kFullRate))); }

constexpr int64_t kNever = int64_t{1} << 61;  // later than any trace's time; two of them fit 64 bits

}  // namespace

absl::Status Execution::SharesOn(uint32_t device, std::span<const uint32_t> tenants) {
  profiles_.clear();
  for (const uint32_t job : tenants) profiles_.push_back(jobs_[job].profile);
  shares_.assign(tenants.size(), 1);
  if (tenants.size() < 2) return absl::OkStatus();
  if (!truth_.HostMatters()) return truth_.Shares(map_.context(device), profiles_, shares_);
  hosts_.clear();
  for (const uint32_t job : tenants) hosts_.push_back(jobs_[job].host_speed);
  return truth_.SharesOfHosts(map_.context(device), profiles_, hosts_, shares_);
}

void Execution::Advance(Running& job) const {
  const int64_t since_us = std::exchange(job.since_us, now_us_);
  const int64_t passed = now_us_ - since_us;
  const int64_t written_us = checkpoint_us_ == 0 ? now_us_ : now_us_ - (now_us_ - job.begun_us) % checkpoint_us_;
  if (written_us > since_us) job.left_on_disk = job.left - Work(written_us - since_us) * job.rate;
  const int64_t backlogged = backlog_us_ - std::exchange(job.since_backlog_us, backlog_us_);
  const Work done = Work(passed) * job.rate;
  job.left -= done;
  job.sums.done += done;
  job.sums.undisturbed += Work(passed) * job.share;
  job.sums.backlogged += Work(backlogged) * job.rate;
}

// The job is advanced to now; its devices tell how fast it is from now on.
void Execution::Schedule(uint32_t job) {
  Running& running = jobs_[job];
  const auto gpus = static_cast<int64_t>(running.devices.size());
  rate_ -= Work(running.rate) * gpus;
  const auto slowest =
      std::ranges::min_element(running.devices, [](const OnDevice& a, const OnDevice& b) { return a.rate < b.rate; });
  running.rate = slowest == running.devices.end() ? kFullRate : slowest->rate;  // a job for the host alone
  running.share = slowest == running.devices.end() ? kFullRate : Billionths(slowest->share);
  rate_ += Work(running.rate) * gpus;
  const Work left = std::max(Work(0), running.left);
  const Work time = std::min((left + running.rate - 1) / running.rate, Work(kNever));
  finishes_.Change(job, {now_us_ + static_cast<int64_t>(time), job}, positions_);
}

absl::Status Execution::Refresh(uint32_t device) {
  const Tenants& tenants = tenants_[device];
  HORUS_RETURN_IF_ERROR(SharesOn(device, tenants));
  for (size_t i = 0; i < tenants.size(); ++i) {
    Running& running = jobs_[tenants[i]];
    Advance(running);
    const double alone = truth_.SpeedAlone(running.profile, map_.context(device));
    OnDevice& here = *std::ranges::find(running.devices, device, &OnDevice::device);
    here.share = shares_[i];
    here.rate = Billionths(alone * running.host_speed * here.share);
    Schedule(tenants[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Execution::Start(uint32_t job, const RunBegin& begin) {
  Running& running = jobs_[job];
  running.profile = begin.profile;
  running.host_speed = begin.host_speed;
  running.since_us = now_us_;
  running.since_backlog_us = backlog_us_;
  running.begun_us = now_us_;
  running.left = begin.left;
  running.left_on_disk = begin.left;
  running.sums = {};
  running.rate = 0;
  for (const uint32_t device : begin.devices) {
    if (!(truth_.SpeedAlone(begin.profile, map_.context(device)) > 0)) {
      return InvalidArgument("simulation: profile %d: expected a speed on GPU type %d, found none", begin.profile,
                             map_.device(device).type.value());
    }
    Tenants with = tenants_[device];
    with.push_back(job);
    HORUS_RETURN_IF_ERROR(SharesOn(device, with));
    if (!std::ranges::all_of(shares_, [](double share) { return share > 0; })) return false;
  }
  for (const uint32_t device : begin.devices) {
    tenants_[device].push_back(job);
    running.devices.push_back({device, kFullRate, 1});
  }
  finishes_.Push({now_us_, job}, job, positions_);
  if (begin.devices.empty()) Schedule(job);
  for (const uint32_t device : begin.devices) HORUS_RETURN_IF_ERROR(Refresh(device));
  return true;
}

absl::StatusOr<RunEnd> Execution::Stop(uint32_t job) {
  Running& running = jobs_[job];
  Advance(running);
  const RunEnd end = {running.left, running.left_on_disk, now_us_ - running.begun_us, running.sums};
  const auto gpus = static_cast<int64_t>(running.devices.size());
  rate_ -= Work(running.rate) * gpus;
  done_ += std::min(Work(0), running.left) * gpus;  // the last microsecond is a whole one
  finishes_.Erase(job, positions_);
  for (const OnDevice& one : running.devices) {
    Tenants& tenants = tenants_[one.device];
    tenants.erase(std::ranges::find(tenants, job));
    HORUS_RETURN_IF_ERROR(Refresh(one.device));
  }
  running.devices.clear();
  return end;
}

}  // namespace horus
