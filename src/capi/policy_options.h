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
#include "place/policy.h"

namespace horus::capi {

struct PolicySettings {
  PolicyOptions options;
  std::shared_ptr<const Catalogue> catalogue;
};

[[nodiscard]] absl::StatusOr<PolicySettings> PolicySettingsFromC(const horus_placer_options& given);

}  // namespace horus::capi

#endif  // HORUS_CAPI_POLICY_OPTIONS_H_
