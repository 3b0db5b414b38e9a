// SPDX-License-Identifier: Apache-2.0
// From JobSpec to horus_job: the way back of job_convert.h.
//
// Enters:  a job and the catalogue of its types.   Leaves: the struct, which borrows from this and from both.
// Units:   as in cluster.h.
// Cost:    about 200 bytes a demand.               Thread class: immutable, share freely.
#ifndef HORUS_CAPI_JOB_TO_C_H_
#define HORUS_CAPI_JOB_TO_C_H_

#include <cstdint>
#include <vector>

#include "device/catalogue.h"
#include "horus/cluster.h"
#include "place/job.h"

namespace horus::capi {

class JobToC {
 public:
  // Both must outlive it.
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

#endif  // HORUS_CAPI_JOB_TO_C_H_
