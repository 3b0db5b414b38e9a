// SPDX-License-Identifier: Apache-2.0
// Cores and host memory: what jobs have of them, and how fast they are with it.
#include <algorithm>

#include "sim/run/run.h"

namespace horus {

// A job that holds places has these cores and this host memory from now on.
void SimRun::SetHost(const JobSpec& spec) {
  if (!truth_.HostMatters()) return;
  const auto job = static_cast<uint32_t>(spec.id);
  const int32_t gpus = trace_.jobs[job].gpus_per_task;
  if (gpus > 0) lives_[job].host = {spec.cpu_milli / gpus, spec.mem_mib / gpus};
  UpdateHostSpeed(job);
}

// Of each GPU what the job was granted or asks for; else the GPU's fair share of the node, which those that work there
// and state nothing part evenly.
void SimRun::UpdateHostSpeed(uint32_t job) {
  Life& life = lives_[job];
  double slowest = 1;
  for (size_t i = 0; i < life.devices.size(); ++i) {
    const uint32_t device = life.devices[i];
    HostShare share = map_.fair_share(map_.node_of(device));
    const auto unstated = [&](int64_t HostShare::* part) {
      const std::span<const uint32_t> tenants = execution_.TenantsOf(device);
      const auto count = std::count_if(tenants.begin(), tenants.end(),
                                       [&](uint32_t tenant) { return lives_[tenant].host.*part == 0; });
      return share.*part / std::max<int64_t>(1, count);
    };
    share = {life.host.cpu_milli > 0 ? life.host.cpu_milli : unstated(&HostShare::cpu_milli),
             life.host.mem_mib > 0 ? life.host.mem_mib : unstated(&HostShare::mem_mib)};
    const double speed = truth_.HostSpeed(trace_.jobs[job].profile, share);
    slowest = i == 0 ? speed : std::min(slowest, speed);
  }
  if (slowest == life.host_speed) return;
  life.host_speed = slowest;
  if (life.phase == Phase::kRunning) execution_.SetHostSpeed(job, slowest);
}

// Somebody began or ended work on these devices.
void SimRun::ShareHosts(std::span<const uint32_t> devices) {
  if (!truth_.HostMatters()) return;
  for (const uint32_t device : devices) {
    for (const uint32_t tenant : execution_.TenantsOf(device)) UpdateHostSpeed(tenant);
  }
}

}  // namespace horus
