// SPDX-License-Identifier: Apache-2.0
// Counts devices that are up and held, and lets their time pass.
#include "lab/run/use_meter.h"

namespace horus {

void UseMeter::Take(const TraceJob& job, std::span<const uint32_t> devices, std::span<const uint32_t> host_nodes,
                    int32_t sign) {
  if (devices.empty()) {
    for (const uint32_t node : host_nodes) fragments_.Take(node, {}, 0, job.cpu_milli, sign);
    return;
  }
  for (const uint32_t device : devices) {
    const bool was_idle = holders_[device] == 0;
    holders_[device] = static_cast<uint16_t>(holders_[device] + sign);
    used_ += was_idle ? 1 : holders_[device] == 0 ? -1 : 0;
  }
  const int32_t milli = job.gpu_milli == 0 ? kMilliPerGpu : job.gpu_milli;
  const auto per_task = static_cast<size_t>(job.gpus_per_task);
  for (size_t first = 0; first < devices.size(); first += per_task) {
    fragments_.Take(map_.node_of(devices[first]), devices.subspan(first, per_task), milli, job.cpu_milli, sign);
  }
}

void UseMeter::SetUp(uint32_t node, bool up) {
  up_ = up ? up_ + map_.devices_on(node) : up_ - map_.devices_on(node);
  fragments_.SetUp(node, up);
}

void UseMeter::PassTime(int64_t passed_us, bool waits) {
  const absl::int128 passed = passed_us;
  use_.device_us += passed * up_;
  use_.used_us += passed * used_;
  use_.free_us += passed * fragments_.free();
  use_.fragment_us += passed * fragments_.fragment();
  if (waits) use_.backlog_device_us += passed * up_;
}

}  // namespace horus
