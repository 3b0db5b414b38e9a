// SPDX-License-Identifier: Apache-2.0
// Jobs of a cluster: adopt, apply a plan, release.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "place/cluster.h"
#include "place/fit.h"

namespace horus {
namespace {

enum Change : uint64_t { kJobIn = 5, kJobOut = 6 };

// Rules that hold whatever a placer's options say: capacities, not slowdowns and not headroom.
FitLimits PhysicalLimits() {
  return {.slowdown_bound = std::numeric_limits<double>::infinity(),
          .max_tenants = kMaxTenantsPerDevice,
          .mem_headroom_mib = 0};
}

std::string JobText(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

absl::Status Taken(const JobSpec& job) {
  return MakeError(absl::StatusCode::kAlreadyExists, "%s: is in this cluster already", JobText(job));
}

// The job's demand there; where it states none (only adopted jobs), its first one stands in.
const Demand& DemandOn(const JobSpec& job, GpuTypeId type) {
  const Demand* demand = FindDemand(job, type);
  return demand != nullptr ? *demand : job.demands.front().demand;
}

}  // namespace

absl::StatusOr<std::vector<PlacedSlot>> Cluster::ResolveSlots(const JobSpec& job, std::span<const Slot> slots) const {
  if (slots.size() != static_cast<size_t>(GpuCount(job))) {
    return InvalidArgument("%s: slots: expected %d (tasks x GPUs per task), found %d", JobText(job), GpuCount(job),
                           slots.size());
  }
  std::vector<Slot> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
  std::vector<PlacedSlot> placed;
  std::vector<uint32_t> devices;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Slot& slot = sorted[i];
    const auto task = static_cast<int32_t>(i / static_cast<size_t>(job.gpus_per_task));
    if (slot.task != task) {
      return InvalidArgument("%s: slots: expected %d for each task from 0 to %d, found another number for task %d",
                             JobText(job), job.gpus_per_task, job.tasks - 1, std::min(slot.task, task));
    }
    if (i % static_cast<size_t>(job.gpus_per_task) != 0 && slot.node != sorted[i - 1].node) {
      return InvalidArgument("%s: slots: expected task %d on one node, found nodes %d and %d", JobText(job), task,
                             sorted[i - 1].node, slot.node);
    }
    HORUS_ASSIGN_OR_RETURN(const uint32_t node_row, FindNode(slot.node));
    HORUS_ASSIGN_OR_RETURN(const uint32_t device, FindDevice(slot.node, slot.device));
    devices.push_back(device);
    placed.push_back({node_row, slot.device, slot.task, 0});
  }
  std::sort(devices.begin(), devices.end());
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) {
    return InvalidArgument("%s: slots: expected each device once, found one twice", JobText(job));
  }
  return placed;
}

Reason Cluster::FirstBrokenRule(const JobSpec& job, std::span<const PlacedSlot> slots, bool runs) const {
  const FitLimits limits = PhysicalLimits();
  absl::flat_hash_map<uint32_t, int64_t> tasks_on;
  ForEachTask(slots, [&](uint32_t node_row) { ++tasks_on[node_row]; });
  for (const PlacedSlot& slot : slots) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    const AdminState node_state = runs ? AdminState::kUp : node.state;
    if (const Reason reason = FitNode(job, node.spec, node_state); reason != Reason::kNone) return reason;
    if (const Reason reason = FitHost(job, node.free, tasks_on[slot.node_row]); reason != Reason::kNone) return reason;
    const DeviceRow& device =
        rows_.states.state(rows_.device_state[node.first_device + static_cast<uint32_t>(slot.device)]);
    const AdminState device_state = runs ? AdminState::kUp : device.state;
    if (const Reason reason = FitDeviceState(device_state); reason != Reason::kNone) return reason;
    const Demand* demand = FindDemand(job, device.type);
    if (demand == nullptr) return Reason::kGpuType;
    const TenantClass tenant = MakeTenantClass(job, *demand);
    if (const Reason reason = FitTenant(&tenant, device, limits); reason != Reason::kNone) return reason;
  }
  return Reason::kNone;
}

void Cluster::InsertJob(std::shared_ptr<const JobSpec> job, std::vector<PlacedSlot> slots, bool adopted,
                        bool over_committed) {
  uint32_t job_row = static_cast<uint32_t>(rows_.jobs.size());
  if (rows_.free_jobs.empty()) {
    rows_.jobs.emplace_back();
  } else {
    job_row = rows_.free_jobs.back();
    rows_.free_jobs.pop_back();
  }
  ForEachTask(slots, [&](uint32_t node_row) {
    HostFree& free = rows_.nodes[node_row].free;
    free.cpu_milli -= job->cpu_milli;
    free.mem_mib -= job->mem_mib;
    free.storage_mb_s -= job->storage_mb_s;
  });
  for (PlacedSlot& slot : slots) {
    NodeRow& node = rows_.nodes[slot.node_row];
    const uint32_t device = node.first_device + static_cast<uint32_t>(slot.device);
    const uint32_t state = rows_.device_state[device];
    slot.tenant = rows_.states.InternTenant(MakeTenantClass(*job, DemandOn(*job, rows_.states.state(state).type)));
    SetDevice(device, rows_.states.WithTenant(state, slot.tenant));
    if (rows_.residents[device].empty()) --node.idle_devices;
    rows_.residents[device].push_back({job_row, slot.task});
    uint64_t what = CombineHash(CombineHash(kJobIn, job->id), rows_.states.tenant(slot.tenant).digest);
    for (const int64_t part : {int64_t{slot.device}, job->cpu_milli, job->mem_mib, job->storage_mb_s}) {
      what = CombineHash(what, static_cast<uint64_t>(part));
    }
    Touch(slot.node_row, what);
  }
  rows_.job_of.emplace(job->id, job_row);
  rows_.jobs[job_row] = {std::move(job), std::move(slots), adopted, over_committed};
}

