// SPDX-License-Identifier: Apache-2.0
// horus/lab/train.h: interference models trained on a caller's columns.
#include "interference/train_pairs.h"

#include <memory>
#include <string>
#include <utility>

#include "capi/args.h"
#include "capi/demand_convert.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/sharing.h"
#include "capi/structs.h"
#include "horus/lab/train.h"
#include "interference/learned_model.h"
#include "interference/registry.h"
#include "lab/capi/train_options.h"

namespace horus::capi {
namespace {

absl::Status CheckColumns(const horus_pair_data& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.gpu_types, "gpu_types", c.device_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.families, "families", c.job_count));
  if (c.device_count > kMostPairDevices || c.job_count > kMostPairJobs || c.count > kMostPairRuns) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     "horus_pair_data: expected at most %d devices, %d jobs and %d runs, found %d, %d and %d",
                     kMostPairDevices, kMostPairJobs, kMostPairRuns, c.device_count, c.job_count, c.count);
  }
  // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
  HORUS_RETURN_IF_ERROR(RequireColumn(c.demands, "demands", c.device_count * c.job_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.devices, "devices", c.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.jobs_a, "jobs_a", c.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.jobs_b, "jobs_b", c.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.slowdown_a, "slowdown_a", c.count));
  return RequireColumn(c.slowdown_b, "slowdown_b", c.count);
}

absl::Status AddDevices(const horus_pair_data& c, const Catalogue& types, PairSet& set) {
  for (size_t d = 0; d < c.device_count; ++d) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_types[d], "gpu_types"));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, types.Find(name));
    const int32_t mode =
        c.sharing_modes == nullptr || c.sharing_modes[d] == 0 ? HORUS_SHARING_TIME_SLICE : c.sharing_modes[d];
    PairDevice device{.gpu = types.at(type).name};
    HORUS_ASSIGN_OR_RETURN(device.mode, SharingFromC(mode));
    set.devices.push_back(std::move(device));
  }
  return absl::OkStatus();
}

absl::StatusOr<PairJob> JobFromC(const horus_pair_data& c, size_t index, const Catalogue& types, const PairSet& set) {
  PairJob job{.name = Element("job", index)};
  HORUS_ASSIGN_OR_RETURN(job.family, ReadText(c.families[index], "families"));
  for (size_t d = 0; d < c.device_count; ++d) {
    // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
    HORUS_ASSIGN_OR_RETURN(const Demand demand, DemandFromC(c.demands[index * c.device_count + d]));
    if (d > 0 && demand.profile_id != job.profile_id) {
      // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
      return InvalidArgument("demands[%d]: profile_id: expected that of the job's other demands, %d, found %d",
                             index * c.device_count + d, job.profile_id, demand.profile_id);
    }
    job.profile_id = demand.profile_id;
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, types.Find(set.devices[d].gpu));
    job.points.push_back(TenantOf(demand, {.type = type, .mode = set.devices[d].mode}).point);
  }
  return job;
}

absl::StatusOr<PairSet> SetFromC(const horus_pair_data* given, const Catalogue& types) {
  HORUS_ASSIGN_OR_RETURN(const horus_pair_data c, ReadStruct(given));
  HORUS_RETURN_IF_ERROR(CheckColumns(c));
  PairSet set;
  HORUS_RETURN_IF_ERROR(AddDevices(c, types, set));
  for (size_t i = 0; i < c.job_count; ++i) {
    absl::StatusOr<PairJob> job = JobFromC(c, i, types, set);
    if (!job.ok()) return At(Element("job", i), job.status());
    set.jobs.push_back(*std::move(job));
  }
  for (size_t i = 0; i < c.count; ++i) {
    PairRun run{.device = c.devices[i],
                .job_a = c.jobs_a[i],
                .job_b = c.jobs_b[i],
                .slowdown_a = c.slowdown_a[i],
                .slowdown_b = c.slowdown_b[i],
                .where = Element("row", i)};
    if (c.campaigns != nullptr) {
      HORUS_ASSIGN_OR_RETURN(run.campaign, ReadOptionalText(c.campaigns[i], "campaigns"));
    }
    set.runs.push_back(std::move(run));
  }
  return set;
}

absl::StatusOr<PairTrainOptions> OptionsFromC(const horus_pair_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_pair_options c, ReadOptionalStruct(given));
  PairTrainOptions options;
  HORUS_RETURN_IF_ERROR(ReadTrainOptions(c, options.promise, options.fit.seed, options.fit.library_path));
  HORUS_ASSIGN_OR_RETURN(std::string model, ReadOptionalText(c.model, "model"));
  options.kinds = {model.empty() ? std::string(kDefaultInterferenceModel) : std::move(model)};
  return options;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_interference_fit(const horus_catalogue* catalogue, const horus_pair_data* data,
                                    const horus_pair_options* options, horus_progress progress, void* user,
                                    horus_interference** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    auto types = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const horus::PairTrainOptions train, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(const horus::PairSet set, SetFromC(data, *types));
    horus::PairProgress tell;
    if (progress != nullptr) tell = [progress, user](double done) { return progress(user, done) == 0; };
    HORUS_ASSIGN_OR_RETURN(const horus::Bundle bundle, horus::TrainInterference(set, train, tell));
    HORUS_ASSIGN_OR_RETURN(auto model, horus::LearnedModel::Create(bundle, train.kinds[0], *types));
    HORUS_ASSIGN_OR_RETURN(std::string bytes, horus::WriteBundle(bundle));
    *out = new horus_interference{std::move(model), std::move(types), std::move(bytes)};
    return absl::OkStatus();
  });
}
