// SPDX-License-Identifier: Apache-2.0
// Jobs of a cluster: adopt and release; plans, checked and applied.
#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/text.h"
#include "place/state/cluster.h"
#include "place/state/fit.h"

namespace horus {

// ---- What takes back a plan that could not be carried out to its end; of Cluster::Apply alone.
// Cost: O(actions of the plan).

// Takes back what a plan did unless all of it came about.
class Cluster::Undo {
 public:
  Undo(Cluster& cluster, const Changes& plan) : cluster_(cluster), plan_(plan), changes_(cluster.rows_.changes) {
    steps_.reserve(2 * plan.actions.size());
  }
  ~Undo() {
    for (; !steps_.empty(); steps_.pop_back()) {
      if (!kept_) {
        TakeBack(steps_.back());
      } else if (!steps_.back().came) {
        cluster_.rows_.LetGo(steps_.back().left);
      }
    }
    if (kept_) return;
    for (const SeenNode& node : plan_.seen)
      cluster_.rows_.nodes[cluster_.rows_.node_of.at(node.node)].version = node.version;
    cluster_.rows_.changes = changes_;
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void Left(JobRow job) noexcept { steps_.push_back({.came = false, .job = job.id, .left = std::move(job)}); }
  void Came(JobId job) noexcept { steps_.push_back({.came = true, .job = job, .left = {}}); }
  // `before`: what it held until then.
  void Resized(JobRow before) noexcept {
    steps_.push_back({.resized = true, .job = before.id, .left = std::move(before)});
  }
  void Keep() noexcept { kept_ = true; }

 private:
  struct Step {
    bool came = false, resized = false;
    JobId job = 0;
    JobRow left;  // of one that left, with what it holds; of one that was resized what it held
  };

  void TakeBack(Step& step) noexcept {
    if (step.resized) {
      cluster_.SwapHeld(cluster_.rows_.RowOfJob(step.job), step.left);
      cluster_.rows_.LetGo(step.left);
    } else if (step.came) {
      cluster_.rows_.LetGo(cluster_.TakeJob(cluster_.rows_.RowOfJob(step.job)));
    } else {
      cluster_.PutJob(std::move(step.left));  // all it needs was there before it left
    }
  }

  Cluster& cluster_;
  const Changes& plan_;
  uint64_t changes_;
  absl::InlinedVector<Step, 2> steps_;  // 2 = of a plan of one job
  bool kept_ = false;
};

// A resident that a plan gives more of something.
struct Cluster::Growth {
  uint32_t job_row = 0;
  bool cpu = false, mem = false;
};

namespace {

enum JobChange : uint64_t { kJobIn = 5, kJobOut = 6, kJobResized = 8 };

std::string JobText(const JobSpec& job) { return "job " + IdAndName(job.id, job.name); }

absl::Status Taken(const JobSpec& job) { return AlreadyExists("%s: is in this cluster already", JobText(job)); }

// A task that came to a node, for the node's version.
uint64_t WhatCameIn(JobId id, const JobSpec& job, int32_t device, uint64_t tenant) {
  uint64_t what = CombineHash(CombineHash(kJobIn, id), tenant);
  for (const int64_t part : {int64_t{device}, job.cpu_milli, job.mem_mib, job.storage_mb_s})
    what = CombineHash(what, static_cast<uint64_t>(part));
  const uint64_t owner = OwnerMark(job);
  if (job.mps_chosen) what = CombineHash(what, 1);
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

absl::StatusOr<PlacedSlots> Cluster::ResolveSlots(const JobSpec& job, std::span<const Slot> slots) const {
  if (slots.size() != static_cast<size_t>(SlotCount(job))) {
    return InvalidArgument("%s: slots: expected %d (tasks x GPUs per task, or tasks without GPUs), found %d",
                           JobText(job), SlotCount(job), slots.size());
  }
  const auto per_task = static_cast<size_t>(SlotsPerTask(job));
  absl::InlinedVector<Slot, 8> sorted(slots.begin(), slots.end());
  std::ranges::sort(sorted, {}, ByTask);
  PlacedSlots placed;
  placed.reserve(sorted.size());
  absl::InlinedVector<uint32_t, 8> devices;
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
      HORUS_ASSIGN_OR_RETURN(const uint32_t device, FindDevice(rows_.nodes[node_row], slot.device));
      devices.push_back(device);
    }
    placed.push_back(SlotAt(node_row, slot.device, slot.task));
  }
  std::ranges::sort(devices);
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end())
    return InvalidArgument("%s: slots: expected each device once, found one twice", JobText(job));
  return placed;
}

absl::StatusOr<Reason> Cluster::BrokenRule(const JobSpec& job, std::span<const Slot> slots,
                                           const FitLimits& limits) const {
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(const PlacedSlots placed, ResolveSlots(job, slots));
  return FirstBrokenRule(job, placed, limits, /*runs=*/false);
}

Reason Cluster::FirstBrokenRule(const JobSpec& job, std::span<const PlacedSlot> slots, const FitLimits& limits,
                                bool runs) const {
  absl::InlinedVector<uint32_t, 8> of_tasks;  // node rows, ascending
  ForEachTask(slots, [&](uint32_t node_row) { of_tasks.push_back(node_row); });
  std::ranges::sort(of_tasks);
  const auto tasks_on = [&](uint32_t node_row) -> int64_t {
    const auto [begin, end] = std::equal_range(of_tasks.begin(), of_tasks.end(), node_row);
    return end - begin;
  };
  for (const PlacedSlot& slot : slots) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    const AdminState node_state = runs ? AdminState::kUp : node.state;
    if (const Reason reason = FitNode(job, *node.spec, node_state); reason != Reason::kNone) return reason;
    if (const Reason reason = FitHost(job, node.free, tasks_on(slot.node_row)); reason != Reason::kNone) return reason;
    if (KeepsAway(job, node.groups) || (job.spread_tasks && tasks_on(slot.node_row) > 1)) return Reason::kAntiAffinity;
    if (slot.device == kNoDevice) continue;
    const DeviceRow device = rows_.DeviceAt(node.first_device + static_cast<uint32_t>(slot.device));
    const bool can_either = (*node.spec).devices[static_cast<size_t>(slot.device)].mode == SharingMode::kTimeSliceOrMps;
    if (can_either && !device.tenants.empty() && RunsUnderMps(job) != (device.mode == SharingMode::kMps))
      return Reason::kSharingMode;
    const AdminState device_state = runs ? AdminState::kUp : device.state;
    if (const Reason reason = FitDeviceState(device_state); reason != Reason::kNone) return reason;
    const Demand* demand = FindDemand(job, device.type);
    if (demand == nullptr) return Reason::kGpuType;
    const TenantClass tenant = TenantAsked(job, *demand);
    if (const Reason reason = FitTenant(&tenant, device, limits); reason != Reason::kNone) return reason;
    if (!MayShare(job, rows_.residents[node.first_device + static_cast<uint32_t>(slot.device)])) return Reason::kOwner;
  }
  return Reason::kNone;
}

