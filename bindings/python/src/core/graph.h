// SPDX-License-Identifier: Apache-2.0
// The handles of the corridor's first half: graph, catalogue, predictor, observations.
#ifndef HORUS_PYTHON_GRAPH_H_
#define HORUS_PYTHON_GRAPH_H_

#include "core.h"
#include "locked.h"
#include "values.h"

namespace horus_python {

using GraphHandle = Handle<horus_graph, horus_graph_free>;
using CatalogueHandle = Handle<horus_catalogue, horus_catalogue_free>;
using PredictorHandle = LockedHandle<horus_predictor, horus_predictor_free>;  // Write: whose metrics count it
using ObservationsHandle = LockedHandle<horus_observations, horus_observations_free>;

// What is measured of runs, and predicted.
constexpr const char* kQuantities[] = {"gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct",
                                       "mem_mib",      "step_time_us",     "power_w"};

// The built-in catalogue for none.
inline const horus_catalogue* Of(const CatalogueHandle* catalogue) {
  return catalogue == nullptr ? nullptr : catalogue->get();
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_GRAPH_H_
