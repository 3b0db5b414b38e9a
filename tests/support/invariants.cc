// SPDX-License-Identifier: Apache-2.0
// Recomputes every column of a cluster from its jobs.
#include "support/invariants.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "place/state/requests.h"

namespace horus {

namespace {

absl::Status Broken(NodeId node, const char* what, int64_t expected, int64_t found) {
  return MakeError(absl::StatusCode::kInternal, "node %d: %s: expected %d, found %d", node, what, expected, found);
}

struct Expected {
  std::vector<HostFree> free;             // by node row
  std::vector<uint32_t> residents;        // by device: how many
  std::vector<uint32_t> tenant_holders;   // by class
  std::vector<uint32_t> request_holders;  // by request
  std::vector<uint32_t> list_holders;     // by list of devices
  std::vector<int64_t> host_tasks;        // by node row: tasks without GPUs
  std::vector<NodeGroups> groups;         // by node row
  bool host_positions = true;             // each is where its slot says
  bool classes = true;                    // each resident's is known
};

Expected FromJobs(const ClusterRows& rows) {
  Expected expected;
  expected.list_holders.resize(rows.device_lists.limit());
  for (const NodeRow& node : rows.nodes) {
    if (node.spec == nullptr) {
      expected.free.emplace_back();
      continue;
    }
    ++expected.list_holders[node.device_list];
    expected.free.push_back({node.spec->cpu_milli, node.spec->mem_mib, node.spec->storage_mb_s});
  }
  expected.residents.resize(rows.device_state.size());
  expected.tenant_holders.resize(rows.states.tenant_limit());
  expected.request_holders.resize(rows.requests.limit());
  expected.host_tasks.resize(rows.nodes.size());
  expected.groups.resize(rows.nodes.size());
  for (const JobRow& job : rows.jobs) {
    if (!job.live()) continue;
    const JobSpec& request = rows.RequestOf(job);
    ++expected.request_holders[job.request];
    ForEachTask(job.slots, [&](uint32_t node_row) {
      HostFree& free = expected.free[node_row];
      free.cpu_milli -= request.cpu_milli;
      free.mem_mib -= request.mem_mib;
      free.storage_mb_s -= request.storage_mb_s;
      ForEachGroup(request, [&](const GroupCount& one) { ChangeGroup(one, expected.groups[node_row]); });
    });
    for (const PlacedSlot& slot : job.slots) {
      if (slot.device == kNoDevice) {
        const std::vector<HostResident>& there = rows.nodes[slot.node_row].host_residents;
        ++expected.host_tasks[slot.node_row];
        expected.host_positions &= slot.position < there.size() && there[slot.position].task == slot.task &&
                                   &rows.jobs[there[slot.position].job_row] == &job;
        continue;
      }
      const uint32_t device = rows.DeviceOf(slot);
      ++expected.residents[device];
      expected.classes &= rows.ClassOn(job.request, rows.TypeOf(device)) != kNoTenant;
    }
  }
  for (const ClassesByType& classes : rows.classes) {
    for (const auto& [type, tenant] : classes) ++expected.tenant_holders[tenant];
  }
  return expected;
}

// Whether the job says so too.
bool IsAt(const ClusterRows& rows, uint32_t job_row, uint32_t node_row, int32_t device) {
  if (job_row >= rows.jobs.size() || !rows.jobs[job_row].live()) return false;
  const PlacedSlots& slots = rows.jobs[job_row].slots;
  return std::any_of(slots.begin(), slots.end(),
                     [&](const PlacedSlot& slot) { return slot.node_row == node_row && slot.device == device; });
}

// The tables that jobs and nodes hold on to, and the index of jobs.
absl::Status CheckTables(const ClusterRows& rows, const Expected& expected) {
  size_t tenants = 0;
  for (uint32_t tenant = 0; tenant < expected.tenant_holders.size(); ++tenant) {
    const uint32_t holders = expected.tenant_holders[tenant];
    if (rows.states.tenant_refs(tenant) != holders)
      return Broken(0, "holders of a tenant class", holders, rows.states.tenant_refs(tenant));
    tenants += holders > 0 ? 1 : 0;
  }
  if (tenants != rows.states.live_tenants())
    return Broken(0, "tenant classes", static_cast<int64_t>(tenants), static_cast<int64_t>(rows.states.live_tenants()));
  for (uint32_t request = 0; request < expected.request_holders.size(); ++request) {
    const uint32_t holders = expected.request_holders[request];
    if (rows.requests.holders(request) != holders)
      return Broken(0, "holders of a request", holders, rows.requests.holders(request));
    if (holders == 0 && request < rows.classes.size() && !rows.classes[request].empty())
      return Broken(0, "classes of a request that nobody makes", 0, 1);
  }
  for (uint32_t list = 0; list < expected.list_holders.size(); ++list) {
    if (rows.device_lists.holders(list) != expected.list_holders[list])
      return Broken(0, "holders of a list of devices", expected.list_holders[list], rows.device_lists.holders(list));
  }
  size_t jobs = 0;
  for (uint32_t row = 0; row < rows.jobs.size(); ++row) {
    if (!rows.jobs[row].live()) continue;
    ++jobs;
    if (rows.RowOfJob(rows.jobs[row].id) != row) return Broken(0, "job's row by id", row, -1);
  }
  size_t free = 0;
  for (uint32_t row = rows.first_free_job; row != kNoRow; row = static_cast<uint32_t>(rows.jobs[row].id)) {
    if (rows.jobs[row].live() || ++free > rows.jobs.size()) return Broken(0, "free job rows", 0, row);
  }
  if (jobs + free != rows.jobs.size())
    return Broken(0, "job rows", static_cast<int64_t>(rows.jobs.size()), static_cast<int64_t>(jobs + free));
  if (jobs != rows.job_of.size())
    return Broken(0, "jobs by id", static_cast<int64_t>(jobs), static_cast<int64_t>(rows.job_of.size()));
  return absl::OkStatus();
}

absl::Status CheckNode(const ClusterRows& rows, uint32_t row, const Expected& expected, std::vector<uint32_t>& refs) {
  const NodeRow& node = rows.nodes[row];
  if (!node.live || node.spec == nullptr) return Broken(row, "live row", 1, 0);
  if (&node.spec->devices.get() != &rows.device_lists.at(node.device_list)) return Broken(row, "shared devices", 1, 0);
  const NodeId id = node.spec->id;
  if (node.free != expected.free[row]) return Broken(id, "free CPU", expected.free[row].cpu_milli, node.free.cpu_milli);
  int32_t idle = 0;
  for (size_t i = 0; i < node.spec->devices.size(); ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    const uint32_t state = rows.device_state[device];
    if (state == kNoState) return Broken(id, "device without a state", 0, device);
    ++refs[state];
    if (!rows.states.state(state).tenants.empty()) return Broken(id, "tenants of an empty device's state", 0, 1);
    const Residents& residents = rows.residents[device];
    if (residents.size() != expected.residents[device]) {
      return Broken(id, "residents", expected.residents[device], static_cast<int64_t>(residents.size()));
    }
    for (size_t r = 0; r < residents.size(); ++r) {
      if (!IsAt(rows, residents[r], row, static_cast<int32_t>(i))) return Broken(id, "resident's device", device, -1);
      for (size_t other = 0; other < r; ++other) {
        if (residents[other] == residents[r]) return Broken(id, "one resident twice", 1, 2);
      }
    }
    idle += residents.empty() ? 1 : 0;
  }
  if (static_cast<int64_t>(node.host_residents.size()) != expected.host_tasks[row]) {
    return Broken(id, "tasks without GPUs", expected.host_tasks[row], static_cast<int64_t>(node.host_residents.size()));
  }
  const auto ascending = [](NodeGroups groups) {
    std::sort(groups.begin(), groups.end(), [](const GroupCount& a, const GroupCount& b) { return a.group < b.group; });
    return groups;
  };
  if (ascending(node.groups) != ascending(expected.groups[row])) {
    return Broken(id, "groups", static_cast<int64_t>(expected.groups[row].size()),
                  static_cast<int64_t>(node.groups.size()));
  }
  if (idle != node.idle_devices) return Broken(id, "idle devices", idle, node.idle_devices);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInvariants(const Cluster& cluster) {
  const ClusterRows& rows = cluster.rows();
  const Expected expected = FromJobs(rows);
  if (!expected.host_positions) return Broken(0, "position of a task without GPUs", 1, 0);
  if (!expected.classes) return Broken(0, "class of a resident", 1, 0);
  std::vector<uint32_t> refs(rows.states.state_limit());
  size_t devices = 0;
  for (size_t i = 0; i < rows.order.size(); ++i) {
    const uint32_t row = rows.order[i];
    HORUS_RETURN_IF_ERROR(CheckNode(rows, row, expected, refs));
    const NodeId id = rows.nodes[row].spec->id;
    if (i > 0 && rows.nodes[rows.order[i - 1]].spec->id >= id)
      return Broken(id, "position in id order", 0, static_cast<int64_t>(i));
    if (!cluster.HasNode(id) || rows.node_of.at(id) != row) return Broken(id, "row by id", row, -1);
    devices += rows.nodes[row].spec->devices.size();
  }
  if (rows.node_of.size() != rows.order.size())
    return Broken(0, "nodes by id", cluster.node_count(), static_cast<int64_t>(rows.node_of.size()));
  if (devices != rows.live_devices)
    return Broken(0, "devices", static_cast<int64_t>(devices), static_cast<int64_t>(rows.live_devices));
  size_t states = 0;
  for (uint32_t state = 0; state < refs.size(); ++state) {
    if (rows.states.refs(state) != refs[state])
      return Broken(0, "devices per state", refs[state], rows.states.refs(state));
    states += refs[state] > 0 ? 1 : 0;
  }
  if (states != rows.states.live_states())
    return Broken(0, "live states", static_cast<int64_t>(states), static_cast<int64_t>(rows.states.live_states()));
  return CheckTables(rows, expected);
}

}  // namespace horus
