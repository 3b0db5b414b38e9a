// SPDX-License-Identifier: Apache-2.0
// Demands between the C ABI and the rooms.
//
// Enters:  horus_demand or Demand.        Leaves: the other; validated on the way in.
// Units:   as in predict/demand.h.
// Cost:    a copy.                        Thread class: pure functions.
#ifndef HORUS_CAPI_DEMAND_CONVERT_H_
#define HORUS_CAPI_DEMAND_CONVERT_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "horus/demand.h"
#include "place/job.h"
#include "predict/demand.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<Demand> DemandFromC(const horus_demand* given);
[[nodiscard]] horus_demand DemandToC(const Demand& demand);

// `count` demands; errors name the element.
[[nodiscard]] absl::StatusOr<std::vector<Demand>> DemandsFromC(size_t count, const horus_demand* const* demands);

// The columns of a job: GPU types by name (null = any) beside the demand on each.
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> TypeDemandsFromC(const Catalogue& catalogue, size_t count,
                                                                       const char* const* gpu_types,
                                                                       const horus_demand* const* demands);

}  // namespace horus::capi

#endif  // HORUS_CAPI_DEMAND_CONVERT_H_
