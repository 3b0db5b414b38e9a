// SPDX-License-Identifier: Apache-2.0
// Positions of devices and jobs.
#include "interference/pair_model.h"

#include <algorithm>

namespace horus {

uint32_t PairHeader::DeviceOf(const PairDevice& device) const {
  const auto at = std::find(devices.begin(), devices.end(), device);
  return at == devices.end() ? kUnseen : static_cast<uint32_t>(at - devices.begin());
}

PairHeader HeaderOf(const PairSet& set) {
  PairHeader header{.devices = set.devices, .profiles = {}};
  for (const PairJob& job : set.jobs) header.profiles.push_back(job.profile_id);
  return header;
}

}  // namespace horus
