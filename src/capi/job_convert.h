// SPDX-License-Identifier: Apache-2.0
// Jobs from the C ABI.
//
// Enters:  horus_job and the catalogue of the cluster that the job is meant for.
// Leaves:  JobSpec, in the order that the placer wants; errors name job and field.
// Units:   as in place/job.h.
// Cost:    linear in demands and selectors.   Thread class: pure functions.
#ifndef HORUS_CAPI_JOB_CONVERT_H_
#define HORUS_CAPI_JOB_CONVERT_H_

#include <string>
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

// The way back: borrows from the job and the catalogue of its types, which must outlive it.
class JobToC {
 public:
  JobToC(const Catalogue& catalogue, const JobSpec& job);
  JobToC(const JobToC&) = delete;
  JobToC& operator=(const JobToC&) = delete;
  [[nodiscard]] const horus_job& get() const { return c_; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  struct Demands {
    std::vector<horus_demand> values;
    std::vector<const horus_demand*> pointers;
    std::vector<const char*> types;
  };
  struct Names {
    std::vector<const char*> pointers;
  };
  [[nodiscard]] static Demands DemandsOf(const Catalogue& catalogue, const std::vector<TypeDemand>& given);
  [[nodiscard]] static Names NamesOf(const std::vector<std::string>& given);
  void SetFields(const JobSpec& job);
  void SetWays(const Catalogue& catalogue, const JobSpec& job);

  Demands demands_;
  Names selector_keys_, selector_values_, groups_, avoid_groups_;
  std::vector<Demands> way_demands_;
  std::vector<horus_job_alternative> ways_;
  std::vector<const horus_job_alternative*> way_pointers_;
  horus_sensitivity sensitivity_ = HORUS_SENSITIVITY_INIT;
  horus_job c_ = HORUS_JOB_INIT;
};

}  // namespace horus::capi

#endif  // HORUS_CAPI_JOB_CONVERT_H_
