// SPDX-License-Identifier: Apache-2.0
// Device states as small ids: devices that no rule and no price can tell apart share one id.
//
// Enters:  tenant classes (a job as one device sees it) and device states (device + sorted tenant classes).
// Leaves:  dense ids, reference-counted; digests and hashes that depend on content alone, never on history.
// Units:   MiB, thousandths of a GPU, per cent.
// Cost:    one hash look-up an intern; about 200 bytes a distinct class, 150 a distinct state.
// Thread class: value with one writer; readers share freely while nobody writes.
#pragma once

#include "place/job/own_bound.h"
#include "place/state/node.h"

namespace horus {

// The kind of a GPU job, one bit each: sharers of a GPU, 1 GPU, 2 GPUs, ... (63 and more are one kind).
[[nodiscard]] uint64_t KindBit(int32_t gpu_milli, int32_t gpus);

inline constexpr int32_t kTenantMilli = 1000;

// All that a device and its tenants know of each other.
struct TenantClass {
  Demand demand;
  Promise promise;        // the bound is OwnBound::slowdown
  int32_t gpu_milli = 0;  // as stated; 0 = shares
  bool exclusive = false;
  int32_t gpus = 1;          // of the whole job: above 1 it is a gang
  bool distributed = false;  // the job has several tasks
  JobKind kind = JobKind::kTraining;
  int32_t priority = 0;
  float weight = 1;      // WorkWeight
  float work_alone = 1;  // WorkAlone
  float worth = 1;       // of what slowdowns cost here: weight x work_alone x RelativeSpeed; 0 where it KeepsWork
  int32_t counted_milli =
      kTenantMilli;  // in a limit of busy tenants, in thousandths of one; by the demand's upper bound
  GpuMemory memory;  // of each of its GPUs
  LateAlone late;
  // Of the fields above, set by MakeTenantClass:
  uint64_t order = 0;   // equal in every process: how tenants of a device are sorted, and part of a cluster's hash
  uint64_t digest = 0;  // of this process, which nobody can choose: what tells classes apart
};

// How fast a job runs alone with that demand, one of its own, beside the fastest type that it lists; 1 where it states
// no steps, and of a service that keeps its promises there: it serves as many as come, and leaves faster GPUs to those
// who gain by them. 0-1.
[[nodiscard]] double RelativeSpeed(const JobSpec& job, const Demand& demand);

// The job as a device of a type with that demand sees it.
// `alone`: as if the job were exclusive.
[[nodiscard]] TenantClass MakeTenantClass(const JobSpec& job, const Demand& demand, bool alone = false);
// The same without order and digest, which are most of the work: for FitTenant.
[[nodiscard]] TenantClass TenantAsked(const JobSpec& job, const Demand& demand, bool alone = false);
[[nodiscard]] bool SameTenant(const TenantClass& a, const TenantClass& b);
// By `order`; where that was made to collide, by the fields.
[[nodiscard]] bool TenantBefore(const TenantClass& a, const TenantClass& b);

using TenantIds = absl::InlinedVector<uint32_t, 4>;  // 4 = what its object holds anyway

// What a model and a gang are told of an empty device: whoever is alone on it runs as well in either mode.
[[nodiscard]] inline SharingMode ModeAlone(SharingMode mode) {
  return mode == SharingMode::kTimeSliceOrMps ? SharingMode::kTimeSlice : mode;
}

struct DeviceRow {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  AdminState state = AdminState::kUp;
  int32_t max_tenants = 0;  // as stated; 0 = the placer's limit
  int64_t mem_mib = 0;
  float compute_share = 1;  // below 1 for MIG instances
  int32_t mps_clients = 0;  // most tenants under MPS, 0 = no MPS; follows from type and mode
  TenantIds tenants;        // as TenantBefore
  // Derived from the above by Finish.
  int64_t mem_used_upper_mib = 0;  // sum of the requests
  int64_t mem_limit_mib = 0;       // sum of the limits
  int64_t mem_used_mib = 0;
  int32_t milli_used = 0;
  int32_t tenants_milli = 0;  // the tenants by how busy they are, in thousandths of one
  bool exclusive_held = false;
  bool bounded = false;  // a tenant states a bound on its slowdown
  uint64_t kinds = 0;    // of the tenants, as KindBit
  double util_pct = 0;   // of this device: tenants of a MIG instance fill its share
  double util_upper_pct = 0;
  uint64_t digest = 0;  // of this process, as TenantClass::digest

