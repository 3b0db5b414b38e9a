// SPDX-License-Identifier: Apache-2.0
// FragmentMeter: how much of the free GPUs the jobs of a trace could not use, while places are taken and given back.
//
// Enters:  a trace's jobs as typical tasks; places taken and given back, nodes that fail and come back.
// Leaves:  free GPU, and the part of it that a task drawn from the trace cannot use where it is (FGD, ATC 2023).
// Units:   millionths of a GPU. A GPU has free what its holders do not ask for: one that states no share asks for all.
// Cost:    one Workload::Fragment a task placed or gone.   Thread class: one thread at a time.
#ifndef HORUS_LAB_FRAGMENTS_H_
#define HORUS_LAB_FRAGMENTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lab/trace/trace.h"
#include "place/policies/workload.h"
#include "place/state/cluster.h"

namespace horus {

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

}  // namespace horus

#endif  // HORUS_LAB_FRAGMENTS_H_
