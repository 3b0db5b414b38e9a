// SPDX-License-Identifier: Apache-2.0
// Writes placement documents.
#include "io/placement_json.h"

#include <array>
#include <charconv>

#include "base/units.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus {
namespace {

using Json = nlohmann::ordered_json;

// null where there is none.
Json GpuJson(int32_t device) { return device < 0 ? Json(nullptr) : Json(device); }

Json SlotJson(const PlacementReport& placement, const Slot& slot) {
  return {
      {"node_id", slot.node},
      {"node", placement.names.Node(slot.node)},
      {"gpu", GpuJson(slot.device)},
      {"gpu_type", slot.device == kNoDevice ? Json(nullptr) : Json(placement.names.GpuType(slot.node, slot.device))},
      {"task", slot.task}};
}

Json EffectJson(const PlacementReport& placement, const TenantEffect& effect) {
  return {{"job_id", effect.job},
          {"job", placement.names.Job(effect.job)},
          {"node_id", effect.node},
          {"node", placement.names.Node(effect.node)},
          {"gpu", effect.device},
          {"is_new", effect.is_new},
          {"slowdown_before", ShortDouble(effect.before.estimate)},
          {"slowdown_after", ShortDouble(effect.after.estimate)},
          {"slowdown_after_upper", ShortDouble(effect.after.upper)},
          {"calibrated_up_to", ShortDouble(effect.calibrated)}};
}

Json PlaceJson(const PlacementReport& placement, const PricedPlace& place) {
  Json terms = Json::array();
  for (const CostTerm& term : place.terms) terms.push_back({{"name", std::string(term.name)}, {"value", term.value}});
  return {{"node_id", place.node},
          {"node", placement.names.Node(place.node)},
          {"gpu", GpuJson(place.device)},
          {"cost", place.cost},
          {"terms", terms}};
}

Json MissJson(const PlacementReport& placement, const NearestMiss& miss) {
  if (miss.reason == Reason::kNone) return nullptr;
  return {{"reason", std::string(ReasonName(miss.reason))},
          {"node_id", miss.node},
          {"node", placement.names.Node(miss.node)},
          {"gpu", GpuJson(miss.device)},
          {"needed", miss.needed},
          {"available", miss.available},
          {"unit", std::string(miss.unit)},
          {"estimate", miss.estimate > 0 ? Json(miss.estimate) : Json(nullptr)}};
}

Json DemandJson(const Demand* demand) {
  if (demand == nullptr) return nullptr;
  return {{"gpu_util_pct", ShortDouble(demand->gpu_util_pct.estimate)},
          {"gpu_util_upper_pct", ShortDouble(demand->gpu_util_pct.upper)},
          {"mem_bw_util_pct", ShortDouble(demand->mem_bw_util_pct.estimate)},
          {"mem_bw_util_upper_pct", ShortDouble(demand->mem_bw_util_pct.upper)},
          {"memory_mib", demand->mem_mib.estimate},
          {"memory_upper_mib", HasMemoryBound(*demand) ? Json(demand->mem_mib.upper) : Json(nullptr)},
          {"step_time_us", demand->step_time_us.estimate},
          {"step_time_upper_us", demand->step_time_us.upper},
          {"given", (demand->flags & kDemandGiven) != 0}};
}

Json CoresJson(int64_t cpu_milli) { return static_cast<double>(cpu_milli) / kMilliPerCore; }

// Of residents that hold other host resources from now on, per task.
Json ResizesJson(const PlacementReport& placement) {
  Json resizes = Json::array();
  for (const Move& move : placement.plan.moves) {
    if (move.kind != ActionKind::kResize) continue;
    resizes.push_back({{"job_id", move.job},
                       {"job", placement.names.Job(move.job)},
                       {"cpu_cores_before", CoresJson(move.host_from.cpu_milli)},
                       {"cpu_cores", CoresJson(move.host_to.cpu_milli)},
                       {"memory_before_mib", move.host_from.mem_mib},
                       {"memory_mib", move.host_to.mem_mib},
                       {"speed_gain", move.gain}});
  }
  return resizes;
}

Json DecisionJson(const PlacementReport& placement, const Decision& decision) {
  const bool placed = decision.verdict == Verdict::kPlace;
  Json slots = Json::array();
  for (const Slot& slot : decision.slots) slots.push_back(SlotJson(placement, slot));
  Json effects = Json::array();
  for (const TenantEffect& effect : decision.effects) effects.push_back(EffectJson(placement, effect));
  Json refused = Json::object();
  for (size_t i = 0; i < decision.refused_devices.size(); ++i) {
    if (decision.refused_devices[i] == 0) continue;
    refused[std::string(ReasonName(static_cast<Reason>(i)))] = decision.refused_devices[i];
  }
  return {{"job_id", decision.job},
          {"job", placement.names.Job(decision.job)},
          {"verdict", std::string(VerdictName(decision.verdict))},
          {"reason", std::string(ReasonName(decision.reason))},
          {"explanation", DescribeDecision(decision)},
          {"slots", slots},
          {"spans_nodes", decision.spans_nodes},
          {"probe", decision.probe},
          {"trial", decision.trial},
          {"predicted_never", decision.predicted_never},
          {"alternative", decision.alternative < 0 ? Json(nullptr) : Json(decision.alternative)},
          {"cpu_cores", placed ? CoresJson(decision.cpu_milli) : Json(nullptr)},
          {"memory_mib", placed ? Json(decision.mem_mib) : Json(nullptr)},
          {"slowdown", placed ? Json(ShortDouble(decision.own.estimate)) : Json(nullptr)},
          {"slowdown_upper", placed ? Json(ShortDouble(decision.own.upper)) : Json(nullptr)},
          {"effects", effects},
          {"winner", placed ? PlaceJson(placement, decision.winner) : Json(nullptr)},
          {"runner_up", decision.has_runner_up ? PlaceJson(placement, decision.runner_up) : Json(nullptr)},
          {"refused_devices", refused},
          {"outside", placement.IsOutside(decision)},
          {"nearest_miss", placed ? Json(nullptr) : MissJson(placement, decision.miss)},
          {"demand", DemandJson(placement.DemandOf(decision))}};
}

Json TenantJson(const PlacementReport& placement, const TenantOutcome& tenant) {
  return {{"job_id", tenant.job},
          {"job", placement.names.Job(tenant.job)},
          {"node_id", tenant.node},
          {"node", placement.names.Node(tenant.node)},
          {"gpu", tenant.device},
          {"slowdown", ShortDouble(tenant.slowdown.estimate)},
          {"slowdown_upper", ShortDouble(tenant.slowdown.upper)},
          {"slowdown_bound", tenant.bound},
          {"slowdown_confidence", ShortDouble(static_cast<float>(tenant.confidence))},
          {"slowdown_at_confidence", ShortDouble(static_cast<float>(tenant.held))},
          {"above_bound", tenant.above_bound},
          {"others", tenant.others},
          {"measured", tenant.measured}};
}

Json TotalsJson(const PlacementReport& placement) {
  const ClusterTotals& after = placement.after;
  const PlacementReport::Basis sharing = placement.SlowdownBasis();
  return {{"jobs", placement.plan.decisions.size()},
          {"placed", placement.Count(Verdict::kPlace)},
          {"deferred", placement.Count(Verdict::kDefer)},
          {"rejected", placement.Count(Verdict::kReject)},
          {"nodes", after.nodes},
          {"gpus", after.devices},
          {"gpus_used_before", placement.before.devices_used},
          {"gpus_used", after.devices_used},
          {"gpu_util_before_pct", placement.before.gpu_util_pct},
          {"gpu_util_pct", after.gpu_util_pct},
          {"gpu_memory_mib", after.gpu_mem_mib},
          {"gpu_memory_used_mib", after.gpu_mem_used_mib},
          {"cpu_cores", CoresJson(after.cpu_milli)},
          {"cpu_cores_used", CoresJson(after.cpu_used_milli)},
          {"memory_mib", after.mem_mib},
          {"memory_used_mib", after.mem_used_mib},
          {"sharing_jobs", sharing.jobs},
          {"sharing_gpus", sharing.gpus},
          {"sharing_gpus_alone", sharing.alone_gpus},
          {"sharing_work", sharing.work},
          {"tenants", placement.TenantJobs()},
          {"tenants_above_bound", placement.TenantsAboveBound()}};
}

}  // namespace

double ShortDouble(float value) {
  std::array<char, 32> text = {};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double parsed = static_cast<double>(value);
  std::from_chars(text.data(), written.ptr, parsed);
  return parsed;
}

std::string PlacementJson(const PlacementReport& placement) {
  Json decisions = Json::array();
  for (const Decision& decision : placement.plan.decisions) decisions.push_back(DecisionJson(placement, decision));
  Json tenants = Json::array();
  for (const TenantOutcome& tenant : placement.tenants) tenants.push_back(TenantJson(placement, tenant));
  const Json document = {{"schema", "horus-placement"},
                         {"version", kPlacementJsonVersion},
                         {"policy", placement.settings.policy},
                         {"interference", placement.settings.interference},
                         {"slowdown_bound", placement.settings.slowdown_bound},
                         {"seed", placement.settings.seed},
                         {"decisions", decisions},
                         {"resizes", ResizesJson(placement)},
                         {"tenants", tenants},
                         {"totals", TotalsJson(placement)}};
  return JsonText(document);
}

}  // namespace horus
