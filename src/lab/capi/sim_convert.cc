// SPDX-License-Identifier: Apache-2.0
// Reads columns of demands and speeds.
#include "lab/capi/sim_convert.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/units.h"
#include "capi/args.h"
#include "capi/convert.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

absl::Status AddRow(const Catalogue& catalogue, const horus_profile_demands& c, size_t row, DemandsByProfile& demands) {
  HORUS_ASSIGN_OR_RETURN(const std::string profile, ReadText(c.profiles[row], "profiles"));
  HORUS_RETURN_IF_ERROR(ValidateTraceName("profiles", profile));
  TypeDemand one;
  if (c.gpu_types != nullptr && c.gpu_types[row] != nullptr) {
    HORUS_ASSIGN_OR_RETURN(const std::string type, ReadText(c.gpu_types[row], "gpu_types"));
    HORUS_ASSIGN_OR_RETURN(one.type, catalogue.Find(type));
  }
  HORUS_ASSIGN_OR_RETURN(one.demand, DemandFromC(c.demands[row]));
  ProfileDemands& all = demands[profile];
  const auto at = std::lower_bound(all.begin(), all.end(), one,
                                   [](const TypeDemand& a, const TypeDemand& b) { return a.type < b.type; });
  const bool any = !all.empty() && (!one.type.valid() || !all.front().type.valid());
  if (any || (at != all.end() && at->type == one.type)) {
    return InvalidArgument("gpu_types: expected each type of profile '%s' once, or any alone, found another row for %s",
                           profile, any ? "any" : "the same");
  }
  all.insert(at, one);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> NamesFromC(const char* column, size_t count, const char* const* names) {
  HORUS_RETURN_IF_ERROR(RequireColumn(names, column, count));
  std::vector<std::string> all;
  std::set<std::string> known;
  for (size_t i = 0; i < count; ++i) {
    const std::string place = Element(column, i);
    HORUS_ASSIGN_OR_RETURN(std::string name, ReadText(names[i], place.c_str()));
    HORUS_RETURN_IF_ERROR(ValidateTraceName(place.c_str(), name));
    if (!known.insert(name).second)
      return InvalidArgument("%s: expected each name once, found '%s' twice", place, name);
    all.push_back(std::move(name));
  }
  return all;
}

absl::Status CheckSizes(const horus_speeds& c) {
  if (c.gpu_count == 0 || c.profile_count == 0) {
    return InvalidArgument("expected GPU types and profiles, found %d and %d", c.gpu_count, c.profile_count);
  }
  if (c.gpu_count > kMostWorkTypes || c.profile_count > kMostWorkProfiles || c.pair_count > kMostWorkPairs) {
    return ResourceExhausted("expected at most %d GPU types, %d profiles and %d pairs, found %d, %d and %d",
                             kMostWorkTypes, kMostWorkProfiles, kMostWorkPairs, c.gpu_count, c.profile_count,
                             c.pair_count);
  }
  if (c.reference >= c.gpu_count) {
    return InvalidArgument("reference: expected less than %d, found %d", c.gpu_count, c.reference);
  }
  // Bounded: CheckSizes: at most kMostWorkTypes times kMostWorkProfiles.
  HORUS_RETURN_IF_ERROR(RequireColumn(c.alone, "alone", c.gpu_count * c.profile_count));
  return RequireColumns(c.pair_count, {{c.pair_gpus, "pair_gpus"},
                                       {c.pairs_a, "pairs_a"},
                                       {c.pairs_b, "pairs_b"},
                                       {c.speeds_a, "speeds_a"},
                                       {c.speeds_b, "speeds_b"}});
}

// Numbers and pairs, by the rules of the work rate; profiles that run nowhere have no work.
absl::Status CheckNumbers(const SpeedTable& table) {
  WorkProblem problem{.gpus = std::vector<double>(table.gpus.size(), 1),
                      .mix = std::vector<double>(table.profiles.size(), 0),
                      .alone = table.alone,
                      .pairs = table.pairs};
  for (size_t i = 0; i < table.alone.size(); ++i) {
    if (!(table.alone[i] == 0)) problem.mix[i % table.profiles.size()] = 1;  // NaN too, which is then named
  }
  if (std::ranges::count(problem.mix, 0) == std::ptrdiff_t(problem.mix.size())) {
    return InvalidArgument("alone: expected some speed above 0, found none");
  }
  return CheckWorkProblem(problem);
}

absl::StatusOr<Speeds> Convert(const horus_speeds& c, bool with_names) {
  HORUS_RETURN_IF_ERROR(CheckSizes(c));
  Speeds speeds{.table = {}, .reference = c.reference};
  SpeedTable& table = speeds.table;
  table.gpus.resize(c.gpu_count);
  table.profiles.resize(c.profile_count);
  if (with_names) {
    HORUS_ASSIGN_OR_RETURN(table.gpus, NamesFromC("gpu_types", c.gpu_count, c.gpu_types));
    HORUS_ASSIGN_OR_RETURN(table.profiles, NamesFromC("profiles", c.profile_count, c.profiles));
  }
  // Bounded: CheckSizes: at most kMostWorkTypes times kMostWorkProfiles.
  table.alone.assign(c.alone, c.alone + c.gpu_count * c.profile_count);
  table.pairs.reserve(c.pair_count);
  for (size_t i = 0; i < c.pair_count; ++i) {
    table.pairs.push_back({c.pair_gpus[i], c.pairs_a[i], c.pairs_b[i], c.speeds_a[i], c.speeds_b[i],
                           c.slowdowns == nullptr ? 0 : c.slowdowns[i]});
  }
  HORUS_RETURN_IF_ERROR(CheckNumbers(table));
  return speeds;
}

}  // namespace

