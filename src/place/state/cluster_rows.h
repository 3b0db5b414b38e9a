// SPDX-License-Identifier: Apache-2.0
// The columns of a cluster, for the planners of this room; everybody else uses cluster.h.
//
// Enters:  nothing; kept by Cluster.
// Leaves:  node rows in id order, devices flat in one array, jobs by row.
// Units:   see node.h; positions are rows, not the caller's ids.
// Cost:    bytes at full columns: 24 a device, 340 a node, 44 a job on one device; what jobs ask for and the devices
//          of a node once for all that are alike. Full columns grow by an eighth.
// Thread class: as the cluster that owns it.
#pragma once

#include <limits>

#include "base/id_map.h"
#include "place/state/device_states.h"
#include "place/state/groups.h"
#include "place/state/requests.h"

namespace horus {

inline constexpr size_t kMaxNodes = 1u << 20;
inline constexpr size_t kMaxDevices = 1u << 24;
inline constexpr size_t kMaxJobs = 1u << 26;
// What a cluster holds at most: what its ids and sums have room for, or less.
struct ClusterLimits {
  size_t nodes = kMaxNodes;
  size_t devices = kMaxDevices;
  size_t jobs = kMaxJobs;
};
// How much more than it has the jobs that a node took in may ask of it, of each host resource.
inline constexpr int64_t kMostOwed = 4 * kMaxHostQuantity;
static_assert(kMostOwed + kMaxHostQuantity <= std::numeric_limits<int64_t>::max() / int64_t{kMaxNodes});  // totals
static_assert(kMaxJobs <= RowIndex::kMaxRows);
inline constexpr size_t kMaxResidentsPerDevice = 4096;  // adopted ones included; far beyond any sharing mode

// Host resources that are free; negative where adopted jobs over-commit.
struct HostFree {
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int64_t storage_mb_s = 0;
  friend bool operator==(const HostFree&, const HostFree&) = default;

  // What a task of a JobSpec takes, or what a NodeSpec has.
  template <typename Spec>
  void Add(const Spec& spec, int64_t times = 1) {
    cpu_milli += times * spec.cpu_milli;
    mem_mib += times * spec.mem_mib;
    storage_mb_s += times * spec.storage_mb_s;
  }
};

using DeviceListTable = SharedTable<std::vector<DeviceSpec>>;

struct HostResident {  // a task without GPUs
  uint32_t job_row = 0;
  int32_t task = 0;
};

struct NodeRow {
  std::shared_ptr<const NodeSpec> spec;  // as resolved; null = free row
  AdminState state = AdminState::kUp;
  bool live = false;
  uint32_t device_list = DeviceListTable::kNone;  // in ClusterRows::device_lists: what the spec shares
  uint64_t version = 0;       // a hash chain over the node's changes: equal only for equal histories
  uint32_t first_device = 0;  // its devices are first_device .. + spec.devices.size() - 1
  int32_t idle_devices = 0;   // without residents
  HostFree free;
  std::vector<HostResident> host_residents;  // tasks without GPUs, in no order
  NodeGroups groups;                         // of the tasks here
};

struct PlacedSlot {
  uint32_t node_row = 0;
  int16_t device = 0;  // index within the node, or kNoDevice
  uint16_t task = 0;
  uint32_t position = 0;  // in the cluster, of a slot without device: in NodeRow::host_residents
};
static_assert(kMaxDevicesPerNode <= INT16_MAX && kMaxGpusPerJob - 1 <= UINT16_MAX);
using PlacedSlots = ShortList<PlacedSlot, 1>;      // most jobs are on one device
using RowList = absl::InlinedVector<uint32_t, 4>;  // rows of the few nodes that a plan uses
[[nodiscard]] inline PlacedSlot SlotAt(uint32_t node_row, int32_t device, int32_t task = 0) {
  return {node_row, static_cast<int16_t>(device), static_cast<uint16_t>(task), 0};
}

// What is a job's own and few jobs state.
struct JobTag {
  std::string name;
  int64_t deadline_us = 0;
};

struct JobRow {
  static constexpr uint32_t kNoTag = (1u << 30) - 1;
  JobId id = 0;  // of a free row the next free one
  int64_t submit_us = 0;
  PlacedSlots slots;                       // ascending (task, node id, device)
  uint32_t request = RequestTable::kNone;  // in ClusterRows::requests; none = free row
  uint32_t tag : 30 = kNoTag;              // in ClusterRows::tags; none = no name and no deadline
  uint32_t adopted : 1 = 0;
  uint32_t over_committed : 1 = 0;

