// SPDX-License-Identifier: Apache-2.0
// ClusterGate: the lock of a cluster handle, which knows the threads that are inside a planning call.
//
// Enters:  a wish to read, to write or to plan.
// Leaves:  a lock for a scope; BUSY for a thread that comes back from its own callback, where waiting might never end.
// Units:   none.
// Cost:    one lock.                      Thread class: internally synchronised.
#ifndef HORUS_CAPI_CLUSTER_GATE_H_
#define HORUS_CAPI_CLUSTER_GATE_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/patient_mutex.h"

namespace horus::capi {

class ClusterGate {
 public:
  using ReadLock = std::shared_lock<PatientMutex>;
  using WriteLock = std::unique_lock<PatientMutex>;

  // A read lock under which, and after it, foreign code (callbacks) may run on this thread.
  class PlanLock {
   public:
    PlanLock(ClusterGate* gate, ReadLock lock);
    PlanLock(PlanLock&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), lock_(std::move(other.lock_)) {}
    PlanLock& operator=(PlanLock&&) = delete;
    ~PlanLock();

    // Others may write from now on; this thread still counts as one that plans.
    void DoneReading();

   private:
    ClusterGate* gate_;
    ReadLock lock_;
  };

  [[nodiscard]] absl::StatusOr<ReadLock> Read();
  [[nodiscard]] absl::StatusOr<WriteLock> Write();
  [[nodiscard]] absl::StatusOr<PlanLock> Plan();

 private:
  [[nodiscard]] absl::Status RefusePlanner();
  void Leave();

  PatientMutex state_;
  std::mutex planners_mutex_;
  std::vector<std::thread::id> planners_;
  std::atomic<size_t> planner_count_ = 0;  // spares other calls the look at planners_
};

}  // namespace horus::capi

#endif  // HORUS_CAPI_CLUSTER_GATE_H_