bool Cluster::MayShare(const JobSpec& job, const Residents& residents) const {
  const uint64_t mark = OwnerMark(job);
  return std::ranges::all_of(residents, [&](uint32_t job_row) {
    const JobRow& other = rows_.jobs[job_row];
    if (!MindsOwners(mark | rows_.requests.at(other.request).owner)) return true;
    return rows_.RequestOf(other).tenant == job.tenant;
  });
}

// Gives back what it holds unless that went elsewhere.
struct Cluster::Held {
  ClusterRows& rows;
  JobRow row;
  ~Held() { rows.LetGo(row); }
};

void Cluster::HoldClasses(const JobSpec& job, std::span<const PlacedSlot> slots, uint32_t request) {
  if (rows_.classes.size() < rows_.requests.limit()) {
    ReserveMore(rows_.classes, rows_.requests.limit() - rows_.classes.size());
    rows_.classes.resize(rows_.requests.limit());
  }
  ClassesByType& classes = rows_.classes[request];
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    const GpuTypeId type = rows_.TypeOf(rows_.DeviceOf(slot));
    if (rows_.ClassOn(request, type) != kNoTenant) continue;
    classes.reserve(classes.size() + 1);
    classes.emplace_back(type, rows_.states.HoldTenant(MakeTenantClass(job, DemandOn(job, type))));
  }
}

