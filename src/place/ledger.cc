// SPDX-License-Identifier: Apache-2.0
// The what-if overlay: columns copied from the cluster, and a log to undo what was booked.
#include "place/ledger.h"

#include "base/hash.h"
#include "place/fit.h"

namespace horus {

void Ledger::Reset(const Cluster& cluster) {
  rows_ = &cluster.rows();
  emptied_ = false;
  hosts_.resize(rows_->nodes.size());
  for (size_t i = 0; i < hosts_.size(); ++i) hosts_[i] = {rows_->nodes[i].free, rows_->nodes[i].idle_devices};
  device_state_ = rows_->device_state;
  states_.Reset(&rows_->states);
  log_.clear();
  ++changes_;
}

void Ledger::ResetEmptied(const Cluster& cluster) {
  Reset(cluster);
  emptied_ = true;
  DeviceSpec last;  // most devices are as the one before them
  uint32_t state = kNoState;
  for (const uint32_t row : rows_->order) {
    const NodeRow& node = rows_->nodes[row];
    hosts_[row] = {{node.spec.cpu_milli, node.spec.mem_mib, node.spec.storage_mb_s},
                   static_cast<int32_t>(node.spec.devices.size())};
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      if (state == kNoState || node.spec.devices[i] != last) {
        last = node.spec.devices[i];
        state = states_.InternState(EmptyDevice(last, AdminState::kUp));
      }
      device_state_[node.first_device + i] = state;
    }
  }
}

void Ledger::TakeHost(uint32_t node_row, const JobSpec& job) {
  Host& host = hosts_[node_row];
  log_.push_back({.is_node = true, .row = node_row, .host = host});
  host.free.cpu_milli -= job.cpu_milli;
  host.free.mem_mib -= job.mem_mib;
  host.free.storage_mb_s -= job.storage_mb_s;
}

void Ledger::TakeDevice(uint32_t node_row, uint32_t device, const JobSpec& job) {
  const DeviceRow& before = state(device);
  if (before.tenants.empty()) {
    log_.push_back({.is_node = true, .row = node_row, .host = hosts_[node_row]});
    --hosts_[node_row].idle_devices;
  }
  log_.push_back({.is_node = false, .row = device, .state = device_state_[device]});
  const Demand* demand = FindDemand(job, before.type);
  const TenantClass tenant = MakeTenantClass(job, demand != nullptr ? *demand : job.demands.front().demand);
  uint32_t tenant_id = 0;
  device_state_[device] = states_.WithTenant(device_state_[device], tenant, tenant_id);
}

void Ledger::Place(const JobSpec& job, std::span<const PlacedSlot> slots) {
  ForEachTask(slots, [&](uint32_t node_row) { TakeHost(node_row, job); });
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    TakeDevice(slot.node_row, rows_->nodes[slot.node_row].first_device + static_cast<uint32_t>(slot.device), job);
  }
  ++changes_;
}

void Ledger::UndoTo(size_t mark) {
  if (log_.size() > mark) ++changes_;
  while (log_.size() > mark) {
    const Entry& entry = log_.back();
    if (entry.is_node) {
      hosts_[entry.row] = entry.host;
    } else {
      device_state_[entry.row] = entry.state;
    }
    log_.pop_back();
  }
}

uint64_t Ledger::Hash() const {
  uint64_t hash = 0;
  for (const uint32_t row : rows_->order) {
    const Host& host = hosts_[row];
    for (const int64_t value :
         {host.free.cpu_milli, host.free.mem_mib, host.free.storage_mb_s, int64_t{host.idle_devices}}) {
      hash = CombineHash(hash, static_cast<uint64_t>(value));
    }
    const NodeRow& node = rows_->nodes[row];
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      hash = CombineHash(hash, state(node.first_device + static_cast<uint32_t>(i)).digest);
    }
  }
  return hash;
}

uint64_t Ledger::bytes_held() const {
  return hosts_.capacity() * sizeof(Host) + device_state_.capacity() * sizeof(uint32_t) + states_.bytes_held() +
         log_.capacity() * sizeof(Entry);
}

}  // namespace horus
