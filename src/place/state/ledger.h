// SPDX-License-Identifier: Apache-2.0
// Ledger: a planner's own view of a cluster. It follows the cluster's changes; on it jobs are placed and taken back.
//
// Enters:  a cluster, read only while it is being followed; jobs with slots.
// Leaves:  nodes, free host resources, device states and residents, as if the jobs were there.
// Units:   see cluster_rows.h; rows are those of the cluster.
// Cost:    Follow O(changes since), at first O(cluster); Place and Undo O(slots).
// Thread class: one thread at a time.
#pragma once

#include "place/state/cluster.h"

namespace horus {

struct LedgerNode {
  std::shared_ptr<const NodeSpec> spec;  // null: no node in this row
  NodeId id = 0;                         // of the spec, as is the next: searches look at very many nodes
  int32_t devices = 0;
  uint64_t version = 0;
  uint32_t first_device = 0;
  int32_t idle_devices = 0;
  AdminState state = AdminState::kUp;
  HostFree free;
  NodeGroups groups;  // of the tasks here
};

struct LedgerResident {
  JobId job = 0;
  uint32_t tenant = 0;  // class in the ledger's states
  uint64_t owner = 0;   // OwnerMark
  friend bool operator==(const LedgerResident&, const LedgerResident&) = default;
};

class Ledger {
 public:
  Ledger() = default;
  explicit Ledger(const Cluster& cluster) { Follow(cluster); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Takes back what was placed and catches up with the cluster.
  void Follow(const Cluster& cluster);
  // Becomes the cluster that `full` follows, emptied of its jobs and all nodes and devices up.
  void FollowEmptied(const Ledger& full);

  // Books `job` on `slots`, rows of this cluster sorted by task. Whether it fits is fit.h's question.
  void Place(const JobSpec& job, std::span<const PlacedSlot> slots) { Place(job.id, job, slots); }
  void Place(JobId id, const JobSpec& request, std::span<const PlacedSlot> slots);  // ClusterRows::RequestOf

  // Takes out a resident that is on `slots`, as Place would have booked it; any slot twice or not held is passed over.
  void Remove(const JobSpec& job, std::span<const PlacedSlot> slots) { Remove(job.id, job, slots); }
  void Remove(JobId id, const JobSpec& request, std::span<const PlacedSlot> slots);
  // The resident holds the host resources of `is` from now on, and no longer those of `was`.
  void Resize(const JobSpec& was, const JobSpec& is, std::span<const PlacedSlot> slots);
  void SetNodeState(uint32_t node_row, AdminState state);
  void SetDeviceState(uint32_t node_row, int32_t device, AdminState state);

  // A point to come back to; UndoTo restores exactly what was then.
  [[nodiscard]] size_t Mark() const { return log_.size(); }
  void UndoTo(size_t mark);

  [[nodiscard]] const LedgerNode& node(uint32_t node_row) const { return nodes_[node_row]; }
  [[nodiscard]] const NodeSpec& spec(uint32_t node_row) const { return *nodes_[node_row].spec; }
  [[nodiscard]] size_t node_rows() const { return nodes_.size(); }
  [[nodiscard]] const std::vector<uint32_t>& order() const { return order_; }  // rows of nodes, ascending id
  [[nodiscard]] size_t device_count() const { return device_count_; }
  [[nodiscard]] size_t device_limit() const { return device_state_.size(); }  // above every device row
  [[nodiscard]] uint32_t device_of(const PlacedSlot& slot) const {
    return nodes_[slot.node_row].first_device + static_cast<uint32_t>(slot.device);
  }
  [[nodiscard]] uint32_t state_id(uint32_t device) const { return device_state_[device]; }
  [[nodiscard]] const DeviceRow& state(uint32_t device) const { return states_.state(device_state_[device]); }
  [[nodiscard]] const StateTable& states() const { return states_; }
  [[nodiscard]] std::span<const LedgerResident> residents(uint32_t device) const { return residents_[device]; }

  // Whether some resident shares with its owner alone.
  [[nodiscard]] bool owners_matter() const { return minding_ > 0; }
  // The share of all devices that may have several tenants, 0-1; 1 until it is set.
  void SetSharingQuota(double share) { sharing_quota_ = share; }
  // Whether that leaves too few for a job of so many GPUs.
  [[nodiscard]] bool SharingIsFull(int32_t gpus) const {
    return sharing_quota_ < 1 &&
           static_cast<double>(sharing_ + gpus) > sharing_quota_ * static_cast<double>(device_count_);
  }
  // What keeps a job of that owner with so many GPUs from those who are on a device; kNone where it may come.
  [[nodiscard]] Reason BarsFrom(uint32_t device, uint64_t owner, int32_t gpus) const {
    if (SharingIsFull(gpus) && residents_[device].size() == 1) return Reason::kSharingQuota;
    if (minding_ == 0 && !MindsOwners(owner)) return Reason::kNone;
    for (const LedgerResident& one : residents_[device]) {
      if (OwnersClash(one.owner, owner)) return Reason::kOwner;
    }
    return Reason::kNone;
  }

  // Changes with everything that changes the ledger.
  [[nodiscard]] uint64_t changes() const { return changes_; }

  // Which node rows changed, in order, for what is derived from the ledger. Entries from log_begin() on are held;
  // whoever has seen less, or another generation, starts anew.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] uint64_t log_begin() const { return touched_begin_; }
  [[nodiscard]] uint64_t log_end() const { return touched_begin_ + touched_.size(); }
  struct Touched {
    uint32_t node_row = 0;
    int32_t device = kManyDevices;  // the one device of the node that changed; kNoDevice = none
  };
  static constexpr int32_t kManyDevices = -2;
  [[nodiscard]] const Touched& touched(uint64_t index) const { return touched_[index - touched_begin_]; }

  // Of all free resources and device states; equal before Place and after the matching undo.
  [[nodiscard]] uint64_t Hash() const;
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  using Residents = absl::InlinedVector<LedgerResident, 3>;
  enum class Step : uint8_t { kNode, kPlaced, kRemoved, kDeviceState };
  struct Entry {  // what one step overwrote
    Step step = Step::kNode;
    AdminState admin = AdminState::kUp;  // of a node
    uint32_t row = 0;                    // node row or device
    uint32_t state = 0;                  // of a device
    uint32_t node_row = 0;               // of a device
    uint32_t position = 0;               // of the resident that was removed
    int32_t idle_devices = 0;
    HostFree free;        // of a node
    LedgerResident gone;  // removed
  };
  struct GroupEntry {    // what one task added to a node's groups
    size_t log_end = 0;  // size of log_ then
    uint32_t node_row = 0;
    GroupCount added;
  };
  void StartAnew(size_t nodes, size_t devices, size_t live_devices, const std::vector<uint32_t>& order);
  void Rebuild(const ClusterRows& rows);
  void TakeNode(const ClusterRows& rows, uint32_t node_row);
  [[nodiscard]] bool TakeDevice(const ClusterRows& rows, uint32_t device);  // whether it changed
  void SetDevice(uint32_t device, uint32_t state);
  // One entry for several changes of a node that come one after the other from `since` on, which nobody has seen yet.
  void Touch(const Touched& touched, uint64_t since = UINT64_MAX);
  // Of a resident that has come (1) or is about to go (-1).
  void Count(uint32_t device, uint64_t owner, int change) {
    minding_ += MindsOwners(owner) ? change : 0;
    sharing_ += residents_[device].size() == 2 ? change : 0;
  }
  void LogNode(uint32_t node_row);
  void LogDevice(Step step, uint32_t node_row, uint32_t device);
  void AddGroups(uint32_t node_row, const JobSpec& job, int32_t times);
  void BookHost(uint32_t node_row, const JobSpec& job);
  void BookDevice(uint32_t node_row, uint32_t device, JobId id, const JobSpec& job);

  std::vector<LedgerNode> nodes_;
  std::vector<uint32_t> order_;
  size_t device_count_ = 0;
  std::vector<uint32_t> device_state_;
  std::vector<uint32_t> device_changes_;  // ClusterRows::device_changes as far as followed
  std::vector<Residents> residents_;      // in no order
  StateTable states_;
  std::vector<Entry> log_;
  std::vector<GroupEntry> group_log_;
  int64_t minding_ = 0;  // residents that share with their owner alone
  int64_t sharing_ = 0;  // devices with several residents
  double sharing_quota_ = 1;

  bool whole_ = false;  // false until the first Follow and after one that failed half-way
  bool emptied_ = false;
  uint64_t followed_ = 0;  // ChangeLog::count and history of the cluster
  uint64_t history_ = 0;
  uint64_t structure_ = 0;  // ClusterRows::structure
  uint64_t changes_ = 0;
  uint64_t generation_ = 0;
  std::vector<Touched> touched_;
  uint64_t touched_begin_ = 0;
};

}  // namespace horus
