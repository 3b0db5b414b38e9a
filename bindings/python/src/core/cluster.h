// SPDX-License-Identifier: Apache-2.0
// Clusters of the module. The C ABI leaves the order of writers to its caller; Python programs get a lock for it.
#ifndef HORUS_PYTHON_CLUSTER_H_
#define HORUS_PYTHON_CLUSTER_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "graph.h"
#include "record.h"

namespace horus_python {

class ClusterHandle : public Handle<horus_cluster, horus_cluster_free> {
 public:
  using Handle::Handle;
  // Runs `function(horus_error*)` beside other readers, or alone. From a callback nobody waits: BUSY.
  template <typename Function>
  horus_status Read(horus_error* error, const Function& function) const {
    std::shared_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    if (InCallback::Depth() == 0) lock.lock();
    if (!lock.owns_lock() && !lock.try_lock()) return Busy(error);
    return function(error);
  }
  template <typename Function>
  horus_status Write(horus_error* error, const Function& function) const {
    std::unique_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    if (InCallback::Depth() == 0) lock.lock();
    if (!lock.owns_lock() && !lock.try_lock()) return Busy(error);
    return function(error);
  }

 private:
  static horus_status Busy(horus_error* error);
  mutable std::shared_mutex mutex_;
};

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
