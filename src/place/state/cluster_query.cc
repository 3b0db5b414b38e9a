// SPDX-License-Identifier: Apache-2.0
// Questions to a cluster: totals, nodes, devices, jobs, its hash and its size in memory.
#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "place/own_bound.h"
#include "place/state/cluster.h"

namespace horus {
namespace {

constexpr double kFullPct = 100.0;

uint64_t Add(uint64_t seed, int64_t value) { return CombineHash(seed, static_cast<uint64_t>(value)); }

uint64_t Add(uint64_t seed, std::string_view text) { return CombineHash(seed, Hash64(text)); }

// `job` is what the one of `row` asks for.
uint64_t HashOf(const JobRow& row, const JobSpec& job) {
  const JobTag* tag = row.tag.get();
  uint64_t hash = CombineHash(row.id, static_cast<uint64_t>(job.kind));
  hash = Add(Add(hash, tag == nullptr ? std::string_view() : tag->name), job.tenant);
  for (const int64_t value :
       {int64_t{job.tasks}, int64_t{job.gpus_per_task}, job.cpu_milli, job.mem_mib, job.storage_mb_s,
        int64_t{job.priority}, row.submit_us, tag == nullptr ? 0 : tag->deadline_us, job.latency_bound_us}) {
    hash = Add(hash, value);
  }
  hash = CombineHash(hash, Hash64(&job.request_rate_hz, sizeof job.request_rate_hz));
  std::optional<JobSpec> endless;  // the latency to keep is hashed above; the bound that follows from it takes long
  if (KeepsLatency(job)) endless.emplace(job).latency_bound_us = 0;
  for (const TypeDemand& entry : job.demands) {
    const TenantClass tenant = MakeTenantClass(endless.has_value() ? *endless : job, entry.demand);
    hash = CombineHash(Add(hash, int64_t{entry.type.value()}), tenant.order);
  }
  for (const auto& [key, value] : job.node_selector) hash = Add(Add(hash, key), value);
  hash = CombineHash(hash, static_cast<uint64_t>(job.share) << 1 | uint64_t{job.spread_tasks});
  ForEachGroup(job, [&](const GroupCount& one) {
    hash = CombineHash(CombineHash(hash, one.group), static_cast<uint64_t>(one.members));
  });
  hash = Add(Add(hash, StatedCpuMilli(job)), StatedMemMib(job));
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
  std::sort(ids.begin(), ids.end());
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
  HORUS_ASSIGN_OR_RETURN(const uint32_t flat, FindDevice(node, device));
  const NodeRow& row = rows_.nodes[index];
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
  for (const ResidentRow& resident : rows_.residents[flat]) {
    const JobRow& job = rows_.jobs[resident.job_row];
    info.residents.push_back({job.id, job.slots[resident.slot].task});
  }
  std::sort(info.residents.begin(), info.residents.end());
  return info;
}

absl::StatusOr<JobInfo> Cluster::Job(JobId job) const {
  const uint32_t at = rows_.RowOfJob(job);
  if (at == kNoRow) {
    return MakeError(absl::StatusCode::kNotFound, "job %d: not in this cluster", job);
  }
  const JobRow& row = rows_.jobs[at];
  JobInfo info{.spec = std::make_shared<const JobSpec>(rows_.SpecOf(row)),
               .slots = {},
               .adopted = row.adopted,
               .over_committed = row.over_committed};
  for (const PlacedSlot& slot : row.slots) {
    info.slots.push_back({rows_.nodes[slot.node_row].spec->id, slot.device, slot.task});
  }
  return info;
}

uint64_t Cluster::state_hash() const {
  uint64_t hash = CombineHash(node_count(), job_count());
  for (const uint32_t row : rows_.order) {
    const NodeRow& node = rows_.nodes[row];
    hash = CombineHash(hash, HashNode(*node.spec, node.state));
    for (size_t i = 0; i < node.spec->devices.size(); ++i) {
      hash = CombineHash(hash, rows_.states.StableHash(rows_.DeviceAt(node.first_device + static_cast<uint32_t>(i))));
    }
  }
  // A sum does not depend on the order of the rows, which is history.
  uint64_t jobs = 0;
  for (const JobRow& job : rows_.jobs) {
    if (!job.live()) continue;
    uint64_t one =
        CombineHash(HashOf(job, rows_.RequestOf(job)), uint64_t{job.adopted} << 1 | uint64_t{job.over_committed});
    for (const PlacedSlot& slot : job.slots) {
      one = CombineHash(one, rows_.nodes[slot.node_row].spec->id);
      one = CombineHash(one, static_cast<uint64_t>(slot.device) << 32 | static_cast<uint64_t>(slot.task));
    }
    jobs += Mix64(one);
  }
  return CombineHash(hash, jobs);
}

uint64_t Cluster::bytes_held() const {
  uint64_t bytes = sizeof(*this) + rows_.states.bytes_held();
  bytes += rows_.nodes.capacity() * sizeof(NodeRow) + rows_.jobs.capacity() * sizeof(JobRow);
  bytes += (rows_.order.capacity() + rows_.free_nodes.capacity() + rows_.device_state.capacity() +
            rows_.device_changes.capacity()) *
           sizeof(uint32_t);
  bytes += rows_.residents.capacity() * sizeof(Residents) + rows_.holes.capacity() * sizeof(uint64_t);
  bytes += rows_.node_of.bytes_held() + rows_.job_of.bytes_held() + BytesHeld(rows_.requests) + rows_.log.bytes_held() +
           rows_.device_lists.bytes_held(
               [](const std::vector<DeviceSpec>& list) { return list.capacity() * sizeof(DeviceSpec); });
  for (const NodeRow& node : rows_.nodes) {
    if (node.spec == nullptr) continue;
    bytes += sizeof(NodeSpec) + node.spec->devices.own_capacity() * sizeof(DeviceSpec) + node.spec->name.capacity() +
             node.host_residents.capacity() * sizeof(HostResident) + node.groups.capacity() * sizeof(GroupCount);
    for (const auto& [key, value] : node.spec->labels)
      bytes += sizeof(std::pair<std::string, std::string>) + key.capacity() + value.capacity();
  }
  for (const Residents& residents : rows_.residents) {
    if (residents.capacity() > Residents().capacity()) bytes += residents.capacity() * sizeof(ResidentRow);
  }
  for (const JobRow& job : rows_.jobs) {
    if (const JobTag* tag = job.tag.get(); tag != nullptr) bytes += sizeof(JobTag) + tag->name.capacity();
    if (job.slots.capacity() > PlacedSlots().capacity()) bytes += job.slots.capacity() * sizeof(PlacedSlot);
  }
  return bytes;
}

}  // namespace horus
