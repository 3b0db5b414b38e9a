// SPDX-License-Identifier: Apache-2.0
// Clusters of the module.
#ifndef HORUS_PYTHON_CLUSTER_H_
#define HORUS_PYTHON_CLUSTER_H_

#include "graph.h"
#include "locked.h"
#include "record.h"

namespace horus_python {

using ClusterHandle = LockedHandle<horus_cluster, horus_cluster_free>;

}  // namespace horus_python

#endif  // HORUS_PYTHON_CLUSTER_H_
