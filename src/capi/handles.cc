// SPDX-License-Identifier: Apache-2.0
// The lock of a cluster handle.
#include "capi/handles.h"

#include <algorithm>

#include "capi/error.h"

namespace horus::capi {
namespace {

// Clusters that planning calls of this thread keep from being written. A thread that waited for a writer's turn while
// it does so could wait for one that waits for it.
thread_local int clusters_read = 0;

}  // namespace

ClusterGate::PlanLock::PlanLock(ClusterGate* gate, ReadLock lock) : gate_(gate), lock_(std::move(lock)) {
  ++clusters_read;
}

void ClusterGate::PlanLock::DoneReading() {
  lock_.unlock();
  --clusters_read;
}

ClusterGate::PlanLock::~PlanLock() {
  if (gate_ == nullptr) return;
  if (lock_.owns_lock()) DoneReading();
  gate_->Leave();
}

absl::StatusOr<ClusterGate::ReadLock> ClusterGate::Read() {
  HORUS_RETURN_IF_ERROR(RefusePlanner());
  return ReadLock(state_);
}

absl::StatusOr<ClusterGate::WriteLock> ClusterGate::Write() {
  HORUS_RETURN_IF_ERROR(RefusePlanner());
  if (clusters_read == 0) return WriteLock(state_);
  WriteLock lock(state_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  return CError(HORUS_ERR_BUSY,
                "cluster: in use by another thread, for which a callback of a planning call cannot wait");
}

absl::StatusOr<ClusterGate::PlanLock> ClusterGate::Plan() {
  HORUS_ASSIGN_OR_RETURN(ReadLock lock, Read());
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  planners_.push_back(std::this_thread::get_id());
  planner_count_.store(planners_.size());
  return PlanLock(this, std::move(lock));
}

absl::Status ClusterGate::RefusePlanner() {
  // A thread sees its own earlier store, so a count of 0 means that it is not planning.
  if (planner_count_.load() == 0) return absl::OkStatus();
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  if (std::ranges::find(planners_, std::this_thread::get_id()) == planners_.end()) {
    return absl::OkStatus();
  }
  return CError(HORUS_ERR_BUSY, "cluster: in use by the planning call whose callback runs on this thread");
}

void ClusterGate::Leave() {
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  planners_.erase(std::ranges::find(planners_, std::this_thread::get_id()));
  planner_count_.store(planners_.size());
}

}  // namespace horus::capi
