// SPDX-License-Identifier: Apache-2.0
// What the placer believes of jobs while a simulation runs: before and after they were profiled, from what devices were
// seen to do, and what their work counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/run/alarms.h"
#include "lab/run/cluster_map.h"
#include "lab/run/execution.h"
#include "lab/simulator.h"
#include "place/search/policy.h"
#include "place/state/cluster.h"

namespace horus {

// ---- Profiling: what the placer believes of jobs, before and after they were profiled, and who is being profiled.
// Cost: O(log jobs being profiled).

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

// ---- DeviceObserver: devices whose tenants stay the same for a while are seen, and what is seen is told to policy and
// learner.
// Cost: O(log devices observed), and the learner's.

class DeviceObserver {
 public:
  // All must outlive it.
  DeviceObserver(const SimOptions& options, const ClusterMap& map, const Execution& execution,
                 const Profiling& profiling)
      : options_(options), map_(map), execution_(execution), profiling_(profiling) {}

  // Somebody came to the device or left it now.
  void Restart(uint32_t device);
  [[nodiscard]] int64_t next_us() const { return due_.next_us(); }
  [[nodiscard]] std::optional<uint32_t> TakeDue() { return due_.TakeDue(execution_.now_us()); }

  // Tells policy and learner how its tenants fare.
  [[nodiscard]] absl::StatusOr<Revision> Observe(uint32_t device, const Policy& policy) const;
  // The job failed to start on these devices. Whether the learner learned of it; nothing where it was not told: there
  // is none, or the job met others on several devices, and nobody could tell who did not bear whom.
  [[nodiscard]] absl::StatusOr<std::optional<bool>> Failed(uint32_t job, std::span<const uint32_t> devices) const;

 private:
  const SimOptions& options_;
  const ClusterMap& map_;
  const Execution& execution_;
  const Profiling& profiling_;
  Alarms due_;  // by device
};

// What the job's work counts beside that of others by SimOptions::weights, before prices.
[[nodiscard]] float WeightOf(const TraceJob& job, SimWeights weights);

}  // namespace horus
