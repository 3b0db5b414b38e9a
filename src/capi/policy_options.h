// SPDX-License-Identifier: Apache-2.0
// The settings of single policies from the C ABI.
//
// Enters:  horus_placer_options.          Leaves: PolicyOptions; and whose type ids they speak, null = any.
// Units:   as in horus/place.h.
// Cost:    linear in the workload.        Thread class: pure functions.
#ifndef HORUS_CAPI_POLICY_OPTIONS_H_
#define HORUS_CAPI_POLICY_OPTIONS_H_

#include <memory>

#include "base/status.h"
#include "device/catalogue.h"
#include "horus/place.h"
#include "place/policies/workload.h"
#include "place/policy.h"

namespace horus::capi {

struct PolicySettings {
  PolicyOptions options;
  std::shared_ptr<const Catalogue> catalogue;
};

// Sets `catalogue` where the workload names types. INVALID_ARGUMENT, NOT_FOUND (type).
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Workload>> WorkloadFromC(
    const horus_workload* given, std::shared_ptr<const Catalogue>& catalogue);

[[nodiscard]] absl::StatusOr<PolicySettings> PolicySettingsFromC(const horus_placer_options& given);

}  // namespace horus::capi

#endif  // HORUS_CAPI_POLICY_OPTIONS_H_
