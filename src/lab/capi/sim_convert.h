// SPDX-License-Identifier: Apache-2.0
// Demands by profile and measured speeds from the C ABI.
//
// Enters:  columns.                       Leaves: values of the sim room, checked.
// Units:   as in horus/sim.h and horus/potential.h.
// Cost:    linear; a search by name a row.   Thread class: pure functions.
#ifndef HORUS_LAB_CAPI_SIM_CONVERT_H_
#define HORUS_LAB_CAPI_SIM_CONVERT_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "horus/lab/sim.h"
#include "lab/trace/trace.h"
#include "lab/truth/speed_table.h"
#include "lab/truth/truth.h"

namespace horus::capi {

using DemandsByProfile = std::map<std::string, ProfileDemands, std::less<>>;

// "demands: row[3]: ..." where `name` is "demands". A profile's types ascend and are unique; any type stands alone.
[[nodiscard]] absl::StatusOr<DemandsByProfile> ProfileDemandsFromC(const Catalogue& catalogue, const char* name,
                                                                   const horus_profile_demands* given);

// By profile of the trace; empty where nothing is said of it. Any type becomes each of `types` where there are some.
[[nodiscard]] std::vector<ProfileDemands> DemandsFor(const Trace& trace, const DemandsByProfile& demands,
                                                     std::span<const GpuTypeId> types);

// "sensitivities: row[3]: ...".
[[nodiscard]] absl::StatusOr<SensitivitiesByName> SensitivitiesFromC(const horus_profile_sensitivities* given);

// By profile of the trace, whether jobs with GPUs run it.
[[nodiscard]] std::vector<bool> ProfilesOnGpus(const Trace& trace);

struct Speeds {
  SpeedTable table;
  uint32_t reference = 0;
};

// Without names these are empty texts. INVALID_ARGUMENT "speeds: alone[3]: expected ..., found ...";
// RESOURCE_EXHAUSTED.
[[nodiscard]] absl::StatusOr<Speeds> SpeedsFromC(const horus_speeds* given, bool with_names);

}  // namespace horus::capi

#endif  // HORUS_LAB_CAPI_SIM_CONVERT_H_