absl::StatusOr<DemandsByProfile> ProfileDemandsFromC(const Catalogue& catalogue, const char* name,
                                                     const horus_profile_demands* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_profile_demands c, ReadStruct(given));
  absl::Status status = RequireColumn(c.profiles, "profiles", c.count);
  if (status.ok()) status = RequireColumn(c.demands, "demands", c.count);
  DemandsByProfile demands;
  for (size_t row = 0; status.ok() && row < c.count; ++row) {
    status = At(Element("row", row), AddRow(catalogue, c, row, demands));
  }
  if (!status.ok()) return At(name, status);
  return demands;
}

std::vector<ProfileDemands> DemandsFor(const Trace& trace, const DemandsByProfile& demands,
                                       std::span<const GpuTypeId> types) {
  std::vector<ProfileDemands> all;
  for (const std::string& profile : trace.profiles) {
    const auto at = demands.find(profile);
    ProfileDemands& one = all.emplace_back();
    if (at == demands.end()) continue;
    one = at->second;
    if (one.front().type.valid() || types.empty()) continue;
    const Demand anywhere = one.front().demand;
    one.clear();
    for (const GpuTypeId type : types) one.push_back({type, anywhere});
  }
  return all;
}

absl::StatusOr<SensitivitiesByName> SensitivitiesFromC(const horus_profile_sensitivities* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_profile_sensitivities c, ReadStruct(given));
  HORUS_RETURN_IF_ERROR(RequireColumns(
      c.count, {{c.profiles, "sensitivities: profiles"}, {c.sensitivities, "sensitivities: sensitivities"}}));
  SensitivitiesByName all;
  for (size_t row = 0; row < c.count; ++row) {
    const std::string place = "sensitivities: " + Element("row", row);
    HORUS_ASSIGN_OR_RETURN(const std::string profile, At(place, ReadText(c.profiles[row], "profiles")));
    HORUS_ASSIGN_OR_RETURN(SharedSensitivity one, At(place, SensitivityFromC(c.sensitivities[row])));
    if (one.get() == nullptr) return InvalidArgument("%s: sensitivities: expected a matrix, found NULL", place);
    if (all.emplace(profile, std::move(one)).second) continue;
    return InvalidArgument("%s: profiles: expected each once, found '%s' again", place, profile);
  }
  return all;
}

std::vector<bool> ProfilesOnGpus(const Trace& trace) {
  std::vector<bool> used(trace.profiles.size());
  for (const TraceJob& job : trace.jobs) {
    if (job.gpus_per_task > 0 && job.profile != kNotStated) used[job.profile] = true;
  }
  return used;
}

absl::StatusOr<Speeds> SpeedsFromC(const horus_speeds* given, bool with_names) {
  HORUS_ASSIGN_OR_RETURN(const horus_speeds c, ReadStruct(given));
  return At("speeds", Convert(c, with_names));
}

