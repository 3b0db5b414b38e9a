// SPDX-License-Identifier: Apache-2.0
// Works out the state after a plan and who is slowed there.
#include "io/placement.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "base/vectors.h"
#include "interference/laws.h"
#include "io/json_text.h"
#include "place/appraise.h"
#include "place/job/own_bound.h"
#include "place/state/fit.h"
#include "place/work.h"

namespace horus {
namespace {

std::string NameOr(const SeededMap<uint64_t, std::string>& names, uint64_t id) {
  const auto found = names.find(id);
  return found == names.end() || found->second.empty() ? absl::StrCat("#", id) : found->second;
}

uint64_t DistinctJobs(const std::vector<TenantOutcome>& tenants, bool only_above) {
  std::vector<JobId> jobs;
  for (const TenantOutcome& tenant : tenants) {
    if (tenant.above_bound() || !only_above) jobs.push_back(tenant.job);
  }
  std::ranges::sort(jobs);
  return static_cast<uint64_t>(std::unique(jobs.begin(), jobs.end()) - jobs.begin());
}

absl::Status AppendTenants(const Cluster& cluster, const InterferenceModel& model, double default_bound, NodeId node,
                           int32_t index, PlacementReport& placement) {
  HORUS_ASSIGN_OR_RETURN(const DeviceInfo device, cluster.Device(node, index));
  placement.all_gpus.push_back(
      {node, index, std::max(device.node_state, device.state), device.spec.mem_mib, device.mem_used_upper_mib});
  if (device.residents.empty()) return absl::OkStatus();
  std::vector<std::shared_ptr<const JobSpec>> specs;
  std::vector<Demand> seen;
  seen.reserve(device.residents.size());
  std::vector<const Demand*> demands;
  for (const Resident& resident : device.residents) {
    HORUS_ASSIGN_OR_RETURN(JobInfo job, cluster.Job(resident.job));
    const Demand* demand = FindDemand(*job.spec, device.spec.type);
    // Adopted on a type that it lists no demand for: its first one stands in, as in the cluster's own sums.
    if (demand == nullptr) demand = &job.spec->demands.front().demand;
    demands.push_back(&seen.emplace_back(AsRun(*job.spec, *demand)));
    specs.push_back(std::move(job.spec));
  }
  const FitLimits limits{.slowdown_bound = default_bound, .upper_probability = model.upper_probability()};
  std::vector<Slowdown> slowdowns(demands.size());
  const DeviceContext context{device.spec.type, device.spec.mode, device.spec.compute_share};
  HORUS_RETURN_IF_ERROR(model.Predict(context, demands, slowdowns));
  const size_t n = specs.size();
  const std::vector<uint8_t> measured = model.Measured(context, demands);
  for (size_t i = 0; i < n; ++i) {
    TenantOutcome tenant{.job = specs[i]->id, .node = node, .device = index, .slowdown = slowdowns[i]};
    tenant.mem_mib = static_cast<int64_t>(demands[i]->mem_mib.estimate);
    tenant.util_pct = static_cast<double>(demands[i]->gpu_util_pct.estimate);
    tenant.cap_slowdown = CapStretch(*demands[i]);
    // SpeedAlone is that under the cap.
    const DeviceRow row{.type = device.spec.type, .compute_share = device.spec.compute_share};
    const double speed = SpeedAlone(*specs[i], row) * tenant.cap_slowdown;
    tenant.work_alone = speed * WorkAlone(*specs[i]);
    tenant.keeps_work = KeepsWork(*demands[i]);
    tenant.others = static_cast<uint32_t>(n - 1);
    // Bounded: pairs of the tenants of one device, at most kMaxResidentsPerDevice.
    tenant.measured = n > 1 && std::all_of(measured.begin() + static_cast<std::ptrdiff_t>(i * n),
                                           measured.begin() + static_cast<std::ptrdiff_t>((i + 1) * n),
                                           [](uint8_t one) { return one != 0; });
    const Promise promise{OwnBoundOf(*specs[i], *demands[i]).slowdown, specs[i]->slowdown_confidence};
    tenant.bound = BoundOf(promise, limits);
    tenant.confidence = promise.confidence > 0 ? static_cast<double>(promise.confidence) : limits.upper_probability;
    tenant.held = SlowdownFor(promise, tenant.slowdown, limits);
    auto& [kept, divided] = placement.works[tenant.job];
    (tenant.keeps_work ? kept : divided) += tenant.WorkAt(1);
    placement.tenants.push_back(tenant);
  }
  return absl::OkStatus();
}

// ---- Writes placement documents.

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

Json ServiceJson(const Service::Slowed& times) {
  return {{"slowdown", times.slowdown},
          {"first_token_us", times.first_token.estimate_us},
          {"first_token_upper_us", times.first_token.upper_us},
          {"token_us", times.token.estimate_us},
          {"token_upper_us", times.token.upper_us}};
}

Json DecisionJson(const PlacementReport& placement, const Decision& decision) {
  const bool placed = decision.verdict == Verdict::kPlace;
  const PlacementReport::Work work = placement.WorkOf(decision);
  Json refused = Json::object();
  for (size_t i = 0; i < decision.refused_devices.size(); ++i) {
    if (decision.refused_devices[i] == 0) continue;
    refused[std::string(ReasonName(static_cast<Reason>(i)))] = decision.refused_devices[i];
  }
  const auto arguments = placement.engine_arguments.find(decision.job);
  const auto times = placement.service_times.find(decision.job);
  return {
      {"job_id", decision.job},
      {"job", placement.names.Job(decision.job)},
      {"verdict", std::string(VerdictName(decision.verdict))},
      {"reason", std::string(ReasonName(decision.reason))},
      {"explanation", DescribeDecision(decision, placement.catalogue.get())},
      {"slots", JsonList(decision.slots, [&](const Slot& slot) { return SlotJson(placement, slot); })},
      {"spans_nodes", decision.spans_nodes},
      {"probe", decision.probe},
      {"trial", decision.trial},
      {"predicted_never", decision.predicted_never},
      {"alternative", decision.alternative < 0 ? Json(nullptr) : Json(decision.alternative)},
      {"cpu_cores", placed ? CoresJson(decision.cpu_milli) : Json(nullptr)},
      {"memory_mib", placed ? Json(decision.mem_mib) : Json(nullptr)},
      {"gpu_memory_request_mib", placed ? Json(decision.gpu_memory.request_mib) : Json(nullptr)},
      {"gpu_memory_limit_mib", placed && decision.gpu_memory.limit_mib < kUnboundedMemMib
                                   ? Json(decision.gpu_memory.limit_mib)
                                   : Json(nullptr)},
      {"sharing_mode",
       placed && !decision.cpu_only ? Json(std::string(SharingModeName(decision.mode))) : Json(nullptr)},
      {"sharing_mode_why", decision.mode_why == ModeReason::kGiven ? Json(nullptr) : Json(DescribeMode(decision))},
      {"sm_cap_slowdown", placed ? Json(ShortDouble(decision.sm_cap_slowdown)) : Json(nullptr)},
      {"sm_cap_pct", decision.sm_cap_pct > 0 ? Json(decision.sm_cap_pct) : Json(nullptr)},
      {"slowdown", placed ? Json(ShortDouble(decision.own.estimate)) : Json(nullptr)},
      {"slowdown_upper", placed ? Json(ShortDouble(decision.own.upper)) : Json(nullptr)},
      {"slowdown_in_plan", placed ? Json(ShortDouble(decision.in_plan.estimate)) : Json(nullptr)},
      {"slowdown_in_plan_upper", placed ? Json(ShortDouble(decision.in_plan.upper)) : Json(nullptr)},
      {"work_added", placed ? Json(work.added) : Json(nullptr)},
      {"work_lost", placed ? Json(work.lost) : Json(nullptr)},
      {"speed_alone", placed ? Json(ShortDouble(static_cast<float>(decision.relative_speed))) : Json(nullptr)},
      {"effects", JsonList(decision.effects, [&](const TenantEffect& one) { return EffectJson(placement, one); })},
      {"winner", placed ? PlaceJson(placement, decision.winner) : Json(nullptr)},
      {"runner_up", decision.has_runner_up ? PlaceJson(placement, decision.runner_up) : Json(nullptr)},
      {"refused_devices", refused},
      {"outside", placement.IsOutside(decision)},
      {"nearest_miss", placed ? Json(nullptr) : MissJson(placement, decision.miss)},
      {"demand", DemandJson(placement.DemandOf(decision))},
      {"service", times == placement.service_times.end() ? Json(nullptr) : ServiceJson(times->second)},
      {"engine_arguments", arguments == placement.engine_arguments.end() ? Json(nullptr) : Json(arguments->second)}};
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
          {"above_bound", tenant.above_bound()},
          {"others", tenant.others},
          {"measured", tenant.measured},
          {"memory_mib", tenant.mem_mib},
          {"gpu_util_pct", ShortDouble(static_cast<float>(tenant.util_pct))}};
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
          {"sharing_work_alone", sharing.alone_work},
          {"sharing_work", sharing.work},
          {"tenants", placement.TenantJobs()},
          {"tenants_above_bound", placement.TenantsAboveBound()}};
}

}  // namespace

