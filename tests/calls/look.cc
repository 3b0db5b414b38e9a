// SPDX-License-Identifier: Apache-2.0
// What a cluster says of itself against the mirror: capacity, who is where, conservation of jobs.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "calls/harness.h"
#include "capi/handles.h"
#include "support/invariants.h"

namespace horus::calls {
namespace {

constexpr int64_t kWholeGpuMilli = 1'000;
constexpr uint64_t kSentinel = 0xA5A5A5A5A5A5A5A5;

horus_job_info JobOf(Harness& harness, uint64_t id) {
  horus_job_info info = HORUS_JOB_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_get_job, harness.cluster.get(), id, &info, size_t{0}, nullptr,
                            nullptr) == HORUS_OK,
                  "a resident is not there", id);
  return info;
}

// All that was stated of a resident, into exactly as many bytes as it takes, wherever they begin.
void CheckStated(Harness& harness, uint64_t id) {
  horus_job_info info = HORUS_JOB_INFO_INIT;
  size_t count = 0, again = 0;
  const auto told = [&](size_t capacity, char* bytes, size_t* out) {
    return HORUS_TRY(harness, kNone, horus_cluster_get_job, harness.cluster.get(), id, &info, capacity, bytes, out);
  };
  harness.Require(told(0, nullptr, &count) == HORUS_OK && count > 0 && info.job == nullptr, "the size of a job");
  const size_t skipped = harness.choices.Below(16);
  std::vector<char> bytes(skipped + count);  // its end is guarded by the sanitisers
  harness.Require(told(count - 1, bytes.data(), &again) == HORUS_ERR_BUFFER_TOO_SMALL && again == count,
                  "too few bytes");
  harness.Require(told(count, bytes.data() + skipped, &again) == HORUS_OK && again == count, "a job into its bytes");
  const horus_job& job = *info.job;
  harness.Require(job.id == id && job.kind == info.kind && job.tasks == info.tasks &&
                      job.gpus_per_task == info.gpus_per_task && job.cpu_milli == info.cpu_milli,
                  "a job as it was stated", id, job.id);
  for (size_t i = 0; i < job.demand_count; ++i) {
    if (job.gpu_types[i] != nullptr) harness.Note(std::strlen(job.gpu_types[i]));
    harness.Note(static_cast<uint64_t>(job.demands[i]->mem_mib));
  }
}

// Ids by a call that counts first.
template <typename Ask>
std::vector<uint64_t> IdsBy(Harness& harness, const Ask& ask) {
  size_t count = 0;
  uint64_t* const none = nullptr;
  const horus_status status = ask(size_t{0}, none, &count);
  harness.Require(status == HORUS_OK, "a count of ids");
  std::vector<uint64_t> ids(count + 1, kSentinel);
  if (count > 1) {  // one too few
    size_t again = 0;
    harness.Require(ask(count - 1, ids.data(), &again) == HORUS_ERR_BUFFER_TOO_SMALL && again == count, "ids: too few");
    harness.Require(ids[0] == kSentinel, "ids were written though there is no room");
  }
  size_t again = 0;
  harness.Require(ask(count, ids.data(), &again) == HORUS_OK && again == count, "ids: as many as counted", count,
                  again);
  harness.Require(ids[count] == kSentinel, "ids were written beyond the room");
  ids.pop_back();
  harness.Require(std::is_sorted(ids.begin(), ids.end()), "ids ascend");
  return ids;
}

struct Sums {
  int64_t cpu_used_milli = 0, mem_used_mib = 0, gpu_mem_mib = 0, gpu_mem_reserved_mib = 0;
  uint64_t devices = 0, devices_used = 0, slots = 0;
};

// The tenants of a device, ascending; sums go to `sums`.
void CheckDeviceInto(Harness& harness, uint64_t node, uint32_t device, Sums* sums) {
  std::array<uint64_t, 64> ids = {};
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  size_t count = 0;
  const horus_status status = HORUS_TRY(harness, kNone, horus_cluster_get_device, harness.cluster.get(), node, device,
                                        &info, ids.size(), ids.data(), &count);
  if (status == HORUS_ERR_BUFFER_TOO_SMALL) return;  // adopted beyond anything
  harness.Require(status == HORUS_OK && count == info.tenants, "a device", info.tenants, count);
  bool over = false, exclusive = info.sharing_mode == HORUS_SHARING_EXCLUSIVE;
  for (size_t i = 0; i < count; ++i) {
    const auto job = harness.jobs.find(ids[i]);
    harness.Require(job != harness.jobs.end(), "a tenant that should not be there", 0, ids[i]);
    const auto& slots = job->second.slots;
    harness.Require(std::any_of(slots.begin(), slots.end(),
                                [&](const Slot& slot) { return slot.node == node && slot.device == device; }),
                    "a tenant is not where it was put", ids[i]);
    over |= JobOf(harness, ids[i]).over_committed != 0;
  }
  if (sums != nullptr) {
    sums->devices += 1;
    sums->devices_used += count > 0 ? 1 : 0;
    sums->slots += count;
    sums->gpu_mem_mib += info.mem_mib;
    sums->gpu_mem_reserved_mib += info.mem_reserved_mib;
  }
  if (over) return;  // what ran already is true, whatever the rules say
  harness.Require(info.mem_reserved_mib <= info.mem_mib, "device memory", static_cast<uint64_t>(info.mem_mib),
                  static_cast<uint64_t>(info.mem_reserved_mib));
  harness.Require(info.gpu_milli_used <= kWholeGpuMilli, "thousandths of a GPU", kWholeGpuMilli,
                  static_cast<uint64_t>(info.gpu_milli_used));
  harness.Require(!exclusive || count <= 1, "tenants of an exclusive device", 1, count);
}