namespace {

// ---- Field by field from horus_sim_options.

constexpr char kDefaultDiscipline[] = "fifo";

static_assert(Same(HORUS_SIM_WEIGHTS_QUEUE, SimWeights::kQueue) &&
              Same(HORUS_SIM_WEIGHTS_SHORTEST, SimWeights::kShortest) &&
              Same(HORUS_SIM_WEIGHTS_PRICES, SimWeights::kPrices) && Same(HORUS_SIM_WEIGHTS_ALIKE, SimWeights::kAlike));

static_assert(Same(HORUS_SIM_LEARNS_NOTHING, Learns::kNothing) && Same(HORUS_SIM_LEARNS_FAILURES, Learns::kFailures) &&
              Same(HORUS_SIM_LEARNS_PAIRS, Learns::kPairs) && Same(HORUS_SIM_LEARNS_CORRECTS, Learns::kCorrects));

absl::Status CheckFlags(const horus_sim_options& c) {
  HORUS_RETURN_IF_ERROR(CheckFlag("hide_run_times", c.hide_run_times));
  HORUS_RETURN_IF_ERROR(CheckFlag("preempt", c.preempt));
  HORUS_RETURN_IF_ERROR(CheckFlag("one_by_one", c.one_by_one));
  HORUS_RETURN_IF_ERROR(CheckFlag("profile_each_job", c.profile_each_job));
  HORUS_RETURN_IF_ERROR(
      CheckConstant("learns", "HORUS_SIM_LEARNS_*", HORUS_SIM_LEARNS_NOTHING, HORUS_SIM_LEARNS_CORRECTS, c.learns));
  return CheckConstant("weights", "HORUS_SIM_WEIGHTS_*", HORUS_SIM_WEIGHTS_QUEUE, HORUS_SIM_WEIGHTS_ALIKE, c.weights);
}

absl::StatusOr<std::vector<NodeOutage>> OutagesFromC(const horus_sim_options& c) {
  if (c.outage_count > kMostOutages) {
    return ResourceExhausted("outage_count: expected at most %d, found %d", kMostOutages, c.outage_count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumns(c.outage_count, {{c.outage_nodes, "outage_nodes"},
                                                        {c.outage_from_us, "outage_from_us"},
                                                        {c.outage_until_us, "outage_until_us"}}));
  std::vector<NodeOutage> outages;
  for (size_t i = 0; i < c.outage_count; ++i) {
    outages.push_back({c.outage_nodes[i], c.outage_from_us[i], c.outage_until_us[i]});
  }
  return outages;
}

absl::StatusOr<RebalanceOptions> RebalanceOf(const horus_rebalance_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_rebalance_options c, ReadOptionalStruct(given));
  if (c.job_ids != nullptr || c.job_count != 0) {
    return InvalidArgument("rebalance: job_ids: expected NULL, found %d ids", c.job_count);
  }
  return RebalanceFromC(c);
}

// What is made of other structs.
absl::Status AddParts(const std::shared_ptr<const Catalogue>& catalogue, const horus_sim_options& c, SimSetup& setup) {
  SimOptions& options = setup.options;
  HORUS_ASSIGN_OR_RETURN(setup.discipline, ReadOptionalText(c.discipline, "discipline"));
  if (setup.discipline.empty()) setup.discipline = kDefaultDiscipline;
  HORUS_ASSIGN_OR_RETURN(setup.queue, QueueOptionsFromC(c.queue));
  HORUS_ASSIGN_OR_RETURN(options.outages, OutagesFromC(c));
  HORUS_ASSIGN_OR_RETURN(options.rebalance, RebalanceOf(c.rebalance));
  if (c.profiling_label != nullptr) {
    HORUS_ASSIGN_OR_RETURN(options.profiling_label, ReadText(c.profiling_label, "profiling_label"));
  }
  if (c.measured != nullptr) {
    HORUS_ASSIGN_OR_RETURN(setup.measured, ProfileDemandsFromC(*catalogue, "measured", c.measured));
  }
  if (c.sensitivities != nullptr) {
    HORUS_ASSIGN_OR_RETURN(setup.sensitivities, SensitivitiesFromC(c.sensitivities));
  }
  if (c.workload == nullptr) return absl::OkStatus();
  std::shared_ptr<const Catalogue> named;
  HORUS_ASSIGN_OR_RETURN(options.workload, WorkloadFromC(c.workload, named));
  if (SameTypes(named, catalogue)) return absl::OkStatus();
  return InvalidArgument("workload: expected one for the GPU types of the cluster, found one for others");
}

}  // namespace

absl::StatusOr<SimSetup> SimSetupFromC(const std::shared_ptr<const Catalogue>& catalogue,
                                       const horus_sim_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_sim_options c, ReadOptionalStruct(given));
  HORUS_RETURN_IF_ERROR(CheckFlags(c));
  SimSetup setup;
  SimOptions& options = setup.options;
  options.horizon_us = c.horizon_us;
  options.look_ahead = c.look_ahead;
  options.round_us = c.round_us;
  options.know_run_times = c.hide_run_times == 0;
  options.preempt = c.preempt == 1;
  options.restart_us = c.restart_us;
  options.checkpoint_us = c.checkpoint_us;
  options.latency_us = c.latency_us;
  options.one_by_one = c.one_by_one == 1;
  options.weights = static_cast<SimWeights>(c.weights);
  options.rebalance_us = c.rebalance_us;
  options.observe_us = c.observe_us;
  setup.learns = static_cast<Learns>(c.learns);
  if (setup.learns >= Learns::kPairs && options.observe_us == 0) options.observe_us = kLearnFromUs;
  options.profiling_us = c.profiling_us;
  options.profile_each_job = c.profile_each_job == 1;
  HORUS_RETURN_IF_ERROR(AddParts(catalogue, c, setup));
  return setup;
}

std::vector<GpuTypeId> TypesOf(const Cluster& cluster) {
  std::set<GpuTypeId> types;
  for (const NodeId node : cluster.NodeIds()) {
    const NodeInfo info = *cluster.Node(node);
    for (const DeviceSpec& device : info.spec.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

absl::StatusOr<std::unique_ptr<Queue>> QueueFor(const SimSetup& setup, const Cluster& cluster) {
  QueueOptions options = setup.queue;
  QueueResources& capacity = options.capacity;
  if (capacity.gpu_milli == 0 && capacity.cpu_milli == 0 && capacity.mem_mib == 0) {
    const ClusterTotals totals = cluster.Totals();
    // Bounded: a cluster has at most kMaxDevices.
    capacity = {static_cast<int64_t>(totals.devices) * kMilliPerGpu, totals.cpu_milli, totals.mem_mib};
  }
  return MakeQueue(setup.discipline, options);
}

}  // namespace horus::capi
