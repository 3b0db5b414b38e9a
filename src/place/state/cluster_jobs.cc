// SPDX-License-Identifier: Apache-2.0
// Jobs of a cluster: how they come and go; adopt and release.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "place/fit.h"
#include "place/state/cluster.h"

namespace horus {
namespace {

enum Change : uint64_t { kJobIn = 5, kJobOut = 6 };

std::string JobText(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

absl::Status Taken(const JobSpec& job) {
  return MakeError(absl::StatusCode::kAlreadyExists, "%s: is in this cluster already", JobText(job));
}

// A task that came to a node, for the node's version.
uint64_t WhatCameIn(JobId id, const JobSpec& job, int32_t device, uint64_t tenant) {
  uint64_t what = CombineHash(CombineHash(kJobIn, id), tenant);
  for (const int64_t part : {int64_t{device}, job.cpu_milli, job.mem_mib, job.storage_mb_s}) {
    what = CombineHash(what, static_cast<uint64_t>(part));
  }
  const uint64_t owner = OwnerMark(job);
  if (!job.tenant.empty() || MindsOwners(owner)) what = CombineHash(what, owner);
  ForEachGroup(job, [&](const GroupCount& count) {
    what = CombineHash(CombineHash(what, count.group), static_cast<uint64_t>(count.members));
  });
  return what;
}

}  // namespace

// Rules that hold whatever a placer's options say: capacities, not slowdowns, not headroom and not limits.
FitLimits Cluster::PhysicalLimits() {
  return {.slowdown_bound = std::numeric_limits<double>::infinity(),
          .max_tenants = kMaxTenantsPerDevice,
          .mem_headroom_mib = 0,
          .mem_overcommit = std::numeric_limits<double>::infinity()};
}

absl::StatusOr<std::vector<PlacedSlot>> Cluster::ResolveSlots(const JobSpec& job, std::span<const Slot> slots) const {
  if (slots.size() != static_cast<size_t>(SlotCount(job))) {
    return InvalidArgument("%s: slots: expected %d (tasks x GPUs per task, or tasks without GPUs), found %d",
                           JobText(job), SlotCount(job), slots.size());
  }
  const auto per_task = static_cast<size_t>(SlotsPerTask(job));
  std::vector<Slot> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
  std::vector<PlacedSlot> placed;
  std::vector<uint32_t> devices;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Slot& slot = sorted[i];
    const auto task = static_cast<int32_t>(i / per_task);
    if (slot.task != task) {
      return InvalidArgument("%s: slots: expected %d for each task from 0 to %d, found another number for task %d",
                             JobText(job), SlotsPerTask(job), job.tasks - 1, std::min(slot.task, task));
    }
    if (i % per_task != 0 && slot.node != sorted[i - 1].node) {
      return InvalidArgument("%s: slots: expected task %d on one node, found nodes %d and %d", JobText(job), task,
                             sorted[i - 1].node, slot.node);
    }
    HORUS_ASSIGN_OR_RETURN(const uint32_t node_row, FindNode(slot.node));
    if (IsCpuOnly(job)) {
      if (slot.device != kNoDevice) {
        return InvalidArgument("%s: slots: expected no device (%d) for a job without GPUs, found %d", JobText(job),
                               kNoDevice, slot.device);
      }
    } else {
      HORUS_ASSIGN_OR_RETURN(const uint32_t device, FindDevice(slot.node, slot.device));
      devices.push_back(device);
    }
    placed.push_back({node_row, slot.device, slot.task, 0});
  }
  std::sort(devices.begin(), devices.end());
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) {
    return InvalidArgument("%s: slots: expected each device once, found one twice", JobText(job));
  }
  return placed;
}

absl::StatusOr<Reason> Cluster::BrokenRule(const JobSpec& job, std::span<const Slot> slots,
                                           const FitLimits& limits) const {
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(const std::vector<PlacedSlot> placed, ResolveSlots(job, slots));
  return FirstBrokenRule(job, placed, limits, /*runs=*/false);
}

Reason Cluster::FirstBrokenRule(const JobSpec& job, std::span<const PlacedSlot> slots, const FitLimits& limits,
                                bool runs) const {
  IdMap<int64_t> tasks_on;  // by node row
  ForEachTask(slots, [&](uint32_t node_row) {
    int64_t* tasks = tasks_on.Find(node_row);
    ++(tasks != nullptr ? *tasks : tasks_on.Insert(node_row, 0));
  });
  for (const PlacedSlot& slot : slots) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    const AdminState node_state = runs ? AdminState::kUp : node.state;
    if (const Reason reason = FitNode(job, *node.spec, node_state); reason != Reason::kNone) return reason;
    if (const Reason reason = FitHost(job, node.free, tasks_on.at(slot.node_row)); reason != Reason::kNone)
      return reason;
    if (KeepsAway(job, node.groups) || (job.spread_tasks && tasks_on.at(slot.node_row) > 1)) {
      return Reason::kAntiAffinity;
    }
    if (slot.device == kNoDevice) continue;
    const DeviceRow device = rows_.DeviceAt(node.first_device + static_cast<uint32_t>(slot.device));
    const AdminState device_state = runs ? AdminState::kUp : device.state;
    if (const Reason reason = FitDeviceState(device_state); reason != Reason::kNone) return reason;
    const Demand* demand = FindDemand(job, device.type);
    if (demand == nullptr) return Reason::kGpuType;
    const TenantClass tenant = MakeTenantClass(job, *demand);
    if (const Reason reason = FitTenant(&tenant, device, limits); reason != Reason::kNone) return reason;
    if (!MayShare(job, rows_.residents[node.first_device + static_cast<uint32_t>(slot.device)])) return Reason::kOwner;
  }
  return Reason::kNone;
}

