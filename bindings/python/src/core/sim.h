// SPDX-License-Identifier: Apache-2.0
// What simulations are made of: traces, truths, demands of profiles, results.
#ifndef HORUS_PYTHON_SIM_H_
#define HORUS_PYTHON_SIM_H_

#include "placer.h"

namespace horus_python {

using TraceHandle = Handle<horus_trace, horus_trace_free>;
using TruthHandle = Handle<horus_truth, horus_truth_free>;
using SimResultHandle = Handle<horus_sim_result, horus_sim_result_free>;

// What jobs of a profile demand of a GPU type; "any" = every type.
struct ProfileDemand {
  static constexpr const char* kName = "ProfileDemand";
  std::string profile = {}, gpu_type = "any";
  Demand demand = {};
};
template <>
struct Arg<ProfileDemand> : ValueArg<ProfileDemand> {};

// As the C ABI takes them; the rows must live on.
class CProfileDemands {
 public:
  CProfileDemands(const py::tuple& rows, const char* what);
  explicit CProfileDemands(const std::vector<ProfileDemand>& rows);
  CProfileDemands(const CProfileDemands&) = delete;
  CProfileDemands& operator=(const CProfileDemands&) = delete;
  [[nodiscard]] const horus_profile_demands* get() const { return &c_; }

 private:
  void Add(const ProfileDemand& row);
  void Finish();
  std::vector<const char*> profiles_, types_;
  std::vector<const horus_demand*> demands_;
  horus_profile_demands c_ = HORUS_PROFILE_DEMANDS_INIT;
};

// What cores and host memory do to the speed of profiles, by their names.
using Sensitivities = std::vector<std::pair<std::string, Sensitivity>>;

// As the C ABI takes them; borrows them.
class CProfileSensitivities {
 public:
  explicit CProfileSensitivities(const Sensitivities& rows);
  CProfileSensitivities(const CProfileSensitivities&) = delete;
  CProfileSensitivities& operator=(const CProfileSensitivities&) = delete;
  [[nodiscard]] const horus_profile_sensitivities* get() const { return &c_; }

 private:
  std::vector<const char*> profiles_;
  std::vector<horus_sensitivity> values_;
  std::vector<const horus_sensitivity*> pointers_;
  horus_profile_sensitivities c_ = HORUS_PROFILE_SENSITIVITIES_INIT;
};

}  // namespace horus_python

#endif  // HORUS_PYTHON_SIM_H_
