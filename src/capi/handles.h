// SPDX-License-Identifier: Apache-2.0
// What is behind the opaque handles of every build (graph and predictor: graph_handles.h).
//
// Enters:  values of the rooms.   Leaves: the structs that horus.h only names.
// Thread class: as horus.h says of each.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "base/patient_mutex.h"
#include "capi/telemetry.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"
#include "interference/registry.h"
#include "place/decision.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "predict/measured.h"
#include "queue/queue.h"

namespace horus::capi {

// ---- ClusterGate: the lock of a cluster handle, which knows the threads that are inside a planning call.
// Cost: one lock.

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

struct horus_catalogue {
  explicit horus_catalogue(std::shared_ptr<const horus::Catalogue> types);
  std::shared_ptr<const horus::Catalogue> value;
  std::vector<horus_mig_profile> mig;                  // of all types, one after the other
  std::vector<const horus_mig_profile*> mig_pointers;  // to these
  std::vector<size_t> mig_begin;                       // of each type
};

struct horus_observations {
  horus::MeasuredDemands demands;
  horus::ObservedSlowdowns slowdowns;
};

struct horus_interference {
  std::shared_ptr<const horus::InterferenceModel> value;
  // Whose type ids the model understands; null = any.
  std::shared_ptr<const horus::Catalogue> catalogue;
  std::string bundle;  // empty without
};

struct horus_cluster {
  explicit horus_cluster(horus::Cluster cluster) : value(std::move(cluster)) {}
  horus::Cluster value;
  mutable horus::capi::ClusterGate gate;
  horus::capi::TelemetrySlot telemetry{this};
};

struct horus_placer {
  std::unique_ptr<horus::Placer> value;
  std::shared_ptr<const horus::Catalogue> catalogue;  // of its model; null = any
  std::atomic<bool> busy = false;
  std::atomic<uint64_t> bytes_held = 0;  // at the end of the last call, of a placer that is metered
  horus::Placer::Judgements judged;      // already told to the telemetry
  horus::capi::TelemetrySlot telemetry{this};
};

struct horus_plan {
  horus::Plan value;
  std::shared_ptr<const horus::Catalogue> catalogue;  // whose type ids it speaks
  std::vector<horus::TenantReview> reviews;           // of a review
  mutable std::once_flag texts_once;
  mutable std::vector<std::string> texts;  // one per decision, written when first asked for
};

struct horus_queue {
  std::unique_ptr<horus::Queue> value;
};

namespace horus::capi {

// The catalogue behind a handle; the built-in one for null.
[[nodiscard]] inline std::shared_ptr<const Catalogue> CatalogueOf(const horus_catalogue* handle) {
  return handle == nullptr ? Catalogue::Default() : handle->value;
}

// The model behind a handle; the default one for null.
[[nodiscard]] inline absl::StatusOr<std::shared_ptr<const InterferenceModel>> ModelOf(
    const horus_interference* handle) {
  if (handle != nullptr) return handle->value;
  return MakeInterferenceModel(kDefaultInterferenceModel);
}

// Names of language models; none in a build without ONNX.
[[nodiscard]] std::vector<std::string_view> KnownModels();

// Whether type ids mean the same in both; null agrees with everything.
[[nodiscard]] inline bool SameTypes(const std::shared_ptr<const Catalogue>& a,
                                    const std::shared_ptr<const Catalogue>& b) {
  return a == nullptr || b == nullptr || a == b || *a == *b;
}

}  // namespace horus::capi
