// SPDX-License-Identifier: Apache-2.0
// The values that people hand to the library, which are those of the C++ face: runs, demands, devices, nodes, jobs.
#ifndef HORUS_PYTHON_VALUES_H_
#define HORUS_PYTHON_VALUES_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "args.h"
#include "horus/lab/lab.hpp"

namespace horus_python {

extern const Word kSharingModes[], kStates[], kKinds[];

using horus::Alternative, horus::Demand, horus::Device, horus::Node, horus::RunSpec, horus::Sensitivity, horus::Slot;

class CJob;

struct Job : horus::Job {
  Job() = default;
  explicit Job(horus::Job face) : horus::Job(std::move(face)) {}
  // As the C ABI takes it; lives as long as this job or a copy of it. Made at the first call, under the lock.
  [[nodiscard]] const horus_job* get() const;
  void Changed() { c_.reset(); }

 private:
  mutable std::shared_ptr<const CJob> c_;
};

using JobList = Handle<horus_job_list, horus_job_list_free>;
py::tuple JobsOf(const JobList& list);
py::tuple JobsOf(std::vector<horus::Job> jobs);
// Jobs as the C ABI takes them; the tuple must live on.
std::vector<const horus_job*> JobPointers(const py::tuple& jobs, const char* what);

}  // namespace horus_python

#endif  // HORUS_PYTHON_VALUES_H_
