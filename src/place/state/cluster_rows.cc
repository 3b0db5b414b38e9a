// SPDX-License-Identifier: Apache-2.0
// What the columns of a cluster say of one device and of one job.
#include "place/state/cluster_rows.h"

namespace horus {

DeviceRow EmptyDevice(const DeviceSpec& spec, AdminState state) {
  DeviceRow row;
  row.type = spec.type;
  row.mode = spec.mode;
  row.state = state;
  row.max_tenants = spec.max_tenants;
  row.mem_mib = spec.mem_mib;
  row.compute_share = spec.compute_share;
  row.mps_clients = spec.mps_clients;
  return row;
}

DeviceRow ClusterRows::DeviceAt(uint32_t device) const {
  DeviceRow row = states.state(device_state[device]);
  for (const ResidentRow& resident : residents[device]) row.tenants.push_back(TenantAt(resident));
  states.Finish(row);
  return row;
}

JobSpec ClusterRows::SpecOf(const JobRow& job) const {
  JobSpec spec = RequestOf(job);
  spec.id = job.id;
  spec.submit_us = job.submit_us;
  if (const JobTag* tag = job.tag.get(); tag != nullptr) {
    spec.name = tag->name;
    spec.deadline_us = tag->deadline_us;
  }
  return spec;
}

void ClusterRows::LetGo(const JobRow& job) noexcept {
  for (const PlacedSlot& slot : job.slots) {
    if (slot.device != kNoDevice && slot.tenant != kNoTenant) states.DropTenant(slot.tenant);
  }
  if (job.live()) requests.Drop(job.request);
}

}  // namespace horus
