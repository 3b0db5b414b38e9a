// SPDX-License-Identifier: Apache-2.0
// Ledger: a what-if overlay on a const cluster; place, look, undo.
//
// Enters:  a cluster that stays unchanged, jobs with slots.
// Leaves:  free host resources and device states as if the jobs were there.
// Units:   see cluster_rows.h; positions are rows.
// Cost:    Reset copies 4 bytes a device and 32 a node; Place and Undo O(slots).
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_LEDGER_H_
#define HORUS_PLACE_LEDGER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "place/cluster.h"
#include "place/job.h"

namespace horus {

class Ledger {
 public:
  Ledger() = default;
  explicit Ledger(const Cluster& cluster) { Reset(cluster); }
  void Reset(const Cluster& cluster);
  // As Reset, but of the cluster without its jobs and with all nodes and devices up.
  void ResetEmptied(const Cluster& cluster);

  // Books `job` on `slots`, rows of this cluster sorted by task. Whether it fits is fit.h's question.
  void Place(const JobSpec& job, std::span<const PlacedSlot> slots);

  // A point to come back to; UndoTo restores exactly what was then.
  [[nodiscard]] size_t Mark() const { return log_.size(); }
  void UndoTo(size_t mark);

  [[nodiscard]] const ClusterRows& rows() const { return *rows_; }
  [[nodiscard]] const HostFree& host(uint32_t node_row) const { return hosts_[node_row].free; }
  [[nodiscard]] int32_t idle_devices(uint32_t node_row) const { return hosts_[node_row].idle_devices; }
  [[nodiscard]] AdminState node_state(uint32_t node_row) const {
    return emptied_ ? AdminState::kUp : rows_->nodes[node_row].state;
  }
  [[nodiscard]] uint32_t state_id(uint32_t device) const { return device_state_[device]; }
  [[nodiscard]] const DeviceRow& state(uint32_t device) const { return states_.state(device_state_[device]); }
  [[nodiscard]] const StateTable& states() const { return states_; }
  // Changes with every Place and UndoTo that did something.
  [[nodiscard]] uint64_t changes() const { return changes_; }
  // Of all free resources and device states; equal before Place and after the matching undo.
  [[nodiscard]] uint64_t Hash() const;
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  struct Host {
    HostFree free;
    int32_t idle_devices = 0;
  };
  struct Entry {  // what one step overwrote
    bool is_node = false;
    uint32_t row = 0;    // node row or device
    uint32_t state = 0;  // of a device
    Host host;           // of a node
  };
  void TakeHost(uint32_t node_row, const JobSpec& job);
  void TakeDevice(uint32_t node_row, uint32_t device, const JobSpec& job);

  const ClusterRows* rows_ = nullptr;
  bool emptied_ = false;
  std::vector<Host> hosts_;
  std::vector<uint32_t> device_state_;
  StateTable states_;
  std::vector<Entry> log_;
  uint64_t changes_ = 0;
};

}  // namespace horus

#endif  // HORUS_PLACE_LEDGER_H_
