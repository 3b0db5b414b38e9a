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

// The built-in catalogue for none.
inline const horus_catalogue* Of(const CatalogueHandle* catalogue) {
  return catalogue == nullptr ? nullptr : catalogue->get();
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_GRAPH_H_
