// SPDX-License-Identifier: Apache-2.0
// horus/learn_pairs.h in every build: observed slowdowns, commits, and how right predictions were.
#include <string>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/convert.h"
#include "capi/error.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/structs.h"
#include "horus/learn_pairs.h"
#include "interference/corrected_model.h"

namespace horus::capi {
namespace {

absl::StatusOr<SeenResident> Stated(const horus_slowdown_observation& c, const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_type, "gpu_type"));
  SeenResident seen;
  HORUS_ASSIGN_OR_RETURN(seen.device.type, catalogue.Find(name));
  seen.gpu_type = catalogue.at(seen.device.type).name;
  if (c.compute_share != 0) seen.device.compute_share = static_cast<float>(c.compute_share);
  HORUS_ASSIGN_OR_RETURN(seen.device.mode, SharingOrTimeSlice(c.sharing_mode));
  if (c.co_tenant_count > kMostCoTenants) {
    return InvalidArgument("co_tenant_count: expected 1 to %d, found %d", kMostCoTenants, c.co_tenant_count);
  }
  HORUS_RETURN_IF_ERROR(Require({{c.job, "job"}}));
  HORUS_ASSIGN_OR_RETURN(seen.job, DemandFromC(c.job));
  HORUS_ASSIGN_OR_RETURN(seen.others, DemandsFromC(c.co_tenant_count, c.co_tenants));
  return seen;
}

absl::StatusOr<SeenResident> Resides(const horus_slowdown_observation& c) {
  HORUS_RETURN_IF_ERROR(Unset("gpu_type", c.gpu_type == nullptr));
  HORUS_RETURN_IF_ERROR(Unset("sharing_mode", c.sharing_mode == 0));
  HORUS_RETURN_IF_ERROR(Unset("compute_share", c.compute_share == 0));
  HORUS_RETURN_IF_ERROR(Unset("job", c.job == nullptr));
  HORUS_RETURN_IF_ERROR(Unset("co_tenants", c.co_tenant_count == 0));
  return SeenResidentOf(*c.cluster, c.job_id, c.node_id, c.device, /*with_others=*/true);
}

absl::Status AddSlowdown(const horus_slowdown_observation* given, const Catalogue& catalogue,
                         ObservedSlowdowns& slowdowns) {
  HORUS_ASSIGN_OR_RETURN(const horus_slowdown_observation c, ReadStruct(given));
  HORUS_ASSIGN_OR_RETURN(const SeenResident seen, c.cluster == nullptr ? Stated(c, catalogue) : Resides(c));
  std::vector<const Demand*> others;
  for (const Demand& other : seen.others) others.push_back(&other);
  return slowdowns.Add({.gpu = seen.gpu_type,
                        .mode = seen.device.mode,
                        .compute_share = seen.device.compute_share,
                        .victim = &seen.job,
                        .others = others,
                        .slowdown = c.slowdown,
                        .device_id = c.device_id,
                        .predicted = c.predicted,
                        .predicted_upper = c.predicted_upper});
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_interference_to_bytes(const horus_interference* model, size_t capacity, void* bytes, size_t* count,
                                         horus_error* error) {
  return Guard(error, {{model, "model"}}, [&]() -> absl::Status {
    if (dynamic_cast<const horus::CorrectedModel*>(model->value.get()) != nullptr) {
      return absl::UnimplementedError(
          "model: expected one that was trained or read from a bundle, found one that observations correct: keep their "
          "snapshot (horus_observations_snapshot) and the model that they were committed to, and commit again");
    }
    if (model->bundle.empty()) {
      return horus::Unimplemented(
          "model: expected one that was trained or read from a bundle, found %s: make it again "
          "from what it was made of",
          std::string(model->value->name()));
    }
    return WriteBytes(model->bundle, capacity, bytes, count);
  });
}

horus_status horus_observations_add_slowdown(horus_observations* observations, const horus_catalogue* catalogue,
                                             const horus_slowdown_observation* observation, horus_error* error) {
  return Guard(error, {{observations, "observations"}}, [&]() -> absl::Status {
    return AddSlowdown(observation, *CatalogueOf(catalogue), observations->slowdowns);
  });
}

horus_status horus_interference_commit(const horus_interference* model, const horus_catalogue* catalogue,
                                       const horus_observations* observations, horus_progress progress, void* user,
                                       horus_interference** out, horus_error* error) {
  return Guard(error, {{model, "model"}, {observations, "observations"}, {out, "out"}}, [&]() -> absl::Status {
    const auto types = CatalogueOf(catalogue);
    if (!SameTypes(model->catalogue, types)) {
      return horus::InvalidArgument("catalogue: expected the GPU types that the model was made for, found others");
    }
    horus::CommitProgress tell;
    if (progress != nullptr) tell = [progress, user](double done) { return progress(user, done) == 0; };
    const horus::ObservedSlowdowns seen = observations->slowdowns;  // callbacks may add to those
    HORUS_ASSIGN_OR_RETURN(auto corrected, horus::CorrectedModel::Commit(model->value, seen, *types, tell));
    return Give(new horus_interference{std::move(corrected), types, {}}, out);
  });
}

horus_status horus_interference_get_changes(const horus_interference* model, size_t capacity, const char** gpu_types,
                                            int32_t* sharing_modes, uint64_t* profile_ids, size_t* count,
                                            horus_error* error) {
  return Guard(error, {{model, "model"}, {count, "count"}}, [&]() -> absl::Status {
    const auto* corrected = dynamic_cast<const horus::CorrectedModel*>(model->value.get());
    const size_t needed = corrected == nullptr ? 0 : corrected->changed().size();
    return WriteRows(needed, capacity, count, [&](size_t i) {
      const horus::ChangedJob& changed = corrected->changed()[i];
      Put(gpu_types, i, changed.gpu.c_str());
      Put(sharing_modes, i, SharingToC(changed.mode));
      Put(profile_ids, i, changed.profile_id);
    });
  });
}

horus_status horus_observations_get_calibration(const horus_observations* observations, horus_calibration* calibration,
                                                horus_error* error) {
  return Guard(error, {{observations, "observations"}}, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(CheckOutput(calibration));
    const horus::RunningCalibration& found = observations->slowdowns.calibration();
    horus_calibration c = HORUS_CALIBRATION_INIT;
    c.predictions = found.weight;
    c.error = found.error;
    c.bias = found.bias;
    c.bounds = found.bound_weight;
    c.covered = found.covered;
    WriteStruct(c, calibration);
    return absl::OkStatus();
  });
}

horus_status horus_observations_get_devices(const horus_observations* observations, size_t capacity,
                                            uint64_t* device_ids, uint64_t* profile_ids, double* observed,
                                            double* predicted, double* predicted_upper, uint64_t* times, size_t* count,
                                            horus_error* error) {
  return Guard(error, {{observations, "observations"}, {count, "count"}}, [&]() -> absl::Status {
    const std::vector<horus::DeviceRecord> records = observations->slowdowns.DevicesOldestFirst();
    return WriteRows(records.size(), capacity, count, [&](size_t i) {
      Put(device_ids, i, records[i].device_id);
      Put(profile_ids, i, records[i].profile_id);
      Put(observed, i, records[i].slowdown);
      Put(predicted, i, records[i].predicted);
      Put(predicted_upper, i, records[i].predicted_upper);
      Put(times, i, records[i].observations);
    });
  });
}