void Cluster::InsertJob(const JobSpec& given, std::span<const PlacedSlot> slots, bool adopted, bool over_committed,
                        uint32_t& alike) {
  std::optional<JobSpec> timed;
  if (given.sensitivity.get() != nullptr) SetHostTime(timed.emplace(given));
  const JobSpec& job = timed ? *timed : given;
  ReserveMore(rows_.jobs, 1);
  rows_.job_of.ReserveOne([this](uint32_t row) { return rows_.jobs[row].id; });
  if (GroupsOf(job) > 0)
    ForEachTask(slots, [&](uint32_t node_row) { ReserveMore(rows_.nodes[node_row].groups, GroupsOf(job)); });
  Held newcomer{rows_, {.id = job.id, .submit_us = job.submit_us}};
  JobRow& row = newcomer.row;
  row.adopted = adopted ? 1 : 0;
  row.over_committed = over_committed ? 1 : 0;
  row.slots.assign(slots.begin(), slots.end());
  if (alike == RequestTable::kNone) {
    alike = HoldRequest(job, rows_.requests);
  } else {
    rows_.requests.Hold(alike);
  }
  row.request = alike;
  if (!job.name.empty() || job.deadline_us != 0) {
    row.tag = rows_.tags.Put({job.name, job.deadline_us}) & JobRow::kNoTag;  // fits: fewer jobs than that may be
  }
  HoldClasses(job, slots, row.request);
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) {
      ReserveMore(rows_.nodes[slot.node_row].host_residents, slots.size());
    } else {
      Residents& residents = rows_.residents[rows_.DeviceOf(slot)];
      residents.reserve(residents.size() + size_t{1});
    }
  }
  PutJob(std::exchange(row, {}));
}

void Cluster::PutJob(JobRow job) noexcept {
  const JobSpec& request = rows_.RequestOf(job);
  if (request.sensitivity.get() != nullptr) ++rows_.sensitive;
  uint32_t job_row = rows_.first_free_job;
  if (job_row == kNoRow) {
    job_row = static_cast<uint32_t>(rows_.jobs.size());
    rows_.jobs.emplace_back();
  } else {
    rows_.first_free_job = static_cast<uint32_t>(rows_.jobs[job_row].id);
  }
  ForEachTask(job.slots, [&](uint32_t node_row) {
    rows_.nodes[node_row].free.Add(request, -1);
    ForEachGroup(request, [&](const GroupCount& one) { ChangeGroup(one, rows_.nodes[node_row].groups); });
  });
  for (PlacedSlot& slot : job.slots) {
    NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) {
      slot.position = static_cast<uint32_t>(node.host_residents.size());
      node.host_residents.push_back({job_row, slot.task});
      Touch(slot.node_row, WhatCameIn(job.id, request, slot.device, /*tenant=*/0));
      continue;
    }
    const uint32_t device = rows_.DeviceOf(slot);
    ++rows_.device_changes[device];
    if (rows_.residents[device].empty()) --node.idle_devices;
    rows_.residents[device].push_back(job_row);
    const uint32_t tenant = rows_.ClassOn(job.request, rows_.TypeOf(device));
    Touch(slot.node_row, WhatCameIn(job.id, request, slot.device, rows_.states.tenant(tenant).order));
  }
  rows_.job_of.Insert(job.id, job_row);
  rows_.jobs[job_row] = std::move(job);
}

