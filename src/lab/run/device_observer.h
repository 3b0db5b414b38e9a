// SPDX-License-Identifier: Apache-2.0
// DeviceObserver: devices whose tenants stay the same for a while are seen, and what is seen is told to policy and
// learner.
//
// Enters:  devices that somebody came to or left; starts that failed.
// Leaves:  which devices are due; what the policy makes of them.
// Units:   microseconds of the trace's clock.
// Cost:    O(log devices observed), and the learner's.    Thread class: one thread at a time.
#ifndef HORUS_LAB_RUN_DEVICE_OBSERVER_H_
#define HORUS_LAB_RUN_DEVICE_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "lab/run/alarms.h"
#include "lab/run/cluster_map.h"
#include "lab/run/execution.h"
#include "lab/run/profiling.h"
#include "lab/simulator.h"
#include "place/policy.h"

namespace horus {

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

}  // namespace horus

#endif  // HORUS_LAB_RUN_DEVICE_OBSERVER_H_