  [[nodiscard]] bool live() const { return request != RequestTable::kNone; }
};
static_assert(kMaxJobs <= JobRow::kNoTag);

using Residents = ShortList<uint32_t, 3>;  // rows of jobs; 3 = the usual tenant limit

// The classes of a request's jobs in ClusterRows::states, by type of the device that they are on.
using ClassesByType = absl::InlinedVector<std::pair<GpuTypeId, uint32_t>, 2>;

// The last changes, for planners that follow a cluster: which node row, and a hash over the whole history until then,
// by which copies of a cluster that went different ways are told apart.
class ChangeLog {
 public:
  // Room for `changes` of them; may fail, and then changes nothing. What the log held is forgotten when it grows.
  void Reserve(size_t changes);
  void Add(uint32_t node_row, uint64_t what) noexcept;

  [[nodiscard]] uint64_t count() const { return count_; }  // of all changes so far
  [[nodiscard]] uint64_t history() const { return history_; }
  // Whether a follower that had seen `count` changes with that history can be told what came after.
  [[nodiscard]] bool Knows(uint64_t count, uint64_t history) const;
  // The row of change `index`, from `count` on of what Knows() was asked.
  [[nodiscard]] uint32_t RowOf(uint64_t index) const { return ring_[index % ring_.size()].node_row; }
  [[nodiscard]] uint64_t bytes_held() const { return ring_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t before = 0;  // the history when it came
    uint32_t node_row = 0;
  };
  std::vector<Entry> ring_;
  uint64_t first_ = 0;  // oldest change still held
  uint64_t count_ = 0;
  uint64_t history_ = 0;
};

inline constexpr uint32_t kNoState = 0xFFFFFFFFu;
inline constexpr uint32_t kNoRow = RowIndex::kNone;
inline constexpr uint32_t kNoTenant = 0xFFFFFFFFu;

struct ClusterRows {
  std::vector<NodeRow> nodes;
  std::vector<uint32_t> order;  // rows of live nodes, ascending id
  std::vector<uint32_t> free_nodes;
  IdMap<uint32_t> node_of;  // by NodeId

  std::vector<uint32_t> device_state;  // id in `states` of the device without its residents; kNoState for holes
  std::vector<Residents> residents;
  std::vector<uint32_t> device_changes;              // counts them, for followers
  std::vector<std::pair<uint32_t, uint32_t>> holes;  // (first device, count) of removed nodes, ascending
  size_t live_devices = 0;
  DeviceListTable device_lists;
  StateTable states;  // of devices without residents, and the classes of the residents

  std::vector<JobRow> jobs;
  uint32_t first_free_job = kNoRow;
  RowIndex job_of;       // by JobId
  size_t sensitive = 0;  // jobs with a sensitivity
  Shelf<JobTag> tags;
  RequestTable requests;
  std::vector<ClassesByType>
      classes;             // by request: on each type where a job of it ever was; held until its last job leaves
  uint64_t changes = 0;    // counts writes; feeds new nodes' versions
  uint64_t structure = 0;  // a hash over all that added, changed or removed nodes
  ChangeLog log;

  // The class that jobs of a request have on devices of a type; kNoTenant = none was there.
  [[nodiscard]] uint32_t ClassOn(uint32_t request, GpuTypeId type) const {
    for (const auto& [known, tenant] : classes[request]) {
      if (known == type) return tenant;
    }
    return kNoTenant;
  }
  [[nodiscard]] uint32_t DeviceOf(const PlacedSlot& slot) const {  // which has one
    return nodes[slot.node_row].first_device + static_cast<uint32_t>(slot.device);
  }
  [[nodiscard]] GpuTypeId TypeOf(uint32_t device) const { return states.state(device_state[device]).type; }
  // The device without its residents, in the mode that it has with them.
  [[nodiscard]] DeviceRow SettledAt(uint32_t device) const;
  // And with them.
  [[nodiscard]] DeviceRow DeviceAt(uint32_t device) const;

  [[nodiscard]] uint32_t RowOfJob(JobId job) const {  // kNoRow = not there
    return job_of.Find(job, [this](uint32_t row) { return jobs[row].id; });
  }
  // What a job asks for: its JobSpec without id, name, submit_us and deadline_us.
  [[nodiscard]] const JobSpec& RequestOf(const JobRow& job) const { return requests.at(job.request).spec; }
  // The whole JobSpec, made anew.
  [[nodiscard]] JobSpec SpecOf(const JobRow& job) const;
  // The row's name and deadline.
  [[nodiscard]] const JobTag& TagOf(const JobRow& job) const;
  // Gives back what the row holds of `tags`, `requests` and `states`.
  void LetGo(const JobRow& job) noexcept;
};

// The state of a device without residents.
[[nodiscard]] DeviceRow EmptyDevice(const DeviceSpec& spec, AdminState state);

// Calls `visit(node_row)` once for every task of `slots`, which are sorted by task.
template <typename Visit>
void ForEachTask(std::span<const PlacedSlot> slots, const Visit& visit) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i > 0 && slots[i].task == slots[i - 1].task) continue;  // a task is on one node
    visit(slots[i].node_row);
  }
}

}  // namespace horus
