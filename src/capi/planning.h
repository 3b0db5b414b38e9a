// SPDX-License-Identifier: Apache-2.0
// What calls that plan or simulate share: subsets, the caller's progress function, options of policies and queues,
// columns of jobs and slots.
//
// Enters:  handles and the caller's arguments.
// Leaves:  a plan handle; errors of the planning, BUSY, cluster and placer of different GPU types.
// Thread class: as horus_placer_plan.
#pragma once

#include <chrono>
#include <span>

#include "capi/handles.h"
#include "horus/cluster.h"
#include "horus/place.h"
#include "horus/queue.h"
#include "place/policies/policies.h"
#include "place/policies/workload.h"

namespace horus::capi {

// The caller's progress function, told by share and asked between shares whether to go on.
class CallerProgress {
 public:
  CallerProgress(horus_progress function, void* user) : function_(function), user_(user) {}
  [[nodiscard]] explicit operator bool() const { return function_ != nullptr; }
  // False = cancel, here and below.
  [[nodiscard]] bool Tell(double done) {
    done_ = done;
    asked_ = std::chrono::steady_clock::now();
    return function_(user_, done) == 0;
  }
  // The last share again, at most once a millisecond: a call through a foreign language costs about a microsecond.
  [[nodiscard]] bool Ask() {
    return std::chrono::steady_clock::now() - asked_ < std::chrono::milliseconds(1) || Tell(done_);
  }
  // Told by positions; null where the caller gave no function. Borrows.
  [[nodiscard]] ProgressFn Shares() {
    if (function_ == nullptr) return nullptr;
    return [this](uint64_t done, uint64_t total) {
      return Tell(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
    };
  }

 private:
  horus_progress function_;
  void* user_;
  double done_ = 0;
  std::chrono::steady_clock::time_point asked_ = {};
};

// `read` may be called when the cluster is needed no more (ReadFn in placer.h).
using Planning = std::function<absl::StatusOr<Plan>(Placer&, const Cluster&, const ReadFn& read)>;

// Runs `planning` with the placer marked as in use and metered, and the cluster locked until it was read.
[[nodiscard]] absl::StatusOr<std::unique_ptr<horus_plan>> PlanWith(horus_placer& placer, const horus_cluster& cluster,
                                                                   CallerProgress& progress, const Planning& planning);

// The same for what makes no plan handle.
using PlacerWork = std::function<absl::Status(Placer&, const Cluster&, const ReadFn& read)>;
[[nodiscard]] absl::Status UsePlacer(horus_placer& placer, const horus_cluster& cluster, CallerProgress& progress,
                                     const PlacerWork& work);

// No column = all nodes.
[[nodiscard]] absl::StatusOr<std::optional<std::span<const NodeId>>> SubsetFromC(size_t count,
                                                                                 const uint64_t* node_ids);
// `job_ids` checked, and left to the caller.
[[nodiscard]] absl::StatusOr<RebalanceOptions> RebalanceFromC(const horus_rebalance_options& c);

// ---- Output columns that several functions share: job ids and slots.

// Where ids go. `ids` null: only counted; `count` null: only written.
struct IdBuffer {
  size_t capacity;
  uint64_t* ids;
  size_t* count;
};
// What can fail, apart from writing, so that callers can do it before anything changes.
[[nodiscard]] absl::Status CheckRoom(size_t needed, const IdBuffer& buffer);
// Requires CheckRoom.
void WriteIds(std::span<const uint64_t> ids, const IdBuffer& buffer);

[[nodiscard]] absl::Status WriteSlots(std::span<const Slot> slots, const horus_slots* out, size_t* count);

// An index of a device; NOT_FOUND beyond any.
[[nodiscard]] absl::StatusOr<int32_t> DeviceIndex(uint32_t device);

// Slots that come in; `tasks` null = all 0, a device UINT32_MAX = a task without GPUs.
struct SlotColumns {
  size_t count;
  const uint64_t* node_ids;
  const uint32_t* devices;
  const uint32_t* tasks;
};
[[nodiscard]] absl::StatusOr<Slots> SlotsFromC(const SlotColumns& columns);

// ---- What is seen of a resident: the device and the demands of all who are on it, as the placer takes them.
// Cost: the jobs there.

struct SeenResident {
  std::string gpu_type;
  DeviceContext device;
  Demand job;
  std::vector<Demand> others;
};
// What is stated beside a cluster: INVALID_ARGUMENT.
[[nodiscard]] inline absl::Status Unset(const char* field, bool unset) {
  return unset ? absl::OkStatus() : InvalidArgument("%s: expected to be unset beside a cluster, found a value", field);
}
// NOT_FOUND: the device, or the job on it. INVALID_ARGUMENT: nothing can be learned of a job without a profile.
[[nodiscard]] absl::StatusOr<SeenResident> SeenResidentOf(const horus_cluster& cluster, JobId job, NodeId node,
                                                          uint32_t device, bool with_others);

// ---- The settings of single policies from the C ABI.

// Sets `catalogue` where the workload names types. INVALID_ARGUMENT, NOT_FOUND (type).
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Workload>> WorkloadFromC(
    const horus_workload* given, std::shared_ptr<const Catalogue>& catalogue);

// `lab`: of the laboratory's policies; null = their defaults.
[[nodiscard]] absl::StatusOr<std::unique_ptr<horus_placer>> MakePlacer(
    const horus_placer_options* given, std::shared_ptr<const LabPolicyOptions> lab = nullptr);

// ---- Options of a queue's discipline from the C ABI.

[[nodiscard]] absl::StatusOr<QueueOptions> QueueOptionsFromC(const horus_queue_options* given);

}  // namespace horus::capi