JobRow Cluster::TakeJob(uint32_t job_row) noexcept {
  rows_.job_of.Erase(rows_.jobs[job_row].id, [this](uint32_t row) { return rows_.jobs[row].id; });
  JobRow job = std::exchange(rows_.jobs[job_row], {});
  rows_.jobs[job_row].id = std::exchange(rows_.first_free_job, job_row);
  const JobSpec& request = rows_.RequestOf(job);
  if (request.sensitivity.get() != nullptr) --rows_.sensitive;
  ForEachTask(job.slots, [&](uint32_t node_row) {
    rows_.nodes[node_row].free.Add(request);
    ForEachGroup(request, [&](const GroupCount& one) {
      ChangeGroup({one.group, -one.members, -one.avoiders}, rows_.nodes[node_row].groups);
    });
  });
  for (const PlacedSlot& slot : job.slots) {
    NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) {  // the last one takes its position
      const HostResident last = node.host_residents.back();
      node.host_residents.pop_back();
      if (slot.position < node.host_residents.size()) {
        node.host_residents[slot.position] = last;
        JobRow& moved = last.job_row == job_row ? job : rows_.jobs[last.job_row];
        moved.slots[static_cast<size_t>(last.task)].position = slot.position;
      }
      Touch(slot.node_row, CombineHash(kJobOut, job.id));
      continue;
    }
    const uint32_t device = rows_.DeviceOf(slot);
    ++rows_.device_changes[device];
    Residents& residents = rows_.residents[device];
    residents.erase(std::ranges::find(residents, job_row));
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
      status = ResourceExhausted(
          "%s: node %d: expected residents that ask for at most %d milli-cores, MiB or MB/s more than it "
          "has, all tasks of this job counted, found more",
          JobText(job), node.spec->id, kMostOwed);
    } else if (node.groups.size() + GroupsOf(job) > kMaxGroupsPerNode) {
      status = ResourceExhausted("%s: node %d: expected residents of at most %d groups", JobText(job), node.spec->id,
                                 kMaxGroupsPerNode);
    }
  });
  return status;
}

absl::StatusOr<PlacedSlots> Cluster::ResolveAdopted(const JobSpec& job, std::span<const Slot> slots) const {
  if (HasJob(job.id)) return Taken(job);
  HORUS_ASSIGN_OR_RETURN(PlacedSlots placed, ResolveSlots(job, slots));
  for (const PlacedSlot& slot : placed) {
    const NodeRow& node = rows_.nodes[slot.node_row];
    if (slot.device == kNoDevice) break;  // then none of the slots has one
    if (rows_.residents[node.first_device + static_cast<uint32_t>(slot.device)].size() < kMaxResidentsPerDevice)
      continue;
    return ResourceExhausted("%s: node %d device %d: holds %d jobs, the most there can be", JobText(job), node.spec->id,
                             slot.device, kMaxResidentsPerDevice);
  }
  if (job_count() >= limits_.jobs)
    return ResourceExhausted("%s: a cluster holds at most %d jobs", JobText(job), limits_.jobs);
  HORUS_RETURN_IF_ERROR(CheckDebts(job, placed));
  return placed;
}

absl::StatusOr<AdoptResult> Cluster::Adopt(const JobSpec& job, std::span<const Slot> slots) {
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(const PlacedSlots placed, ResolveAdopted(job, slots));
  const Reason reason = FirstBrokenRule(job, placed, PhysicalLimits(), /*runs=*/true);
  const AdoptResult result{.over_committed = reason != Reason::kNone, .reason = reason};
  uint32_t alike = RequestTable::kNone;
  InsertJob(job, placed, /*adopted=*/true, result.over_committed, alike);
  return result;
}

absl::Status Cluster::Release(JobId job) {
  const uint32_t row = rows_.RowOfJob(job);
  if (row == kNoRow) return NotFound("job %d: not in this cluster", job);
  rows_.LetGo(TakeJob(row));
  return absl::OkStatus();
}

// Applies a plan to a cluster: all of its actions, or none.

// The job leaves or changes where it is now.
absl::Status Cluster::CheckSeen(const JobSpec& job, uint32_t row, std::span<const NodeId> seen) const {
  for (const PlacedSlot& slot : rows_.jobs[row].slots) {
    const NodeId node = rows_.nodes[slot.node_row].spec->id;
    if (std::binary_search(seen.begin(), seen.end(), node)) continue;
    return InvalidArgument("plan: %s: is on node %d, which is not among the nodes that the plan saw", JobText(job),
                           node);
  }
  return absl::OkStatus();
}

