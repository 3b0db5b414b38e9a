// SPDX-License-Identifier: Apache-2.0
// Field by field from horus_sim_options.
#include "lab/capi/sim_options.h"

#include <utility>
#include <vector>

#include "base/units.h"
#include "capi/args.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/policy_options.h"
#include "capi/queue_options.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

constexpr char kDefaultDiscipline[] = "fifo";

static_assert(HORUS_SIM_WEIGHTS_ALIKE == static_cast<int>(SimWeights::kAlike) &&
              HORUS_SIM_WEIGHTS_SHORTEST == static_cast<int>(SimWeights::kShortest) &&
              HORUS_SIM_WEIGHTS_PRICES == static_cast<int>(SimWeights::kPrices));

static_assert(HORUS_SIM_LEARNS_NOTHING == static_cast<int>(Learns::kNothing) &&
              HORUS_SIM_LEARNS_FAILURES == static_cast<int>(Learns::kFailures) &&
              HORUS_SIM_LEARNS_PAIRS == static_cast<int>(Learns::kPairs) &&
              HORUS_SIM_LEARNS_CORRECTS == static_cast<int>(Learns::kCorrects));

absl::Status CheckFlags(const horus_sim_options& c) {
  HORUS_RETURN_IF_ERROR(CheckFlag("hide_run_times", c.hide_run_times));
  HORUS_RETURN_IF_ERROR(CheckFlag("preempt", c.preempt));
  HORUS_RETURN_IF_ERROR(CheckFlag("best_of_window", c.best_of_window));
  HORUS_RETURN_IF_ERROR(CheckFlag("profile_each_job", c.profile_each_job));
  HORUS_RETURN_IF_ERROR(CheckFlag("weigh_waiting", c.weigh_waiting));
  if (c.learns < HORUS_SIM_LEARNS_NOTHING || c.learns > HORUS_SIM_LEARNS_CORRECTS) {
    return InvalidArgument("learns: expected HORUS_SIM_LEARNS_* (%d to %d), found %d", HORUS_SIM_LEARNS_NOTHING,
                           HORUS_SIM_LEARNS_CORRECTS, c.learns);
  }
  if (c.weights >= HORUS_SIM_WEIGHTS_ALIKE && c.weights <= HORUS_SIM_WEIGHTS_PRICES) return absl::OkStatus();
  return InvalidArgument("weights: expected HORUS_SIM_WEIGHTS_* (%d to %d), found %d", HORUS_SIM_WEIGHTS_ALIKE,
                         HORUS_SIM_WEIGHTS_PRICES, c.weights);
}

absl::StatusOr<std::vector<NodeOutage>> OutagesFromC(const horus_sim_options& c) {
  if (c.outage_count > kMostOutages) {
    return MakeError(absl::StatusCode::kResourceExhausted, "outage_count: expected at most %d, found %d", kMostOutages,
                     c.outage_count);
  }
  HORUS_RETURN_IF_ERROR(RequireColumn(c.outage_nodes, "outage_nodes", c.outage_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.outage_from_us, "outage_from_us", c.outage_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.outage_until_us, "outage_until_us", c.outage_count));
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
  HORUS_ASSIGN_OR_RETURN(options.lp_library, ReadOptionalText(c.lp_library_path, "lp_library_path"));
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
  options.best_of_window = c.best_of_window == 1;
  options.weigh_waiting = c.weigh_waiting == 1;
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
