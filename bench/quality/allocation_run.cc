// SPDX-License-Identifier: Apache-2.0
// Runs a policy through the placer, and measures what it allocated.
#include "bench/quality/allocation_run.h"

#include <cmath>
#include <ctime>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "bench/quality/allocation_curve.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/policies/policies.h"

namespace horus::bench {
namespace {

constexpr GoldenRun kGolden[] = {
    {"default", "dotprod", 10'891, 8'074'840, 5'435'280, 3005, 811'992'837},
    {"default", "gpu-clustering", 10'891, 8'074'840, 5'519'080, 2895, 249'995'631},
    {"default", "gpu-packing", 10'891, 8'074'840, 5'558'590, 2845, 355'527'393},
    {"default", "best-fit", 10'891, 8'074'840, 5'702'450, 2689, 449'842'033},
    {"default", "fgd", 10'891, 8'074'840, 5'874'730, 2496, 48'567'300},
    {"multigpu20", "dotprod", 9686, 8'074'770, 5'424'500, 2105, 902'356'216},
    {"multigpu20", "gpu-clustering", 9686, 8'074'770, 5'508'300, 1995, 654'677'598},
    {"multigpu20", "gpu-packing", 9686, 8'074'770, 5'547'810, 1945, 763'774'779},
    {"multigpu20", "best-fit", 9686, 8'074'770, 5'691'670, 1789, 219'749'403},
    {"multigpu20", "fgd", 9686, 8'074'770, 5'797'110, 1665, 263'931'471},
    {"gpuspec33", "dotprod", 10'891, 8'074'840, 5'447'650, 3058, 567'111'354},
    {"gpuspec33", "gpu-clustering", 10'891, 8'074'840, 5'557'840, 2876, 814'389'756},
    {"gpuspec33", "gpu-packing", 10'891, 8'074'840, 5'668'270, 2727, 748'233'086},
    {"gpuspec33", "best-fit", 10'891, 8'074'840, 5'757'780, 2701, 814'038'296},
    {"gpuspec33", "fgd", 10'891, 8'074'840, 5'854'210, 2437, 484'190'622},
};

}  // namespace

absl::StatusOr<Experiment> MakeExperiment(std::vector<OpenbNode> nodes, std::vector<OpenbPod> pods) {
  Experiment experiment{.nodes = std::move(nodes), .pods = std::move(pods), .catalogue = {}, .workload = {}};
  experiment.capacity = OpenbCapacity(experiment.nodes);
  HORUS_ASSIGN_OR_RETURN(experiment.catalogue, OpenbCatalogue(experiment.nodes, experiment.pods));
  HORUS_ASSIGN_OR_RETURN(std::vector<TaskClass> typical, OpenbTypicalTasks(experiment.pods, *experiment.catalogue));
  HORUS_ASSIGN_OR_RETURN(experiment.workload, Workload::Create(std::move(typical)));
  return experiment;
}

absl::StatusOr<Experiment> LoadExperiment(const std::string& node_file, const std::string& pod_file) {
  HORUS_ASSIGN_OR_RETURN(const std::string node_bytes, ReadFile(node_file, kMaxOpenbBytes));
  HORUS_ASSIGN_OR_RETURN(const std::string pod_bytes, ReadFile(pod_file, kMaxOpenbBytes));
  HORUS_ASSIGN_OR_RETURN(std::vector<OpenbNode> nodes, ParseOpenbNodes(node_bytes, node_file));
  HORUS_ASSIGN_OR_RETURN(std::vector<OpenbPod> pods, ParseOpenbPods(pod_bytes, pod_file));
  return MakeExperiment(std::move(nodes), std::move(pods));
}

absl::StatusOr<Outcome> RunPolicy(const Experiment& experiment, std::string_view policy, std::optional<uint64_t> seed) {
  const std::vector<uint32_t> order = OpenbNodeOrder(experiment.nodes.size(), seed);
  const std::vector<uint32_t> arrivals = OpenbArrivals(experiment.pods, experiment.capacity, seed);
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, OpenbCluster(experiment.nodes, order, experiment.catalogue));
  std::vector<JobSpec> jobs;
  jobs.reserve(arrivals.size());
  for (size_t i = 0; i < arrivals.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(JobSpec job, OpenbJob(experiment.pods[arrivals[i]], *experiment.catalogue));
    job.id = i;
    job.submit_us = static_cast<int64_t>(i);
    jobs.push_back(std::move(job));
  }
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Policy> made,
                         MakePolicy(policy, {.seed = seed.value_or(0), .workload = experiment.workload}));
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Placer> placer,
                         Placer::Create(std::make_shared<UtilisationModel>(), std::move(made),
                                        {.max_tenants = kMaxTenantsPerDevice, .mem_headroom_mib = 0}));
  const std::clock_t start = std::clock();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer->MakePlan(cluster, jobs));
  HORUS_RETURN_IF_ERROR(cluster.Apply(plan));
  const std::clock_t end = std::clock();
  Curve curve(experiment.capacity);
  for (size_t i = 0; i < plan.decisions.size(); ++i) {
    const Decision& decision = plan.decisions[i];
    const bool placed = decision.verdict == Verdict::kPlace;
    curve.Offer(experiment.pods[arrivals[i]],
                placed ? std::optional<uint32_t>(order[decision.slots.front().node]) : std::nullopt);
  }
  Outcome outcome = curve.Finish();
  outcome.cpu_s = static_cast<double>(end - start) / CLOCKS_PER_SEC;
  return outcome;
}

std::span<const GoldenRun> GoldenRuns() { return kGolden; }

bool IsGolden(const GoldenRun& wanted, const Outcome& found) {
  return wanted.offers == found.offers && wanted.arrived == found.arrived && wanted.used == found.used &&
         wanted.dropped == found.dropped && wanted.hash == found.hash;
}

}  // namespace horus::bench
