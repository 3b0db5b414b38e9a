// SPDX-License-Identifier: Apache-2.0
// Predicts what a place does to everybody on its devices.
#include "place/appraise.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "place/communication.h"
#include "place/work.h"

namespace horus {

absl::Status Appraiser::OfDevice(const Cluster& cluster, const JobSpec& job, const NodeRow& node, int32_t device,
                                 double& slowest, Appraisal& appraisal) const {
  const ClusterRows& rows = cluster.rows();
  const DeviceRow state = rows.DeviceAt(node.first_device + static_cast<uint32_t>(device));
  const Demand& demand = DemandOn(job, state.type);
  const TenantClass newcomer = MakeTenantClass(job, demand);
  std::vector<const Demand*> demands;
  std::vector<Promise> promises;
  for (const uint32_t id : state.tenants) {
    demands.push_back(&rows.states.tenant(id).demand);
    promises.push_back(rows.states.tenant(id).promise);
  }
  const size_t residents = demands.size();
  std::vector<Slowdown> before(residents);
  std::vector<Slowdown> after(residents + 1);
  if (residents > 0) HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, before));
  demands.push_back(&demand);
  promises.push_back(newcomer.promise);
  HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, after));
  if (appraisal.reason == Reason::kNone) {
    appraisal.reason = newcomer.late.p99_us > 0 ? Reason::kSlowdownOwn : FitSlowdowns(promises, before, after, limits_);
  }
  for (size_t i = 0; i <= residents; ++i) {
    const double now = SlowdownFor(promises[i], after[i], limits_);
    const bool worse = i == residents || now > SlowdownFor(promises[i], before[i], limits_);
    appraisal.beyond_bound += worse && IsBeyond(now, BoundOf(promises[i], limits_)) ? 1 : 0;
  }
  const Slowdown own = after.back();
  appraisal.own = {std::max(appraisal.own.estimate, own.estimate), std::max(appraisal.own.upper, own.upper)};
  slowest = std::min(slowest, SpeedAlone(job, state) / (static_cast<double>(own.estimate) + appraisal.communication));
  for (size_t i = 0; i < residents; ++i) {
    appraisal.work += 1 / static_cast<double>(after[i].estimate) - 1 / static_cast<double>(before[i].estimate);
  }
  appraisal.tenants += static_cast<uint32_t>(residents + 1);
  appraisal.used_devices += residents > 0 ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<Appraisal> Appraiser::Of(const Cluster& cluster, const JobSpec& job, std::span<const Slot> slots) const {
  const ClusterRows& rows = cluster.rows();
  Appraisal appraisal;
  HORUS_ASSIGN_OR_RETURN(appraisal.reason, cluster.BrokenRule(job, slots, limits_));
  if (IsCpuOnly(job)) return appraisal;
  if (slots.size() > 1) {
    std::vector<GangSlot> gang;
    for (const Slot& slot : slots) gang.push_back({rows.nodes[*rows.node_of.Find(slot.node)].spec.get(), slot.device});
    const Demand& demand = DemandOn(job, gang.front().node->devices[static_cast<size_t>(gang.front().device)].type);
    appraisal.communication = CommunicationShare(
        demand, GangAllReduceUs(static_cast<double>(demand.gradient_mib), gang, rack_oversubscription_));
  }
  double slowest = std::numeric_limits<double>::infinity();
  for (const Slot& slot : slots) {
    const NodeRow& node = rows.nodes[*rows.node_of.Find(slot.node)];
    HORUS_RETURN_IF_ERROR(OfDevice(cluster, job, node, slot.device, slowest, appraisal));
  }
  appraisal.work += static_cast<double>(slots.size()) * slowest;  // the others wait
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
    now.jobs.push_back(rows.JobAt(resident));
    demands.push_back(&rows.states.tenant(rows.TenantAt(resident)).demand);
  }
  now.slowdowns.resize(demands.size());
  if (!demands.empty()) {
    HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(rows.states.state(rows.device_state[at])), demands, now.slowdowns));
  }
  return now;
}

}  // namespace horus
