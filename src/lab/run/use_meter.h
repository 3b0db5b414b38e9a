// SPDX-License-Identifier: Apache-2.0
// UseMeter: which devices are up, held and free, and what that sums up to over time.
//
// Enters:  places taken and given back, nodes that fail and come back, time that passes.
// Leaves:  SimUse.
// Units:   microseconds of devices; fragments as in workload.h.
// Thread class: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/run/cluster_map.h"
#include "lab/simulator.h"
#include "lab/trace/trace.h"
#include "place/policies/workload.h"
#include "place/state/cluster.h"

namespace horus {

// ---- FragmentMeter: how much of the free GPUs the jobs of a trace could not use, while places are taken and given
// back.
// Cost: one Workload::Fragment a task placed or gone.

// The tasks of all jobs of a trace, by how often they come; types that the catalogue lacks are left out. Null where
// they are more kinds than a workload holds, or where there is none.
[[nodiscard]] std::shared_ptr<const Workload> WorkloadOf(const Trace& trace, const Catalogue& catalogue);

class FragmentMeter {
 public:
  // A cluster without jobs. `workload`: null = nothing is measured.
  FragmentMeter(const Cluster& cluster, std::shared_ptr<const Workload> workload);

  // A task takes (or, with `sign` -1, gives back) that much of each of these devices of a node and of its CPU. Nodes
  // and devices are counted in the order of Cluster::NodeIds.
  void Take(uint32_t node, std::span<const uint32_t> devices, int32_t gpu_milli, int64_t cpu_milli, int32_t sign);
  void SetUp(uint32_t node, bool up);  // nothing is free on a node that is not

  [[nodiscard]] bool measures() const { return workload_ != nullptr; }
  [[nodiscard]] int64_t free() const { return free_; }
  [[nodiscard]] int64_t fragment() const { return fragment_; }

 private:
  struct Node {
    uint32_t first = 0;  // of its devices
    uint32_t devices = 0;
    int64_t cpu_free_milli = 0;
    bool up = true;
    int64_t free = 0, fragment = 0;
  };
  void Refresh(Node& node);

  std::shared_ptr<const Workload> workload_;
  std::vector<Node> nodes_;
  std::vector<GpuTypeId> types_;     // by device
  std::vector<int32_t> free_milli_;  // below 0 where sharers without requests meet
  std::vector<FreeGpu> scratch_;
  int64_t free_ = 0, fragment_ = 0;
};

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
