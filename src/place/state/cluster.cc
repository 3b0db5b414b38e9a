// SPDX-License-Identifier: Apache-2.0
// Nodes of a cluster and their states; queries; what its columns say of a device and of a job.
#include "place/state/cluster.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/text.h"

namespace horus {
namespace {

enum Change : uint64_t { kAdded = 1, kChanged = 2, kNodeStateSet = 3, kDeviceStateSet = 4, kRemoved = 7 };

// A planner that looks in less often than once in so many changes reads the whole cluster anew.
constexpr size_t kLeastLogged = 1024;
constexpr size_t kLoggedPerNode = 2;

absl::Status UnknownNode(NodeId node) { return NotFound("node %d: not in this cluster", node); }

absl::Status CheckAdminState(AdminState state) {
  if (AdminStateName(state) != "unknown") return absl::OkStatus();
  return InvalidArgument("state: expected 0 (up), 1 (drained) or 2 (down), found %d", static_cast<int>(state));
}

uint32_t HoldDevices(const DeviceList& devices, DeviceListTable& table) {
  return table.Hold(
      HashDevices(devices.get(), ProcessSecret()),
      [&](const std::vector<DeviceSpec>& known) { return known == devices.get(); }, [&] { return devices.get(); });
}

auto OrderOf(const ClusterRows& rows, NodeId id) {
  return std::ranges::lower_bound(rows.order, id, {}, [&rows](uint32_t row) { return rows.nodes[row].spec->id; });
}

}  // namespace

void ChangeLog::Reserve(size_t changes) {
  if (changes <= ring_.size()) return;
  ring_ = std::vector<Entry>(changes);
  first_ = count_;
}

void ChangeLog::Add(uint32_t node_row, uint64_t what) noexcept {
  if (ring_.empty()) return;  // cannot be: there is a node
  ring_[count_ % ring_.size()] = {history_, node_row};
  history_ = CombineHash(history_, what);
  if (++count_ - first_ > ring_.size()) ++first_;
}

bool ChangeLog::Knows(uint64_t count, uint64_t history) const {
  if (count == count_) return history == history_;
  return count >= first_ && count < count_ && ring_[count % ring_.size()].before == history;
}

Cluster::Cluster(std::shared_ptr<const Catalogue> catalogue, const ClusterLimits& limits)
    : catalogue_(catalogue != nullptr ? std::move(catalogue) : std::make_shared<const Catalogue>()), limits_(limits) {}

absl::StatusOr<uint32_t> Cluster::FindNode(NodeId node) const {
  const uint32_t* row = rows_.node_of.Find(node);
  if (row == nullptr) return UnknownNode(node);
  return *row;
}

absl::StatusOr<uint32_t> Cluster::FindDevice(const NodeRow& node, int32_t device) const {
  // Asked of the list, as few lists are close at hand, and the node's own description is not.
  const auto count = static_cast<int64_t>(rows_.device_lists.at(node.device_list).size());
  if (device < 0 || device >= count) {
    return NotFound("node %s: has %d devices, found index %d", IdAndName(node.spec->id, node.spec->name), count,
                    device);
  }
  return node.first_device + static_cast<uint32_t>(device);
}

// A version depends on all that happened to the node, so copies of a cluster that went different ways differ.
void Cluster::Touch(uint32_t node_row, uint64_t what) noexcept {
  ++rows_.changes;
  rows_.nodes[node_row].version = CombineHash(rows_.nodes[node_row].version, what);
  rows_.log.Add(node_row, rows_.nodes[node_row].version);
}

void Cluster::TouchStructure(uint32_t node_row, uint64_t what) noexcept {
  rows_.structure = CombineHash(rows_.structure, what);
  Touch(node_row, what);
}

void Cluster::ReserveNode() {
  ReserveMore(rows_.nodes, 1);
  ReserveMore(rows_.order, 1);
  // Room in the free lists for all there are; holes lie between nodes, and one more for a moment.
  if (rows_.free_nodes.capacity() < rows_.nodes.capacity()) rows_.free_nodes.reserve(rows_.nodes.capacity());
  if (rows_.holes.capacity() < rows_.nodes.capacity() + 2) rows_.holes.reserve(rows_.nodes.capacity() + 2);
  rows_.node_of.ReserveOne();
  rows_.log.Reserve(std::max(kLeastLogged, kLoggedPerNode * rows_.nodes.capacity()));
}

void Cluster::ReserveDevices(size_t count) {
  ReserveMore(rows_.device_state, count);
  ReserveMore(rows_.residents, count);
  ReserveMore(rows_.device_changes, count);
}

uint32_t Cluster::TakeDevices(size_t count) noexcept {
  for (auto hole = rows_.holes.begin(); hole != rows_.holes.end(); ++hole) {
    if (hole->second < count) continue;
    const uint32_t first = hole->first;
    hole->first += static_cast<uint32_t>(count);
    hole->second -= static_cast<uint32_t>(count);
    if (hole->second == 0) rows_.holes.erase(hole);
    return first;
  }
  const auto first = static_cast<uint32_t>(rows_.device_state.size());
  rows_.device_state.resize(first + count, kNoState);
  rows_.residents.resize(first + count);
  rows_.device_changes.resize(first + count);
  return first;
}

void Cluster::GiveDevices(uint32_t first, size_t count) noexcept {
  if (count == 0) return;
  for (uint32_t device = first; device < first + count; ++device) {
    SetDevice(device, kNoState);
    rows_.residents[device].clear();
  }
  auto at = rows_.holes.insert(std::lower_bound(rows_.holes.begin(), rows_.holes.end(), std::pair(first, 0u)),
                               std::pair(first, static_cast<uint32_t>(count)));
  if (const auto next = at + 1; next != rows_.holes.end() && at->first + at->second == next->first) {
    at->second += next->second;
    rows_.holes.erase(next);
  }
  if (at == rows_.holes.begin()) return;
  if (const auto before = at - 1; before->first + before->second == at->first) {
    before->second += at->second;
    rows_.holes.erase(at);
  }
}

void Cluster::SetDevice(uint32_t device, uint32_t state) noexcept {
  ++rows_.device_changes[device];
  const uint32_t old = std::exchange(rows_.device_state[device], state);
  if (state != kNoState) rows_.states.Ref(state);
  if (old != kNoState) rows_.states.Unref(old);
}

absl::Status Cluster::AddNode(NodeSpec node) {
  HORUS_RETURN_IF_ERROR(ResolveNode(*catalogue_, node));
  if (HasNode(node.id))
    return AlreadyExists("node %s: the id is in this cluster already", IdAndName(node.id, node.name));
  if (node_count() >= limits_.nodes || device_count() + node.devices.size() > limits_.devices) {
    return ResourceExhausted("node %s: a cluster holds at most %d nodes and %d devices", IdAndName(node.id, node.name),
                             limits_.nodes, limits_.devices);
  }
  ReserveNode();
  ReserveDevices(node.devices.size());
  HeldStates states(rows_.states, node.devices.size());
  for (const DeviceSpec& device : node.devices)
    states.Hold(rows_.states.InternState(EmptyDevice(device, AdminState::kUp)));
  auto spec = std::make_shared<NodeSpec>(node);
  const uint32_t list = HoldDevices(spec->devices, rows_.device_lists);
  // From here on nothing fails.
  spec->devices.Share(rows_.device_lists.shared(list));
  uint32_t row = static_cast<uint32_t>(rows_.nodes.size());
  if (rows_.free_nodes.empty()) {
    rows_.nodes.emplace_back();
  } else {
    row = rows_.free_nodes.back();
    rows_.free_nodes.pop_back();
  }
  rows_.order.insert(OrderOf(rows_, node.id), row);
  rows_.node_of.Insert(node.id, row);
  const uint32_t first = TakeDevices(node.devices.size());
  for (size_t i = 0; i < node.devices.size(); ++i) SetDevice(first + static_cast<uint32_t>(i), states.ids()[i]);
  rows_.live_devices += node.devices.size();
  NodeRow& added = rows_.nodes[row];
  added.first_device = first;
  added.idle_devices = static_cast<int32_t>(node.devices.size());
  added.free = {node.cpu_milli, node.mem_mib, node.storage_mb_s};
  added.state = AdminState::kUp;
  added.live = true;
  added.version = CombineHash(rows_.changes, node.id);
  added.spec = std::move(spec);
  added.device_list = list;
  TouchStructure(row, CombineHash(kAdded, HashNode(node, added.state)));
  return absl::OkStatus();
}

// Whether the residents of `row` keep what they use under the description `next`.
absl::Status Cluster::CheckChange(const NodeRow& row, const NodeSpec& next) const {
  const std::string where = "node " + IdAndName(next.id, next.name);
  const auto host = [&](const char* field, const char* unit, int64_t was, int64_t is, int64_t free) -> absl::Status {
    if (is >= was || is >= was - free) return absl::OkStatus();
    return FailedPrecondition("%s: %s: its jobs use %d %s, found %d", where, field, was - free, unit, is);
  };
  HORUS_RETURN_IF_ERROR(
      host("cpu_milli", "thousandths of a core", row.spec->cpu_milli, next.cpu_milli, row.free.cpu_milli));
  HORUS_RETURN_IF_ERROR(host("mem_mib", "MiB", row.spec->mem_mib, next.mem_mib, row.free.mem_mib));
  HORUS_RETURN_IF_ERROR(host("storage_mb_s", "MB/s", row.spec->storage_mb_s, next.storage_mb_s, row.free.storage_mb_s));
  for (size_t i = 0; i < row.spec->devices.size(); ++i) {
    const uint32_t device = row.first_device + static_cast<uint32_t>(i);
    if (rows_.residents[device].empty()) continue;
    const JobId job = rows_.jobs[rows_.residents[device].front()].id;
    if (i >= next.devices.size()) {
      return FailedPrecondition("%s: devices[%d] is used by job %d, found %d devices", where, i, job,
                                next.devices.size());
    }
    if (i < row.spec->device_ids.size() && i < next.device_ids.size() &&
        row.spec->device_ids[i] != next.device_ids[i]) {
      return FailedPrecondition("%s: devices[%d] is used by job %d: expected id %s, found %s", where, i, job,
                                Quoted(row.spec->device_ids[i]), Quoted(next.device_ids[i]));
    }
    const DeviceSpec& was = row.spec->devices[i];
    const DeviceSpec& is = next.devices[i];
    const bool same = was.type == is.type && was.mode == is.mode && was.mig_profile == is.mig_profile;
    const int64_t used = rows_.DeviceAt(device).mem_used_upper_mib;
    if (!same || (is.mem_mib < was.mem_mib && is.mem_mib < used)) {
      return FailedPrecondition(
          "%s: devices[%d] is used by job %d: expected the same type, sharing mode and MIG profile and at "
          "least %d MiB, found type %d for %d, mode %s for %s, profile %d for %d and %d MiB",
          where, i, job, std::min(used, was.mem_mib), is.type.value(), was.type.value(),
          std::string(SharingModeName(is.mode)), std::string(SharingModeName(was.mode)), is.mig_profile,
          was.mig_profile, is.mem_mib);
    }
  }
  return absl::OkStatus();
}

absl::Status Cluster::ChangeNode(NodeSpec next) {
  HORUS_RETURN_IF_ERROR(ResolveNode(*catalogue_, next));
  HORUS_ASSIGN_OR_RETURN(const uint32_t row_index, FindNode(next.id));
  HORUS_RETURN_IF_ERROR(CheckChange(rows_.nodes[row_index], next));
  const size_t old_count = rows_.nodes[row_index].spec->devices.size();
  const size_t new_count = next.devices.size();
  if (device_count() - old_count + new_count > limits_.devices) {
    return ResourceExhausted("node %s: a cluster holds at most %d devices", IdAndName(next.id, next.name),
                             limits_.devices);
  }
  const uint32_t old_first = rows_.nodes[row_index].first_device;
  ReserveNode();
  ReserveDevices(new_count);
  HeldStates states(rows_.states, new_count);
  for (size_t i = 0; i < new_count; ++i) {
    DeviceRow state = EmptyDevice(next.devices[i], AdminState::kUp);
    if (i < old_count) state.state = rows_.states.state(rows_.device_state[old_first + i]).state;
    states.Hold(rows_.states.InternState(std::move(state)));
  }
  auto spec = std::make_shared<NodeSpec>(next);
  const uint32_t list = HoldDevices(spec->devices, rows_.device_lists);
  // From here on nothing fails.
  spec->devices.Share(rows_.device_lists.shared(list));
  const uint32_t first = old_count == new_count ? old_first : TakeDevices(new_count);
  int32_t idle = 0;
  for (size_t i = 0; i < new_count; ++i) {
    const uint32_t from = old_first + static_cast<uint32_t>(i);
    const uint32_t to = first + static_cast<uint32_t>(i);
    SetDevice(to, states.ids()[i]);
    if (i < old_count && to != from) rows_.residents[to] = std::move(rows_.residents[from]);
    idle += rows_.residents[to].empty() ? 1 : 0;
  }
  if (first != old_first) GiveDevices(old_first, old_count);
  rows_.live_devices = rows_.live_devices - old_count + new_count;
  NodeRow& row = rows_.nodes[row_index];
  row.first_device = first;
  row.idle_devices = idle;
  row.free.Add(*row.spec, -1);
  row.free.Add(next);
  row.spec = std::move(spec);
  rows_.device_lists.Drop(std::exchange(row.device_list, list));
  TouchStructure(row_index, CombineHash(kChanged, HashNode(next, row.state)));
  return absl::OkStatus();
}

absl::Status Cluster::RemoveNode(NodeId node) {
  HORUS_ASSIGN_OR_RETURN(const uint32_t row_index, FindNode(node));
  const NodeSpec& spec = *rows_.nodes[row_index].spec;
  const size_t count = spec.devices.size();
  if (const std::vector<JobId> jobs = JobsOnNode(rows_.nodes[row_index]); !jobs.empty()) {
    return FailedPrecondition("node %s: %d jobs are there, the first is %d; release them first",
                              IdAndName(node, spec.name), jobs.size(), jobs.front());
  }
  ReserveNode();
  NodeRow& row = rows_.nodes[row_index];
  // From here on nothing fails.
  rows_.order.erase(OrderOf(rows_, node));
  rows_.node_of.Erase(node);
  GiveDevices(row.first_device, count);
  rows_.live_devices -= count;
  TouchStructure(row_index, CombineHash(kRemoved, node));
  rows_.device_lists.Drop(row.device_list);
  row = NodeRow();
  rows_.free_nodes.push_back(row_index);
  return absl::OkStatus();
}

std::vector<JobId> Cluster::JobsOnDevices(uint32_t first, size_t count) const {
  std::vector<JobId> jobs;
  for (uint32_t device = first; device < first + count; ++device) {
    for (const uint32_t job_row : rows_.residents[device]) jobs.push_back(rows_.jobs[job_row].id);
  }
  SortUnique(jobs);
  return jobs;
}

std::vector<JobId> Cluster::JobsOnNode(const NodeRow& row) const {
  std::vector<JobId> jobs = JobsOnDevices(row.first_device, row.spec->devices.size());
  for (const HostResident& resident : row.host_residents) jobs.push_back(rows_.jobs[resident.job_row].id);
  SortUnique(jobs);
  return jobs;
}

absl::StatusOr<std::vector<JobId>> Cluster::SetNodeState(NodeId node, AdminState state) {
  HORUS_RETURN_IF_ERROR(CheckAdminState(state));
  HORUS_ASSIGN_OR_RETURN(const uint32_t row_index, FindNode(node));
  NodeRow& row = rows_.nodes[row_index];
  std::vector<JobId> jobs = JobsOnNode(row);
  if (row.state != state) {
    row.state = state;
    Touch(row_index, CombineHash(kNodeStateSet, static_cast<uint64_t>(state)));
  }
  return jobs;
}

absl::StatusOr<std::vector<JobId>> Cluster::SetDeviceState(NodeId node, int32_t device, AdminState state) {
  HORUS_RETURN_IF_ERROR(CheckAdminState(state));
  HORUS_ASSIGN_OR_RETURN(const uint32_t row_index, FindNode(node));
  HORUS_ASSIGN_OR_RETURN(const uint32_t flat, FindDevice(rows_.nodes[row_index], device));
  std::vector<JobId> jobs = JobsOnDevices(flat, 1);
  if (rows_.states.state(rows_.device_state[flat]).state != state) {
    HeldStates after(rows_.states, 1);
    after.Hold(rows_.states.WithState(rows_.device_state[flat], state));
    SetDevice(flat, after.ids()[0]);
    Touch(row_index,
          CombineHash(CombineHash(kDeviceStateSet, static_cast<uint64_t>(device)), static_cast<uint64_t>(state)));
  }
  return jobs;
}

// Questions to a cluster: totals, nodes, devices, jobs, its hash and its size in memory.

namespace {

constexpr double kFullPct = 100.0;

uint64_t Mixed(uint64_t seed, int64_t value) { return CombineHash(seed, static_cast<uint64_t>(value)); }

uint64_t Mixed(uint64_t seed, std::string_view text) { return CombineHash(seed, Hash64(text)); }

uint64_t HashOf(const ClusterRows& rows, const JobRow& row) {
  const JobSpec& job = rows.RequestOf(row);
  const JobTag& tag = rows.TagOf(row);
  uint64_t hash = CombineHash(row.id, static_cast<uint64_t>(job.kind));
  hash = Mixed(Mixed(hash, tag.name), job.tenant);
  for (const int64_t value :
       {int64_t{job.tasks}, int64_t{job.gpus_per_task}, job.cpu_milli, job.mem_mib, job.storage_mb_s,
        int64_t{job.priority}, row.submit_us, tag.deadline_us, job.latency_bound_us}) {
    hash = Mixed(hash, value);
  }
  hash = CombineHash(hash, Hash64(&job.request_rate_hz, sizeof job.request_rate_hz));
  std::optional<JobSpec> timeless;  // the latency to keep is hashed above; the bound that follows from it takes long
  if (KeepsLatency(job)) timeless.emplace(job).latency_bound_us = 0;
  for (const TypeDemand& entry : job.demands) {
    const TenantClass tenant = MakeTenantClass(timeless.has_value() ? *timeless : job, entry.demand);
    hash = CombineHash(Mixed(hash, int64_t{entry.type.value()}), tenant.order);
    if (entry.demand.duty != 1) hash = CombineHash(hash, Hash64(&entry.demand.duty, sizeof entry.demand.duty));
  }
  for (const auto& [key, value] : job.node_selector) hash = Mixed(Mixed(hash, key), value);
  hash = CombineHash(hash, static_cast<uint64_t>(job.share) << 1 | uint64_t{job.spread_tasks});
  ForEachGroup(job, [&](const GroupCount& one) {
    hash = CombineHash(CombineHash(hash, one.group), static_cast<uint64_t>(one.members));
  });
  hash = Mixed(Mixed(hash, StatedCpuMilli(job)), StatedMemMib(job));
  if (job.weight != 1) hash = CombineHash(hash, Hash64(&job.weight, sizeof job.weight));
  if (job.sensitivity.get() != nullptr) hash = CombineHash(hash, job.sensitivity.get()->Hash());
  return hash;
}

}  // namespace

ClusterTotals Cluster::Totals() const {
  ClusterTotals totals{.nodes = node_count(), .devices = device_count(), .jobs = job_count()};
  double util = 0;
  for (const uint32_t row : rows_.order) {
    const NodeRow& node = rows_.nodes[row];
    totals.cpu_milli += node.spec->cpu_milli;
    totals.cpu_used_milli += node.spec->cpu_milli - node.free.cpu_milli;
    totals.mem_mib += node.spec->mem_mib;
    totals.mem_used_mib += node.spec->mem_mib - node.free.mem_mib;
    totals.devices_used += node.spec->devices.size() - static_cast<size_t>(node.idle_devices);
    for (size_t i = 0; i < node.spec->devices.size(); ++i) {
      const DeviceRow device = rows_.DeviceAt(node.first_device + static_cast<uint32_t>(i));
      totals.slots += device.tenants.size();
      totals.gpu_mem_mib += device.mem_mib;
      totals.gpu_mem_used_mib += device.mem_used_upper_mib;
      util += std::min(device.util_pct, kFullPct);
    }
  }
  if (totals.devices > 0) totals.gpu_util_pct = util / static_cast<double>(totals.devices);
  return totals;
}

std::vector<NodeId> Cluster::NodeIds() const {
  std::vector<NodeId> ids;
  ids.reserve(rows_.order.size());
  for (const uint32_t row : rows_.order) ids.push_back(rows_.nodes[row].spec->id);
  return ids;
}

std::vector<JobId> Cluster::JobIds() const {
  std::vector<JobId> ids;
  ids.reserve(job_count());
  for (const JobRow& job : rows_.jobs) {
    if (job.live()) ids.push_back(job.id);
  }
  std::ranges::sort(ids);
  return ids;
}

absl::StatusOr<NodeInfo> Cluster::Node(NodeId node) const {
  HORUS_ASSIGN_OR_RETURN(const uint32_t index, FindNode(node));
  const NodeRow& row = rows_.nodes[index];
  NodeInfo info{.spec = *row.spec,
                .state = row.state,
                .version = row.version,
                .cpu_free_milli = row.free.cpu_milli,
                .mem_free_mib = row.free.mem_mib,
                .storage_free_mb_s = row.free.storage_mb_s,
                .jobs = JobsOnNode(row)};
  return info;
}

absl::StatusOr<DeviceInfo> Cluster::Device(NodeId node, int32_t device) const {
  HORUS_ASSIGN_OR_RETURN(const uint32_t index, FindNode(node));
  const NodeRow& row = rows_.nodes[index];
  HORUS_ASSIGN_OR_RETURN(const uint32_t flat, FindDevice(row, device));
  const DeviceRow state = rows_.DeviceAt(flat);
  DeviceInfo info{.spec = row.spec->devices[static_cast<size_t>(device)],
                  .node_state = row.state,
                  .state = state.state,
                  .mem_used_upper_mib = state.mem_used_upper_mib,
                  .mem_limit_mib = state.mem_limit_mib,
                  .mem_used_mib = state.mem_used_mib,
                  .milli_used = state.milli_used,
                  .util_pct = state.util_pct,
                  .util_upper_pct = state.util_upper_pct};
  info.spec.mode = state.mode;
  if (const auto& ids = row.spec->device_ids; !ids.empty() && !ids[static_cast<size_t>(device)].empty())
    info.id = ids[static_cast<size_t>(device)].c_str();
  for (const uint32_t job_row : rows_.residents[flat]) {
    const JobRow& job = rows_.jobs[job_row];
    const auto here = std::ranges::find_if(
        job.slots, [&](const PlacedSlot& slot) { return slot.node_row == index && slot.device == device; });
    info.residents.push_back({job.id, here->task});
  }
  std::ranges::sort(info.residents);
  return info;
}

absl::StatusOr<JobInfo> Cluster::Job(JobId job) const {
  const uint32_t at = rows_.RowOfJob(job);
  if (at == kNoRow) return NotFound("job %d: not in this cluster", job);
  const JobRow& row = rows_.jobs[at];
  JobInfo info{.spec = std::make_shared<const JobSpec>(rows_.SpecOf(row)),
               .slots = {},
               .adopted = row.adopted != 0,
               .over_committed = row.over_committed != 0};
  for (const PlacedSlot& slot : row.slots)
    info.slots.push_back({rows_.nodes[slot.node_row].spec->id, slot.device, slot.task});
  return info;
}

uint64_t Cluster::state_hash() const {
  uint64_t hash = CombineHash(node_count(), job_count());
  for (const uint32_t row : rows_.order) {
    const NodeRow& node = rows_.nodes[row];
    hash = CombineHash(hash, HashNode(*node.spec, node.state));
    for (size_t i = 0; i < node.spec->devices.size(); ++i)
      hash = CombineHash(hash, rows_.states.StableHash(rows_.DeviceAt(node.first_device + static_cast<uint32_t>(i))));
  }
  // A sum does not depend on the order of the rows, which is history.
  uint64_t jobs = 0;
  for (const JobRow& job : rows_.jobs) {
    if (!job.live()) continue;
    uint64_t one = CombineHash(HashOf(rows_, job), uint64_t{job.adopted} << 1 | uint64_t{job.over_committed});
    for (const PlacedSlot& slot : job.slots) {
      one = CombineHash(one, rows_.nodes[slot.node_row].spec->id);
      one = CombineHash(one, static_cast<uint64_t>(slot.device) << 32 | static_cast<uint64_t>(slot.task));
    }
    jobs += Mix64(one);
  }
  return CombineHash(hash, jobs);
}

uint64_t Cluster::bytes_held() const {
  uint64_t bytes = sizeof(*this) + BytesHeld(rows_.requests) +
                   BytesIn(rows_.states, rows_.nodes, rows_.jobs, rows_.order, rows_.free_nodes, rows_.device_state,
                           rows_.device_changes, rows_.residents, rows_.holes, rows_.node_of, rows_.job_of, rows_.log,
                           rows_.classes);
  bytes += rows_.device_lists.bytes_held([](const std::vector<DeviceSpec>& list) { return BytesIn(list); });
  for (const NodeRow& node : rows_.nodes) {
    if (node.spec == nullptr) continue;
    bytes += sizeof(NodeSpec) + node.spec->devices.own_capacity() * sizeof(DeviceSpec) +
             BytesIn(node.spec->name, node.host_residents, node.groups);
    for (const auto& [key, value] : node.spec->labels)
      bytes += sizeof(std::pair<std::string, std::string>) + key.capacity() + value.capacity();
    for (const std::string& id : node.spec->device_ids) bytes += sizeof(std::string) + id.capacity();
  }
  for (const Residents& residents : rows_.residents) bytes += residents.bytes_elsewhere();
  for (const JobRow& job : rows_.jobs) bytes += job.slots.bytes_elsewhere();
  bytes += rows_.tags.bytes_held([](const JobTag& tag) { return tag.name.capacity(); });
  for (const ClassesByType& classes : rows_.classes) {
    if (classes.capacity() > ClassesByType().capacity()) bytes += BytesIn(classes);
  }
  return bytes;
}

// ---- What the columns of a cluster say of one device and of one job.

DeviceRow EmptyDevice(const DeviceSpec& spec, AdminState state) {
  DeviceRow row;
  row.type = spec.type;
  row.mode = spec.mode;
  row.state = state;
  row.max_tenants = spec.max_tenants;
  row.mem_mib = spec.mem_mib;
  row.compute_share = spec.compute_share;
  row.mps_clients = spec.mps_clients;
  return row;
}

DeviceRow ClusterRows::SettledAt(uint32_t device) const {
  DeviceRow row = states.state(device_state[device]);
  if (row.mode == SharingMode::kTimeSliceOrMps && !residents[device].empty()) {
    const auto is_there = [&](uint32_t job_row) { return RunsUnderMps(RequestOf(jobs[job_row])); };
    row.Settle(std::ranges::any_of(residents[device], is_there));
  }
  return row;
}

DeviceRow ClusterRows::DeviceAt(uint32_t device) const {
  DeviceRow row = SettledAt(device);
  for (const uint32_t job_row : residents[device]) row.tenants.push_back(ClassOn(jobs[job_row].request, row.type));
  states.Finish(row);
  return row;
}

JobSpec ClusterRows::SpecOf(const JobRow& job) const {
  JobSpec spec = RequestOf(job);
  spec.id = job.id;
  spec.submit_us = job.submit_us;
  spec.name = TagOf(job).name;
  spec.deadline_us = TagOf(job).deadline_us;
  return spec;
}

const JobTag& ClusterRows::TagOf(const JobRow& job) const {
  static const JobTag none;
  return job.tag == JobRow::kNoTag ? none : tags.at(job.tag);
}

void ClusterRows::LetGo(const JobRow& job) noexcept {
  if (job.tag != JobRow::kNoTag) tags.Drop(job.tag);
  if (!job.live() || !requests.Drop(job.request) || job.request >= classes.size()) return;
  for (const auto& [type, tenant] : classes[job.request]) states.DropTenant(tenant);
  classes[job.request] = {};
}

}  // namespace horus
