// SPDX-License-Identifier: Apache-2.0
// UseMeter: which devices are up, held and free, and what that sums up to over time.
//
// Enters:  places taken and given back, nodes that fail and come back, time that passes.
// Leaves:  SimUse.
// Units:   microseconds of devices; fragments as fragments.h.
// Cost:    that of FragmentMeter.        Thread class: one thread at a time.
#ifndef HORUS_LAB_RUN_USE_METER_H_
#define HORUS_LAB_RUN_USE_METER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/fragments.h"
#include "lab/run/cluster_map.h"
#include "lab/simulator.h"
#include "place/policies/workload.h"

namespace horus {

class UseMeter {
 public:
  // A cluster without jobs, all of it up. `map` must outlive it.
  UseMeter(const Cluster& cluster, const ClusterMap& map, std::shared_ptr<const Workload> workload)
      : map_(map), fragments_(cluster, std::move(workload)), holders_(map.devices()), up_(map.devices()) {}

  // A job takes its places, or with `sign` -1 gives them back: its devices task by task, or where it has none the nodes
  // of its tasks.
  void Take(const TraceJob& job, std::span<const uint32_t> devices, std::span<const uint32_t> host_nodes, int32_t sign);
  void SetUp(uint32_t node, bool up);
  void PassTime(int64_t passed_us, bool waits);
  [[nodiscard]] size_t up() const { return up_; }            // devices
  [[nodiscard]] size_t idle() const { return up_ - used_; }  // devices that are up and that nobody holds
  [[nodiscard]] const SimUse& use() const { return use_; }

 private:
  const ClusterMap& map_;
  FragmentMeter fragments_;
  std::vector<uint16_t> holders_;  // by device
  size_t used_ = 0;                // devices
  size_t up_ = 0;                  // devices
  SimUse use_;
};

}  // namespace horus

#endif  // HORUS_LAB_RUN_USE_METER_H_