  // Of a device that can have either mode: somebody came.
  void Settle(bool under_mps) {
    if (mode != SharingMode::kTimeSliceOrMps) return;
    mode = under_mps ? SharingMode::kMps : SharingMode::kTimeSlice;
    if (!under_mps) mps_clients = 0;
  }
};

// A failed allocation (bad_alloc) leaves the table as it was.
class StateTable {
 public:
  [[nodiscard]] const TenantClass& tenant(uint32_t id) const { return tenants_.at(id); }
  [[nodiscard]] const DeviceRow& state(uint32_t id) const { return states_.at(id); }
  // state(id).digest, from a column of its own: planners look at it for every device. 0 for a free id.
  [[nodiscard]] uint64_t digest(uint32_t id) const { return states_.hash(id); }
  // Above every id in use.
  [[nodiscard]] uint32_t state_limit() const { return states_.limit(); }
  [[nodiscard]] uint32_t tenant_limit() const { return tenants_.limit(); }

  [[nodiscard]] uint32_t InternTenant(const TenantClass& tenant);
  // For classes that are held without a state: interned with one holder more; and one holder less, which frees the
  // class when it was the last.
  [[nodiscard]] uint32_t HoldTenant(const TenantClass& tenant);
  void DropTenant(uint32_t tenant) noexcept { tenants_.Drop(tenant); }
  // `row.tenants` in any order; the derived fields are set here.
  [[nodiscard]] uint32_t InternState(DeviceRow row);
  // Sorts the tenants and sets the derived fields.
  void Finish(DeviceRow& row) const;
  // Equal in every process.
  [[nodiscard]] uint64_t StableHash(const DeviceRow& row) const;
  // Interns the class too, and says under which id. `under_mps`: as DeviceRow::Settle.
  [[nodiscard]] uint32_t WithTenant(uint32_t state, const TenantClass& tenant, uint32_t& tenant_id,
                                    bool under_mps = false);
  // `device`: whose mode it has once it is empty; null = the state's.
  [[nodiscard]] uint32_t WithoutTenant(uint32_t state, uint32_t tenant, const DeviceSpec* device = nullptr);
  [[nodiscard]] uint32_t WithState(uint32_t state, AdminState admin);

  // Counts devices per state; at 0 the state, and then its classes, are freed and their ids used again.
  void Ref(uint32_t state) noexcept { states_.Hold(state); }
  void Unref(uint32_t state) noexcept;

  [[nodiscard]] size_t live_states() const { return states_.size(); }
  [[nodiscard]] size_t live_tenants() const { return tenants_.size(); }
  [[nodiscard]] uint32_t refs(uint32_t state) const { return states_.holders(state); }
  // States and others that hold the class, with multiplicity.
  [[nodiscard]] uint32_t tenant_refs(uint32_t tenant) const { return tenants_.holders(tenant); }
  [[nodiscard]] uint64_t bytes_held() const { return tenants_.bytes_held() + states_.bytes_held(); }

 private:
  InternTable<TenantClass> tenants_;  // by digest
  InternTable<DeviceRow> states_;     // likewise
};

// States that must live while a change is prepared, whether it comes about or not.
class HeldStates {
 public:
  HeldStates(StateTable& table, size_t most) : table_(table) { ids_.reserve(most); }
  ~HeldStates() {
    for (const uint32_t id : ids_) table_.Unref(id);
  }
  HeldStates(const HeldStates&) = delete;
  HeldStates& operator=(const HeldStates&) = delete;

  // At most as often as the constructor was told.
  void Hold(uint32_t id) noexcept {
    table_.Ref(id);
    ids_.push_back(id);
  }
  [[nodiscard]] std::span<const uint32_t> ids() const { return ids_; }

 private:
  StateTable& table_;
  std::vector<uint32_t> ids_;
};

}  // namespace horus
