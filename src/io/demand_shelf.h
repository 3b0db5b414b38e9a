// SPDX-License-Identifier: Apache-2.0
// DemandShelf: requests of files turned into JobSpecs with demands, those of the models that they name.
//
// Enters:  requests, a catalogue and a predictor.   Leaves: jobs, or errors that name file and place.
// Cost:    a model and run that several jobs share is analysed once.   Thread class: one thread at a time.
#pragma once

#include <functional>
#include <map>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "io/cluster_file.h"
#include "predict/demand_cache.h"
#include "predict/predictor.h"

namespace horus {

// Turns requests into jobs with demands.
class DemandShelf {
 public:
  DemandShelf(std::shared_ptr<const Catalogue> catalogue, std::shared_ptr<const Predictor> predictor)
      : catalogue_(std::move(catalogue)), predictor_(std::move(predictor)) {
    for (const GpuType& type : catalogue_->types()) types_.push_back(&type);
  }

  // `present`: the types that a request without gpu_types may use.
  [[nodiscard]] absl::StatusOr<JobSpec> Complete(const JobRequest& request, std::span<const GpuTypeId> present);

  // Demands by GpuTypeId for one model and run.
  [[nodiscard]] absl::StatusOr<std::vector<Demand>> Demands(const ModelRun& model);

  // Of a completed job that is a service; null of others.
  [[nodiscard]] const Service* FindService(JobId job, GpuTypeId type) const;

 private:
  struct Run {
    std::shared_ptr<const Graph> graph;
    RunSpec spec;
  };
  [[nodiscard]] absl::StatusOr<Run> RunOf(const ModelRun& model);
  [[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> ModelDemands(const JobRequest& request,
                                                                     std::span<const GpuTypeId> types);

  // Demands, and rates that are not stated (samples a second), of each way to run the job's model.
  [[nodiscard]] absl::Status CompleteWays(const JobRequest& request, std::span<const GpuTypeId> types, JobSpec& job);
  std::shared_ptr<const Catalogue> catalogue_;
  std::shared_ptr<const Predictor> predictor_;
  std::vector<const GpuType*> types_;
  struct Read {
    ConfigOptions config;
    std::shared_ptr<const Graph> graph;
  };
  std::map<std::string, std::vector<Read>> graphs_;  // by OnePathOf
  static constexpr size_t kSlots = size_t{1} << 16;  // some 1,600 runs on all types of the catalogue, 10 MB; chosen
  DemandCache cache_{kSlots};
  struct Served {
    ModelRun model;
    std::vector<GpuTypeId> types;
    std::vector<Service> on;  // those
  };
  std::vector<Served> services_;
  std::map<JobId, size_t> service_of_;  // position
  size_t completed_ = 0;                // demands of jobs
};

// Takes in the jobs of the file that run already.
[[nodiscard]] absl::Status AdoptResidents(const ClusterFile& file, std::span<const GpuTypeId> present,
                                          DemandShelf& shelf, Cluster& cluster);

// The requests as jobs for the cluster, none of which may have the id of a resident. `tell` is called before each.
[[nodiscard]] absl::StatusOr<std::vector<JobSpec>> CompleteJobs(
    std::span<const JobRequest> requests, const Cluster& cluster, std::span<const GpuTypeId> present,
    DemandShelf& shelf, const std::function<void(size_t done, size_t total)>& tell = nullptr);

}  // namespace horus
