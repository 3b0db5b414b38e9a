// SPDX-License-Identifier: Apache-2.0
// horus/learn.h, what running jobs were seen to take.
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "capi/args.h"
#include "capi/error.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/structs.h"
#include "horus/learn.h"

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
  if (!reader.ok() || first > reader.left()) {
    return DataLoss("observations: expected the bytes of saved observations, found others");
  }
  const auto parts = saved.subspan(sizeof(uint64_t));
  return std::pair{parts.first(first), parts.subspan(first)};
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_observations_create(size_t capacity, horus_observations** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&]() -> absl::Status {
    if (capacity > horus::MeasuredDemands::kMostCapacity) {
      return horus::InvalidArgument("capacity: expected 0 to %d, found %d", horus::MeasuredDemands::kMostCapacity,
                                    capacity);
    }
    const size_t room = capacity == 0 ? horus::MeasuredDemands::kDefaultCapacity : capacity;
    return Give(new horus_observations{horus::MeasuredDemands(room), horus::ObservedSlowdowns()}, out);
  });
}

void horus_observations_free(horus_observations* observations) { delete observations; }

horus_status horus_observations_add_demand(horus_observations* observations, const horus_catalogue* catalogue,
                                           const horus_demand_observation* observation, horus_error* error) {
  return Guard(error, {{observations, "observations"}}, [&]() -> absl::Status {
    return AddDemand(observation, *CatalogueOf(catalogue), observations->demands);
  });
}

horus_status horus_observations_snapshot(const horus_observations* observations, size_t capacity, void* bytes,
                                         size_t* count, horus_error* error) {
  return Guard(error, {{observations, "observations"}},
               [&]() -> absl::Status { return WriteBytes(Save(*observations), capacity, bytes, count); });
}

horus_status horus_observations_restore(const void* bytes, size_t size, horus_observations** out, horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&]() -> absl::Status {
    const std::span<const uint8_t> saved(static_cast<const uint8_t*>(bytes), size);
    if (size >= kDemandsAlone.size() && std::memcmp(bytes, kDemandsAlone.data(), kDemandsAlone.size()) == 0) {
      HORUS_ASSIGN_OR_RETURN(horus::MeasuredDemands demands, horus::MeasuredDemands::Restore(saved));
      return Give(new horus_observations{std::move(demands), horus::ObservedSlowdowns()}, out);
    }
    HORUS_ASSIGN_OR_RETURN(const auto parts, Parts(saved));
    HORUS_ASSIGN_OR_RETURN(horus::MeasuredDemands demands, horus::MeasuredDemands::Restore(parts.first));
    HORUS_ASSIGN_OR_RETURN(horus::ObservedSlowdowns slowdowns, horus::ObservedSlowdowns::Restore(parts.second));
    return Give(new horus_observations{std::move(demands), std::move(slowdowns)}, out);
  });
}
