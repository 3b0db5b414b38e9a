// SPDX-License-Identifier: Apache-2.0
// Predicts what a place does to everybody on its devices.
#include "place/appraise.h"

#include <algorithm>

#include "base/status.h"
#include "interference/slice.h"
#include "place/communication.h"

namespace horus {
namespace {

DeviceContext ContextOf(const DeviceRow& device) { return {device.type, device.mode, device.compute_share}; }

const Demand& DemandOn(const JobSpec& job, GpuTypeId type) {
  const Demand* demand = FindDemand(job, type);
  return demand != nullptr ? *demand : job.demands.front().demand;
}

// Alone on that device against the fastest type that the job lists.
double RelativeSpeed(const JobSpec& job, const Demand& demand, float compute_share) {
  int64_t fastest = 0;
  for (const TypeDemand& one : job.demands) {
    const int64_t step = one.demand.step_time_us.estimate;
    if (step > 0 && (fastest == 0 || step < fastest)) fastest = step;
  }
  const int64_t step = demand.step_time_us.estimate;
  const double speed = step > 0 ? static_cast<double>(fastest) / static_cast<double>(step) : 1;
  if (compute_share == 1) return speed;
  return speed * SliceSpeed(static_cast<double>(demand.gpu_util_pct.estimate),
                            static_cast<double>(demand.mem_bw_util_pct.estimate), static_cast<double>(compute_share));
}

void Keep(Reason found, Reason& first) {
  if (first == Reason::kNone) first = found;
}

}  // namespace

absl::Status Appraiser::OfDevice(const Cluster& cluster, const JobSpec& job, const NodeRow& node, int32_t device,
                                 Appraisal& appraisal) const {
  const ClusterRows& rows = cluster.rows();
  const DeviceRow& state = rows.states.state(rows.device_state[node.first_device + static_cast<uint32_t>(device)]);
  const Demand& demand = DemandOn(job, state.type);
  const TenantClass newcomer = MakeTenantClass(job, demand);
  Keep(FitDevice(FindDemand(job, state.type) == nullptr ? nullptr : &newcomer, state, limits_), appraisal.reason);
  std::vector<const Demand*> demands;
  std::vector<float> bounds;
  for (const uint32_t id : state.tenants) {
    demands.push_back(&rows.states.tenant(id).demand);
    bounds.push_back(rows.states.tenant(id).slowdown_bound);
  }
  const size_t residents = demands.size();
  std::vector<Slowdown> before(residents);
  std::vector<Slowdown> after(residents + 1);
  if (residents > 0) HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, before));
  demands.push_back(&demand);
  bounds.push_back(job.slowdown_bound);
  HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, after));
  Keep(FitSlowdowns(bounds, before, after, limits_), appraisal.reason);
  for (size_t i = 0; i <= residents; ++i) {
    const double bound = bounds[i] > 0 ? static_cast<double>(bounds[i]) : limits_.slowdown_bound;
    const bool worse = i == residents || after[i].upper > before[i].upper;
    appraisal.beyond_bound += worse && IsBeyond(static_cast<double>(after[i].upper), bound) ? 1 : 0;
  }
  const Slowdown own = after.back();
  appraisal.own = {std::max(appraisal.own.estimate, own.estimate), std::max(appraisal.own.upper, own.upper)};
  appraisal.work +=
      RelativeSpeed(job, demand, state.compute_share) / (static_cast<double>(own.estimate) + appraisal.communication);
  for (size_t i = 0; i < residents; ++i) {
    appraisal.work += 1 / static_cast<double>(after[i].estimate) - 1 / static_cast<double>(before[i].estimate);
  }
  appraisal.tenants += static_cast<uint32_t>(residents + 1);
  appraisal.used_devices += residents > 0 ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<Appraisal> Appraiser::Of(const Cluster& cluster, const JobSpec& job, std::span<const Slot> slots) const {
  const ClusterRows& rows = cluster.rows();
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  if (slots.size() != static_cast<size_t>(SlotCount(job))) {
    return InvalidArgument("job %s: expected %d slots, found %d", IdAndName(job.id, job.name), SlotCount(job),
                           slots.size());
  }
  std::vector<GangSlot> gang;
  Appraisal appraisal;
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint32_t* row = rows.node_of.Find(slots[i].node);
    if (row == nullptr) return MakeError(absl::StatusCode::kNotFound, "node %d: not in this cluster", slots[i].node);
    const NodeRow& node = rows.nodes[*row];
    const auto devices = static_cast<int32_t>(node.spec->devices.size());
    if (!IsCpuOnly(job) && (slots[i].device < 0 || slots[i].device >= devices)) {
      return MakeError(absl::StatusCode::kNotFound, "node %s: expected a device from 0 to %d, found %d",
                       IdAndName(node.spec->id, node.spec->name), devices - 1, slots[i].device);
    }
    gang.push_back({node.spec.get(), slots[i].device});
    if (i > 0 && slots[i - 1].node == slots[i].node) continue;
    const auto tasks =
        std::count_if(slots.begin(), slots.end(), [&](const Slot& one) { return one.node == slots[i].node; });
    Keep(FitNode(job, *node.spec, node.state), appraisal.reason);
    Keep(FitHost(job, node.free, tasks / SlotsPerTask(job)), appraisal.reason);
  }
  if (IsCpuOnly(job)) return appraisal;
  if (slots.size() > 1) {
    const Demand& demand = DemandOn(job, gang.front().node->devices[static_cast<size_t>(gang.front().device)].type);
    appraisal.communication = CommunicationShare(
        demand, GangAllReduceUs(static_cast<double>(demand.gradient_mib), gang, rack_oversubscription_));
  }
  for (const Slot& slot : slots) {
    const NodeRow& node = rows.nodes[*rows.node_of.Find(slot.node)];
    HORUS_RETURN_IF_ERROR(OfDevice(cluster, job, node, slot.device, appraisal));
  }
  return appraisal;
}

absl::StatusOr<DeviceSlowdowns> Appraiser::Now(const Cluster& cluster, NodeId id, int32_t device) const {
  const ClusterRows& rows = cluster.rows();
  const uint32_t* row = rows.node_of.Find(id);
  if (row == nullptr || device < 0 || static_cast<size_t>(device) >= rows.nodes[*row].spec->devices.size()) {
    return MakeError(absl::StatusCode::kNotFound, "node %d: device %d: not in this cluster", id, device);
  }
  const uint32_t at = rows.nodes[*row].first_device + static_cast<uint32_t>(device);
  DeviceSlowdowns now;
  std::vector<const Demand*> demands;
  for (const ResidentRow& resident : rows.residents[at]) {
    now.jobs.push_back(resident.job);
    demands.push_back(&rows.states.tenant(resident.tenant).demand);
  }
  now.slowdowns.resize(demands.size());
  if (!demands.empty()) {
    HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(rows.states.state(rows.device_state[at])), demands, now.slowdowns));
  }
  return now;
}

}  // namespace horus
