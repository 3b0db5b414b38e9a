// SPDX-License-Identifier: Apache-2.0
// horus/cluster.h: what changes a cluster (nodes, states, adopt, apply, release), and queries; the lock of its handle.

#include <limits>

#include "base/file.h"
#include "base/vectors.h"
#include "capi/convert.h"
#include "capi/planning.h"
#include "place/state/snapshot.h"

namespace horus::capi {
namespace {

// Clusters that planning calls of this thread keep from being written. A thread that waited for a writer's turn while
// it does so could wait for one that waits for it.
thread_local int clusters_read = 0;

absl::Status SetNodeState(Cluster& cluster, NodeId node, int32_t given, const IdBuffer& buffer) {
  HORUS_ASSIGN_OR_RETURN(const AdminState state, StateFromC(given));
  HORUS_ASSIGN_OR_RETURN(const NodeInfo info, cluster.Node(node));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.jobs.size(), buffer));
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs, cluster.SetNodeState(node, state));
  WriteIds(jobs, buffer);
  return absl::OkStatus();
}

absl::Status SetDeviceState(Cluster& cluster, NodeId node, uint32_t given_device, int32_t given_state,
                            const IdBuffer& buffer) {
  HORUS_ASSIGN_OR_RETURN(const AdminState state, StateFromC(given_state));
  HORUS_ASSIGN_OR_RETURN(const int32_t device, DeviceIndex(given_device));
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo info, cluster.Device(node, device));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.residents.size(), buffer));
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs, cluster.SetDeviceState(node, device, state));
  WriteIds(jobs, buffer);
  return absl::OkStatus();
}

// ---- horus/cluster.h, what looks at a cluster: totals, ids, nodes, devices, jobs; snapshot and restore.

horus_cluster_info InfoOf(const Cluster& cluster) {
  const ClusterTotals totals = cluster.Totals();
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  HORUS_COPY_FIELDS(totals, info, nodes, devices, devices_used, jobs, slots, gpu_util_pct, gpu_mem_mib, cpu_milli,
                    cpu_used_milli, mem_mib, mem_used_mib)
  info.gpu_mem_reserved_mib = totals.gpu_mem_used_mib;
  info.state_hash = cluster.state_hash();
  info.bytes_held = cluster.bytes_held();
  return info;
}

horus_node_info NodeToC(const NodeInfo& node) {
  horus_node_info info = HORUS_NODE_INFO_INIT;
  HORUS_COPY_FIELDS(node, info, state, version, cpu_free_milli, mem_free_mib, storage_free_mb_s)
  info.devices = node.spec.devices.size();
  info.jobs = node.jobs.size();
  HORUS_COPY_FIELDS(node.spec, info, cpu_milli, mem_mib, storage_mb_s, rack, network_mb_s)
  return info;
}

horus_device_info DeviceToC(const Catalogue& catalogue, const DeviceInfo& device) {
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  info.sharing_mode = SharingToC(device.spec.mode);
  HORUS_COPY_FIELDS(device, info, node_state, mem_limit_mib, mem_used_mib)
  info.device_state = static_cast<int32_t>(device.state);
  info.gpu_type = device.spec.type.value();
  info.tenants = device.residents.size();
  info.mem_mib = device.spec.mem_mib;
  info.mem_reserved_mib = device.mem_used_upper_mib;
  info.gpu_util_pct = device.util_pct;
  info.gpu_milli_used = device.milli_used;
  info.device_id = device.id;
  if (device.spec.mig_profile >= 0)
    info.mig_profile = catalogue.at(device.spec.type).mig[static_cast<size_t>(device.spec.mig_profile)].name.c_str();
  return info;
}

horus_job_info JobInfoToC(const JobInfo& job, const horus_job* all) {
  const JobSpec& spec = *job.spec;
  horus_job_info info = HORUS_JOB_INFO_INIT;
  HORUS_COPY_FIELDS(job, info, adopted, over_committed)
  HORUS_COPY_FIELDS(spec, info, kind, tasks, priority, submit_us, cpu_milli, mem_mib, sm_cap_pct)
  info.gpus_per_task = IsCpuOnly(spec) ? HORUS_JOB_NO_GPUS : spec.gpus_per_task;
  // As horus_job takes it: 0 would mean what it holds.
  const auto stated = [](int64_t amount) { return amount == 0 ? int64_t{-1} : amount; };
  info.stated_cpu_milli = stated(StatedCpuMilli(spec));
  info.stated_mem_mib = stated(StatedMemMib(spec));
  info.job = all;
  info.probe = spec.exclusive_chosen ? 1 : 0;
  return info;
}