namespace {

bool Leaves(const Action& action) { return action.kind == ActionKind::kMigrate || action.kind == ActionKind::kPreempt; }
bool Comes(const Action& action) { return action.kind == ActionKind::kPlace || action.kind == ActionKind::kMigrate; }

}  // namespace

absl::Status Cluster::ApplyLeave(const Action& action, std::span<const NodeId> seen, Undo& undo) {
  const uint32_t row = rows_.RowOfJob(action.job->id);
  if (row == kNoRow) return InvalidArgument("plan: %s: leaves twice", JobText(*action.job));
  HORUS_RETURN_IF_ERROR(CheckSeen(*action.job, row, seen));
  undo.Left(TakeJob(row));
  return absl::OkStatus();
}

absl::Status Cluster::ApplyCome(const Action& action, std::span<const NodeId> seen, Undo& undo) {
  const JobSpec& job = *action.job;
  for (const Slot& slot : action.slots) {
    if (std::binary_search(seen.begin(), seen.end(), slot.node)) continue;
    return InvalidArgument("plan: %s: node %d is not among the nodes that the plan saw", JobText(job), slot.node);
  }
  if (HasJob(job.id)) return Taken(job);
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, catalogue_->size()));
  HORUS_ASSIGN_OR_RETURN(PlacedSlots placed, ResolveSlots(job, action.slots));
  if (job_count() >= limits_.jobs)
    return ResourceExhausted("%s: a cluster holds at most %d jobs", JobText(job), limits_.jobs);
  if (const Reason reason = FirstBrokenRule(job, placed, PhysicalLimits(), /*runs=*/false); reason != Reason::kNone) {
    return FailedPrecondition("%s: does not fit where the plan puts it: %s", JobText(job),
                              std::string(ReasonText(reason)));
  }
  uint32_t alike = RequestTable::kNone;
  InsertJob(job, placed, /*adopted=*/false, /*over_committed=*/false, alike);
  undo.Came(job.id);
  return absl::OkStatus();
}

absl::Status Cluster::CheckActions(const Changes& plan) const {
  if (plan.hypothetical) return FailedPrecondition("plan: answers a what-if, which cannot be applied");
  std::vector<JobId> resized;
  for (const Action& action : plan.actions) {
    if (action.job == nullptr) return InvalidArgument("plan: an action has no job");
    if (action.kind == ActionKind::kResize) resized.push_back(action.job->id);
    if (action.kind > ActionKind::kPreempt)
      return Unimplemented("plan: actions of kind %d are reserved", static_cast<int>(action.kind));
    if (action.kind == ActionKind::kPlace && HasJob(action.job->id)) return Taken(*action.job);
    if (!Comes(action) && !action.slots.empty()) {
      return InvalidArgument("plan: %s: expected no slots for a job that is preempted or resized, found %d",
                             JobText(*action.job), action.slots.size());
    }
  }
  std::ranges::sort(resized);
  const auto twice = std::adjacent_find(resized.begin(), resized.end());
  if (twice != resized.end()) return InvalidArgument("plan: job %d: is resized twice", *twice);
  return absl::OkStatus();
}

absl::Status Cluster::Apply(const Changes& plan) {
  HORUS_RETURN_IF_ERROR(CheckActions(plan));
  absl::InlinedVector<NodeId, 8> seen;
  for (const SeenNode& node : plan.seen) {
    const uint32_t* at = rows_.node_of.Find(node.node);
    if (at == nullptr)
      return MakeError(absl::StatusCode::kAborted, "node %d: was removed since the plan was made", node.node);
    const NodeRow& row = rows_.nodes[*at];
    if (row.version != node.version) {
      return MakeError(absl::StatusCode::kAborted, "node %s: has changed since the plan was made",
                       IdAndName(node.node, row.spec->name));
    }
    seen.push_back(node.node);
  }
  std::ranges::sort(seen);
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kPlace || HasJob(action.job->id)) continue;
    return NotFound("%s: not in this cluster", JobText(*action.job));
  }
  Undo undo(*this, plan);
  // Whoever leaves or moves goes first, so that jobs can change places.
  for (const Action& action : plan.actions) {
    if (Leaves(action)) HORUS_RETURN_IF_ERROR(ApplyLeave(action, seen, undo));
  }
  std::vector<Growth> grown;
  for (const Action& action : plan.actions) {
    if (action.kind == ActionKind::kResize) HORUS_RETURN_IF_ERROR(ApplyResize(action, seen, undo, grown));
  }
  for (const Action& action : plan.actions) {
    if (Comes(action)) HORUS_RETURN_IF_ERROR(ApplyCome(action, seen, undo));
  }
  HORUS_RETURN_IF_ERROR(CheckGrown(grown));
  undo.Keep();
  return absl::OkStatus();
}