PlacementNames::PlacementNames(const Cluster& cluster, std::span<const JobSpec> jobs)
    : catalogue_(cluster.shared_catalogue()) {
  for (const NodeId id : cluster.NodeIds()) {
    absl::StatusOr<NodeInfo> node = cluster.Node(id);
    if (!node.ok()) continue;
    nodes_[id] = node->spec.name;
    devices_[id] = std::move(node->spec.devices);
  }
  for (const JobId id : cluster.JobIds()) {
    if (const absl::StatusOr<JobInfo> job = cluster.Job(id); job.ok()) jobs_[id] = job->spec->name;
  }
  for (const JobSpec& job : jobs) jobs_[job.id] = job.name;
}

std::string PlacementNames::Node(NodeId node) const { return NameOr(nodes_, node); }
std::string PlacementNames::Job(JobId job) const { return NameOr(jobs_, job); }

std::string PlacementNames::GpuType(NodeId node, int32_t device) const {
  const auto found = devices_.find(node);
  if (found == devices_.end() || device < 0 || static_cast<size_t>(device) >= found->second.size()) return "unknown";
  const DeviceSpec& spec = found->second[static_cast<size_t>(device)];
  const horus::GpuType& type = catalogue_->at(spec.type);
  return spec.mode == SharingMode::kMig ? type.name + "/" + type.mig[static_cast<size_t>(spec.mig_profile)].name
                                        : type.name;
}

