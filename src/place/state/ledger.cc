// SPDX-License-Identifier: Apache-2.0
// The planner's view: what it copies of the cluster, and a log to take back what was booked.
#include "place/state/ledger.h"

#include <algorithm>

#include "base/hash.h"

namespace horus {

// Changes that are held for what is derived from the ledger, for each node and at least; who looks in less often starts
// anew. Reading one costs about a hundredth of pricing a node.
constexpr size_t kTouchedPerNode = 16;
constexpr size_t kLeastTouched = 4096;

void Ledger::StartAnew(size_t nodes, size_t devices, size_t live_devices, const std::vector<uint32_t>& order) {
  nodes_.assign(nodes, {});
  order_ = order;
  device_count_ = live_devices;
  device_state_.assign(devices, kNoState);
  device_changes_.assign(devices, 0);
  residents_.assign(devices, {});
  states_ = StateTable();
  log_.clear();
  group_log_.clear();
  minding_ = 0;
  sharing_ = 0;
  touched_.clear();
  touched_begin_ = 0;
  ++generation_;
}

void Ledger::SetDevice(uint32_t device, uint32_t state) {
  const uint32_t old = device_state_[device];
  states_.Ref(state);
  device_state_[device] = state;
  if (old != kNoState) states_.Unref(old);
}

void Ledger::Touch(const Touched& touched, uint64_t since) {
  if (log_end() > since && touched_.back().node_row == touched.node_row) {
    if (touched_.back().device != touched.device) touched_.back().device = kManyDevices;
    return;
  }
  if (touched_.size() >= std::max(kLeastTouched, kTouchedPerNode * nodes_.size())) {
    const size_t older = touched_.size() / 2;
    touched_begin_ += older;
    touched_.erase(touched_.begin(), touched_.begin() + static_cast<ptrdiff_t>(older));
  }
  touched_.push_back(touched);
}

bool Ledger::TakeDevice(const ClusterRows& rows, uint32_t device) {
  if (device_state_[device] != kNoState && device_changes_[device] == rows.device_changes[device]) return false;
  device_changes_[device] = rows.device_changes[device];
  const Residents before = residents_[device];  // most stay, and to know a class by its digest is quick
  for (Residents& gone = residents_[device]; !gone.empty(); gone.pop_back()) Count(device, gone.back().owner, -1);
  DeviceRow state = rows.SettledAt(device);
  for (const uint32_t job_row : rows.residents[device]) {
    const JobRow& job = rows.jobs[job_row];
    const TenantClass& theirs = rows.states.tenant(rows.ClassOn(job.request, state.type));
    const auto known = std::ranges::find_if(before, [&](const LedgerResident& was) {
      return was.job == job.id && states_.tenant(was.tenant).digest == theirs.digest;
    });
    const uint32_t tenant = known != before.end() ? known->tenant : states_.InternTenant(theirs);
    const uint64_t owner = rows.requests.at(job.request).owner;
    state.tenants.push_back(tenant);
    residents_[device].push_back({job.id, tenant, owner});
    Count(device, owner, 1);
  }
  SetDevice(device, states_.InternState(std::move(state)));
  return true;
}

void Ledger::TakeNode(const ClusterRows& rows, uint32_t node_row) {
  const NodeRow& theirs = rows.nodes[node_row];
  LedgerNode& mine = nodes_[node_row];
  if (mine.version == theirs.version) return;
  int32_t changed = mine.state == theirs.state ? kNoDevice : kManyDevices;
  mine = {.spec = theirs.spec,
          .id = theirs.spec->id,
          .devices = static_cast<int32_t>(theirs.spec->devices.size()),
          .version = theirs.version,
          .first_device = theirs.first_device,
          .idle_devices = theirs.idle_devices,
          .state = theirs.state,
          .free = theirs.free,
          .groups = theirs.groups};
  for (size_t i = 0; i < theirs.spec->devices.size(); ++i) {
    if (!TakeDevice(rows, theirs.first_device + static_cast<uint32_t>(i))) continue;
    changed = changed == kNoDevice ? static_cast<int32_t>(i) : kManyDevices;
  }
  Touch({node_row, changed});
}

void Ledger::Rebuild(const ClusterRows& rows) {
  StartAnew(rows.nodes.size(), rows.device_state.size(), rows.live_devices, rows.order);
  for (const uint32_t row : order_) TakeNode(rows, row);
  touched_.clear();
  touched_begin_ = 0;
}

void Ledger::Follow(const Cluster& cluster) {
  if (whole_) UndoTo(0);
  const ClusterRows& rows = cluster.rows();
  const bool incremental = whole_ && !emptied_ && structure_ == rows.structure && rows.log.Knows(followed_, history_);
  if (incremental && followed_ == rows.log.count()) return;
  ++changes_;
  whole_ = false;
  if (incremental) {
    for (uint64_t i = followed_; i < rows.log.count(); ++i) TakeNode(rows, rows.log.RowOf(i));
  } else {
    Rebuild(rows);
  }
  emptied_ = false;
  followed_ = rows.log.count();
  history_ = rows.log.history();
  structure_ = rows.structure;
  whole_ = true;
}

void Ledger::FollowEmptied(const Ledger& full) {
  if (whole_) UndoTo(0);
  if (whole_ && emptied_ && structure_ == full.structure_) return;
  ++changes_;
  whole_ = false;
  StartAnew(full.nodes_.size(), full.device_state_.size(), full.device_count_, full.order_);
  DeviceSpec last;  // most devices are as the one before them
  uint32_t state = kNoState;
  for (const uint32_t row : order_) {
    const LedgerNode& node = full.nodes_[row];
    nodes_[row] = {.spec = node.spec,
                   .id = node.id,
                   .devices = node.devices,
                   .version = node.version,
                   .first_device = node.first_device,
                   .idle_devices = node.devices,
                   .free = {node.spec->cpu_milli, node.spec->mem_mib, node.spec->storage_mb_s}};
    for (size_t i = 0; i < node.spec->devices.size(); ++i) {
      if (state == kNoState || node.spec->devices[i] != last) {
        last = node.spec->devices[i];
        state = states_.InternState(EmptyDevice(last, AdminState::kUp));
      }
      SetDevice(node.first_device + static_cast<uint32_t>(i), state);
    }
  }
  emptied_ = true;
  structure_ = full.structure_;
  whole_ = true;
}

void Ledger::LogNode(uint32_t node_row) {
  const LedgerNode& node = nodes_[node_row];
  log_.push_back({.step = Step::kNode,
                  .admin = node.state,
                  .row = node_row,
                  .idle_devices = node.idle_devices,
                  .free = node.free});
}

void Ledger::LogDevice(Step step, uint32_t node_row, uint32_t device) {
  states_.Ref(device_state_[device]);  // the log holds on to it
  log_.push_back({.step = step, .row = device, .state = device_state_[device], .node_row = node_row});
}

void Ledger::AddGroups(uint32_t node_row, const JobSpec& job, int32_t times) {
  ForEachGroup(job, [&](const GroupCount& one) {
    const GroupCount added{one.group, times * one.members, times * one.avoiders};
    group_log_.push_back({log_.size(), node_row, added});
    ChangeGroup(added, nodes_[node_row].groups);
  });
}

void Ledger::BookHost(uint32_t node_row, const JobSpec& job) {
  LogNode(node_row);
  nodes_[node_row].free.Add(job, -1);
  AddGroups(node_row, job, 1);
}

void Ledger::BookDevice(uint32_t node_row, uint32_t device, JobId id, const JobSpec& job) {
  LedgerNode& node = nodes_[node_row];
  if (state(device).tenants.empty()) {
    LogNode(node_row);
    --node.idle_devices;
  }
  const TenantClass tenant = MakeTenantClass(job, DemandOn(job, state(device).type));
  uint32_t tenant_id = 0;
  const uint32_t before = device_state_[device];
  LogDevice(Step::kPlaced, node_row, device);
  SetDevice(device, states_.WithTenant(before, tenant, tenant_id, RunsUnderMps(job)));
  const uint64_t owner = OwnerMark(job);
  residents_[device].push_back({id, tenant_id, owner});
  Count(device, owner, 1);
}

void Ledger::Place(JobId id, const JobSpec& job, std::span<const PlacedSlot> slots) {
  whole_ = false;
  const uint64_t begin = log_end();
  ForEachTask(slots, [&](uint32_t node_row) { BookHost(node_row, job); });
  for (const PlacedSlot& slot : slots) {
    if (slot.device != kNoDevice) BookDevice(slot.node_row, device_of(slot), id, job);
    Touch({slot.node_row, slot.device}, begin);
  }
  ++changes_;
  whole_ = true;
}

void Ledger::Remove(JobId id, const JobSpec& job, std::span<const PlacedSlot> slots) {
  whole_ = false;
  const uint64_t begin = log_end();
  ForEachTask(slots, [&](uint32_t node_row) {
    LogNode(node_row);
    nodes_[node_row].free.Add(job);
    AddGroups(node_row, job, -1);
    Touch({node_row, kManyDevices}, begin);
  });
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    const uint32_t device = device_of(slot);
    Residents& residents = residents_[device];
    const auto at = std::ranges::find_if(residents, [&](const LedgerResident& one) { return one.job == id; });
    if (at == residents.end()) continue;
    LogDevice(Step::kRemoved, slot.node_row, device);
    log_.back().position = static_cast<uint32_t>(at - residents.begin());
    log_.back().gone = *at;
    const DeviceSpec& spec = nodes_[slot.node_row].spec->devices[static_cast<size_t>(slot.device)];
    SetDevice(device, states_.WithoutTenant(device_state_[device], at->tenant, &spec));
    Count(device, at->owner, -1);
    residents.erase(at);
    Touch({slot.node_row, kManyDevices}, begin);
    if (!residents.empty()) continue;
    LogNode(slot.node_row);
    ++nodes_[slot.node_row].idle_devices;
  }
  ++changes_;
  whole_ = true;
}

