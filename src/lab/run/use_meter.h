// SPDX-License-Identifier: Apache-2.0
// UseMeter: which devices are up, held and free, and what that sums up to over time.
//
// Enters:  places taken and given back, nodes that fail and come back, time that passes.
// Leaves:  SimUse.
// Units:   microseconds of devices; fragments as in workload.h.
// Thread class: one thread at a time.
#pragma once

#include "lab/simulator.h"

namespace horus {

// By type list of the trace those types that the catalogue knows, ascending.
[[nodiscard]] std::vector<std::vector<GpuTypeId>> KnownTypes(const Trace& trace, const Catalogue& catalogue);

// The tasks of all jobs of a trace, by how often they come; types that the catalogue lacks are left out. Null where
// they are more kinds than a workload holds, or where there is none.
[[nodiscard]] std::shared_ptr<const Workload> WorkloadOf(const Trace& trace, const Catalogue& catalogue);

// Cost: one Workload::Fragment a task placed or gone.
class UseMeter {
 public:
  // A cluster without jobs, all of it up. `map` must outlive it. `workload`: whose tasks cannot use fragments; null =
  // nothing free is measured.
  UseMeter(const Cluster& cluster, const ClusterMap& map, std::shared_ptr<const Workload> workload);

  // A job takes its places, or with `sign` -1 gives them back: its devices task by task, or where it has none the nodes
  // of its tasks.
  void Take(const TraceJob& job, std::span<const uint32_t> devices, std::span<const uint32_t> host_nodes, int32_t sign);
  // Nothing is free on a node that is not up.
  void SetUp(uint32_t node, bool up) {
    up_ = up ? up_ + map_.devices_on(node) : up_ - map_.devices_on(node);
    if (workload_ != nullptr) nodes_[node].up = up;
    Refresh(node);
  }
  void PassTime(int64_t passed_us, bool waits) {
    const absl::int128 passed = passed_us;
    use_.device_us += passed * up_;
    use_.used_us += passed * used_;
    use_.free_us += passed * free_;
    use_.fragment_us += passed * fragment_;
    if (waits) use_.backlog_device_us += passed * up_;
  }
  [[nodiscard]] size_t up() const { return up_; }            // devices
  [[nodiscard]] size_t idle() const { return up_ - used_; }  // devices that are up and that nobody holds
  [[nodiscard]] int64_t free() const { return free_; }       // as SimUse::free_us, now
  [[nodiscard]] int64_t fragment() const { return fragment_; }
  [[nodiscard]] const SimUse& use() const { return use_; }

 private:
  struct Node {
    int64_t cpu_free_milli = 0;
    bool up = true;
    int64_t free = 0, fragment = 0;
  };
  // A task takes that much of each of these devices of a node and of its CPU, or gives back what is below 0.
  void TakeTask(uint32_t node, std::span<const uint32_t> devices, int32_t gpu_milli, int64_t cpu_milli) {
    if (workload_ == nullptr) return;
    for (const uint32_t device : devices) free_milli_[device] -= gpu_milli;
    nodes_[node].cpu_free_milli -= cpu_milli;
    Refresh(node);
  }
  void Refresh(uint32_t node);

  const ClusterMap& map_;
  std::shared_ptr<const Workload> workload_;
  std::vector<Node> nodes_;          // empty where nothing free is measured
  std::vector<int32_t> free_milli_;  // by device; below 0 where sharers without requests meet
  std::vector<FreeGpu> scratch_;
  int64_t free_ = 0, fragment_ = 0;
  std::vector<uint16_t> holders_;  // by device
  size_t used_ = 0;                // devices
  size_t up_ = 0;                  // devices
  SimUse use_;
};

}  // namespace horus
