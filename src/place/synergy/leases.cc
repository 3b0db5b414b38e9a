// SPDX-License-Identifier: Apache-2.0
// Sets GPUs aside and gives them back.
#include "place/synergy/leases.h"

#include <algorithm>

namespace horus {

Leases::Leases(SynergyState& state) : state_(state) {
  const std::span<const SynergyJob> jobs = state.input().jobs;
  if (std::all_of(jobs.begin(), jobs.end(), [](const SynergyJob& job) { return job.held.empty(); })) return;
  held_.resize(jobs.size());
  int64_t left = state.gpus_free();
  for (; end_ < jobs.size() && left > 0; ++end_) {
    if (jobs[end_].gpus > left) continue;
    left -= jobs[end_].gpus;
    if (CanHold(end_)) Hold(end_, 1);
  }
}

bool Leases::CanHold(size_t job) const {
  const std::span<const SynergySlice> slices = state_.input().jobs[job].held;
  return !slices.empty() && std::all_of(slices.begin(), slices.end(), [this](const SynergySlice& slice) {
    return state_.server(slice.server).gpus_free >= slice.gpus;
  });
}

void Leases::Hold(size_t job, int32_t sign) {
  for (const SynergySlice& slice : state_.input().jobs[job].held) state_.SetAside(slice.server, sign * slice.gpus);
  held_[job] = sign > 0 ? 1 : 0;
}

void Leases::End(size_t job) {
  if (job < end_ && held_[job] != 0) Hold(job, -1);
}

bool Leases::Suspend() {
  bool any = false;
  for (size_t job = 0; job < end_; ++job) {
    any |= held_[job] != 0;
    End(job);
  }
  return any;
}

void Leases::ResumeAfter(size_t job) {
  for (++job; job < end_; ++job) {
    if (CanHold(job)) Hold(job, 1);
  }
}

}  // namespace horus