absl::Status GetJob(const Cluster& cluster, uint64_t id, horus_job_info* out, size_t capacity, void* bytes,
                    size_t* count) {
  HORUS_RETURN_IF_ERROR(CheckOutput(out));
  HORUS_RETURN_IF_ERROR(RequireColumn(bytes, "bytes", capacity));
  HORUS_ASSIGN_OR_RETURN(const JobInfo job, cluster.Job(id));
  const JobSpec stated = StatedOf(*job.spec);
  const size_t needed = JobBytes(cluster.catalogue(), stated);
  HORUS_ASSIGN_OR_RETURN(const size_t written, RowsToWrite(needed, capacity, count));
  WriteStruct(JobInfoToC(job, written == 0 ? nullptr : PutJob(cluster.catalogue(), stated, bytes)), out);
  if (count != nullptr) *count = needed;
  return absl::OkStatus();
}

// All ids into a buffer whose count is required.
absl::Status WriteAllIds(const std::vector<uint64_t>& ids, const IdBuffer& buffer) {
  HORUS_RETURN_IF_ERROR(Require({{buffer.count, "count"}}));
  HORUS_RETURN_IF_ERROR(RequireColumn(buffer.ids, "ids", buffer.capacity));
  HORUS_RETURN_IF_ERROR(CheckRoom(ids.size(), buffer));
  WriteIds(ids, buffer);
  return absl::OkStatus();
}

absl::Status GetNode(const Cluster& cluster, uint64_t node, horus_node_info* out, const IdBuffer& buffer) {
  HORUS_RETURN_IF_ERROR(CheckOutput(out));
  HORUS_ASSIGN_OR_RETURN(const NodeInfo info, cluster.Node(node));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.jobs.size(), buffer));
  WriteStruct(NodeToC(info), out);
  WriteIds(info.jobs, buffer);
  return absl::OkStatus();
}

absl::Status GetDevice(const Cluster& cluster, uint64_t node, uint32_t device, horus_device_info* out,
                       const IdBuffer& buffer) {
  HORUS_RETURN_IF_ERROR(CheckOutput(out));
  const auto index = static_cast<int32_t>(std::min<uint32_t>(device, std::numeric_limits<int32_t>::max()));
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo info, cluster.Device(node, index));
  HORUS_RETURN_IF_ERROR(CheckRoom(info.residents.size(), buffer));
  const std::vector<uint64_t> jobs = VectorOf<uint64_t>(info.residents, &Resident::job);  // may fail: before any output
  WriteStruct(DeviceToC(cluster.catalogue(), info), out);
  WriteIds(jobs, buffer);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Saved(const horus_cluster& cluster) {
  HORUS_ASSIGN_OR_RETURN(const auto lock, cluster.gate.Read());
  return SaveSnapshot(cluster.value);
}