void CheckNodeInto(Harness& harness, uint64_t node, const horus_node_info& info, const std::vector<uint64_t>& ids,
                   Sums* sums) {
  int64_t cpu = 0, mem = 0;
  bool over = false;
  for (const uint64_t id : ids) {
    const auto job = harness.jobs.find(id);
    harness.Require(job != harness.jobs.end(), "a job on a node that should not be there", 0, id);
    over |= JobOf(harness, id).over_committed != 0;
    std::vector<uint32_t> tasks;
    for (const Slot& slot : job->second.slots) {
      if (slot.node == node) tasks.push_back(slot.task);
    }
    harness.Require(!tasks.empty(), "a job is not on the node that names it", node, id);
    std::sort(tasks.begin(), tasks.end());
    const auto distinct = std::unique(tasks.begin(), tasks.end()) - tasks.begin();
    cpu += distinct * job->second.cpu_milli;
    mem += distinct * job->second.mem_mib;
  }
  harness.Require(info.cpu_milli - info.cpu_free_milli == cpu, "CPU in use", static_cast<uint64_t>(cpu),
                  static_cast<uint64_t>(info.cpu_milli - info.cpu_free_milli));
  harness.Require(info.mem_mib - info.mem_free_mib == mem, "host memory in use", static_cast<uint64_t>(mem),
                  static_cast<uint64_t>(info.mem_mib - info.mem_free_mib));
  if (!over) {
    harness.Require(info.cpu_free_milli >= 0 && info.mem_free_mib >= 0, "a host gives more than it has", node);
    harness.Require(info.storage_mb_s == 0 || info.storage_free_mb_s >= 0, "storage bandwidth", node);
  }
  if (sums != nullptr) {
    sums->cpu_used_milli += cpu;
    sums->mem_used_mib += mem;
  }
  harness.Require(info.devices == harness.DevicesOf(node), "devices of a node", harness.DevicesOf(node), info.devices);
}

std::vector<uint64_t> NodeJobs(Harness& harness, uint64_t node, horus_node_info& info) {
  return IdsBy(harness, [&](size_t capacity, uint64_t* ids, size_t* count) {
    info = HORUS_NODE_INFO_INIT;
    uint64_t none = kSentinel;  // for get_node NULL means that ids are not wanted
    return HORUS_TRY(harness, kNone, horus_cluster_get_node, harness.cluster.get(), node, &info, capacity,
                     ids == nullptr ? &none : ids, count);
  });
}

void CheckSlots(Harness& harness, uint64_t id, const MirrorJob& job) {
  SlotRows rows(job.slots.size() + 1);
  size_t count = 0;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_cluster_job_slots, harness.cluster.get(), id, &rows.columns, &count);
  harness.Require(status == HORUS_OK && count == job.slots.size(), "slots of a job", job.slots.size(), count);
  harness.Require(rows.Sorted(count) == job.slots, "the slots of a job are not those that it was given", id);
}

}  // namespace

void CheckNode(Harness& harness, uint64_t node) {
  horus_node_info info = HORUS_NODE_INFO_INIT;
  const std::vector<uint64_t> ids = NodeJobs(harness, node, info);
  CheckNodeInto(harness, node, info, ids, nullptr);
}

void CheckDevice(Harness& harness, uint64_t node, uint32_t device) { CheckDeviceInto(harness, node, device, nullptr); }

void CheckJob(Harness& harness, uint64_t id) {
  const MirrorJob& job = harness.jobs.at(id);
  const horus_job_info info = JobOf(harness, id);
  harness.Require(info.cpu_milli == job.cpu_milli && info.mem_mib == job.mem_mib, "what a job holds of its host", id);
  harness.Require((info.adopted != 0) == job.adopted && (info.over_committed == 0 || job.adopted), "adopted", id);
  CheckSlots(harness, id, job);
}

