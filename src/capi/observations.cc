// SPDX-License-Identifier: Apache-2.0
// horus/learn.h and learn_pairs.h in every build: what running jobs were seen to take and to lose, commits, and how
// right predictions were.

#include "base/bytes.h"
#include "capi/convert.h"
#include "capi/planning.h"
#include "horus/learn.h"
#include "horus/learn_pairs.h"
#include "interference/corrected_model.h"

namespace horus::capi {
namespace {

constexpr uint32_t kKnownMeasured =
    HORUS_OBSERVED_GPU_UTIL | HORUS_OBSERVED_MEM_BW_UTIL | HORUS_OBSERVED_MEMORY | HORUS_OBSERVED_STEP_TIME;

absl::Status AddDemand(const horus_demand_observation* given, const Catalogue& catalogue, MeasuredDemands& demands) {
  HORUS_ASSIGN_OR_RETURN(const horus_demand_observation c, ReadStruct(given));
  if ((c.measured & ~kKnownMeasured) != 0) {
    return InvalidArgument("horus_demand_observation: measured: expected a sum of HORUS_OBSERVED_*, found %#x",
                           c.measured);
  }
  uint64_t profile_id = c.profile_id;
  std::string name;
  if (c.cluster == nullptr) {
    HORUS_ASSIGN_OR_RETURN(name, ReadText(c.gpu_type, "gpu_type"));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
    name = catalogue.at(type).name;
  } else {
    HORUS_RETURN_IF_ERROR(Unset("profile_id", c.profile_id == 0));
    HORUS_RETURN_IF_ERROR(Unset("gpu_type", c.gpu_type == nullptr));
    HORUS_ASSIGN_OR_RETURN(SeenResident seen, SeenResidentOf(*c.cluster, c.job_id, c.node_id, c.device, false));
    profile_id = seen.job.profile_id;
    name = std::move(seen.gpu_type);
  }
  const auto value = [&c](uint32_t flag, double number) {
    return (c.measured & flag) != 0 ? std::optional<double>(number) : std::nullopt;
  };
  return demands.Add(profile_id, name,
                     {.gpu_util_pct = value(HORUS_OBSERVED_GPU_UTIL, c.gpu_util_pct),
                      .mem_bw_util_pct = value(HORUS_OBSERVED_MEM_BW_UTIL, c.mem_bw_util_pct),
                      .mem_mib = value(HORUS_OBSERVED_MEMORY, c.mem_mib),
                      .step_time_us = value(HORUS_OBSERVED_STEP_TIME, c.step_time_us)});
}

// A snapshot is the size of its first part, then both parts, which have their own checksums. The first snapshots were
// that of the demands alone, which begins so; no size is that large.
constexpr std::string_view kDemandsAlone = "HORUSOBS";

std::string Save(const horus_observations& observations) {
  ByteWriter writer;
  const std::string demands = observations.demands.Save();
  writer.U64(demands.size());
  return writer.bytes() + demands + observations.slowdowns.Save();
}

absl::StatusOr<std::pair<std::span<const uint8_t>, std::span<const uint8_t>>> Parts(std::span<const uint8_t> saved) {
  ByteReader reader(saved);
  const uint64_t first = reader.U64();
  if (!reader.ok() || first > reader.left())
    return DataLoss("observations: expected the bytes of saved observations, found others");
  const auto parts = saved.subspan(sizeof(uint64_t));
  return std::pair{parts.first(first), parts.subspan(first)};
}

absl::StatusOr<SeenResident> Stated(const horus_slowdown_observation& c, const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_type, "gpu_type"));
  SeenResident seen;
  HORUS_ASSIGN_OR_RETURN(seen.device.type, catalogue.Find(name));
  seen.gpu_type = catalogue.at(seen.device.type).name;
  if (c.compute_share != 0) seen.device.compute_share = static_cast<float>(c.compute_share);
  HORUS_ASSIGN_OR_RETURN(seen.device.mode, SharingOrTimeSlice(c.sharing_mode));
  if (c.co_tenant_count > kMostCoTenants)
    return InvalidArgument("co_tenant_count: expected 1 to %d, found %d", kMostCoTenants, c.co_tenant_count);
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

horus_status horus_observations_create(size_t capacity, horus_observations** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    if (capacity > MeasuredDemands::kMostCapacity)
      return InvalidArgument("capacity: expected 0 to %d, found %d", MeasuredDemands::kMostCapacity, capacity);
    const size_t room = capacity == 0 ? MeasuredDemands::kDefaultCapacity : capacity;
    return Give(new horus_observations{MeasuredDemands(room), ObservedSlowdowns()}, out);
  });
}

void horus_observations_free(horus_observations* observations) { delete observations; }

horus_status horus_observations_add_demand(horus_observations* observations, const horus_catalogue* catalogue,
                                           const horus_demand_observation* observation, horus_error* error) {
  return Guard(error, {{observations, "observations"}},
               [&] { return AddDemand(observation, *CatalogueOf(catalogue), observations->demands); });
}