void Ledger::Resize(const JobSpec& was, const JobSpec& is, std::span<const PlacedSlot> slots) {
  if (was.demands != is.demands) {  // its host's time is another, and with it the states of its devices
    Remove(was, slots);
    return Place(is, slots);
  }
  whole_ = false;
  ForEachTask(slots, [&](uint32_t node_row) {
    LogNode(node_row);
    nodes_[node_row].free.Add(was);
    nodes_[node_row].free.Add(is, -1);
    Touch({node_row, kManyDevices});
  });
  ++changes_;
  whole_ = true;
}

void Ledger::SetNodeState(uint32_t node_row, AdminState state) {
  whole_ = false;
  LogNode(node_row);
  nodes_[node_row].state = state;
  Touch({node_row, kManyDevices});
  ++changes_;
  whole_ = true;
}

void Ledger::SetDeviceState(uint32_t node_row, int32_t device, AdminState state) {
  whole_ = false;
  const uint32_t row = nodes_[node_row].first_device + static_cast<uint32_t>(device);
  LogDevice(Step::kDeviceState, node_row, row);
  SetDevice(row, states_.WithState(device_state_[row], state));
  Touch({node_row, kManyDevices});
  ++changes_;
  whole_ = true;
}

void Ledger::UndoTo(size_t mark) {
  if (log_.size() <= mark) return;
  ++changes_;
  const bool was_whole = whole_;
  whole_ = false;
  const uint64_t begin = log_end();
  for (; !group_log_.empty() && group_log_.back().log_end > mark; group_log_.pop_back()) {
    const GroupEntry& entry = group_log_.back();
    ChangeGroup({entry.added.group, -entry.added.members, -entry.added.avoiders}, nodes_[entry.node_row].groups);
  }
  while (log_.size() > mark) {
    const Entry& entry = log_.back();
    if (entry.step == Step::kNode) {
      LedgerNode& node = nodes_[entry.row];
      node.idle_devices = entry.idle_devices;
      node.free = entry.free;
      node.state = entry.admin;
      Touch({entry.row, kManyDevices}, begin);
    } else {
      SetDevice(entry.row, entry.state);
      states_.Unref(entry.state);  // the log's hold
      Residents& residents = residents_[entry.row];
      if (entry.step == Step::kPlaced) {
        Count(entry.row, residents.back().owner, -1);
        residents.pop_back();
      } else {
        Touch({entry.node_row, kManyDevices}, begin);  // else its host's entry does
      }
      if (entry.step == Step::kRemoved) {
        residents.insert(residents.begin() + entry.position, entry.gone);
        Count(entry.row, entry.gone.owner, 1);
      }
    }
    log_.pop_back();
  }
  whole_ = was_whole;
}

uint64_t Ledger::Hash() const {
  uint64_t hash = 0;
  for (const uint32_t row : order_) {
    const LedgerNode& node = nodes_[row];
    for (const int64_t part :
         {node.free.cpu_milli, node.free.mem_mib, node.free.storage_mb_s, int64_t{node.idle_devices}}) {
      hash = CombineHash(hash, static_cast<uint64_t>(part));
    }
    uint64_t groups = 0;  // they are in no order
    for (const GroupCount& one : node.groups)
      groups += CombineHash(one.group, static_cast<uint64_t>(one.members) << 32 | static_cast<uint32_t>(one.avoiders));
    hash = CombineHash(hash, groups);
    for (size_t i = 0; i < node.spec->devices.size(); ++i)
      hash = CombineHash(hash, states_.digest(device_state_[node.first_device + static_cast<uint32_t>(i)]));
  }
  return hash;
}

uint64_t Ledger::bytes_held() const {
  return BytesIn(nodes_, order_, device_state_, device_changes_, touched_, residents_, log_, group_log_, states_);
}

}  // namespace horus