// A call that looks at a cluster, or changes it, while nobody else may change it.
horus_status Look(const horus_cluster* cluster, horus_error* error, const auto& body) {
  return Guard(error, {{cluster, "cluster"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Read());
    return body(cluster->value);
  });
}
horus_status Change(horus_cluster* cluster, Call call, horus_error* error, const auto& body) {
  return GuardMetered(cluster, call, error, {{cluster, "cluster"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return body(cluster->value);
  });
}
horus_status SetNode(horus_cluster* cluster, Call call, horus_error* error, const horus_node* node,
                     absl::Status (Cluster::*set)(NodeSpec)) {
  return GuardMetered(cluster, call, error, {{cluster, "cluster"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(NodeSpec spec, NodeFromC(cluster->value.catalogue(), node));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return (cluster->value.*set)(std::move(spec));
  });
}

}  // namespace

ClusterGate::PlanLock::PlanLock(ClusterGate* gate, ReadLock lock) : gate_(gate), lock_(std::move(lock)) {
  ++clusters_read;
}

void ClusterGate::PlanLock::DoneReading() {
  lock_.unlock();
  --clusters_read;
}

ClusterGate::PlanLock::~PlanLock() {
  if (gate_ == nullptr) return;
  if (lock_.owns_lock()) DoneReading();
  gate_->Leave();
}

absl::StatusOr<ClusterGate::ReadLock> ClusterGate::Read() {
  HORUS_RETURN_IF_ERROR(RefusePlanner());
  return ReadLock(state_);
}

absl::StatusOr<ClusterGate::WriteLock> ClusterGate::Write() {
  HORUS_RETURN_IF_ERROR(RefusePlanner());
  if (clusters_read == 0) return WriteLock(state_);
  WriteLock lock(state_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  return CError(HORUS_ERR_BUSY,
                "cluster: in use by another thread, for which a callback of a planning call cannot wait");
}

absl::StatusOr<ClusterGate::PlanLock> ClusterGate::Plan() {
  HORUS_ASSIGN_OR_RETURN(ReadLock lock, Read());
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  planners_.push_back(std::this_thread::get_id());
  planner_count_.store(planners_.size());
  return PlanLock(this, std::move(lock));
}

absl::Status ClusterGate::RefusePlanner() {
  // A thread sees its own earlier store, so a count of 0 means that it is not planning.
  if (planner_count_.load() == 0) return absl::OkStatus();
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  if (std::ranges::find(planners_, std::this_thread::get_id()) == planners_.end()) return absl::OkStatus();
  return CError(HORUS_ERR_BUSY, "cluster: in use by the planning call whose callback runs on this thread");
}

void ClusterGate::Leave() {
  const std::lock_guard<std::mutex> hold(planners_mutex_);
  planners_.erase(std::ranges::find(planners_, std::this_thread::get_id()));
  planner_count_.store(planners_.size());
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_cluster_create(const horus_catalogue* catalogue, horus_cluster** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(new horus_cluster(Cluster(CatalogueOf(catalogue))), out); });
}

void horus_cluster_free(horus_cluster* cluster) { delete cluster; }

horus_status horus_cluster_add_node(horus_cluster* cluster, const horus_node* node, horus_error* error) {
  return SetNode(cluster, Call::kAddNode, error, node, &Cluster::AddNode);
}

horus_status horus_cluster_change_node(horus_cluster* cluster, const horus_node* node, horus_error* error) {
  return SetNode(cluster, Call::kChangeNode, error, node, &Cluster::ChangeNode);
}

horus_status horus_cluster_remove_node(horus_cluster* cluster, uint64_t node_id, horus_error* error) {
  return Change(cluster, Call::kRemoveNode, error, [&](auto& value) { return value.RemoveNode(node_id); });
}

horus_status horus_cluster_set_state(horus_cluster* cluster, uint64_t node_id, uint32_t device, int32_t state,
                                     size_t capacity, uint64_t* job_ids, size_t* count, horus_error* error) {
  const bool whole = device == HORUS_WHOLE_NODE;
  const Call call = whole ? Call::kSetNodeState : Call::kSetDeviceState;
  return Change(cluster, call, error, [&](Cluster& value) {
    if (whole) return SetNodeState(value, node_id, state, {capacity, job_ids, count});
    return SetDeviceState(value, node_id, device, state, {capacity, job_ids, count});
  });
}

horus_status horus_cluster_adopt(horus_cluster* cluster, const horus_job* job, size_t slot_count,
                                 const uint64_t* node_ids, const uint32_t* devices, const uint32_t* tasks,
                                 int32_t* reason, horus_error* error) {
  return GuardMetered(cluster, Call::kAdopt, error, {{cluster, "cluster"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const JobSpec spec, JobFromC(cluster->value.catalogue(), job));
    HORUS_ASSIGN_OR_RETURN(const auto slots, SlotsFromC({slot_count, node_ids, devices, tasks}));
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    HORUS_ASSIGN_OR_RETURN(const AdoptResult result, cluster->value.Adopt(spec, slots));
    Put(reason, 0, result.reason);
    return absl::OkStatus();
  });
}

horus_status horus_cluster_apply(horus_cluster* cluster, const horus_plan* plan, horus_error* error) {
  return GuardMetered(cluster, Call::kApply, error, [&] {
    HORUS_RETURN_IF_ERROR(Require({{cluster, "cluster"}, {plan, "plan"}}));
    if (!SameTypes(plan->catalogue, cluster->value.shared_catalogue()))
      return InvalidArgument("plan: expected one for the GPU types of this cluster, found one for others");
    HORUS_ASSIGN_OR_RETURN(const auto lock, cluster->gate.Write());
    return cluster->value.Apply(plan->value);
  });
}

horus_status horus_cluster_release(horus_cluster* cluster, uint64_t job_id, horus_error* error) {
  return Change(cluster, Call::kRelease, error, [&](auto& value) { return value.Release(job_id); });
}

horus_status horus_cluster_get_info(const horus_cluster* cluster, horus_cluster_info* info, horus_error* error) {
  return Look(cluster, error, [&](const Cluster& value) { return Answer(InfoOf(value), info); });
}

horus_status horus_cluster_nodes(const horus_cluster* cluster, size_t capacity, uint64_t* node_ids, size_t* count,
                                 horus_error* error) {
  return Look(cluster, error, [&](auto& value) { return WriteAllIds(value.NodeIds(), {capacity, node_ids, count}); });
}

horus_status horus_cluster_jobs(const horus_cluster* cluster, size_t capacity, uint64_t* job_ids, size_t* count,
                                horus_error* error) {
  return Look(cluster, error, [&](auto& value) { return WriteAllIds(value.JobIds(), {capacity, job_ids, count}); });
}

horus_status horus_cluster_get_node(const horus_cluster* cluster, uint64_t node_id, horus_node_info* info,
                                    size_t capacity, uint64_t* job_ids, size_t* count, horus_error* error) {
  return Look(cluster, error, [&](auto& value) { return GetNode(value, node_id, info, {capacity, job_ids, count}); });
}

horus_status horus_cluster_get_device(const horus_cluster* cluster, uint64_t node_id, uint32_t device,
                                      horus_device_info* info, size_t capacity, uint64_t* job_ids, size_t* count,
                                      horus_error* error) {
  return Look(cluster, error,
              [&](auto& value) { return GetDevice(value, node_id, device, info, {capacity, job_ids, count}); });
}

horus_status horus_cluster_get_job(const horus_cluster* cluster, uint64_t job_id, horus_job_info* info, size_t capacity,
                                   void* bytes, size_t* count, horus_error* error) {
  return Look(cluster, error, [&](auto& value) { return GetJob(value, job_id, info, capacity, bytes, count); });
}

horus_status horus_cluster_job_slots(const horus_cluster* cluster, uint64_t job_id, const horus_slots* slots,
                                     size_t* count, horus_error* error) {
  return Look(cluster, error, [&](const Cluster& value) -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const JobInfo job, value.Job(job_id));
    return WriteSlots(job.slots, slots, count);
  });
}