const JobSpec* PlacementReport::FindJob(JobId job) const { return FindSorted(jobs, job, &JobSpec::id); }

bool PlacementReport::IsOutside(const Decision& decision) const {
  const auto outside = [](const Demand& demand) { return (demand.flags & kDemandOutside) != 0; };
  if (const Demand* demand = DemandOf(decision)) return outside(*demand);
  const JobSpec* job = FindJob(decision.job);
  return job != nullptr &&
         std::ranges::any_of(job->demands, [&](const TypeDemand& one) { return outside(one.demand); });
}

uint64_t PlacementReport::Count(Verdict verdict) const {
  return static_cast<uint64_t>(
      std::ranges::count_if(plan.decisions, [&](const Decision& decision) { return decision.verdict == verdict; }));
}

bool TenantOutcome::above_bound() const { return IsBeyond(held, bound); }

uint64_t PlacementReport::TenantsAboveBound() const { return DistinctJobs(tenants, true); }
uint64_t PlacementReport::TenantJobs() const { return DistinctJobs(tenants, false); }

PlacementReport::Work PlacementReport::WorkOf(const Decision& decision) const {
  const auto work_at = [&](JobId job, const Slowdown& slowdown) {
    const auto at = works.find(job);
    return at == works.end() ? 0 : at->second.first + at->second.second / static_cast<double>(slowdown.estimate);
  };
  Work work{.added = work_at(decision.job, decision.own)};
  for (const TenantEffect& effect : NeighboursOf(decision))
    work.lost += work_at(effect.job, effect.before) - work_at(effect.job, effect.after);
  work.lost = std::max(work.lost, 0.0);
  return work;
}