void Harness::CheckAll() {
  looking_ = true;
  Sums sums;
  const auto* handle = cluster.get();
  const auto node_ids = IdsBy(*this, [&](size_t capacity, uint64_t* ids, size_t* count) {
    return HORUS_TRY(*this, kNone, horus_cluster_nodes, handle, capacity, ids, count);
  });
  Require(std::equal(node_ids.begin(), node_ids.end(), nodes.begin(), nodes.end(),
                     [](uint64_t id, const auto& node) { return id == node.first; }),
          "the nodes are not those that were added", nodes.size(), node_ids.size());
  const auto job_ids = IdsBy(*this, [&](size_t capacity, uint64_t* ids, size_t* count) {
    return HORUS_TRY(*this, kNone, horus_cluster_jobs, handle, capacity, ids, count);
  });
  Require(std::equal(job_ids.begin(), job_ids.end(), jobs.begin(), jobs.end(),
                     [](uint64_t id, const auto& job) { return id == job.first; }),
          "the jobs are not those that came and did not leave", jobs.size(), job_ids.size());
  for (const uint64_t id : job_ids) CheckJob(*this, id);
  for (const auto& [node, devices] : nodes) {
    horus_node_info info = HORUS_NODE_INFO_INIT;
    const std::vector<uint64_t> ids = NodeJobs(*this, node, info);
    CheckNodeInto(*this, node, info, ids, &sums);
    for (uint32_t device = 0; device < devices; ++device) CheckDeviceInto(*this, node, device, &sums);
  }
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  Require(HORUS_TRY(*this, kNone, horus_cluster_get_info, handle, &info) == HORUS_OK, "the totals");
  Require(info.nodes == nodes.size() && info.jobs == jobs.size(), "totals: nodes and jobs", jobs.size(), info.jobs);
  Require(info.cpu_used_milli == sums.cpu_used_milli && info.mem_used_mib == sums.mem_used_mib, "totals: hosts");
  Require(info.devices >= sums.devices && info.slots >= sums.slots && info.devices_used >= sums.devices_used,
          "totals: devices", sums.slots, info.slots);
  const absl::Status inside = CheckInvariants(handle->value);
  Require(inside.ok(), std::string(inside.message()).c_str());
  Note(info.state_hash);
  Require(options.check_every > 1 || info.state_hash == hash_, "looking changed the state's hash", hash_,
          info.state_hash);
  looking_ = false;
}

namespace {

void LookAtNode(Harness& harness) {
  const uint64_t node = harness.SomeNode();
  if (harness.nodes.contains(node)) return CheckNode(harness, node);
  horus_node_info info = HORUS_NODE_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_get_node, harness.cluster.get(), node, &info, size_t{0},
                            nullptr, nullptr) == HORUS_ERR_NOT_FOUND,
                  "a node that nobody added", 0, node);
}

void LookAtDevice(Harness& harness) {
  const uint64_t node = harness.SomeNode();
  const uint32_t devices = harness.DevicesOf(node);
  const auto device = static_cast<uint32_t>(harness.choices.OneIn(32) ? harness.choices.HostileBits()
                                                                      : harness.choices.Below(devices + 1));
  if (device < devices) return CheckDevice(harness, node, device);
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_get_device, harness.cluster.get(), node, device, &info,
                            size_t{0}, nullptr, nullptr) == HORUS_ERR_NOT_FOUND,
                  "a device that no node has", devices, device);
}

void LookAtJob(Harness& harness) {
  const uint64_t id = harness.SomeJob();
  if (harness.jobs.contains(id)) {
    CheckStated(harness, id);
    return CheckJob(harness, id);
  }
  horus_job_info info = HORUS_JOB_INFO_INIT;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_get_job, harness.cluster.get(), id, &info, size_t{0}, nullptr,
                            nullptr) == HORUS_ERR_NOT_FOUND,
                  "a job that did not come or left", 0, id);
}

// Struct sizes and NULLs that no look survives.
void LookWrongly(Harness& harness) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  info.struct_size = static_cast<uint32_t>(harness.choices.Below(16));
  HORUS_TRY(harness, kNone, horus_cluster_get_info, harness.cluster.get(), &info);
  horus_cluster* const none = nullptr;
  size_t count = 0;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_get_info, none, &info) != HORUS_OK, "NULL has totals");
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_jobs, none, size_t{0}, nullptr, &count) != HORUS_OK, "NULL");
  horus_slots slots = HORUS_SLOTS_INIT;
  slots.capacity = harness.choices.HostileBits();  // columns that are NULL are skipped, whatever they could hold
  HORUS_TRY(harness, kNone, horus_cluster_job_slots, harness.cluster.get(), harness.SomeJob(), &slots, &count);
}

}  // namespace

std::vector<Action> LookActions() { return {{LookAtNode, 8}, {LookAtDevice, 16}, {LookAtJob, 16}, {LookWrongly, 2}}; }

}  // namespace horus::calls
