// SPDX-License-Identifier: Apache-2.0
// What several commands read: GPU files, model bundles, graphs; and jobs turned into JobSpecs with demands.
//
// Enters:  paths and requests.           Leaves: values, or errors that name file and place.
// Units:   as in the rooms.
// Cost:    a model and run that several jobs share is analysed once.   Thread class: one thread at a time.
#ifndef HORUS_CLI_INPUTS_H_
#define HORUS_CLI_INPUTS_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "graph/graph.h"
#include "io/job_request.h"
#include "predict/predictor.h"

namespace horus::cli {

// The built-in catalogue and after it the types of `files`.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> LoadCatalogue(std::span<const std::string> files);

inline constexpr size_t kMaxBundleBytes = size_t{1} << 30;

// The built-in predictor for an empty path, else that of the bundle.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Predictor>> LoadPredictor(const std::string& bundle);

// Turns requests into jobs with demands.
class DemandShelf {
 public:
  DemandShelf(std::shared_ptr<const Catalogue> catalogue, std::shared_ptr<const Predictor> predictor)
      : catalogue_(std::move(catalogue)), predictor_(std::move(predictor)) {}

  // `present`: the types that a request without gpu_types may use.
  [[nodiscard]] absl::StatusOr<JobSpec> Complete(const JobRequest& request, std::span<const GpuTypeId> present);

  // Demands by GpuTypeId for one model and run.
  [[nodiscard]] absl::StatusOr<const std::vector<Demand>*> Demands(const ModelRun& model);

 private:
  // Demands, and rates that are not stated (samples a second), of each way to run the job's model.
  [[nodiscard]] absl::Status CompleteWays(const JobRequest& request, std::span<const GpuTypeId> types, JobSpec& job);
  [[nodiscard]] static absl::StatusOr<JobSpec> Checked(const JobRequest& request, JobSpec job);
  std::shared_ptr<const Catalogue> catalogue_;
  std::shared_ptr<const Predictor> predictor_;
  std::map<std::string, std::shared_ptr<const Graph>> graphs_;  // by path
  std::map<std::string, std::vector<Demand>> demands_;          // by path and run
};

}  // namespace horus::cli

#endif  // HORUS_CLI_INPUTS_H_