horus_status horus_observations_snapshot(const horus_observations* observations, size_t capacity, void* bytes,
                                         size_t* count, horus_error* error) {
  return Guard(error, {{observations, "observations"}},
               [&] { return WriteBytes(Save(*observations), capacity, bytes, count); });
}

horus_status horus_observations_restore(const void* bytes, size_t size, horus_observations** out, horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&] {
    const std::span<const uint8_t> saved(static_cast<const uint8_t*>(bytes), size);
    if (size >= kDemandsAlone.size() && std::memcmp(bytes, kDemandsAlone.data(), kDemandsAlone.size()) == 0) {
      HORUS_ASSIGN_OR_RETURN(MeasuredDemands demands, MeasuredDemands::Restore(saved));
      return Give(new horus_observations{std::move(demands), ObservedSlowdowns()}, out);
    }
    HORUS_ASSIGN_OR_RETURN(const auto parts, Parts(saved));
    HORUS_ASSIGN_OR_RETURN(MeasuredDemands demands, MeasuredDemands::Restore(parts.first));
    HORUS_ASSIGN_OR_RETURN(ObservedSlowdowns slowdowns, ObservedSlowdowns::Restore(parts.second));
    return Give(new horus_observations{std::move(demands), std::move(slowdowns)}, out);
  });
}

// ---- horus/learn_pairs.h

horus_status horus_interference_to_bytes(const horus_interference* model, size_t capacity, void* bytes, size_t* count,
                                         horus_error* error) {
  return Guard(error, {{model, "model"}}, [&] {
    if (dynamic_cast<const CorrectedModel*>(model->value.get()) != nullptr) {
      return absl::UnimplementedError(
          "model: expected one that was trained or read from a bundle, found one that observations correct: keep their "
          "snapshot (horus_observations_snapshot) and the model that they were committed to, and commit again");
    }
    if (model->bundle.empty()) {
      return Unimplemented(
          "model: expected one that was trained or read from a bundle, found %s: make it again "
          "from what it was made of",
          std::string(model->value->name()));
    }
    return WriteBytes(model->bundle, capacity, bytes, count);
  });
}

horus_status horus_observations_add_slowdown(horus_observations* observations, const horus_catalogue* catalogue,
                                             const horus_slowdown_observation* observation, horus_error* error) {
  return Guard(error, {{observations, "observations"}},
               [&] { return AddSlowdown(observation, *CatalogueOf(catalogue), observations->slowdowns); });
}

horus_status horus_interference_commit(const horus_interference* model, const horus_catalogue* catalogue,
                                       const horus_observations* observations, horus_progress progress, void* user,
                                       horus_interference** out, horus_error* error) {
  return Guard(error, {{model, "model"}, {observations, "observations"}, {out, "out"}}, [&] {
    const auto types = CatalogueOf(catalogue);
    if (!SameTypes(model->catalogue, types))
      return InvalidArgument("catalogue: expected the GPU types that the model was made for, found others");
    CommitProgress tell;
    if (progress != nullptr) tell = [progress, user](double done) { return progress(user, done) == 0; };
    const ObservedSlowdowns seen = observations->slowdowns;  // callbacks may add to those
    HORUS_ASSIGN_OR_RETURN(auto corrected, CorrectedModel::Commit(model->value, seen, *types, tell));
    return Give(new horus_interference{std::move(corrected), types, {}}, out);
  });
}

horus_status horus_interference_get_changes(const horus_interference* model, size_t capacity, const char** gpu_types,
                                            int32_t* sharing_modes, uint64_t* profile_ids, size_t* count,
                                            horus_error* error) {
  return Guard(error, {{model, "model"}, {count, "count"}}, [&] {
    const auto* corrected = dynamic_cast<const CorrectedModel*>(model->value.get());
    const size_t needed = corrected == nullptr ? 0 : corrected->changed().size();
    return WriteRows(needed, capacity, count, [&](size_t i) {
      const ChangedJob& changed = corrected->changed()[i];
      Put(gpu_types, i, changed.gpu.c_str());
      Put(sharing_modes, i, SharingToC(changed.mode));
      Put(profile_ids, i, changed.profile_id);
    });
  });
}

horus_status horus_observations_get_calibration(const horus_observations* observations, horus_calibration* calibration,
                                                horus_error* error) {
  return Guard(error, {{observations, "observations"}}, [&] {
    const RunningCalibration& found = observations->slowdowns.calibration();
    horus_calibration c = HORUS_CALIBRATION_INIT;
    HORUS_COPY_FIELDS(found, c, error, bias, covered)
    c.predictions = found.weight;
    c.bounds = found.bound_weight;
    return Answer(c, calibration);
  });
}

horus_status horus_observations_get_devices(const horus_observations* observations, size_t capacity,
                                            uint64_t* device_ids, uint64_t* profile_ids, double* observed,
                                            double* predicted, double* predicted_upper, uint64_t* times, size_t* count,
                                            horus_error* error) {
  return Guard(error, {{observations, "observations"}, {count, "count"}}, [&] {
    const std::vector<DeviceRecord> records = observations->slowdowns.DevicesOldestFirst();
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
