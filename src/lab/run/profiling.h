// SPDX-License-Identifier: Apache-2.0
// Profiling: what the placer believes of jobs, before and after they were profiled, and who is being profiled.
//
// Enters:  beliefs and measured demands by profile; jobs that begin to work on nodes that profile, and stop.
// Leaves:  demands of a job; whose profiling is due to end.
// Units:   microseconds of the trace's clock.
// Cost:    O(log jobs being profiled).   Thread class: one thread at a time.
#ifndef HORUS_LAB_RUN_PROFILING_H_
#define HORUS_LAB_RUN_PROFILING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lab/run/alarms.h"
#include "lab/run/cluster_map.h"
#include "lab/simulator.h"
#include "place/state/cluster.h"

namespace horus {

class Profiling {
 public:
  // All must outlive it, but for the cluster.
  Profiling(const Trace& trace, std::span<const ProfileDemands> beliefs, const SimOptions& options,
            const Cluster& cluster, const ClusterMap& map);

  [[nodiscard]] const ProfileDemands& BeliefsOf(uint32_t job) const;
  [[nodiscard]] const Demand* BeliefOn(uint32_t job, GpuTypeId type) const;  // null = nothing is believed there
  [[nodiscard]] bool IsProfiled(uint32_t job) const;

  // The job began to work on the node: where that profiles, for a while only, or to its end if that comes first.
  void Begin(uint32_t job, uint32_t node, int64_t now_us);
  void Stop(uint32_t job) { running_.Cancel(job); }  // before it was done
  // The job finished: what it did on a node that profiles is known.
  void Finish(uint32_t job) {
    if (running_.Has(job)) SetProfiled(job);
  }
  [[nodiscard]] int64_t next_us() const { return running_.next_us(); }
  // A job whose profiling ends now; it is profiled from then on.
  [[nodiscard]] std::optional<uint32_t> TakeDue(int64_t now_us);

 private:
  [[nodiscard]] size_t KeyOf(uint32_t job) const { return options_.profile_each_job ? job : trace_.jobs[job].profile; }
  void SetProfiled(uint32_t job) { profiled_[KeyOf(job)] = true; }

  const Trace& trace_;
  std::span<const ProfileDemands> beliefs_;
  const SimOptions& options_;
  std::vector<bool> profiled_;            // by profile, or by job; empty = nothing is
  std::vector<ProfileDemands> measured_;  // by profile
  std::vector<bool> profiles_;            // by node
  Alarms running_;                        // by job
};

}  // namespace horus

#endif  // HORUS_LAB_RUN_PROFILING_H_
