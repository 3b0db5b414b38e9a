// SPDX-License-Identifier: Apache-2.0
// Placers of the module, and a policy in Python.
#ifndef HORUS_PYTHON_PLACER_H_
#define HORUS_PYTHON_PLACER_H_

#include "interference.h"
#include "plan.h"

namespace horus_python {

using PlacerHandle = LockedHandle<horus_placer, horus_placer_free>;  // Write: whose metrics count it

// What a cluster typically has to run, as columns of tasks or as jobs that were seen.
struct Workload {
  std::vector<int64_t> cpu_milli = {};
  std::vector<int32_t> gpus = {}, gpu_milli = {};
  std::vector<std::string> gpu_types = {};
  std::vector<double> shares = {};
  std::vector<Job> jobs = {};
};
// A Workload as the C ABI takes it; borrows the Workload.
class CWorkload {
 public:
  CWorkload(const Workload& workload, const horus_catalogue* catalogue);
  CWorkload(const CWorkload&) = delete;
  CWorkload& operator=(const CWorkload&) = delete;
  [[nodiscard]] const horus_workload* get() const { return &c_; }

 private:
  std::vector<const char*> types_;
  std::vector<const horus_job*> jobs_;
  horus_workload c_ = HORUS_WORKLOAD_INIT;
};

// Calls the caller's own policy; `user` is the callable.
int32_t PricePython(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined);
void BindCandidate(py::module_& m);

}  // namespace horus_python

#endif  // HORUS_PYTHON_PLACER_H_
