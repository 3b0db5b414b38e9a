// SPDX-License-Identifier: Apache-2.0
// Jobs from the C ABI.
//
// Enters:  horus_job and the catalogue of the cluster that the job is meant for.
// Leaves:  JobSpec, in the order that the placer wants; errors name job and field.
// Units:   as in place/job.h.
// Cost:    linear in demands and selectors.   Thread class: pure functions.
#ifndef HORUS_CAPI_JOB_CONVERT_H_
#define HORUS_CAPI_JOB_CONVERT_H_

#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "horus/cluster.h"
#include "place/job.h"

namespace horus::capi {

[[nodiscard]] absl::StatusOr<JobSpec> JobFromC(const Catalogue& catalogue, const horus_job* given);

// None for null.
[[nodiscard]] absl::StatusOr<SharedSensitivity> SensitivityFromC(const horus_sensitivity* given);

// RESOURCE_EXHAUSTED above `max_jobs`.
[[nodiscard]] absl::StatusOr<std::vector<JobSpec>> JobsFromC(const Catalogue& catalogue, size_t count,
                                                             const horus_job* const* jobs, uint64_t max_jobs);

}  // namespace horus::capi

#endif  // HORUS_CAPI_JOB_CONVERT_H_