bool Cluster::MayShare(const JobSpec& job, const Residents& residents) const {
  const uint64_t mark = OwnerMark(job);
  return std::all_of(residents.begin(), residents.end(), [&](const ResidentRow& one) {
    const JobRow& other = rows_.jobs[one.job_row];
    if (!MindsOwners(mark | rows_.requests.at(other.request).owner)) return true;
    return rows_.RequestOf(other).tenant == job.tenant;
  });
}

void Cluster::InsertJob(const JobSpec& job, std::span<const PlacedSlot> slots, bool adopted, bool over_committed) {
  ReserveMore(rows_.jobs, 1);
  rows_.job_of.ReserveOne([this](uint32_t row) { return rows_.jobs[row].id; });
  rows_.states.ReserveFree();
  if (GroupsOf(job) > 0) {
    ForEachTask(slots, [&](uint32_t node_row) { ReserveMore(rows_.nodes[node_row].groups, GroupsOf(job)); });
  }
  struct Newcomer {  // gives back what it holds unless it came in
    ClusterRows& rows;
    JobRow row;
    ~Newcomer() { rows.LetGo(row); }
  } newcomer{rows_, {.id = job.id, .submit_us = job.submit_us}};
  JobRow& row = newcomer.row;
  row.adopted = adopted;
  row.over_committed = over_committed;
  if (!job.name.empty() || job.deadline_us != 0) row.tag = Boxed<JobTag>({job.name, job.deadline_us});
  row.slots.assign(slots.begin(), slots.end());
  for (PlacedSlot& slot : row.slots) slot.tenant = kNoTenant;
  row.request = HoldRequest(job, rows_.requests);
  for (PlacedSlot& slot : row.slots) {
    if (slot.device == kNoDevice) {
      ReserveMore(rows_.nodes[slot.node_row].host_residents, slots.size());
      continue;
    }
    const uint32_t device = rows_.nodes[slot.node_row].first_device + static_cast<uint32_t>(slot.device);
    const GpuTypeId type = rows_.states.state(rows_.device_state[device]).type;
    rows_.residents[device].reserve(rows_.residents[device].size() + 1);
    slot.tenant = rows_.states.HoldTenant(MakeTenantClass(job, DemandOn(job, type)));
  }
  PutJob(std::move(row));
  row.request = RequestTable::kNone;  // it holds nothing any more
}

void Cluster::PutJob(JobRow job) noexcept {
  const JobSpec& request = rows_.RequestOf(job);
  uint32_t job_row = rows_.first_free_job;
  if (job_row == kNoRow) {
    job_row = static_cast<uint32_t>(rows_.jobs.size());
    rows_.jobs.emplace_back();
  } else {
    rows_.first_free_job = static_cast<uint32_t>(rows_.jobs[job_row].id);
  }
  ForEachTask(job.slots, [&](uint32_t node_row) {
    HostFree& free = rows_.nodes[node_row].free;
    free.cpu_milli -= request.cpu_milli;
    free.mem_mib -= request.mem_mib;
    free.storage_mb_s -= request.storage_mb_s;
    ForEachGroup(request, [&](const GroupCount& one) { ChangeGroup(one, rows_.nodes[node_row].groups); });
  });
  for (uint32_t i = 0; i < job.slots.size(); ++i) {
    PlacedSlot& slot = job.slots[i];
    NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) {
      slot.tenant = static_cast<uint32_t>(node.host_residents.size());
      node.host_residents.push_back({job_row, slot.task});
      Touch(slot.node_row, WhatCameIn(job.id, request, slot.device, /*tenant=*/0));
      continue;
    }
    const uint32_t device = node.first_device + static_cast<uint32_t>(slot.device);
    ++rows_.device_changes[device];
    if (rows_.residents[device].empty()) --node.idle_devices;
    rows_.residents[device].push_back({job_row, i});
    Touch(slot.node_row, WhatCameIn(job.id, request, slot.device, rows_.states.tenant(slot.tenant).order));
  }
  rows_.job_of.Insert(job.id, job_row);
  rows_.jobs[job_row] = std::move(job);
}

