// SPDX-License-Identifier: Apache-2.0
// What simulations are made of: traces, truths, demands of profiles, results.
#ifndef HORUS_PYTHON_SIM_H_
#define HORUS_PYTHON_SIM_H_

#include "placer.h"

namespace horus_python {

using TraceHandle = Handle<horus_trace, horus_trace_free>;
using TruthHandle = Handle<horus_truth, horus_truth_free>;
using SimResultHandle = Handle<horus_sim_result, horus_sim_result_free>;

using horus::ProfileDemand;

// Rows of the C++ face: there an empty type stands for "any".
std::vector<ProfileDemand> FaceOf(std::vector<ProfileDemand> rows);
std::vector<ProfileDemand> FaceOf(const py::tuple& rows, const char* what);

}  // namespace horus_python

#endif  // HORUS_PYTHON_SIM_H_
