// SPDX-License-Identifier: Apache-2.0
// What calls that plan or simulate share: subsets, the caller's progress function, options of policies and queues,
// columns of jobs and slots.
#include "capi/planning.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/units.h"
#include "capi/args.h"
#include "capi/convert.h"
#include "capi/structs.h"

namespace horus::capi {

// ---- Reading and writing of columns.

absl::StatusOr<int32_t> DeviceIndex(uint32_t device) {
  if (device <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) return static_cast<int32_t>(device);
  return NotFound("device: expected an index within the node, found %d", device);
}

absl::StatusOr<Slots> SlotsFromC(const SlotColumns& columns) {
  HORUS_RETURN_IF_ERROR(RequireColumns(columns.count, {{columns.node_ids, "node_ids"}, {columns.devices, "devices"}}));
  if (columns.count > static_cast<size_t>(kMaxGpusPerJob)) {
    return InvalidArgument("slot_count: expected at most %d, found %d", kMaxGpusPerJob, columns.count);
  }
  Slots slots(columns.count);
  for (size_t i = 0; i < columns.count; ++i) {
    slots[i].node = columns.node_ids[i];
    slots[i].device = kNoDevice;
    if (columns.devices[i] != UINT32_MAX) {
      HORUS_ASSIGN_OR_RETURN(slots[i].device, At(Element("devices", i), DeviceIndex(columns.devices[i])));
    }
    const uint32_t task = columns.tasks == nullptr ? 0 : columns.tasks[i];
    if (task >= static_cast<uint32_t>(kMaxGpusPerJob)) {
      return InvalidArgument("%s: expected less than %d, found %d", Element("tasks", i), kMaxGpusPerJob, task);
    }
    slots[i].task = static_cast<int32_t>(task);
  }
  return slots;
}

absl::Status CheckRoom(size_t needed, const IdBuffer& buffer) {
  if (buffer.ids == nullptr) return absl::OkStatus();
  return RowsToWrite(needed, buffer.capacity, buffer.count).status();
}

void WriteIds(std::span<const uint64_t> ids, const IdBuffer& buffer) {
  if (buffer.ids != nullptr && buffer.capacity > 0) std::copy(ids.begin(), ids.end(), buffer.ids);
  if (buffer.count != nullptr) *buffer.count = ids.size();
}

absl::Status WriteSlots(std::span<const Slot> slots, const horus_slots* out, size_t* count) {
  HORUS_RETURN_IF_ERROR(Require({{count, "count"}}));
  HORUS_ASSIGN_OR_RETURN(const horus_slots columns, ReadStruct(out));
  return WriteRows(slots.size(), columns.capacity, count, [&](size_t i) {
    Put(columns.node_ids, i, slots[i].node);
    Put(columns.devices, i, slots[i].device);
    Put(columns.tasks, i, slots[i].task);
  });
}

absl::StatusOr<SeenResident> SeenResidentOf(const horus_cluster& cluster, JobId job, NodeId node, uint32_t device,
                                            bool with_others) {
  HORUS_ASSIGN_OR_RETURN(const auto lock, cluster.gate.Read());
  HORUS_ASSIGN_OR_RETURN(const int32_t index, DeviceIndex(device));
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo info, cluster.value.Device(node, index));
  SeenResident seen{.gpu_type = cluster.value.catalogue().at(info.spec.type).name,
                    .device = {info.spec.type, info.spec.mode, info.spec.compute_share},
                    .job = {},
                    .others = {}};
  bool found = false;
  for (const Resident& resident : info.residents) {
    if (resident.job != job && !with_others) continue;
    HORUS_ASSIGN_OR_RETURN(const JobInfo there, cluster.value.Job(resident.job));
    const Demand demand = AsRun(*there.spec, DemandOn(*there.spec, info.spec.type));
    if (demand.profile_id == 0) {
      return InvalidArgument("job %s: expected a profile_id in its demand on %s, by which it is learned, found 0",
                             IdAndName(resident.job, there.spec->name), seen.gpu_type);
    }
    if (resident.job != job) {
      seen.others.push_back(demand);
      continue;
    }
    seen.job = demand;
    found = true;
  }
  if (found) return seen;
  return NotFound("job_id: expected a job on device %d of node %d, found %d", device, node, job);
}

namespace {

// ---- Workloads of policies.

absl::StatusOr<std::vector<TaskClass>> TasksFromC(const Catalogue& catalogue, const horus_workload& c) {
  if (c.task_count > Workload::kMaxClasses) {
    return InvalidArgument("task_count: expected at most %d, found %d", Workload::kMaxClasses, c.task_count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumns(c.task_count, {{c.gpus, "gpus"}, {c.shares, "shares"}}));
  std::vector<TaskClass> tasks(c.task_count);
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskClass& task = tasks[i];
    task.cpu_milli = c.cpu_milli == nullptr ? 0 : c.cpu_milli[i];
    task.gpus = c.gpus[i];
    if (task.gpus > 0) task.gpu_milli = c.gpu_milli == nullptr ? kMilliPerGpu : c.gpu_milli[i];
    task.share = c.shares[i];
    if (c.gpu_types == nullptr || c.gpu_types[i] == nullptr) continue;
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_types[i], Element("gpu_types", i).c_str()));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
    task.types = {type};
  }
  return tasks;
}

absl::StatusOr<std::shared_ptr<const Workload>> Convert(const horus_workload& c,
                                                        std::shared_ptr<const Catalogue>& named) {
  const std::shared_ptr<const Catalogue> catalogue = CatalogueOf(c.catalogue);
  if ((c.task_count == 0) == (c.job_count == 0)) {
    return InvalidArgument("expected either task_count or job_count above 0, found %d and %d", c.task_count,
                           c.job_count);
  }
  std::vector<TaskClass> tasks;
  if (c.job_count > 0) {
    HORUS_ASSIGN_OR_RETURN(const auto jobs, JobsFromC(*catalogue, c.job_count, c.jobs, Workload::kMaxJobs));
    for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(ValidateRunning(job));
    tasks = TasksOf(jobs);
  } else {
    HORUS_ASSIGN_OR_RETURN(tasks, TasksFromC(*catalogue, c));
  }
  for (const TaskClass& task : tasks) {
    if (!task.types.empty()) named = catalogue;
  }
  return Workload::Create(std::move(tasks));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Workload>> WorkloadFromC(const horus_workload* given,
                                                              std::shared_ptr<const Catalogue>& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const horus_workload workload, ReadStruct(given));
  return At("workload", Convert(workload, catalogue));
}

}  // namespace horus::capi
