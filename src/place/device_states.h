// SPDX-License-Identifier: Apache-2.0
// Device states as small ids: devices that no rule and no price can tell apart share one id.
//
// Enters:  tenant classes (a job as one device sees it) and device states (device + sorted tenant classes).
// Leaves:  dense ids, reference-counted; digests that depend on content alone, never on history.
// Units:   MiB, thousandths of a GPU, per cent.
// Cost:    one hash look-up an intern; about 200 bytes a distinct class, 150 a distinct state.
// Thread class: value with one writer; readers share freely while nobody writes.
#ifndef HORUS_PLACE_DEVICE_STATES_H_
#define HORUS_PLACE_DEVICE_STATES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "device/gpu_type.h"
#include "device/sharing_mode.h"
#include "place/job.h"
#include "place/node.h"
#include "predict/demand.h"

namespace horus {

// All that a device and its tenants know of each other.
struct TenantClass {
  Demand demand;
  float slowdown_bound = 0;  // as stated; 0 = the placer's default
  int32_t gpu_milli = 0;     // as stated; 0 = shares
  bool exclusive = false;
  bool gang = false;    // the job has several GPUs
  uint64_t digest = 0;  // of the fields above, set by MakeTenantClass
};

// The job as a device of a type with that demand sees it.
[[nodiscard]] TenantClass MakeTenantClass(const JobSpec& job, const Demand& demand);
[[nodiscard]] bool SameTenant(const TenantClass& a, const TenantClass& b);

using TenantIds = std::vector<uint32_t>;

struct DeviceRow {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  AdminState state = AdminState::kUp;
  int32_t max_tenants = 0;  // as stated; 0 = the placer's limit
  int64_t mem_mib = 0;
  float compute_share = 1;  // below 1 for MIG instances
  int32_t mps_clients = 0;  // most tenants under MPS, 0 = no MPS; follows from type and mode
  TenantIds tenants;        // ascending class digest
  // Derived from the above by Finish.
  int64_t mem_used_upper_mib = 0;
  int64_t mem_used_mib = 0;
  int32_t milli_used = 0;
  bool exclusive_held = false;
  double util_pct = 0;  // of this device: tenants of a MIG instance fill its share
  double util_upper_pct = 0;
  uint64_t digest = 0;
};

class StateTable {
 public:
  // A table of its own, or one over `base`, which must outlive it and stay unchanged: ids of `base` keep
  // their meaning, new ones follow and are never freed (what-if overlays live short).
  explicit StateTable(const StateTable* base = nullptr) { Reset(base); }
  void Reset(const StateTable* base);

  [[nodiscard]] const TenantClass& tenant(uint32_t id) const {
    return id < base_tenants_ ? base_->tenants_[id] : tenants_[id - base_tenants_];
  }
  [[nodiscard]] const DeviceRow& state(uint32_t id) const {
    return id < base_states_ ? base_->states_[id] : states_[id - base_states_];
  }
  // state(id).digest, from a column of its own: planners look at it for every device.
  [[nodiscard]] uint64_t digest(uint32_t id) const {
    return id < base_states_ ? base_->digests_[id] : digests_[id - base_states_];
  }
  // Above every id in use.
  [[nodiscard]] uint32_t state_limit() const { return base_states_ + static_cast<uint32_t>(states_.size()); }

  [[nodiscard]] uint32_t InternTenant(const TenantClass& tenant);
  // `row.tenants` in any order; the derived fields are set here.
  [[nodiscard]] uint32_t InternState(DeviceRow row);
  [[nodiscard]] uint32_t WithTenant(uint32_t state, uint32_t tenant);
  [[nodiscard]] uint32_t WithoutTenant(uint32_t state, uint32_t tenant);
  [[nodiscard]] uint32_t WithState(uint32_t state, AdminState admin);

  // Counts devices per state; at 0 the state, and then its classes, are freed and their ids used again.
  void Ref(uint32_t state);
  void Unref(uint32_t state);
  // Drops a class that was interned and never used.
  void Discard(uint32_t tenant);

  [[nodiscard]] size_t live_states() const { return state_of_.size(); }
  [[nodiscard]] size_t live_tenants() const { return tenant_of_.size(); }
  [[nodiscard]] uint32_t refs(uint32_t state) const { return state_refs_[state - base_states_]; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  void Finish(DeviceRow& row) const;

  const StateTable* base_ = nullptr;
  uint32_t base_tenants_ = 0;
  uint32_t base_states_ = 0;
  std::vector<TenantClass> tenants_;
  std::vector<uint32_t> tenant_refs_;  // states that hold the class, with multiplicity
  std::vector<uint32_t> free_tenants_;
  absl::flat_hash_map<uint64_t, uint32_t> tenant_of_;  // digest -> id; never iterated
  std::vector<DeviceRow> states_;
  std::vector<uint64_t> digests_;
  std::vector<uint32_t> state_refs_;
  std::vector<uint32_t> free_states_;
  absl::flat_hash_map<uint64_t, uint32_t> state_of_;
};

}  // namespace horus

#endif  // HORUS_PLACE_DEVICE_STATES_H_
