// SPDX-License-Identifier: Apache-2.0
// Clusters of the module, and slots.
#ifndef HORUS_PYTHON_CLUSTER_H_
#define HORUS_PYTHON_CLUSTER_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "graph.h"
#include "locked.h"
#include "record.h"

namespace horus_python {

using ClusterHandle = LockedHandle<horus_cluster, horus_cluster_free>;

// A place of a job: a row of horus_slots.
struct Slot {
  static constexpr const char* kName = "Slot";
  uint64_t node = 0;
  uint32_t device = 0;
  uint32_t task = 0;
};
template <>
struct Arg<Slot> : ValueArg<Slot> {};

// Slots as columns.
struct SlotColumns {
  explicit SlotColumns(size_t rows) : nodes(rows), devices(rows), tasks(rows) {}
  explicit SlotColumns(const std::vector<Slot>& slots);
  [[nodiscard]] horus_slots ToC() {
    return {sizeof(horus_slots), 0, nodes.size(), nodes.data(), devices.data(), tasks.data()};
  }
  [[nodiscard]] std::vector<Slot> Rows(size_t count) const;
  std::vector<uint64_t> nodes;
  std::vector<uint32_t> devices, tasks;
};

}  // namespace horus_python

#endif  // HORUS_PYTHON_CLUSTER_H_
