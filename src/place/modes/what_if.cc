// SPDX-License-Identifier: Apache-2.0
// Supposed changes booked on the planner's ledger, which the next plan takes back.
#include "place/modes/what_if.h"

#include <deque>

#include "place/engine.h"
#include "place/work.h"

namespace horus {
namespace {

class Supposing {
 public:
  Supposing(Engine& engine, const Cluster& cluster, WorkMeter& meter)
      : engine_(engine), cluster_(cluster), meter_(meter) {}

  // "changes[2]: job 17: ..." where it is wrong.
  absl::Status Suppose(size_t index, const SupposedChange& change) {
    const std::string where = Formatted("changes[%d]", index);
    const JobSpec* released = nullptr;
    switch (change.kind) {
      case ChangeKind::kRelease:
        return Release(where, change.job, &released);
      case ChangeKind::kMigrate:
        HORUS_RETURN_IF_ERROR(Release(where, change.job, &released));
        return Place(where, *released, change.slots);
      case ChangeKind::kPlace:
        for (const absl::Status& status :
             {ValidateRunning(change.spec), CheckTypes(change.spec, cluster_.catalogue().size())}) {
          if (!status.ok()) return InvalidArgument("%s: %s", where, std::string(status.message()));
        }
        return Place(where, change.spec, change.slots);
      case ChangeKind::kNodeState:
      case ChangeKind::kDeviceState:
        break;
      default:
        return InvalidArgument("%s: kind: expected 0 to 4, found %d", where, static_cast<int>(change.kind));
    }
    if (AdminStateName(change.state) == "unknown") {
      return InvalidArgument("%s: state: expected 0 (up), 1 (drained) or 2 (down), found %d", where,
                             static_cast<int>(change.state));
    }
    HORUS_ASSIGN_OR_RETURN(const uint32_t row, NodeRowOf(where, change.node));
    if (change.kind == ChangeKind::kNodeState) {
      engine_.ledger().SetNodeState(row, change.state);
      return absl::OkStatus();
    }
    const auto count = static_cast<int64_t>(engine_.ledger().spec(row).devices.size());
    if (change.device < 0 || change.device >= count)
      return NotFound("%s: node %d: has %d devices, found index %d", where, change.node, count, change.device);
    engine_.ledger().SetDeviceState(row, change.device, change.state);
    return absl::OkStatus();
  }

  [[nodiscard]] const IdMap<bool>& gone() const { return gone_; }
  // ALREADY_EXISTS where a job to decide was placed by a change.
  [[nodiscard]] absl::Status CheckNew(std::span<const JobSpec> jobs) const {
    for (const JobSpec& job : jobs) {
      if (!placed_.contains(job.id)) continue;
      return AlreadyExists("job %s: a change places it already", IdAndName(job.id, job.name));
    }
    return absl::OkStatus();
  }

 private:
  struct Supposed {
    const JobSpec* job = nullptr;
    PlacedSlots slots;
  };

  absl::Status Release(const std::string& where, JobId job, const JobSpec** released) {
    if (!IsThere(job)) return NotFound("%s: job %d: not in this cluster", where, job);
    if (const Supposed* supposed = placed_.Find(job)) {
      *released = supposed->job;
      engine_.ledger().Remove(*supposed->job, supposed->slots);
      placed_.Erase(job);
      return absl::OkStatus();
    }
    const JobRow& row = cluster_.rows().jobs[cluster_.rows().RowOfJob(job)];
    released_.push_back(cluster_.rows().SpecOf(row));
    *released = &released_.back();
    engine_.ledger().Remove(**released, row.slots);
    gone_.Insert(job, true);
    return absl::OkStatus();
  }

  absl::Status Place(const std::string& where, const JobSpec& job, std::span<const Slot> slots) {
    if (IsThere(job.id))
      return AlreadyExists("%s: job %s: is in this cluster already", where, IdAndName(job.id, job.name));
    HORUS_ASSIGN_OR_RETURN(PlacedSlots placed, At(where, cluster_.ResolveSlots(job, slots)));
    for (const PlacedSlot& slot : placed) {
      if (slot.device != kNoDevice &&
          engine_.ledger().state(engine_.ledger().device_of(slot)).tenants.size() >= kMaxResidentsPerDevice) {
        return ResourceExhausted("%s: a device holds at most %d jobs", where, kMaxResidentsPerDevice);
      }
    }
    engine_.ledger().Place(job, placed);
    meter_.Know(job);
    placed_.Insert(job.id, {&job, std::move(placed)});
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> NodeRowOf(const std::string& where, NodeId node) const {
    const uint32_t* row = cluster_.rows().node_of.Find(node);
    if (row != nullptr) return *row;
    return NotFound("%s: node %d: not in this cluster", where, node);
  }

  [[nodiscard]] bool IsThere(JobId job) const {
    return placed_.contains(job) || (cluster_.HasJob(job) && !gone_.contains(job));
  }

  Engine& engine_;
  const Cluster& cluster_;
  WorkMeter& meter_;
  IdMap<bool> gone_;              // residents that left
  std::deque<JobSpec> released_;  // their descriptions
  IdMap<Supposed> placed_;
};

}  // namespace

absl::StatusOr<Plan> WhatIf(Placer& placer, const Cluster& cluster, std::span<const SupposedChange> changes,
                            std::span<const JobSpec> jobs, bool work, const ProgressFn& progress) {
  Engine& engine = placer.engine();
  HORUS_RETURN_IF_ERROR(engine.Start(cluster));
  WorkMeter meter(cluster, engine.scorer());
  Plan plan;
  plan.has_work = work;
  if (work) HORUS_SET_OR_RETURN(plan.work_before, meter.OfAll(engine.ledger()));
  Supposing supposing(engine, cluster, meter);
  for (size_t i = 0; i < changes.size(); ++i) HORUS_RETURN_IF_ERROR(supposing.Suppose(i, changes[i]));
  HORUS_RETURN_IF_ERROR(supposing.CheckNew(jobs));
  HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine.Order(cluster, jobs, &supposing.gone()));
  for (const JobSpec& job : jobs) meter.Know(job);
  HORUS_RETURN_IF_ERROR(engine.PlanJobs(jobs, order, progress, plan));
  if (work) HORUS_SET_OR_RETURN(plan.work_after, meter.OfAll(engine.ledger()));
  plan.actions.clear();  // of a cluster that is not
  plan.seen.clear();
  plan.hypothetical = true;
  return plan;
}

}  // namespace horus
