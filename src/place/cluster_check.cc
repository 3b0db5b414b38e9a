// SPDX-License-Identifier: Apache-2.0
// Recomputes every column of a cluster from its jobs, for tests.
#include <algorithm>
#include <vector>

#include "place/cluster.h"

namespace horus {
namespace {

absl::Status Broken(NodeId node, const char* what, int64_t expected, int64_t found) {
  return MakeError(absl::StatusCode::kInternal, "node %d: %s: expected %d, found %d", node, what, expected, found);
}

struct Expected {
  std::vector<HostFree> free;                  // by node row
  std::vector<std::vector<uint32_t>> tenants;  // by device: class ids
  std::vector<int64_t> host_tasks;             // by node row: tasks without GPUs
  std::vector<NodeGroups> groups;              // by node row
  bool host_positions = true;                  // each is where its slot says
};

Expected FromJobs(const ClusterRows& rows) {
  Expected expected;
  for (const NodeRow& node : rows.nodes) {
    if (node.spec == nullptr) {
      expected.free.emplace_back();
      continue;
    }
    expected.free.push_back({node.spec->cpu_milli, node.spec->mem_mib, node.spec->storage_mb_s});
  }
  expected.tenants.resize(rows.device_state.size());
  expected.host_tasks.resize(rows.nodes.size());
  expected.groups.resize(rows.nodes.size());
  for (const JobRow& job : rows.jobs) {
    if (job.spec == nullptr) continue;
    ForEachTask(job.slots, [&](uint32_t node_row) {
      HostFree& free = expected.free[node_row];
      free.cpu_milli -= job.spec->cpu_milli;
      free.mem_mib -= job.spec->mem_mib;
      free.storage_mb_s -= job.spec->storage_mb_s;
      ForEachGroup(*job.spec, [&](const GroupCount& one) { ChangeGroup(one, expected.groups[node_row]); });
    });
    for (const PlacedSlot& slot : job.slots) {
      if (slot.device == kNoDevice) {
        const std::vector<HostResident>& there = rows.nodes[slot.node_row].host_residents;
        ++expected.host_tasks[slot.node_row];
        expected.host_positions &= slot.tenant < there.size() && there[slot.tenant].task == slot.task &&
                                   &rows.jobs[there[slot.tenant].job_row] == &job;
        continue;
      }
      const uint32_t device = rows.nodes[slot.node_row].first_device + static_cast<uint32_t>(slot.device);
      expected.tenants[device].push_back(slot.tenant);
    }
  }
  return expected;
}

absl::Status CheckNode(const ClusterRows& rows, uint32_t row, Expected& expected, std::vector<uint32_t>& refs) {
  const NodeRow& node = rows.nodes[row];
  if (!node.live || node.spec == nullptr) return Broken(row, "live row", 1, 0);
  const NodeId id = node.spec->id;
  if (node.free != expected.free[row]) return Broken(id, "free CPU", expected.free[row].cpu_milli, node.free.cpu_milli);
  int32_t idle = 0;
  for (size_t i = 0; i < node.spec->devices.size(); ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    const uint32_t state = rows.device_state[device];
    if (state == kNoState) return Broken(id, "device without a state", 0, device);
    ++refs[state];
    std::vector<uint32_t>& wanted = expected.tenants[device];
    std::vector<uint32_t> found(rows.states.state(state).tenants.begin(), rows.states.state(state).tenants.end());
    std::sort(wanted.begin(), wanted.end());
    std::sort(found.begin(), found.end());
    if (wanted != found)
      return Broken(id, "tenant classes", static_cast<int64_t>(wanted.size()), static_cast<int64_t>(found.size()));
    if (rows.residents[device].size() != found.size()) {
      return Broken(id, "residents", static_cast<int64_t>(found.size()),
                    static_cast<int64_t>(rows.residents[device].size()));
    }
    idle += found.empty() ? 1 : 0;
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

absl::Status Cluster::CheckInvariants() const {
  Expected expected = FromJobs(rows_);
  if (!expected.host_positions) return Broken(0, "position of a task without GPUs", 1, 0);
  std::vector<uint32_t> refs(rows_.states.state_limit());
  size_t devices = 0;
  for (size_t i = 0; i < rows_.order.size(); ++i) {
    const uint32_t row = rows_.order[i];
    HORUS_RETURN_IF_ERROR(CheckNode(rows_, row, expected, refs));
    const NodeId id = rows_.nodes[row].spec->id;
    if (i > 0 && rows_.nodes[rows_.order[i - 1]].spec->id >= id)
      return Broken(id, "position in id order", 0, static_cast<int64_t>(i));
    if (!HasNode(id) || rows_.node_of.at(id) != row) return Broken(id, "row by id", row, -1);
    devices += rows_.nodes[row].spec->devices.size();
  }
  if (rows_.node_of.size() != rows_.order.size())
    return Broken(0, "nodes by id", node_count(), static_cast<int64_t>(rows_.node_of.size()));
  if (devices != rows_.live_devices)
    return Broken(0, "devices", static_cast<int64_t>(devices), static_cast<int64_t>(rows_.live_devices));
  size_t states = 0;
  for (uint32_t state = 0; state < refs.size(); ++state) {
    if (rows_.states.refs(state) != refs[state])
      return Broken(0, "devices per state", refs[state], rows_.states.refs(state));
    states += refs[state] > 0 ? 1 : 0;
  }
  if (states != rows_.states.live_states())
    return Broken(0, "live states", static_cast<int64_t>(states), static_cast<int64_t>(rows_.states.live_states()));
  size_t jobs = 0;
  for (const JobRow& job : rows_.jobs) jobs += job.spec != nullptr ? 1 : 0;
  if (jobs != rows_.job_of.size())
    return Broken(0, "jobs by id", static_cast<int64_t>(jobs), static_cast<int64_t>(rows_.job_of.size()));
  return absl::OkStatus();
}

}  // namespace horus
