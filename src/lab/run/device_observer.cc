// SPDX-License-Identifier: Apache-2.0
// Reads off the execution what tenants of a device really cost each other.
#include "lab/run/device_observer.h"

#include <vector>

#include "base/status.h"

namespace horus {

void DeviceObserver::Restart(uint32_t device) {
  if (options_.observe_us == 0) return;
  due_.Cancel(device);
  if (execution_.TenantsOf(device).size() < 2) return;
  due_.Set(execution_.now_us() + options_.observe_us, device);
}

absl::StatusOr<Revision> DeviceObserver::Observe(uint32_t device, const Policy& policy) const {
  const DeviceContext context = map_.context(device);
  std::vector<const Demand*> demands;
  std::vector<double> speeds, slowdowns;
  for (const uint32_t job : execution_.TenantsOf(device)) {
    demands.push_back(profiling_.BeliefOn(job, context.type));
    speeds.push_back(execution_.ShareOn(job, device));
    slowdowns.push_back(1 / speeds.back());
  }
  HORUS_ASSIGN_OR_RETURN(Revision revision, policy.Revise({context, demands, speeds}));
  if (options_.learner != nullptr) {
    HORUS_RETURN_IF_ERROR(options_.learner->Observe({execution_.now_us(), context, demands, slowdowns}));
  }
  return revision;
}

absl::StatusOr<std::optional<bool>> DeviceObserver::Failed(uint32_t job, std::span<const uint32_t> devices) const {
  if (options_.learner == nullptr) return std::optional<bool>();
  std::optional<uint32_t> shared;
  for (const uint32_t device : devices) {
    if (execution_.TenantsOf(device).empty()) continue;
    if (shared) return std::optional<bool>();
    shared = device;
  }
  if (!shared) return std::optional<bool>();
  const DeviceContext context = map_.context(*shared);
  std::vector<const Demand*> demands;
  for (const uint32_t tenant : execution_.TenantsOf(*shared)) {
    demands.push_back(profiling_.BeliefOn(tenant, context.type));
  }
  demands.push_back(profiling_.BeliefOn(job, context.type));
  HORUS_ASSIGN_OR_RETURN(const bool learned, options_.learner->Failed({execution_.now_us(), context, demands, {}}));
  return std::optional<bool>(learned);
}

}  // namespace horus