PlacementReport::Basis PlacementReport::SlowdownBasis() const {
  Basis basis;
  std::map<JobId, float> slowest;  // of those who share
  for (const TenantOutcome& tenant : tenants) {
    if (tenant.others == 0) continue;
    float& worst = slowest[tenant.job];
    worst = std::max(worst, tenant.slowdown.estimate);
  }
  std::set<std::pair<NodeId, int32_t>> gpus;
  for (const TenantOutcome& tenant : tenants) {
    if (const auto shares = slowest.find(tenant.job); shares != slowest.end()) {
      gpus.emplace(tenant.node, tenant.device);
      basis.work += tenant.WorkAt(shares->second);
      basis.alone_work += tenant.work_alone;
      ++basis.alone_gpus;
    }
    basis.sharing += tenant.others > 0 ? 1 : 0;
    basis.measured += tenant.measured ? 1 : 0;
    basis.beside_several += tenant.others > 1 ? 1 : 0;
  }
  basis.jobs = slowest.size();
  basis.gpus = gpus.size();
  return basis;
}

absl::StatusOr<PlacementReport> MakePlacementReport(const Cluster& cluster, std::vector<JobSpec> jobs, Plan plan,
                                                    const InterferenceModel& model, PlacementSettings settings) {
  Cluster after = cluster;
  HORUS_RETURN_IF_ERROR(after.Apply(plan));
  PlacementReport placement;
  placement.settings = std::move(settings);
  placement.before = cluster.Totals();
  placement.after = after.Totals();
  placement.names = PlacementNames(after, jobs);
  placement.catalogue = cluster.shared_catalogue();
  std::ranges::sort(jobs, [](const JobSpec& a, const JobSpec& b) { return a.id < b.id; });
  placement.jobs = std::move(jobs);
  for (const NodeId id : after.NodeIds()) {
    HORUS_ASSIGN_OR_RETURN(const NodeInfo node, after.Node(id));
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      HORUS_RETURN_IF_ERROR(
          AppendTenants(after, model, placement.settings.slowdown_bound, id, static_cast<int32_t>(i), placement));
    }
  }
  for (const Decision& decision : plan.decisions) {
    if (decision.slots.empty()) continue;
    HORUS_ASSIGN_OR_RETURN(const JobInfo job, after.Job(decision.job));  // in the way that was chosen
    const Slot& first = decision.slots.front();
    if (first.device == kNoDevice) continue;
    HORUS_ASSIGN_OR_RETURN(const DeviceInfo device, after.Device(first.node, first.device));
    if (const Demand* demand = FindDemand(*job.spec, device.spec.type)) placement.first_demand[decision.job] = *demand;
  }
  placement.plan = std::move(plan);
  return placement;
}

double ShortDouble(float value) {
  std::array<char, 32> text = {};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double parsed = static_cast<double>(value);
  std::from_chars(text.data(), written.ptr, parsed);
  return parsed;
}

void AddStateJson(const PlacementReport& placement, Json& document) {
  Json& gpus = document["gpus"] = Json::array();
  for (const GpuOutcome& gpu : placement.all_gpus) {
    gpus.push_back({{"node_id", gpu.node},
                    {"node", placement.names.Node(gpu.node)},
                    {"gpu", gpu.device},
                    {"gpu_type", placement.names.GpuType(gpu.node, gpu.device)},
                    {"state", std::string(AdminStateName(gpu.state))},
                    {"memory_mib", gpu.mem_mib},
                    {"memory_reserved_mib", gpu.mem_reserved_mib}});
  }
  const auto tenant_json = [&](const TenantOutcome& tenant) { return TenantJson(placement, tenant); };
  document["tenants"] = JsonList(placement.tenants, tenant_json);
}

std::string PlacementJson(const PlacementReport& placement) {
  const auto decided = [&](const Decision& decision) { return DecisionJson(placement, decision); };
  Json document = {{"schema", "horus-placement"},
                   {"version", kPlacementJsonVersion},
                   {"policy", placement.settings.policy},
                   {"interference", placement.settings.interference},
                   {"slowdown_bound", placement.settings.slowdown_bound},
                   {"seed", placement.settings.seed},
                   {"decisions", JsonList(placement.plan.decisions, decided)},
                   {"resizes", ResizesJson(placement)}};
  AddStateJson(placement, document);
  document["totals"] = TotalsJson(placement);
  return JsonText(document);
}

}  // namespace horus
