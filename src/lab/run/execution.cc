// SPDX-License-Identifier: Apache-2.0
// Keeps for each tenant of a device the share that the truth gives it, and for each job the slowest of its devices.
#include "lab/run/execution.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"

namespace horus {
namespace {

// A share or speed in billionths. A job that runs is never at a stand: the least is one billionth.
int64_t Billionths(double value) { return std::max<int64_t>(1, std::llround(value * static_cast<double>(kFullRate))); }

constexpr int64_t kNever = int64_t{1} << 61;  // later than any trace's time; two of them fit 64 bits

}  // namespace

Execution::Execution(const Truth& truth, std::vector<DeviceContext> devices, size_t jobs, int64_t checkpoint_us)
    : truth_(truth),
      checkpoint_us_(checkpoint_us),
      devices_(std::move(devices)),
      tenants_(devices_.size()),
      jobs_(jobs) {
  finishes_.Reserve(jobs);
  positions_.resize(jobs);
}

absl::Status Execution::SharesOn(uint32_t device, std::span<const uint32_t> tenants) {
  profiles_.clear();
  for (const uint32_t job : tenants) profiles_.push_back(jobs_[job].profile);
  shares_.assign(tenants.size(), 1);
  if (tenants.size() < 2) return absl::OkStatus();
  if (!truth_.HostMatters()) return truth_.Shares(devices_[device], profiles_, shares_);
  hosts_.clear();
  for (const uint32_t job : tenants) hosts_.push_back(jobs_[job].host_speed);
  return truth_.SharesOfHosts(devices_[device], profiles_, hosts_, shares_);
}

void Execution::PassTime(int64_t to_us, bool waits) {
  const int64_t passed = to_us - std::exchange(now_us_, to_us);
  if (waits) backlog_us_ += passed;
  done_ += Work(passed) * rate_;
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

int64_t Execution::RateOf(const Running& running, const OnDevice& one) const {
  return Billionths(truth_.SpeedAlone(running.profile, devices_[one.device]) * running.host_speed * one.share);
}

void Execution::SetShare(uint32_t job, uint32_t device, double share) {
  Running& running = jobs_[job];
  for (OnDevice& one : running.devices) {
    if (one.device != device) continue;
    one.share = share;
    one.rate = RateOf(running, one);
  }
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
    Advance(jobs_[tenants[i]]);
    SetShare(tenants[i], device, shares_[i]);
    Schedule(tenants[i]);
  }
  return absl::OkStatus();
}

absl::Status Execution::Start(uint32_t job, const RunBegin& begin, bool& runs) {
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
    if (!(truth_.SpeedAlone(begin.profile, devices_[device]) > 0)) {
      return InvalidArgument("simulation: profile %d: expected a speed on GPU type %d, found none", begin.profile,
                             devices_[device].type.value());
    }
    Tenants with = tenants_[device];
    with.push_back(job);
    HORUS_RETURN_IF_ERROR(SharesOn(device, with));
    runs = std::ranges::all_of(shares_, [](double share) { return share > 0; });
    if (!runs) return absl::OkStatus();
  }
  for (const uint32_t device : begin.devices) {
    tenants_[device].push_back(job);
    running.devices.push_back({device, kFullRate, 1});
  }
  finishes_.Push({now_us_, job}, job, positions_);
  if (begin.devices.empty()) Schedule(job);
  for (const uint32_t device : begin.devices) HORUS_RETURN_IF_ERROR(Refresh(device));
  return absl::OkStatus();
}

absl::Status Execution::SetHostSpeed(uint32_t job, double host_speed) {
  Running& running = jobs_[job];
  Advance(running);
  running.host_speed = host_speed;
  for (const OnDevice& one : running.devices) HORUS_RETURN_IF_ERROR(Refresh(one.device));
  return absl::OkStatus();
}

absl::Status Execution::Stop(uint32_t job, RunEnd& end) {
  Running& running = jobs_[job];
  Advance(running);
  end = {running.left, running.left_on_disk, now_us_ - running.begun_us, running.sums};
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
  return absl::OkStatus();
}

}  // namespace horus
