// SPDX-License-Identifier: Apache-2.0
// Analyses the models that jobs name, and predicts; see demand_shelf.h.
#include "io/demand_shelf.h"

#include <algorithm>

#include "base/file.h"

namespace horus {

absl::StatusOr<DemandShelf::Run> DemandShelf::RunOf(const ModelRun& model) {
  if (model.path.empty()) return InvalidArgument("expected the path of an ONNX file, found none");
  ConfigOptions config = model.config;
  config.training = model.run.mode == RunMode::kTraining;
  Read* known = nullptr;
  for (Read& one : graphs_[OnePathOf(model.path)]) {
    if (one.config == config || !IsConfigPath(model.path)) known = &one;
  }
  if (known == nullptr) {
    HORUS_ASSIGN_OR_RETURN(auto graph, ReadModel(model.path, config));
    known = &graphs_[OnePathOf(model.path)].emplace_back(Read{config, std::move(graph)});
  }
  RunSpec run = model.run;
  if (!model.states_precision) run.precision = PrecisionOf(*known->graph);
  // As engines take models of float32.
  if (!model.states_precision && IsEngine(run.framework) && !IsHalf(run.precision)) run.precision = Precision::kFp16;
  return Run{known->graph, std::move(run)};
}

absl::StatusOr<std::vector<Demand>> DemandShelf::Demands(const ModelRun& model) {
  HORUS_ASSIGN_OR_RETURN(const Run run, RunOf(model));
  HORUS_ASSIGN_OR_RETURN(CachedDemands found, PredictCached(*predictor_, cache_, run.graph, run.spec, types_));
  return std::move(found.demands);
}

absl::StatusOr<std::vector<TypeDemand>> DemandShelf::ModelDemands(const JobRequest& request,
                                                                  std::span<const GpuTypeId> types) {
  std::vector<TypeDemand> demands;
  if (!request.model->service) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> all, Demands(*request.model));
    if (!request.ways.empty()) return demands;  // each has its own
    for (const GpuTypeId type : types) demands.push_back({type, all[type.value()]});
    return demands;
  }
  auto known = std::ranges::find_if(services_, [&](const Served& one) {
    return one.model == *request.model && std::ranges::equal(one.types, types);
  });
  if (known == services_.end()) {
    HORUS_ASSIGN_OR_RETURN(const Run run, RunOf(*request.model));
    std::vector<const GpuType*> gpus;
    for (const GpuTypeId type : types) gpus.push_back(types_[type.value()]);
    HORUS_ASSIGN_OR_RETURN(auto on, PredictServices(*predictor_, run.graph, run.spec, *request.model->service, gpus));
    known = services_.insert(services_.end(), {*request.model, {types.begin(), types.end()}, std::move(on)});
  }
  for (size_t i = 0; i < types.size(); ++i) demands.push_back({types[i], known->on[i].demand});
  service_of_[request.spec.id] = static_cast<size_t>(known - services_.begin());
  return demands;
}

const Service* DemandShelf::FindService(JobId job, GpuTypeId type) const {
  const auto found = service_of_.find(job);
  if (found == service_of_.end()) return nullptr;
  const Served& served = services_[found->second];
  const auto at = std::ranges::find(served.types, type);
  return at == served.types.end() ? nullptr : &served.on[static_cast<size_t>(at - served.types.begin())];
}

absl::StatusOr<JobSpec> DemandShelf::Complete(const JobRequest& request, std::span<const GpuTypeId> present) {
  JobSpec job = request.spec;
  if (request.model) {
    const std::span<const GpuTypeId> types = request.gpu_types.empty() ? present : request.gpu_types;
    absl::StatusOr<std::vector<TypeDemand>> demands = ModelDemands(request, types);
    if (!demands.ok()) {
      const std::string message(demands.status().message());
      // Readers of files name the path themselves.
      const std::string path = message.find(request.model->path) == std::string::npos ? request.model->path + ": " : "";
      return MakeError(demands.status().code(), "%s.model: %s%s", request.where, path, message);
    }
    job.demands = *std::move(demands);
    // A service that was told to take more than its load needs holds that.
    const int64_t told_mib = request.model->service ? std::exchange(job.gpu_mem_request_mib, 0) : 0;
    for (auto& [type, demand] : job.demands)
      demand.mem_mib = {std::max(demand.mem_mib.estimate, told_mib), std::max(demand.mem_mib.upper, told_mib)};
    HORUS_RETURN_IF_ERROR(CompleteWays(request, types, job));
  }
  if (job.demands.empty() && job.alternatives.empty() && !IsCpuOnly(job)) {
    return InvalidArgument("%s: expected at least one GPU in the cluster for a job that allows every type, found none",
                           request.where);
  }
  HORUS_RETURN_IF_ERROR(CountDemands(job, request.where, completed_));
  HORUS_RETURN_IF_ERROR(At(request.where, ValidateJob(job)));
  return job;
}

absl::Status DemandShelf::CompleteWays(const JobRequest& request, std::span<const GpuTypeId> types, JobSpec& job) {
  if (request.ways.empty()) return absl::OkStatus();
  ModelRun model = *request.model;
  for (size_t i = 0; i < request.ways.size(); ++i) {
    JobAlternative& way = job.alternatives[i];
    model.run.dims.batch = request.ways[i].batch;
    model.run.data_parallel = request.ways[i].data_parallel;
    HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> demands, Demands(model));
    int64_t fastest_us = 0;
    for (const GpuTypeId type : types) {
      const Demand& demand = demands[type.value()];
      const int64_t step_us = demand.step_time_us.estimate;
      if (step_us > 0 && (fastest_us == 0 || step_us < fastest_us)) fastest_us = step_us;
      way.demands.push_back({type, demand});
    }
    if (way.rate > 0 || fastest_us == 0) continue;
    const double samples = static_cast<double>(request.ways[i].batch) * way.tasks * way.gpus_per_task;
    way.rate = samples * kUsPerS / static_cast<double>(fastest_us);
  }
  return absl::OkStatus();
}

absl::Status AdoptResidents(const ClusterFile& file, std::span<const GpuTypeId> present, DemandShelf& shelf,
                            Cluster& cluster) {
  for (const FileResident& resident : file.residents) {
    HORUS_ASSIGN_OR_RETURN(const JobSpec job, shelf.Complete(resident.job, present));
    if (absl::Status status = cluster.Adopt(job, resident.slots).status(); !status.ok())
      return MakeError(status.code(), "%s: %s", resident.job.where, status.message());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobSpec>> CompleteJobs(std::span<const JobRequest> requests, const Cluster& cluster,
                                                  std::span<const GpuTypeId> present, DemandShelf& shelf,
                                                  const std::function<void(size_t done, size_t total)>& tell) {
  std::vector<JobSpec> jobs;
  for (const JobRequest& request : requests) {
    if (tell) tell(jobs.size(), requests.size());
    if (cluster.HasJob(request.spec.id)) {
      return InvalidArgument("%s.id: expected an id that no resident of the cluster has, found %d", request.where,
                             request.spec.id);
    }
    HORUS_ASSIGN_OR_RETURN(JobSpec job, shelf.Complete(request, present));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace horus