horus_status horus_cluster_snapshot(const horus_cluster* cluster, size_t capacity, void* bytes, size_t* count,
                                    horus_error* error) {
  return Guard(error, {{cluster, "cluster"}, {count, "count"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const std::string saved, Saved(*cluster));
    return WriteBytes(saved, capacity, bytes, count);
  });
}

horus_status horus_cluster_restore(const horus_catalogue* catalogue, const void* bytes, size_t size,
                                   horus_cluster** out, horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&] {
    const std::span<const uint8_t> given(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(Cluster value, RestoreSnapshot(given, CatalogueOf(catalogue)));
    return Give(new horus_cluster(std::move(value)), out);
  });
}

horus_status horus_cluster_snapshot_file(const horus_cluster* cluster, const char* path, horus_error* error) {
  return Guard(error, {{cluster, "cluster"}, {path, "path"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const std::string saved, Saved(*cluster));
    return WriteFileAtomically(path, saved);  // others may go on meanwhile
  });
}

horus_status horus_cluster_restore_file(const horus_catalogue* catalogue, const char* path, horus_cluster** out,
                                        horus_error* error) {
  return Guard(error, {{path, "path"}, {out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const std::string saved, ReadFile(path, kMaxSnapshotBytes));
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(saved.data()), saved.size());
    HORUS_ASSIGN_OR_RETURN(Cluster value, At(path, RestoreSnapshot(bytes, CatalogueOf(catalogue))));
    return Give(new horus_cluster(std::move(value)), out);
  });
}