void Cluster::EraseJob(uint32_t job_row) {
  rows_.states.ReserveFree();
  rows_.LetGo(TakeJob(job_row));
}

JobRow Cluster::TakeJob(uint32_t job_row) noexcept {
  rows_.job_of.Erase(rows_.jobs[job_row].id, [this](uint32_t row) { return rows_.jobs[row].id; });
  JobRow job = std::move(rows_.jobs[job_row]);
  rows_.jobs[job_row].request = RequestTable::kNone;
  rows_.jobs[job_row].id = std::exchange(rows_.first_free_job, job_row);
  const JobSpec& request = rows_.RequestOf(job);
  ForEachTask(job.slots, [&](uint32_t node_row) {
    HostFree& free = rows_.nodes[node_row].free;
    free.cpu_milli += request.cpu_milli;
    free.mem_mib += request.mem_mib;
    free.storage_mb_s += request.storage_mb_s;
    ForEachGroup(request, [&](const GroupCount& one) {
      ChangeGroup({one.group, -one.members, -one.avoiders}, rows_.nodes[node_row].groups);
    });
  });
  for (const PlacedSlot& slot : job.slots) {
    NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) {  // the last one takes its position
      const HostResident last = node.host_residents.back();
      node.host_residents.pop_back();
      if (slot.tenant < node.host_residents.size()) {
        node.host_residents[slot.tenant] = last;
        JobRow& moved = last.job_row == job_row ? job : rows_.jobs[last.job_row];
        moved.slots[static_cast<size_t>(last.task)].tenant = slot.tenant;
      }
      Touch(slot.node_row, CombineHash(kJobOut, job.id));
      continue;
    }
    const uint32_t device = node.first_device + static_cast<uint32_t>(slot.device);
    ++rows_.device_changes[device];
    Residents& residents = rows_.residents[device];
    residents.erase(std::find_if(residents.begin(), residents.end(),
                                 [&](const ResidentRow& resident) { return resident.job_row == job_row; }));
    if (residents.empty()) ++node.idle_devices;
    Touch(slot.node_row, CombineHash(kJobOut, job.id));
  }
  return job;
}

absl::Status Cluster::CheckDebts(const JobSpec& job, std::span<const PlacedSlot> slots) const {
  absl::Status status;
  ForEachTask(slots, [&](uint32_t node_row) {
    const NodeRow& node = rows_.nodes[node_row];
    const auto within = [&](int64_t free, int64_t per_task) { return free - per_task * job.tasks >= -kMostOwed; };
    if (!within(node.free.cpu_milli, job.cpu_milli) || !within(node.free.mem_mib, job.mem_mib) ||
        !within(node.free.storage_mb_s, job.storage_mb_s)) {
      status =
          MakeError(absl::StatusCode::kResourceExhausted,
                    "%s: node %d: expected residents that ask for at most %d milli-cores, MiB or MB/s more than it "
                    "has, all tasks of this job counted, found more",
                    JobText(job), node.spec->id, kMostOwed);
    } else if (node.groups.size() + GroupsOf(job) > kMaxGroupsPerNode) {
      status = MakeError(absl::StatusCode::kResourceExhausted, "%s: node %d: expected residents of at most %d groups",
                         JobText(job), node.spec->id, kMaxGroupsPerNode);
    }
  });
  return status;
}

absl::StatusOr<AdoptResult> Cluster::Adopt(const JobSpec& job, std::span<const Slot> slots) {
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  if (HasJob(job.id)) return Taken(job);
  HORUS_ASSIGN_OR_RETURN(std::vector<PlacedSlot> placed, ResolveSlots(job, slots));
  for (const PlacedSlot& slot : placed) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) break;  // then none of the slots has one
    if (rows_.residents[node.first_device + static_cast<uint32_t>(slot.device)].size() < kMaxResidentsPerDevice)
      continue;
    return MakeError(absl::StatusCode::kResourceExhausted,
                     "%s: node %d device %d: holds %d jobs, the most there can be", JobText(job), node.spec->id,
                     slot.device, kMaxResidentsPerDevice);
  }
  if (job_count() >= limits_.jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: a cluster holds at most %d jobs", JobText(job),
                     limits_.jobs);
  }
  HORUS_RETURN_IF_ERROR(CheckDebts(job, placed));
  const Reason reason = FirstBrokenRule(job, placed, PhysicalLimits(), /*runs=*/true);
  const AdoptResult result{.over_committed = reason != Reason::kNone, .reason = reason};
  InsertJob(job, placed, /*adopted=*/true, result.over_committed);
  return result;
}

absl::Status Cluster::Release(JobId job) {
  const uint32_t row = rows_.RowOfJob(job);
  if (row == kNoRow) {
    return MakeError(absl::StatusCode::kNotFound, "job %d: not in this cluster", job);
  }
  EraseJob(row);
  return absl::OkStatus();
}

}  // namespace horus