// ---- Residents that hold more or less CPU and host memory from now on.

void Cluster::SwapHeld(uint32_t job_row, JobRow& other) noexcept {
  JobRow& row = rows_.jobs[job_row];
  const JobSpec& was = rows_.RequestOf(row);
  const JobSpec& is = rows_.RequestOf(other);
  uint64_t what = CombineHash(CombineHash(kJobResized, row.id), static_cast<uint64_t>(is.cpu_milli));
  what = CombineHash(what, static_cast<uint64_t>(is.mem_mib));
  ForEachTask(row.slots, [&](uint32_t node_row) {
    rows_.nodes[node_row].free.Add(was);
    rows_.nodes[node_row].free.Add(is, -1);
    Touch(node_row, what);
  });
  for (const PlacedSlot& slot : row.slots) {
    if (slot.device == kNoDevice) continue;
    const uint32_t device = rows_.DeviceOf(slot);
    const GpuTypeId type = rows_.TypeOf(device);
    if (rows_.ClassOn(row.request, type) != rows_.ClassOn(other.request, type)) ++rows_.device_changes[device];
  }
  std::swap(row.request, other.request);
}

absl::Status Cluster::ApplyResize(const Action& action, std::span<const NodeId> seen, Undo& undo,
                                  std::vector<Growth>& grown) {
  const JobSpec& job = *action.job;
  const uint32_t row = rows_.RowOfJob(job.id);
  if (row == kNoRow) return InvalidArgument("plan: %s: is resized and leaves", JobText(job));
  const JobSpec was = rows_.SpecOf(rows_.jobs[row]);
  HORUS_RETURN_IF_ERROR(ValidateRunning(job));
  if (job.cpu_milli == was.cpu_milli && job.mem_mib == was.mem_mib)
    return InvalidArgument("plan: %s: expected a resize to change something", JobText(job));
  JobSpec wanted = was;
  GrantHost(job.cpu_milli, job.mem_mib, wanted);
  if (wanted != job) {
    return InvalidArgument("plan: %s: expected a resize to change host resources alone, and to keep what was stated",
                           JobText(job));
  }
  HORUS_RETURN_IF_ERROR(CheckSeen(job, row, seen));
  if (job.cpu_milli > was.cpu_milli || job.mem_mib > was.mem_mib)
    grown.push_back({row, job.cpu_milli > was.cpu_milli, job.mem_mib > was.mem_mib});
  Held held{rows_, {.id = job.id}};
  held.row.request = HoldRequest(job, rows_.requests);
  HoldClasses(job, rows_.jobs[row].slots, held.row.request);
  SwapHeld(row, held.row);
  undo.Resized(std::exchange(held.row, {}));
  return absl::OkStatus();
}

absl::Status Cluster::CheckGrown(std::span<const Growth> grown) const {
  for (const Growth& one : grown) {
    const JobRow& row = rows_.jobs[one.job_row];
    for (const PlacedSlot& slot : row.slots) {
      const NodeRow& node = rows_.nodes[slot.node_row];
      const bool cpu = one.cpu && node.free.cpu_milli < 0;
      if (!cpu && !(one.mem && node.free.mem_mib < 0)) continue;
      return FailedPrecondition("%s: node %d has not what the plan adds: %s", JobText(rows_.SpecOf(row)), node.spec->id,
                                std::string(ReasonText(cpu ? Reason::kCpu : Reason::kHostMemory)));
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
