// SPDX-License-Identifier: Apache-2.0
// Attaches profiles to the pods, plans them, and asks what everybody suffers.
#include "bench/quality/allocation_sharing.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "bench/rows.h"
#include "interference/registry.h"
#include "interference/table_model.h"
#include "place/appraise.h"
#include "place/placer.h"
#include "place/policies/policies.h"

namespace horus::bench {
namespace {

absl::StatusOr<std::shared_ptr<const TableModel>> ModelOf(const PairSlowdowns& table, const Catalogue& catalogue) {
  std::vector<TableEntry> entries;
  for (uint16_t type = 0; type < catalogue.size(); ++type) {
    for (size_t i = 0; i < table.jobs.size(); ++i) {
      for (size_t j = 0; j < table.jobs.size(); ++j) {
        entries.push_back({GpuTypeId(type), SharingMode::kTimeSlice, i + 1, j + 1, table.slowdown[i][j]});
      }
    }
  }
  return TableModel::Create(entries, std::make_shared<UtilisationModel>(), /*noise=*/0);
}

absl::StatusOr<SharedOutcome> Outcomes(const Cluster& cluster, const Appraiser& appraiser, int64_t capacity) {
  SharedOutcome outcome;
  double used = 0, useful = 0, beyond = 0;
  std::vector<double> slowdowns;
  for (const JobId id : cluster.JobIds()) {
    HORUS_ASSIGN_OR_RETURN(const JobInfo job, cluster.Job(id));
    for (const Slot& slot : job.slots) {
      if (slot.device == kNoDevice) continue;
      HORUS_ASSIGN_OR_RETURN(const DeviceSlowdowns now, appraiser.Now(cluster, slot.node, slot.device));
      for (size_t i = 0; i < now.jobs.size(); ++i) {
        if (now.jobs[i] != id) continue;
        const auto slowdown = static_cast<double>(now.slowdowns[i].estimate);
        used += job.spec->gpu_milli;
        useful += job.spec->gpu_milli / slowdown;
        outcome.work += 1 / slowdown;
        if (job.spec->gpu_milli == 1000) continue;
        slowdowns.push_back(slowdown);
        beyond += IsBeyond(slowdown, kUsualBound) ? 1 : 0;
      }
    }
  }
  outcome.allocation = 100 * used / static_cast<double>(capacity);
  outcome.useful = 100 * useful / static_cast<double>(capacity);
  if (slowdowns.empty()) return outcome;
  outcome.slowdown_p50 = Quantile(slowdowns, 0.5);
  outcome.slowdown_p95 = Quantile(slowdowns, 0.95);
  outcome.above_pct = 100 * beyond / static_cast<double>(slowdowns.size());
  return outcome;
}

}  // namespace

absl::StatusOr<SharedOutcome> RunShared(const Experiment& experiment, const PairSlowdowns& table,
                                        std::string_view policy, double bound, uint64_t seed) {
  const std::vector<uint32_t> order = OpenbNodeOrder(experiment.nodes.size(), seed);
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, OpenbCluster(experiment.nodes, order, experiment.catalogue));
  std::vector<JobSpec> jobs;
  int64_t arrived = 0;
  for (const uint32_t pod : OpenbArrivals(experiment.pods, experiment.capacity, seed)) {
    if (arrived >= experiment.capacity) break;
    HORUS_ASSIGN_OR_RETURN(JobSpec job, OpenbJob(experiment.pods[pod], *experiment.catalogue));
    arrived += int64_t{experiment.pods[pod].gpus} * experiment.pods[pod].gpu_milli;
    job.id = jobs.size();
    job.submit_us = static_cast<int64_t>(jobs.size());
    for (TypeDemand& on : job.demands) on.demand.profile_id = 1 + Mix64(pod) % table.jobs.size();
    jobs.push_back(std::move(job));
  }
  HORUS_ASSIGN_OR_RETURN(const auto model, ModelOf(table, *experiment.catalogue));
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Policy> made,
                         MakePolicy(policy, {.seed = seed, .workload = experiment.workload}));
  HORUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Placer> placer,
      Placer::Create(model, std::move(made),
                     {.slowdown_bound = bound, .max_tenants = kMaxTenantsPerDevice, .mem_headroom_mib = 0}));
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer->MakePlan(cluster, jobs));
  HORUS_RETURN_IF_ERROR(cluster.Apply(plan));
  return Outcomes(cluster, Appraiser(model, {}, 1), experiment.capacity);
}

}  // namespace horus::bench