void Cluster::EraseJob(uint32_t job_row) {
  const JobRow row = std::move(rows_.jobs[job_row]);
  rows_.jobs[job_row] = JobRow();
  rows_.free_jobs.push_back(job_row);
  rows_.job_of.erase(row.spec->id);
  ForEachTask(row.slots, [&](uint32_t node_row) {
    HostFree& free = rows_.nodes[node_row].free;
    free.cpu_milli += row.spec->cpu_milli;
    free.mem_mib += row.spec->mem_mib;
    free.storage_mb_s += row.spec->storage_mb_s;
  });
  for (const PlacedSlot& slot : row.slots) {
    NodeRow& node = rows_.nodes[slot.node_row];
    const uint32_t device = node.first_device + static_cast<uint32_t>(slot.device);
    SetDevice(device, rows_.states.WithoutTenant(rows_.device_state[device], slot.tenant));
    Residents& residents = rows_.residents[device];
    residents.erase(std::find_if(residents.begin(), residents.end(),
                                 [job_row](const ResidentRow& resident) { return resident.job_row == job_row; }));
    if (residents.empty()) ++node.idle_devices;
    Touch(slot.node_row, CombineHash(kJobOut, row.spec->id));
  }
}

absl::StatusOr<AdoptResult> Cluster::Adopt(const JobSpec& job, std::span<const Slot> slots) {
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  if (HasJob(job.id)) return Taken(job);
  HORUS_ASSIGN_OR_RETURN(std::vector<PlacedSlot> placed, ResolveSlots(job, slots));
  for (const PlacedSlot& slot : placed) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    if (rows_.residents[node.first_device + static_cast<uint32_t>(slot.device)].size() < kMaxResidentsPerDevice)
      continue;
    return MakeError(absl::StatusCode::kResourceExhausted,
                     "%s: node %d device %d: holds %d jobs, the most there can be", JobText(job), node.spec.id,
                     slot.device, kMaxResidentsPerDevice);
  }
  if (job_count() >= kMaxJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: a cluster holds at most %d jobs", JobText(job),
                     kMaxJobs);
  }
  const Reason reason = FirstBrokenRule(job, placed, /*runs=*/true);
  const AdoptResult result{.over_committed = reason != Reason::kNone, .reason = reason};
  InsertJob(std::make_shared<const JobSpec>(job), std::move(placed), /*adopted=*/true, result.over_committed);
  return result;
}

absl::Status Cluster::ApplyAction(const Action& action) {
  if (action.kind != ActionKind::kPlace) {
    return MakeError(absl::StatusCode::kUnimplemented, "plan: actions of kind %d are reserved",
                     static_cast<int>(action.kind));
  }
  if (HasJob(action.job->id)) return Taken(*action.job);
  HORUS_RETURN_IF_ERROR(ValidateJob(*action.job));
  HORUS_RETURN_IF_ERROR(CheckTypes(*action.job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(std::vector<PlacedSlot> placed, ResolveSlots(*action.job, action.slots));
  if (job_count() >= kMaxJobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: a cluster holds at most %d jobs", JobText(*action.job),
                     kMaxJobs);
  }
  if (const Reason reason = FirstBrokenRule(*action.job, placed, /*runs=*/false); reason != Reason::kNone) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "%s: does not fit where the plan puts it: %s",
                     JobText(*action.job), std::string(ReasonText(reason)));
  }
  InsertJob(action.job, std::move(placed), /*adopted=*/false, /*over_committed=*/false);
  return absl::OkStatus();
}

absl::Status Cluster::Apply(const Plan& plan) {
  for (const Action& action : plan.actions) {
    if (action.job == nullptr) return InvalidArgument("plan: an action has no job");
    if (HasJob(action.job->id)) return Taken(*action.job);
  }
  absl::flat_hash_map<NodeId, uint64_t> seen;
  for (const SeenNode& node : plan.seen) {
    const auto at = rows_.node_of.find(node.node);
    if (at == rows_.node_of.end()) {
      return MakeError(absl::StatusCode::kAborted, "node %d: was removed since the plan was made", node.node);
    }
    const NodeRow& row = rows_.nodes[at->second];
    if (row.version != node.version) {
      return MakeError(absl::StatusCode::kAborted, "node %s: has changed since the plan was made",
                       IdAndName(node.node, row.spec.name));
    }
    seen.emplace(node.node, node.version);
  }
  const uint64_t changes = rows_.changes;
  absl::Status status;
  size_t done = 0;
  for (const Action& action : plan.actions) {
    for (const Slot& slot : action.slots) {
      if (seen.contains(slot.node)) continue;
      status = InvalidArgument("plan: %s: node %d is not among the nodes that the plan saw", JobText(*action.job),
                               slot.node);
    }
    if (status.ok()) status = ApplyAction(action);
    if (!status.ok()) break;
    ++done;
  }
  if (status.ok()) return status;
  while (done > 0) EraseJob(rows_.job_of.at(plan.actions[--done].job->id));
  for (const SeenNode& node : plan.seen) rows_.nodes[rows_.node_of.at(node.node)].version = node.version;
  rows_.changes = changes;
  return status;
}

absl::Status Cluster::Release(JobId job) {
  const auto at = rows_.job_of.find(job);
  if (at == rows_.job_of.end()) {
    return MakeError(absl::StatusCode::kNotFound, "job %d: not in this cluster", job);
  }
  EraseJob(at->second);
  return absl::OkStatus();
}

}  // namespace horus
